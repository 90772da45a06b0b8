"""Every domain's streams erased from recorded logs: views, states, audits and decisions go on."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from statelog.domain import Refused
from statelog.domain.erasure import ERASURE, Erased, unit_of
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.plan import PLAN, touch
from statelog.domain.execution.slot import SLOT
from statelog.domain.queue.job import JOB
from statelog.infrastructure.audit import audit
from statelog.infrastructure.audit.conformance import audit_rows
from statelog.infrastructure.audit.envelope import GONE
from statelog.infrastructure.audit.rules import load
from statelog.infrastructure.audit.source import Place
from statelog.infrastructure.audit.staging import stage
from statelog.infrastructure.audit.violations import Tally
from statelog.infrastructure.cli.all_erasable import all_erasable
from statelog.infrastructure.cli.all_rules import RULEBOOKS
from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.erasures import packed, unpacked
from statelog.infrastructure.exchange.erasing import Eraser
from statelog.infrastructure.exchange.finished import Desk, Subject
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.jsonl import line_of
from statelog.infrastructure.planning.sessions import Sessions
from statelog.infrastructure.queue.following import Following
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.runs.runs import Runs
from statelog.infrastructure.store.row import Row
from statelog.projections.queue.payloads import PRIVATE
from tests.golden.record import HERE
from tests.infrastructure.exchange.parcels import rows

LOGS = sorted(HERE.glob("*.db"))
MANY = 10_000
RULES = load(RULEBOOKS)


def find(stream: str) -> Subject | None:
    found = RULES.subject(stream)
    return None if found is None else (found[0].aggregate, found[1])


def erase(journal: Journal, prefix: str) -> Any:
    made = Eraser(Desk(journal, find, all_erasable()), all_views(), actor="bob")
    return made.erase(made.units(prefix), "because")


@pytest.fixture(params=LOGS, ids=lambda path: path.stem)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    """A copy of a recorded log."""
    with Journal(shutil.copy(request.param, tmp_path / "s.db")) as journal:
        yield journal


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Journal]:
    """The recorded log of sessions, jobs and runs."""
    with Journal(shutil.copy(HERE / "002-reads-shell.db", tmp_path / "s.db")) as journal:
        yield journal


def states(journal: Journal) -> dict[str, Any]:
    """Status and version of every stream that is no erasure."""
    found = {}
    for stream in {row.stream for row in journal.rows()}:
        subject = find(stream)
        assert subject is not None
        aggregate, ids = subject
        if aggregate is not ERASURE:
            loaded = journal.load(aggregate, ids[0] if len(ids) == 1 else ids)
            found[stream] = (loaded.version, loaded.state.status)
    return found


def test_whatever_may_be_erased_leaves_views_and_states(journal: Journal, tmp_path: Path):
    """Unit by unit; what may not be is named. Then the rows of every view, and the audit."""
    before, known = rows(journal, all_views(), tmp_path / "v.db"), states(journal)
    done, refused = 0, []
    for unit in sorted({unit_of(row.stream) for row in journal.rows()}):
        try:
            done += erase(journal, unit).events
        except Refused as refusal:
            refused.append((unit, refusal.reason))
    assert done > 100
    assert all(unit in reason for unit, reason in refused)
    assert rows(journal, all_views(), tmp_path / "w.db") == before
    assert states(journal) == known
    found = audit(journal, RULEBOOKS)
    assert found.good, list(found.violations)


def taken(path: Path, position: int) -> list[Row]:
    """All rows, once the payload of one went as no command lets it go."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE events SET data = NULL WHERE position = ?", (position,))
        db.commit()
    with Journal(path, read_only=True) as journal:
        return list(journal.rows())


def staged(rows: list[Row], folder: Path) -> Place:
    """A dump of these rows."""
    dump = BytesIO(b"".join(line_of(row) + b"\n" for row in rows))
    return stage(dump, Path(mkdtemp(dir=folder)), Tally(MANY))


