"""B2: one stream of 5,000 events, from the file to the state."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson

from statelog.domain.event import Recorded
from statelog.domain.execution.attempt import ATTEMPT, Attempt
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import schema
from tests.bench.chains import Chains
from tests.bench.peers import eventsourced
from tests.bench.result import Line, at_most, faster
from tests.bench.rounds import Effort, Turn, interleaved

EVENTS = 5_000
WORK = f"an event of a replay of {EVENTS:,}"
RAW, PEER = "SELECT, orjson, dicts", "eventsourcing"


def measure(folder: Path, effort: Effort) -> list[Line]:
    """Both comparisons of B2."""
    chains = Chains(folder / "replay")
    chains.run((EVENTS - 2) // 2)
    events = chains.attempt()
    assert len(events) == EVENTS
    times = interleaved(
        {
            "statelog": _ours(chains.journal, chains.last, events),
            RAW: _raw(chains.journal, events),
            PEER: _peer(folder / "replay-eventsourcing.db", events),
        },
        effort,
    )
    chains.close()
    return [at_most("B2", WORK, times, RAW, 1.5), faster("B2", WORK, times, PEER, 8, RAW)]


def _ours(journal: Journal, plan_id: str, events: list[Recorded]) -> Turn:
    execution_id = events[0].stream.rsplit("/", 1)[1]

    def turn() -> float:
        start = perf_counter()
        loaded = journal.load(ATTEMPT, (plan_id, execution_id))
        seconds = perf_counter() - start
        assert loaded.version == EVENTS
        return seconds / EVENTS

    return turn


def _raw(journal: Journal, events: list[Recorded]) -> Turn:
    assert journal.store is not None
    db = sqlite3.connect(journal.store)
    stream = events[0].stream
    same = plain(ATTEMPT.fold(each.event for each in events))
    assert dict_fold(db, stream) == same, "the baseline folds to another state"

    def turn() -> float:
        start = perf_counter()
        dict_fold(db, stream)
        return (perf_counter() - start) / EVENTS

    return turn


def dict_fold(db: sqlite3.Connection, stream: str) -> dict[str, Any]:
    """The state of an attempt in dictionaries that are changed in place; nothing is checked."""
    loads = orjson.loads
    state: dict[str, Any] = {}
    steps: dict[str, dict[str, Any]] = {}
    for _position, _version, name, _schema, data in db.execute(schema.FOLDED, (stream,)):
        event = loads(data)
        if name == "execution.attempt.step_started":
            step = steps[event["step_id"]]
            step["status"] = "running"
            step["seq"] = event["seq"]
            step["run_id"] = event["run_id"]
            step["fingerprint"] = event["fingerprint"]
            state["running"] = event["step_id"]
        elif name == "execution.attempt.step_succeeded":
            step = steps[event["step_id"]]
            step["status"] = "succeeded"
            step["seq"] = event["seq"]
            state["running"] = None
        elif name == "execution.attempt.started":
            for entry in event["steps"]:
                steps[entry["step_id"]] = {"status": "pending", "seq": 0}
            state = {"status": "running", "steps": steps, "running": None, "report": None}
        elif name == "execution.attempt.closed":
            state["status"] = "closed"
            state["report"] = event["report"]
            state["running"] = None
        else:
            raise ValueError(name)
    return state


def plain(attempt: Attempt) -> dict[str, Any]:
    """The state that the baseline makes of the same events."""
    return {
        "status": attempt.status.value,
        "running": attempt.running,
        "report": attempt.report,
        "steps": {
            step_id: {
                "status": step.status.value,
                "seq": step.seq,
                "run_id": step.run_id,
                "fingerprint": step.fingerprint,
            }
            for step_id, step in attempt.steps.items()
        },
    }


def _peer(path: Path, events: list[Recorded]) -> Turn:
    app = eventsourced.application(path)
    first, *middle, last = (orjson.loads(each.data or b"") for each in events)
    attempt = eventsourced.Attempt(
        execution_id=first["execution_id"], plan_id=first["plan_id"], steps=first["steps"]
    )
    for event in middle:
        (attempt.start_step if "why" in event else attempt.step_succeeded)(**event)
    attempt.close(**last)
    app.save(attempt)

    def turn() -> float:
        start = perf_counter()
        found = app.repository.get(attempt.id)
        seconds = perf_counter() - start
        assert found.version == EVENTS
        return seconds / EVENTS

    return turn
