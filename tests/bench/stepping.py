"""B6: a step of a chain that does nothing: two events, its folder and its success marker."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson

from statelog.domain.event import Recorded
from statelog.infrastructure.execution.workdir import MARKER
from statelog.infrastructure.store.row import Row
from tests.bench.chains import Chains
from tests.bench.peers import eventsourced
from tests.bench.peers.dbos import Dbos, Unavailable
from tests.bench.result import Line, absent, at_most, faster
from tests.bench.rounds import Effort, Turn, interleaved
from tests.bench.store import RawLog

STEPS = 250
WORK = "a no-op step of a chain"
RAW, SAVE, PEER = "file calls, two inserts", "eventsourcing, two saves", "DBOS step"


def measure(folder: Path, effort: Effort, cache: Path) -> list[Line]:
    """The three comparisons of B6."""
    chains = Chains(folder / "chain")
    chains.run(STEPS)
    raw = RawLog(folder / "chain-raw.db")
    contestants = {
        "statelog": lambda: chains.run(STEPS),
        RAW: _raw(chains, raw, folder / "chain-raw"),
        SAVE: _peer(chains, folder / "chain-eventsourcing.db"),
    }
    why, dbos = "", None
    try:
        dbos = Dbos(cache, folder / "dbos.db")
        contestants[PEER] = lambda: dbos.run(STEPS)
    except Unavailable as unavailable:
        why = str(unavailable)
    times = interleaved(contestants, effort)
    for each in (chains, raw, *([dbos] if dbos else [])):
        each.close()
    return [
        at_most("B6", WORK, times, RAW, 1.5),
        faster("B6", WORK, times, SAVE, 1.5, RAW),
        faster("B6", WORK, times, PEER, 5, RAW)
        if dbos
        else absent("B6", WORK, PEER, ">= 5 x", why),
    ]


def _raw(chains: Chains, log: RawLog, folder: Path) -> Turn:
    """The same rows and files as the chain that ran before, without anything that decides."""
    seen: set[str] = set()

    def turn() -> float:
        if chains.last in seen:
            chains.run(STEPS)
        seen.add(chains.last)
        work = folder / chains.last
        work.mkdir(parents=True)
        steps = _steps(chains.attempt())
        start = perf_counter()
        for step_id, started, succeeded, marker in steps:
            _step(log, os.path.join(work, step_id), started, succeeded, marker)
        return (perf_counter() - start) / len(steps)

    return turn


def _step(log: RawLog, folder: str, started: Row, succeeded: Row, marker: bytes) -> None:
    path = f"{folder}/{MARKER}"
    os.mkdir(folder)
    with suppress(FileNotFoundError):
        os.open(path, os.O_RDONLY)
    with suppress(FileNotFoundError):
        os.unlink(path)
    log.insert(started)
    log.insert(succeeded)
    beside = f"{folder}/.{MARKER}.tmp"
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(file, marker)
    os.close(file)
    os.rename(beside, path)


def _steps(events: Sequence[Recorded]) -> list[tuple[str, Row, Row, bytes]]:
    rows = [_row(event) for event in events[1:-1]]
    found = []
    for event, started, succeeded in zip(events[1:-1:2], rows[::2], rows[1::2], strict=True):
        data = orjson.loads(event.data or b"")
        found.append((data["step_id"], started, succeeded, f"{data['fingerprint']}\n".encode()))
    return found


def _row(event: Recorded) -> Row:
    return Row(*[getattr(event, field) for field in Row._fields])


def _peer(chains: Chains, path: Path) -> Turn:
    """An aggregate that is kept in memory and saved after each of its events, without files."""
    app = eventsourced.application(path)
    first, *middle, _last = (orjson.loads(each.data or b"") for each in chains.attempt())

    def turn() -> float:
        attempt = _attempt(first)
        app.save(attempt)
        start = perf_counter()
        for event in middle:
            (attempt.start_step if "why" in event else attempt.step_succeeded)(**event)
            app.save(attempt)
        return (perf_counter() - start) / (len(middle) / 2)

    return turn


def _attempt(started: dict[str, Any]) -> eventsourced.Attempt:
    return eventsourced.Attempt(
        execution_id=started["execution_id"], plan_id=started["plan_id"], steps=started["steps"]
    )
