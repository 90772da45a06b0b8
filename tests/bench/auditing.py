"""Audit: a whole log of plans against every rule, by as many processes as there are cores."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter

from statelog.domain.aggregate import Change
from statelog.domain.event import Event
from statelog.domain.execution import attempt as attempts
from statelog.domain.execution import plan as plans
from statelog.domain.execution import slot as slots
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.plan import PLAN, RequestFinished
from statelog.domain.execution.slot import SLOT
from statelog.domain.execution.spec import PlanSpec
from statelog.infrastructure import codec
from statelog.infrastructure.audit.conformance import audit
from statelog.infrastructure.cli.all_rules import RULEBOOKS
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import Draft, Row, Stamp, stamped
from statelog.infrastructure.store.schema import INSERT
from tests.bench.result import Line

FULL, QUICK = 1_000_000, 50_000
WORK = "an audit of 1,000,000 events"
LIMIT_S = 60
WANTED = f"<= {LIMIT_S} s"
CORES = 2

_STEPS = 245
ID = "20260101T000000000000Z_0000"
_START = 1_767_225_600_000_000


def measure(folder: Path, *, quick: bool) -> Line:
    """One audit, from the file to the answer; of a shorter log the time of the long one told."""
    path, made = log(folder, quick=quick)
    cores = min(CORES, os.cpu_count() or 1)
    begin = perf_counter()
    found = audit(path, RULEBOOKS, jobs=cores)
    seconds = perf_counter() - begin
    assert (found.events, dict(found.counts)) == (made, {}), found
    told = seconds * FULL / made
    other = f"{cores} processes, {made:,} events"
    return Line("audit", WORK, other, WANTED, told, told <= LIMIT_S, ours_us=told / FULL * 1e6)


def log(folder: Path, *, quick: bool) -> tuple[Path, int]:
    """The log of this run, made once, and how many events it was made with."""
    path, told = folder / "audit.db", folder / "audit.events"
    if not told.exists():
        told.write_text(str(fill(path, QUICK if quick else FULL)), encoding="utf-8")
    return path, int(told.read_text(encoding="utf-8"))


def fill(path: Path, events: int) -> int:
    """A log of plans of 245 steps each, ten of them at any time; how many events it has."""
    Journal(path).close()
    template = list(_plan())
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA wal_autocheckpoint = 1000")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        position, time = 0, _START
        for at in range(0, events // len(template) or 1, 10):
            rows = list(_together(template, at, position, time))
            db.executemany(INSERT, rows)
            position, time = rows[-1].position, rows[-1].time
        db.execute("COMMIT")
    return position


def _together(
    template: list[tuple[str, Event, bytes]], first: int, position: int, time: int
) -> Iterator[Row]:
    """Ten plans whose events stand between each other's."""
    versions: dict[str, int] = {}
    for number, (stream, event, data) in enumerate(template):
        for plan in range(first, first + 10):
            name = f"p{plan:06}"
            ours = stream.replace("p000000", name)
            versions[ours] = version = versions.get(ours, 0) + 1
            draft = Draft(
                ours,
                version,
                event.stored_name,
                event.schema,
                data.replace(b"p000000", name.encode()),
            )
            stamp = Stamp("bench", f"{name}-{number}")
            position, time = position + 1, time + 1000
            yield from stamped([draft], stamp, position - 1, time)


def _plan() -> Iterator[tuple[str, Event, bytes]]:
    """The events of one plan that succeeds: stream, event, payload."""
    for change in _changes():
        for event in change.events:
            yield change.stream, event, codec.encode(event)


def _changes() -> Iterator[Change]:
    steps = [
        {
            "step_id": f"s{n}",
            "name": f"Step {n}",
            "fn_ref": "steps:run",
            "params": {},
            "deps": [f"s{n - 1}"] if n else [],
        }
        for n in range(_STEPS)
    ]
    body = {"plan_id": "p000000", "realm": "lab", "scope": {}, "steps": steps}
    plan = PLAN.blank_of("p000000").decide(plans.save, body=body, generation="g1", approved=True)
    yield plan
    state = plan.state
    slot = SLOT.blank_of("p000000").decide(
        slots.admit,
        execution_id=ID,
        holder="h1",
        plan_version=plan.after.version,
        plan_generation="g1",
        run_token=0,
        execution_authority=state.execution_authority,
        execution_owner=None,
    )
    yield slot
    attempt = ATTEMPT.blank_of(("p000000", ID)).decide(
        attempts.start,
        plan=PlanSpec.from_json(body),
        slot=slot.state,
        started_at="2026-01-01T00:00:00.000000Z",
    )
    yield attempt
    for n in range(_STEPS):
        given = {"run_id": f"run_{n}", "fingerprint": "sha256:" + 64 * "0", "params": {}}
        for decision, more in ((attempts.start_step, given), (attempts.succeed, {})):
            attempt = attempt.after.decide(decision, step_id=f"s{n}", **more)
            yield attempt
    report = attempts.report_so_far(attempt.state).closed(
        "completed", "2026-01-01T01:00:00.000000Z", None
    )
    closed = attempt.after.decide(attempts.close, report=report)
    yield closed
    slot = slot.after.decide(slots.file_report, execution_id=ID)
    yield slot
    told = report.to_json()
    names = RequestFinished.__dataclass_fields__
    yield plan.after.decide(
        plans.finish, result=RequestFinished(**{name: told[name] for name in names})
    )
    yield slot.after.decide(slots.release, execution_id=ID, how=slots.RECORDED)
