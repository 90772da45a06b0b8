"""Min-min and max-min (Ibarra and Kim, 1977): of what is ready, the soonest done or the last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from statelog.domain.planning.algorithms.growing import Growing, Ready
from statelog.domain.planning.algorithms.port import Algorithm, Object, Report
from statelog.domain.planning.algorithms.setting import Placement, plan, setting
from statelog.domain.planning.problem import Problem
from statelog.domain.workflows.schedule_plan import SchedulePlan

MIN_MIN = "min-min"
MAX_MIN = "max-min"


def _plans(
    algorithm: str, problem: Problem, configuration: Object, report: Report
) -> Iterator[SchedulePlan]:
    given = setting(problem)
    growing = Growing(given)
    ready = Ready(given)
    offers = Offers(growing, last=algorithm == MAX_MIN)
    offers.add(ready.first())
    while (chosen := offers.take()) is not None:
        growing.place(chosen)
        offers.renew(chosen.resource)
        offers.add(ready.after(chosen.activity))
        report(len(growing.placed) / len(given.activities))
    yield plan(given, algorithm, "time", growing.placed)


class Offers:
    """The earliest finish of every ready activity, grouped by the resource that offers it.

    Filling a lane delays the offers of its resource and no others, so only these are made again;
    unless a lane that had to boot is warm now, which may draw activities from everywhere.
    """

    def __init__(self, growing: Growing, *, last: bool) -> None:
        self._growing = growing
        self._last = last
        self._arrivals: dict[int, dict[int, tuple[float, float]]] = {}
        self._groups: list[dict[int, Placement]] = [{} for _ in growing.boards]
        self._best: list[Placement | None] = [None for _ in growing.boards]
        self._states = [board.state for board in growing.boards]
        self._warm = [board.warm for board in growing.boards]

    def add(self, activities: Iterable[int]) -> None:
        """These activities are ready."""
        for at in activities:
            self._arrivals[at] = self._growing.arrivals(at)
        self._offer(activities)

    def take(self) -> Placement | None:
        """The offer that is next, which leaves; None when nothing is ready."""
        best = self._extreme(offer for offer in self._best if offer is not None)
        if best is None:
            return None
        del self._groups[best.resource][best.activity]
        self._best[best.resource] = self._extreme(self._groups[best.resource].values())
        # another lane of the resource, as early, may have taken the place of the one it names
        return self._growing.earliest(best.activity, self._arrivals.pop(best.activity))

    def renew(self, resource: int) -> None:
        """A lane of this resource was filled."""
        board = self._growing.boards[resource]
        booted = board.warm > self._warm[resource]
        if board.state == self._states[resource] and not booted:
            return
        self._states[resource], self._warm[resource] = board.state, board.warm
        boots = self._growing.given.resources[resource].boot_overhead_seconds > 0
        stale = range(len(self._groups)) if booted and boots else (resource,)
        activities = [at for r in stale for at in self._groups[r]]
        for r in stale:
            self._groups[r], self._best[r] = {}, None
        self._offer(activities)

    def _offer(self, activities: Iterable[int]) -> None:
        for at in activities:
            offer = self._growing.earliest(at, self._arrivals[at])
            self._groups[offer.resource][at] = offer
            kept = self._best[offer.resource]
            both = (offer,) if kept is None else (kept, offer)
            self._best[offer.resource] = self._extreme(both)

    def _extreme(self, offers: Iterable[Placement]) -> Placement | None:
        """The earliest finish, or the last one; of equal ones the smaller activity number."""
        sign = -1.0 if self._last else 1.0
        return min(offers, key=lambda offer: (sign * offer.finish, offer.activity), default=None)


MINMIN = Algorithm(
    id=MIN_MIN,
    name="Min-min",
    objective="time",
    multiple=False,
    description="Of the ready activities the one that can finish first, where it does.",
    plans=partial(_plans, MIN_MIN),
)
MAXMIN = Algorithm(
    id=MAX_MIN,
    name="Max-min",
    objective="time",
    multiple=False,
    description="Of the ready activities the one whose earliest finish is last, where it is.",
    plans=partial(_plans, MAX_MIN),
)
