"""B5: a whole log of plans into snapshots, each contestant in a process of its own."""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson

from statelog.domain.times import iso
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.views import Views
from statelog.projections.execution import plan_status
from tests.bench import auditing
from tests.bench.peers import eventsourced
from tests.bench.result import Line, faster
from tests.bench.rounds import Effort, Turn, interleaved

WORK = "an event of a rebuild of 1,000,000"
MEMORY_WORK = "memory of its largest process"
RAW, PEER = "SELECT, orjson, dicts, one process", "eventsourcing, notifications"
FASTER, PEER_FASTER, MOST_MB = 1.5, 8, 400
WANTED = f"<= {MOST_MB} MB"
ROOT = Path(__file__).resolve().parents[2]

_SAMPLE = 20
_EVENTS = (
    "execution.attempt.started",
    "execution.attempt.step_started",
    "execution.attempt.step_succeeded",
    "execution.attempt.closed",
)
_SQL = (
    "SELECT stream, name, time, data FROM events "
    f"WHERE name IN ({', '.join('?' * len(_EVENTS))}) ORDER BY position"
)


def measure(folder: Path, effort: Effort, *, quick: bool) -> list[Line]:
    """Both comparisons of B5, and the memory of the process of ours that takes the most."""
    store, events = auditing.log(folder, quick=quick)
    peer = folder / "rebuild-eventsourcing.db"
    notified = _fill_peer(store, peer)
    megabytes: list[float] = []
    times = interleaved(
        {
            "statelog": _turn("statelog", store, events, megabytes),
            RAW: _turn("raw", store, events),
            PEER: _turn("peer", peer, notified),
        },
        effort,
    )
    _compare(store)
    most = max(megabytes)
    return [
        faster("B5", WORK, times, RAW, FASTER, RAW),
        faster("B5", WORK, times, PEER, PEER_FASTER, RAW),
        Line("B5", MEMORY_WORK, "peak", WANTED, most, most <= MOST_MB),
    ]


