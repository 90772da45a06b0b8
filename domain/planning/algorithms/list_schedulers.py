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


Offer = tuple[float, float, int]
"""A finish, its cost, and the number of the resource: the smallest is the best."""


class Offers:
    """What every resource offers every ready activity, grouped by the one that offers best.

    Filling a lane delays the offers of its resource and no others, so only those to its group are
    made again; unless a lane that had to boot is warm now, which may draw activities from all.
    """

    def __init__(self, growing: Growing, *, last: bool) -> None:
        self._growing = growing
        self._sign = -1.0 if last else 1.0
        self._arrivals: dict[int, dict[int, tuple[float, float]]] = {}
        self._rows: dict[int, dict[int, Offer]] = {}
        self._groups: list[dict[int, float]] = [{} for _ in growing.boards]
        self._next: list[tuple[float, int] | None] = [None for _ in growing.boards]
        self._states = [board.state for board in growing.boards]
        self._warm = [board.warm for board in growing.boards]

    def add(self, activities: Iterable[int]) -> None:
        """These activities are ready."""
        for at in activities:
            self._arrivals[at] = self._growing.arrivals(at)
            self._rows[at] = {r: self._offer(at, r) for r in self._arrivals[at]}
            self._join(at)

    def take(self) -> Placement | None:
        """The next activity where it was offered most, which leaves; None when none is ready.

        `renew` its resource when it is placed.
        """
        waiting = [known for known in self._next if known is not None]
        if not waiting:
            return None
        _, at = min(waiting)
        chosen = self._growing.earliest(at, self._arrivals.pop(at))
        del self._rows[at], self._groups[chosen.resource][at]
        return chosen

    def renew(self, resource: int) -> None:
        """A lane of this resource was filled."""
        board = self._growing.boards[resource]
        booted = board.warm > self._warm[resource]
        boots = self._growing.given.resources[resource].boot_overhead_seconds > 0
        if booted and boots:
            stale = [at for at, row in self._rows.items() if resource in row]
        else:
            stale = list(self._groups[resource]) if board.state != self._states[resource] else []
        self._states[resource], self._warm[resource] = board.state, board.warm
        for at in stale:
            self._groups[min(self._rows[at].values())[2]].pop(at, None)
            self._rows[at][resource] = self._offer(at, resource)
        self._regroup(stale, range(len(self._groups)) if booted and boots else (resource,))

    def _regroup(self, stale: Iterable[int], resources: Iterable[int]) -> None:
        """Find the next of the groups that may have lost theirs, then let the others join."""
        for r in resources:
            left = ((self._sign * finish, at) for at, finish in self._groups[r].items())
            self._next[r] = min(left, default=None)
        for at in stale:
            self._join(at)

    def _offer(self, at: int, r: int) -> Offer:
        given = self._growing.given
        start = self._growing.boards[r].start(self._arrivals[at][r][0])
        return start + given.seconds[at][r], given.cost(at, r), r

    def _join(self, at: int) -> None:
        """Into the group of the best offer, which is made again: those not best may be old."""
        row = self._rows[at]
        finish, _, r = best = min(row.values())
        while (now := self._offer(at, r)) != best:
            row[r] = now
            finish, _, r = best = min(row.values())
        self._groups[r][at] = finish
        mine, known = (self._sign * finish, at), self._next[r]
        self._next[r] = mine if known is None else min(known, mine)


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