def test_a_payload_that_is_gone_was_erased(tmp_path: Path):
    """Twice erased is no violation; what went otherwise is one, in a store, a dump, and in rows."""
    path, unit = Path(shutil.copy(LOGS[0], tmp_path / "s.db")), "plan/reads-qc"
    with Journal(path) as journal:
        for _ in range(2):
            erase(journal, unit)
            journal.execute(PLAN, "reads-qc", touch, actor="bob")
        head = journal.head()
        newest = next(row for row in journal.rows(after=head - 2))
    assert newest.name == Erased.stored_name
    for position in (0, head, newest.position):
        rows = taken(path, position)
        for found in (
            audit(path, RULEBOOKS, limit=MANY),
            audit(staged(rows, tmp_path), RULEBOOKS, limit=MANY),
            audit_rows(rows, RULES, limit=MANY),
        ):
            places = [each.position for each in found.violations if each.rule == GONE]
            assert found.good if position == 0 else position in places
            assert position != head or places == [head]


def test_payloads_that_an_export_leaves_out_are_no_violation(shell: Journal):
    """Those of jobs, and no others."""
    rows = [row._replace(data=None) if row.name in PRIVATE else row for row in shell.rows()]
    assert any(row.data is None for row in rows)
    assert audit_rows(rows, RULES).good


def test_every_state_is_kept_as_what_remains_of_it(journal: Journal):
    """Also where a class has fields that have no JSON form of their own."""
    declared = {each.aggregate.name: each for each in all_erasable()}
    seen = set()
    for stream in {row.stream for row in journal.rows()}:
        aggregate, ids = find(stream) or (PLAN, ())
        loaded = journal.load(aggregate, ids[0] if len(ids) == 1 else ids)
        erasable = declared[aggregate.name]
        if erasable.why_not(loaded) is None:
            state = erasable.remains(loaded.state)
            assert unpacked(aggregate.blank, packed(aggregate.blank, state)) == state
            assert state.status is loaded.state.status
            seen.add(aggregate.name)
    assert len(seen) >= 3


def test_a_plan_keeps_what_decides_its_next_attempt(tmp_path: Path):
    """Tokens, authority and body of the document, and the floor of execution ids."""
    with Journal(shutil.copy(LOGS[0], tmp_path / "s.db")) as journal:
        plan, slot = journal.load(PLAN, "reads-qc"), journal.load(SLOT, "reads-qc")
        erase(journal, "plan/reads-qc")
        assert journal.load(PLAN, "reads-qc") == plan
        assert journal.load(SLOT, "reads-qc") == slot
        assert plan.state.body
        assert slot.state.floor
        attempt = journal.load(ATTEMPT, ("reads-qc", slot.state.floor))
        assert (attempt.state.status.value, attempt.state.report) == ("closed", None)


def test_sessions_and_runs_are_listed_as_they_were(shell: Journal):
    """Also by who reads no stored view, and a job is never offered again."""
    sessions, runs = Sessions(shell).all(), Runs(shell).all()
    assert sessions
    assert runs
    erase(shell, "job")
    for each in sessions:
        erase(shell, f"session/{each['id']}")
    for each in runs:
        erase(shell, f"run/{each['id']}")
    assert Sessions(shell).all() == sessions
    assert Runs(shell).all() == runs
    with Queue(shell)._following.board() as board:
        assert not board.jobs()


def test_a_board_that_lags_behind_forgets_erased_jobs(
    shell: Journal, monkeypatch: pytest.MonkeyPatch
):
    """It has seen that a job waits, and cannot see any more that it ended."""
    first = next(shell.history("job"))
    following = Following(shell)
    with monkeypatch.context() as patch:
        patch.setattr(shell, "head", lambda: first.position)
        with following.board() as board:
            assert len(board.jobs()) == 1
    erase(shell, "job")
    with following.board() as board:
        assert not board.jobs()


def test_the_payload_of_a_job_is_gone_for_good(shell: Journal):
    """Nobody works on it again, so neither state nor view keeps it."""
    names = {recorded.stream for recorded in shell.history("job")}
    stream = sorted(names)[0]
    aggregate, ids = find(stream) or (JOB, ("",))
    assert shell.load(aggregate, ids[0]).state.payload
    erase(shell, stream)
    job = shell.load(JOB, ids[0]).state
    assert (job.payload, job.ended, bool(job.idempotency_key)) == ({}, True, True)
    (kept,) = shell.history("erasure")
    assert b"schedulePlan" not in (kept.data or b"")


def test_definitions_that_others_name_stay(shell: Journal):
    """By whoever names them; one that nobody names may go, and can still be read."""
    for recorded in list(shell.history("workflow")):
        with pytest.raises(Refused, match="refers to it"):
            erase(shell, recorded.stream)