def _turn(kind: str, store: Path, events: int, megabytes: list[float] | None = None) -> Turn:
    numbers = count()

    def turn() -> float:
        out = store.with_name(f"{store.name}.{kind}-{next(numbers)}")
        words = [sys.executable, "-m", "tests.bench.rebuilding", kind, str(store), str(out)]
        told = json.loads(
            subprocess.run(words, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout
        )
        last = store.with_name(f"{store.name}.{kind}")
        out.rename(last)
        for left in store.parent.glob(f"{out.name}*"):
            left.unlink()
        if megabytes is not None:
            megabytes.append(told["megabytes"])
        return float(told["seconds"]) / events

    return turn


def _compare(store: Path) -> None:
    """The baseline did the same work: its steps are those of our documents."""
    one, other = (_steps(store.with_name(f"{store.name}.{kind}")) for kind in ("statelog", "raw"))
    assert one == other, "the baseline folds to something else"


def _steps(path: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(path)) as db:
        sql = "SELECT key, document FROM plan_status ORDER BY key LIMIT 20"
        return {key: json.loads(document)["steps"] for key, document in db.execute(sql)}


def _ours(store: Path, out: Path) -> None:
    with Journal(store) as journal, Views(journal, [plan_status], out) as views:
        views.rebuild()


def _raw(store: Path, out: Path) -> None:
    with closing(sqlite3.connect(store)) as db:
        _write(out, _fold(_rows(db)))


def _rows(db: sqlite3.Connection) -> Iterator[tuple[str, str, int, Any]]:
    loads = orjson.loads
    for stream, name, at, data in db.execute(_SQL, _EVENTS):
        yield stream.split("/", 2)[1], name, at, loads(data)


def _fold(events: Iterable[tuple[str, str, int, Any]]) -> dict[str, dict[str, Any]]:
    """Dictionaries that are changed in place; nothing is checked."""
    plans: dict[str, dict[str, Any]] = {}
    for plan_id, name, at, event in events:
        if name == "execution.attempt.step_started":
            plan = plans[plan_id]
            plan["updated_at"] = at
            step = plan["steps"][event["step_id"]]
            step["state"] = "step.started"
            step["run_id"] = event["run_id"]
            step["fingerprint"] = event["fingerprint"]
            step["ts"] = at
        elif name == "execution.attempt.step_succeeded":
            plan = plans[plan_id]
            plan["updated_at"] = at
            step = plan["steps"][event["step_id"]]
            step["state"], step["outcome"], step["progress"] = "step.succeeded", "succeeded", 100
            step["fingerprint"] = event["fingerprint"]
            step["ts"] = at
            step["artifacts"], step["metrics"] = event["artifacts"], event["metrics"]
        elif name == "execution.attempt.started":
            plans[plan_id] = {
                "plan_id": plan_id,
                "updated_at": at,
                "attempt": {**event, "state": "running"},
                "steps": {each["step_id"]: _step(each) for each in event["steps"]},
            }
        else:
            plan = plans[plan_id]
            plan["updated_at"] = at
            plan["attempt"]["state"] = "finished"
            plan["attempt"]["outcome"] = event["report"]["outcome"]
    return plans


def _step(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "step_name": entry["step_name"],
        "state": "pending",
        "outcome": None,
        "run_id": None,
        "fingerprint": None,
        "job": None,
        "ts": None,
        "progress": 0,
        "artifacts": [],
        "metrics": {},
        "error": None,
        "direct_blockers": [],
        "failed_ancestors": [],
    }


def _write(out: Path, plans: dict[str, dict[str, Any]]) -> None:
    with closing(sqlite3.connect(out, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("CREATE TABLE plan_status (key TEXT PRIMARY KEY, document)")
        db.execute("BEGIN")
        rows = ((key, _document(plan)) for key, plan in plans.items())
        db.executemany("INSERT INTO plan_status VALUES (?, ?)", rows)
        db.execute("COMMIT")


def _document(plan: dict[str, Any]) -> str:
    plan["updated_at"] = iso(plan["updated_at"])
    for step in plan["steps"].values():
        if step["ts"] is not None:
            step["ts"] = iso(step["ts"])
    return orjson.dumps(plan).decode()


def _fill_peer(store: Path, path: Path) -> int:
    """The attempts of some plans as aggregates of the peer; how many events they have."""
    app = eventsourced.application(path)
    attempts: dict[str, eventsourced.Attempt] = {}
    events = 0
    with closing(sqlite3.connect(store)) as db:
        for plan_id, name, _at, event in _rows(db):
            if name == _EVENTS[0]:
                if len(attempts) == _SAMPLE:
                    break
                names = ("execution_id", "plan_id", "steps")
                attempts[plan_id] = eventsourced.Attempt(**{key: event[key] for key in names})
            elif plan_id in attempts:
                attempt = attempts[plan_id]
                done: dict[str, Callable[..., None]] = dict(
                    zip(
                        _EVENTS[1:],
                        (attempt.start_step, attempt.step_succeeded, attempt.close),
                        strict=True,
                    )
                )
                done[name](**event)
            events += 1
    for attempt in attempts.values():
        app.save(attempt)
    return events


def _peer(store: Path, out: Path) -> None:
    """Each notification made an event again, as the projections of the peer are fed."""
    app = eventsourced.application(store)
    _write(out, _fold(_notified(app)))


def _notified(app: Any) -> Iterator[tuple[str, str, int, Any]]:
    names = dict(zip(("Started", "StepStarted", "StepSucceeded", "Closed"), _EVENTS, strict=True))
    plans: dict[Any, str] = {}
    start = 1
    while section := app.recorder.select_notifications(start, 500):
        for notification in section:
            event = app.mapper.to_domain_event(notification)
            fields = vars(event)
            if "plan_id" in fields:
                plans[event.originator_id] = event.plan_id
            at = int(event.timestamp.timestamp() * 1e6)
            yield plans[event.originator_id], names[type(event).__name__], at, fields
        start = section[-1].id + 1


def main() -> None:
    """One rebuild: how long it took, and the memory of the process that took the most."""
    kind, store, out = sys.argv[1:]
    work = {"statelog": _ours, "raw": _raw, "peer": _peer}[kind]
    start = perf_counter()
    work(Path(store), Path(out))
    seconds = perf_counter() - start
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({"seconds": seconds, "megabytes": max(u.ru_maxrss for u in used) / 1024}))


if __name__ == "__main__":
    main()
