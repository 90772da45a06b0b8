"""B9: what an append, a start and a load cost with few and with many events in the store."""

from __future__ import annotations

from itertools import count, cycle
from pathlib import Path
from statistics import median
from time import perf_counter

from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.plan import PLAN
from statelog.infrastructure.journal import Journal
from tests.bench import appending, auditing
from tests.bench.result import Line, at_most
from tests.bench.rounds import Effort, Times, Turn, interleaved

FEW = 10_000
BETWEEN = 100_000
LIMIT = 1.2
APPEND, START, LOAD = "an append, median", "opening the store", "a load of a plan and its attempt"
WORKS = (APPEND, START, LOAD)

Points = dict[str, dict[int, float]]
"""By work: the time with so many events, as a multiple of that with the fewest."""

_TIMES = 100


def measure(folder: Path, effort: Effort, *, quick: bool) -> tuple[list[Line], Points]:
    """The three comparisons, and the points between them for the chart."""
    store, events = auditing.log(folder, quick=quick)
    stores = {events: store, FEW: folder / "sizes-few.db"}
    auditing.fill(stores[FEW], FEW)
    if not quick:
        stores[BETWEEN] = folder / "sizes-between.db"
        auditing.fill(stores[BETWEEN], BETWEEN)
    lines, points = [], Points()
    numbers = count()
    for work, turn in ((APPEND, _append), (START, _start), (LOAD, _load)):
        names = {size: "statelog" if size == events else _with(size) for size in stores}
        contestants = {names[size]: turn(path, numbers) for size, path in stores.items()}
        times = interleaved(contestants, effort)
        told = named(work, auditing.QUICK if quick else auditing.FULL)
        lines.append(at_most("B9", told, times, _with(FEW), LIMIT))
        points[work] = {size: _relative(times, names[size]) for size in sorted(stores)}
    return lines, points


def named(work: str, size: int) -> str:
    """A work with about so many events in the store."""
    return f"{work}, {size:,} events"


def _with(size: int) -> str:
    return f"with {size:,}"


def _relative(times: Times, name: str) -> float:
    pairs = zip(times[name], times[_with(FEW)], strict=True)
    return median(one / few for one, few in pairs)


def _append(store: Path, numbers: count[int]) -> Turn:
    """The median of some durable commands of one event."""
    journal = Journal(store)
    tally = journal.load(appending.TALLY, f"sizes-{next(numbers)}")

    def turn() -> float:
        nonlocal tally
        took = []
        for number in range(_TIMES):
            start = perf_counter()
            change = tally.decide(appending.count, by=number, note=appending.NOTE)
            tally = journal.commit(change, actor="bench").loaded[0]
            took.append(perf_counter() - start)
        return median(took)

    return turn


def _start(store: Path, numbers: count[int]) -> Turn:
    """From no journal to its last position."""

    def turn() -> float:
        took = []
        for _ in range(_TIMES // 5):
            start = perf_counter()
            with Journal(store) as journal:
                journal.head()
                took.append(perf_counter() - start)
        return median(took)

    return turn


def _load(store: Path, numbers: count[int]) -> Turn:
    """The median over the ten plans that are in every store."""
    journal = Journal(store)
    plans = cycle(f"p{number:06}" for number in range(10))

    def turn() -> float:
        took = []
        for _ in range(_TIMES // 5):
            plan_id = next(plans)
            start = perf_counter()
            journal.load(PLAN, plan_id)
            journal.load(ATTEMPT, (plan_id, auditing.ID))
            took.append(perf_counter() - start)
        return median(took)

    return turn
