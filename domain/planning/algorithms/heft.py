"""Heterogeneous Earliest Finish Time, in the variant the original documents (3.5).

Ranks know no communication, lanes are filled at their end, the smallest partial makespan wins,
and two resources without a direct link exchange data in no time (P15).
"""

from __future__ import annotations

from collections.abc import Iterator

from statelog.domain.planning.algorithms.port import Algorithm, Object, Report
from statelog.domain.planning.algorithms.setting import Placement, Setting, plan, setting, total
from statelog.domain.planning.problem import Problem
from statelog.domain.workflows.network import Network, link_seconds
from statelog.domain.workflows.schedule_plan import SchedulePlan


def plans(problem: Problem, configuration: Object, report: Report) -> Iterator[SchedulePlan]:
    """The one plan of HEFT; it has no configuration."""
    given = setting(problem)
    direct = Direct(given)
    placements = tuple(_placements(given, direct, report))
    warnings = direct.warnings(placements)
    yield plan(given, HEFT.id, HEFT.objective, placements, warnings=warnings)


def upward_ranks(given: Setting) -> list[float]:
    """The longest path of mean durations from each activity to an end, itself included."""
    ranks = [0.0] * len(given.activities)
    for at in reversed(range(len(ranks))):
        seconds = given.seconds[at]
        mean = total(seconds) / len(seconds)
        ranks[at] = mean + max((ranks[below] for below in given.after[at]), default=0.0)
    return ranks


def by_rank(given: Setting) -> list[int]:
    """Activities by rank descending; of equal ranks the topological order."""
    ranks = upward_ranks(given)
    return sorted(range(len(ranks)), key=lambda at: -ranks[at])


def _placements(given: Setting, direct: Direct, report: Report) -> Iterator[Placement]:
    boards = given.boards()
    done: list[Placement | None] = [None] * len(given.activities)
    makespan = cost = 0.0
    for count, at in enumerate(by_rank(given), start=1):
        above = [(p, size) for n, size in given.before[at] if (p := done[n]) is not None]
        best: tuple[float, float] | None = None
        chosen = Placement(at, 0, 0, 0.0, 0.0, 0.0, 0.0)
        for r in given.places[at]:
            ready, transfer = direct.arrival(above, r)
            finish, start, lane = boards[r].offer(ready, given.seconds[at][r], makespan)
            value = (max(makespan, finish), cost + given.cost(at, r))
            if best is None or value < best:
                best = value
                chosen = Placement(at, r, lane, ready, start, finish, transfer)
        boards[chosen.resource].take(chosen.lane, chosen.finish)
        done[at] = chosen
        makespan = max(makespan, chosen.finish)
        cost += given.cost(at, chosen.resource)
        yield chosen
        report(count / len(done))


class Direct:
    """Transfers over direct links alone; without one they take no time."""

    def __init__(self, given: Setting) -> None:
        network = Network(given.problem.topology)
        self._given = given
        self._network = network
        ids = [resource.id for resource in given.resources]
        self._links = [[network.direct(a, b) if a != b else None for b in ids] for a in ids]

    def seconds(self, source: int, target: int, size_bytes: int) -> float:
        """Seconds from one resource to another; the link's latency when there are no bytes."""
        link = self._links[source][target]
        return link_seconds(link, size_bytes) if link is not None else 0.0

    def arrival(self, above: list[tuple[Placement, int]], target: int) -> tuple[float, float]:
        """When the last predecessor's data is on a resource, and all seconds of transfer."""
        ready = total = 0.0
        for placed, size_bytes in above:
            seconds = self.seconds(placed.resource, target, size_bytes)
            ready = max(ready, placed.finish + seconds)
            total += seconds
        return ready, total

    def warnings(self, placements: tuple[Placement, ...]) -> list[str]:
        """A sentence for each pair of resources that data must cross without a link (P15)."""
        where = {placed.activity: placed.resource for placed in placements}
        pairs = {
            (where[above], where[at]): None
            for at in sorted(where)
            for above, size_bytes in self._given.before[at]
            if size_bytes > 0 and where[above] != where[at]
        }
        return [
            self._warning(source, target)
            for source, target in sorted(pairs)
            if self._links[source][target] is None
        ]

    def _warning(self, source: int, target: int) -> str:
        here, there = self._given.resources[source].id, self._given.resources[target].id
        lacks = "direct link" if self._network.route(here, there, 1) else "route"
        return f"no {lacks} from {here} to {there}: transfers counted as 0 s"


HEFT = Algorithm(
    id="heft",
    name="HEFT",
    objective="time",
    multiple=False,
    description="Activities by upward rank, each where the plan so far grows least.",
    plans=plans,
)
