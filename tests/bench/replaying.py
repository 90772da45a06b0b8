"""B2: one stream of 5,000 events, from the file to the state."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson

from statelog.domain.event import Event
from statelog.domain.execution.attempt import ATTEMPT, Attempt
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import schema
from tests.bench import account
from tests.bench.chains import Chains
from tests.bench.peers import eventsourced
from tests.bench.result import Line, at_most, compared, faster
from tests.bench.rounds import Effort, Times, Turn, interleaved

EVENTS = 5_000
WORK = f"an event of a replay of {EVENTS:,}"
ATTEMPT_WORK = f"the same of an attempt of {EVENTS // 2:,} steps"
RAW, PEER, MUTABLE = "SELECT, orjson, dicts", "eventsourcing", "dicts changed in place"


def measure(folder: Path, effort: Effort) -> list[Line]:
    """Both comparisons of B2, and an attempt's stream beside dictionaries changed in place."""
    times = _account(folder, effort)
    return [
        at_most("B2", WORK, times, RAW, 1.5),
        faster("B2", WORK, times, PEER, 8, RAW),
        compared("B2", ATTEMPT_WORK, _attempt(folder, effort), MUTABLE),
    ]


def _account(folder: Path, effort: Effort) -> Times:
    with Journal(folder / "account.db") as journal:
        new = journal.load(account.ACCOUNT, "one")
        change = new.decide(account.live, movements=EVENTS - 2)
        state = journal.commit(change, actor="bob").state
        db = sqlite3.connect(folder / "account.db")
        assert account.dict_fold(db, change.stream) == account.plain(state)
        return interleaved(
            {
                "statelog": _turn(lambda: journal.load(account.ACCOUNT, "one")),
                RAW: _turn(lambda: account.dict_fold(db, change.stream)),
                PEER: _peer(folder / "account-eventsourcing.db", change.events),
            },
            effort,
        )


def _attempt(folder: Path, effort: Effort) -> Times:
    chains = Chains(folder / "replay")
    chains.run((EVENTS - 2) // 2)
    events = chains.attempt()
    assert len(events) == EVENTS
    assert chains.journal.store is not None
    stream, db = events[0].stream, sqlite3.connect(chains.journal.store)
    ids = chains.last, stream.rsplit("/", 1)[1]
    same = plain(ATTEMPT.fold(each.event for each in events))
    assert dict_fold(db, stream) == same, "the baseline folds to another state"
    times = interleaved(
        {
            "statelog": _turn(lambda: chains.journal.load(ATTEMPT, ids)),
            MUTABLE: _turn(lambda: dict_fold(db, stream)),
        },
        effort,
    )
    chains.close()
    return times


def _turn(work: Callable[[], object]) -> Turn:
    def turn() -> float:
        start = perf_counter()
        work()
        return (perf_counter() - start) / EVENTS

    return turn


def _peer(path: Path, events: Sequence[Event]) -> Turn:
    app = eventsourced.application(path)
    opened, *movements, closed = events
    saved = eventsourced.Account(**vars(opened))
    for event in movements:
        (saved.deposit if isinstance(event, account.Deposited) else saved.withdraw)(**vars(event))
    saved.close(**vars(closed))
    app.save(saved)
    assert app.repository.get(saved.id).version == EVENTS
    return _turn(lambda: app.repository.get(saved.id))


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
