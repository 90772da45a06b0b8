"""Critical Path on a Processor (Topcuoglu, Hariri and Wu, 2002), lanes filled at their end."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from statelog.domain.planning.algorithms.growing import Growing, Ready
from statelog.domain.planning.algorithms.port import Algorithm, Object, Report
from statelog.domain.planning.algorithms.setting import Setting, plan, setting, total
from statelog.domain.planning.algorithms.transfers import Transfers
from statelog.domain.planning.problem import Problem
from statelog.domain.workflows.schedule_plan import SchedulePlan


def plans(problem: Problem, configuration: Object, report: Report) -> Iterator[SchedulePlan]:
    """The one plan of CPOP; it has no configuration."""
    given = setting(problem)
    growing = Growing(given)
    ranks = path_lengths(given, growing.transfers)
    path = critical_path(given, ranks)
    home = _home(given, path)
    _fill(growing, ranks, dict.fromkeys(path, home), report)
    yield plan(given, CPOP.id, CPOP.objective, growing.placed)


def path_lengths(given: Setting, transfers: Transfers) -> list[float]:
    """The longest path of mean durations and transfers through each activity."""
    means = [
        total(seconds[r] for r in places) / len(places)
        for seconds, places in zip(given.seconds, given.places, strict=True)
    ]
    latency, per_byte = transfers.means()
    moved = [
        [(n, latency + size * per_byte if size > 0 else 0.0) for n, size in above]
        for above in given.before
    ]
    down = [0.0] * len(means)
    up = list(means)
    for at, above in enumerate(moved):
        down[at] = max((down[n] + means[n] + seconds for n, seconds in above), default=0.0)
    for at in reversed(range(len(means))):
        for n, seconds in moved[at]:
            up[n] = max(up[n], means[n] + seconds + up[at])
    return [a + b for a, b in zip(down, up, strict=True)]


def critical_path(given: Setting, lengths: list[float]) -> list[int]:
    """From the entry with the longest path, always to the successor with the longest."""
    entries = [at for at, above in enumerate(given.before) if not above]
    path: list[int] = []
    while entries:
        path.append(max(entries, key=lambda at: (lengths[at], -at)))
        entries = list(given.after[path[-1]])
    return path


def _home(given: Setting, path: list[int]) -> int:
    """The resource that holds most of the path, and all of that in the least time."""

    def value(r: int) -> tuple[int, float]:
        held = [given.seconds[at][r] for at in path if r in given.places[at]]
        return -len(held), total(held)

    return min(range(len(given.resources)), key=value)


def _fill(growing: Growing, lengths: list[float], pinned: dict[int, int], report: Report) -> None:
    ready = Ready(growing.given)
    heap = [(-lengths[at], at) for at in ready.first()]
    heapify(heap)
    while heap:
        _, at = heappop(heap)
        arrivals = growing.arrivals(at)
        home = pinned.get(at)
        among = [home] if home is not None and home in arrivals else None
        growing.place(growing.earliest(at, arrivals, among))
        for below in ready.after(at):
            heappush(heap, (-lengths[below], below))
        report(len(growing.placed) / len(lengths))


CPOP = Algorithm(
    id="cpop",
    name="CPOP",
    objective="time",
    multiple=False,
    description="The critical path on the one resource that runs it fastest, the rest around it.",
    plans=plans,
)
