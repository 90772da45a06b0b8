"""B3: one decision with one event, durable before it returns."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from time import perf_counter

from statelog.domain import SAME, Aggregate, Event, Lifecycle
from statelog.domain.aggregate import changed
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import Row
from tests.bench.peers import eventsourced
from tests.bench.result import Line, at_most, faster
from tests.bench.rounds import Effort, Turn, interleaved
from tests.bench.store import RawLog

COMMANDS = 200
WORK = "a durable command, one event"
RAW, PEER = "insert of the same row", "eventsourcing"
NOTE = "seen from the bench"


class Counted(Event, name="bench.tally.counted"):
    """Something was counted."""

    by: int
    note: str


class Status(Enum):
    """A tally only grows."""

    NEW, OPEN = "new", "open"


@dataclass(frozen=True)
class Tally:
    """What was counted so far."""

    status: Status = Status.NEW
    total: int = 0


def evolve(tally: Tally, event: Counted) -> Tally:
    """The tally after an event."""
    return changed(tally, total=tally.total + event.by)


def count(tally: Tally, *, by: int, note: str) -> list[Counted]:
    """Count further."""
    return [Counted(by, note)]


TALLY = Aggregate(
    "tally",
    Tally(),
    evolve,
    Lifecycle(Status.NEW, [(Counted, Status.NEW, Status.OPEN), (Counted, Status.OPEN, SAME)]),
)


def measure(folder: Path, effort: Effort) -> list[Line]:
    """Both comparisons of B3. The raw insert gets the rows that the command before it made."""
    journal = Journal(folder / "append.db")
    raw = RawLog(folder / "append-raw.db")
    made: deque[Row] = deque()
    ours = _ours(journal, made)
    ours()
    times = interleaved(
        {
            "statelog": ours,
            RAW: _raw(raw, made),
            PEER: _peer(folder / "append-eventsourcing.db"),
        },
        effort,
    )
    journal.close()
    raw.close()
    return [at_most("B3", WORK, times, RAW, 1.6), faster("B3", WORK, times, PEER, 1.8, RAW)]


def _ours(journal: Journal, made: deque[Row]) -> Turn:
    tally = journal.load(TALLY, "one")

    def turn() -> float:
        nonlocal tally
        seconds = 0.0
        for number in range(COMMANDS):
            start = perf_counter()
            done = journal.commit(tally.decide(count, by=number, note=NOTE), actor="bob")
            tally = done.loaded[0]
            seconds += perf_counter() - start
            made.extend(done.rows)
        return seconds / COMMANDS

    return turn


def _raw(log: RawLog, made: deque[Row]) -> Turn:
    def turn() -> float:
        seconds = 0.0
        for _ in range(COMMANDS):
            row = made.popleft()
            start = perf_counter()
            log.insert(row)
            seconds += perf_counter() - start
        return seconds / COMMANDS

    return turn


def _peer(path: Path) -> Turn:
    app = eventsourced.application(path)
    tally = eventsourced.Tally()
    app.save(tally)

    def turn() -> float:
        seconds = 0.0
        for number in range(COMMANDS):
            start = perf_counter()
            tally.count(by=number, note=NOTE)
            app.save(tally)
            seconds += perf_counter() - start
        return seconds / COMMANDS

    return turn
