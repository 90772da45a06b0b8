"""Logs that earlier releases wrote are read by this one, to the byte (house rule: golden logs)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.plan import PLAN
from statelog.domain.execution.slot import SLOT
from statelog.domain.ids import stream_parts
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import COLUMNS, Row, hash_of
from statelog.infrastructure.views import Views
from statelog.projections.execution import EXECUTION_VIEWS
from tests.golden.record import HERE

LOGS = sorted(HERE.glob("*.db"))


@pytest.fixture(params=LOGS, ids=lambda path: path.stem)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Journal]]:
    """A golden log, opened from a copy."""
    tmp_path.chmod(0o700)
    copy = tmp_path / "golden.db"
    shutil.copyfile(request.param, copy)
    copy.chmod(0o600)
    with Journal(copy) as journal:
        yield request.param, journal


def test_there_is_a_golden_log_of_every_release() -> None:
    assert [path.stem for path in LOGS][:1] == ["001-reads-qc"]


def test_every_event_is_decoded(golden: tuple[Path, Journal]) -> None:
    _, journal = golden
    log = list(journal.read())
    assert [recorded.position for recorded in log] == list(range(1, len(log) + 1))
    assert all(type(recorded.event).stored_name == recorded.name for recorded in log)


def test_every_hash_is_what_it_was(golden: tuple[Path, Journal]) -> None:
    _, journal = golden
    for recorded in journal.read():
        assert recorded.data_hash == sha256(recorded.data or b"").digest()
        row = Row(*(getattr(recorded, column) for column in COLUMNS))
        assert recorded.hash == hash_of(row)


def test_every_stream_folds_through_its_lifecycle(golden: tuple[Path, Journal]) -> None:
    _, journal = golden
    versions: dict[str, int] = {}
    for recorded in journal.read():
        versions[recorded.stream] = recorded.version
    assert versions
    for stream, version in versions.items():
        match stream_parts(stream):
            case ("plan", plan_id):
                loaded = journal.load(PLAN, plan_id).version
            case ("plan", plan_id, "slot"):
                loaded = journal.load(SLOT, plan_id).version
            case ("plan", plan_id, "attempt", execution_id):
                loaded = journal.load(ATTEMPT, (plan_id, execution_id)).version
            case other:
                raise AssertionError(other)
        assert loaded == version


def test_every_view_is_what_it_was(golden: tuple[Path, Journal]) -> None:
    path, journal = golden
    recorded = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    with Views(journal, EXECUTION_VIEWS) as views:
        found = {view.name: dict(views.rows(view.name)) for view in EXECUTION_VIEWS}
        assert views.verify() == []
    assert still(recorded, found) == recorded


def still(recorded: Any, found: Any) -> Any:
    """What is there now of what was recorded: a release may add fields, and lose or change none."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        return {key: still(value, found.get(key)) for key, value in recorded.items()}
    return found
