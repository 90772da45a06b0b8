"""What must hold of a store whatever happened to its processes."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from statelog.domain.event import Recorded
from statelog.domain.execution.attempt import ATTEMPT, AttemptStatus
from statelog.domain.execution.endings import finishes_request
from statelog.domain.execution.plan import PLAN, PlanStatus
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import COLUMNS, Row, hash_of
from statelog.infrastructure.views import Views
from statelog.projections.execution import EXECUTION_VIEWS


def rows_of(store: Path) -> list[Row]:
    """The log as SQLite has it; none when there is no store yet."""
    if not store.exists():
        return []
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        found = db.execute(f"SELECT {', '.join(COLUMNS)} FROM events ORDER BY position")
        return [Row._make(row) for row in found]


def check_log(rows: list[Row]) -> None:
    """Dense positions and versions, times in order, every hash right."""
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    assert [row.time for row in rows] == sorted(row.time for row in rows)
    versions: Counter[str] = Counter()
    for row in rows:
        versions[row.stream] += 1
        assert row.version == versions[row.stream]
        assert sha256(row.data or b"").digest() == row.data_hash
        assert hash_of(row) == row.hash


def lost(rows: list[Row], acks: Mapping[int, str]) -> list[int]:
    """Positions of acknowledged events that are not in the log, or not as they were."""
    there = {row.position: row.hash.hex() for row in rows}
    return sorted(position for position, hash in acks.items() if there.get(position) != hash)


def check_views(store: Path, *, catch_up: bool) -> None:
    """Every view equals its rebuild, as it was found or caught up."""
    if store.exists():
        journal = Journal(store, read_only=not catch_up)
        with journal, Views(journal, EXECUTION_VIEWS) as views:
            assert views.verify() == []


def check_attempts(store: Path, plan_id: str = "p") -> None:
    """One attempt at a time, each closed once, each finished one recorded once."""
    if not store.exists():
        return
    with Journal(store, read_only=True) as journal:
        history = list(journal.history(f"plan/{plan_id}"))
        slot = journal.load(SLOT, plan_id).state
        ids = sorted({r.stream.rsplit("/", 1)[1] for r in history if "/attempt/" in r.stream})
        attempts = {id: journal.load(ATTEMPT, (plan_id, id)).state for id in ids}
    running = [id for id, state in attempts.items() if state.status is AttemptStatus.RUNNING]
    assert running in ([], [slot.execution_id])
    assert not running or slot.status is SlotStatus.HELD
    held = [r.event.execution_id for r in _named(history, "held")]
    assert held == sorted(set(held))
    _check_recording(history, slot.execution_id if slot.status is SlotStatus.REPORTING else None)
    for id in ids:
        _check_attempt([r for r in history if r.stream.endswith(f"/{id}")])


def _check_recording(history: list[Recorded], waiting: str | None) -> None:
    closed = [r.event.report for r in _named(history, "closed")]
    finishing = [report["execution_id"] for report in closed if finishes_request(report)]
    assert [r.event.execution_id for r in _named(history, "report_filed")] == finishing
    released = Counter(
        r.event.execution_id
        for r in _named(history, "released")
        if r.event.how in ("recorded", "superseded")
    )
    assert released + Counter([waiting] if waiting else []) == Counter(finishing)
    finished = [
        (r.event.plan_generation, r.event.run_token) for r in _named(history, "request_finished")
    ]
    assert len(set(finished)) == len(finished)


def _check_attempt(events: list[Recorded]) -> None:
    names = [_word(recorded) for recorded in events]
    assert names == ["voided"] or names[0] == "started"
    assert names.count("closed") <= 1
    assert "closed" not in names[:-1]
    begun = [r.event.step_id for r in events if _word(r) in ("step_started", "step_skipped")]
    assert len(set(begun)) == len(begun)


def check_steps(store: Path, work: Path, markers: Mapping[str, str], plan_id: str = "p") -> None:
    """No two processes were at one plan, no step began twice, and every marker has its success."""
    story = work / "story.log"
    lines = story.read_text().splitlines() if story.exists() else []
    assert not [line for line in lines if line.endswith("clash")]
    assert max(Counter(lines).values(), default=1) == 1
    assert markers.items() <= successes(store, plan_id)


def successes(store: Path, plan_id: str) -> set[tuple[str, str]]:
    """Step and fingerprint of each success in the log."""
    found: set[tuple[str, str]] = set()
    running: dict[str, str] = {}
    for recorded in _history(store, plan_id):
        if _word(recorded) == "step_started":
            running[recorded.event.step_id] = recorded.event.fingerprint
        elif _word(recorded) == "step_succeeded":
            step_id = recorded.event.step_id
            found.add((step_id, running[step_id]))
    return found


def check_reuse(
    store: Path, after: int, markers: Mapping[str, str], plan_id: str = "p"
) -> Counter[str]:
    """What began after a position was reused if its marker was there then, and else ran."""
    counts: Counter[str] = Counter()
    for recorded in _history(store, plan_id, after):
        if (word := _word(recorded)) in ("step_started", "step_skipped"):
            held = markers.get(recorded.event.step_id) == recorded.event.fingerprint
            assert (word == "step_skipped") == held, recorded
            counts[word] += 1
    return counts


def is_open(store: Path, plan_id: str) -> bool:
    """Whether the plan's request is not finished yet."""
    if not store.exists():
        return True
    with Journal(store, read_only=True) as journal:
        plan = journal.load(PLAN, plan_id).state
    return plan.status is PlanStatus.ABSENT or plan.open


def abandoned_holders(store: Path, plan_id: str = "p") -> set[str]:
    """Holders whose attempts another process voided or closed."""
    return set(takeovers(store, plan_id).values())


def takeovers(store: Path, plan_id: str = "p") -> dict[int, str]:
    """By the position of each takeover, the holder whose attempt was voided or closed."""
    holders: dict[str, str] = {}
    found = {}
    for recorded in _history(store, plan_id):
        word = _word(recorded)
        if word == "held":
            holders[recorded.event.execution_id] = recorded.event.holder
        elif word == "voided":
            found[recorded.position] = holders[recorded.stream.rsplit("/", 1)[1]]
        elif word == "closed":
            details = (recorded.event.report["diagnostic"] or {}).get("details", {})
            if details.get("abandoned"):
                found[recorded.position] = details["holder"]
    return found


def _history(store: Path, plan_id: str, after: int = 0) -> list[Recorded]:
    if not store.exists():
        return []
    with Journal(store, read_only=True) as journal:
        return list(journal.history(f"plan/{plan_id}", after=after))


def _named(history: list[Recorded], word: str) -> list[Recorded]:
    return [recorded for recorded in history if _word(recorded) == word]


def _word(recorded: Recorded) -> str:
    return recorded.name.rsplit(".", 1)[1]
