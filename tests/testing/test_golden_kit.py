"""`golden_test` notices whatever a release does to a recorded log."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statelog.domain import Event, Lifecycle, Recorded, event
from statelog.domain.ids import stream_parts
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing import golden_logs, golden_test, record_golden
from statelog.projections import Projection
from tests.domain.desk import LIFECYCLE, TICKET, Closed, Merged, Noted, Opened, Status


def show(row: dict[str, Any], recorded: Recorded) -> dict[str, Any]:
    """The title of a ticket, and who has to do with it."""
    title = getattr(recorded.event, "title", row.get("title"))
    return {"title": title, "by": recorded.actor}


def board(evolve: Callable[..., Any] = show) -> Projection[Any]:
    return Projection(
        "golden_board",
        {},
        evolve,
        key=lambda recorded: stream_parts(recorded.stream)[1],
        events=(Opened, Noted, Closed, Merged),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one golden log of two tickets."""
    tmp_path.chmod(0o700)
    store, folder = tmp_path / "desk.db", tmp_path / "golden"
    folder.mkdir()
    with Journal(store) as journal:
        for id, event in (("1", Opened("No heat")), ("2", Opened("Noise")), ("1", Noted("a"))):
            given: list[Event] = [event]
            journal.execute(TICKET, id, lambda _, given=given: given, actor="bob")
    assert record_golden(store, folder, "001-desk", views=[board()]) == folder / "001-desk.db"
    return folder


def failures(folder: Path, aggregate: Any = TICKET, view: Any = None) -> list[str]:
    """The claims that do not hold."""
    test = golden_test(folder, aggregates=[aggregate], views=[view or board()])
    (mark,) = test.pytestmark  # type: ignore[attr-defined]
    said = []
    for path, claim in mark.args[1]:
        try:
            test(path, claim)
        except Exception as error:
            said.append(f"{claim}: {error}")
    return said


def test_a_log_that_is_read_as_ever_passes(folder: Path):
    """And is as it was afterwards."""
    before = (folder / "001-desk.db").read_bytes()
    assert failures(folder) == []
    assert (folder / "001-desk.db").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["001-desk.db", "001-desk.json"]


def test_a_golden_log_is_recorded_once(folder: Path):
    """Nobody mends a test by recording what it is about again."""
    with pytest.raises(FileExistsError):
        record_golden(folder.parent / "desk.db", folder, "001-desk")


def test_a_row_that_is_gone_is_found(folder: Path):
    """A lifecycle forgot what a log holds; retired it would be read."""
    kept = [row[:3] for row in LIFECYCLE.rows if row.event is not Noted]
    table: Any = dict(final=LIFECYCLE.final, reserved=LIFECYCLE.reserved, name="ticket")
    gone = replace(TICKET, lifecycle=Lifecycle(Status.NEW, kept, **table))
    (said,) = failures(folder, gone)
    assert said == "folds: ticket: no transition from OPEN on Noted"
    noted = [row[:3] for row in LIFECYCLE.rows if row.event is Noted]
    retired = replace(TICKET, lifecycle=Lifecycle(Status.NEW, kept, retired=noted, **table))
    assert failures(folder, retired) == []


def test_an_event_that_is_not_decoded_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Its stored name is another one by now."""
    monkeypatch.delitem(event._registry, "test.desk.noted")
    assert [said.split(":")[0] for said in failures(folder)] == ["is decoded", "folds"]


def test_a_document_that_changed_is_found(folder: Path):
    """A field more is no change."""
    more = board(lambda row, recorded: {**show(row, recorded), "more": 1})
    assert failures(folder, view=more) == []
    loud = board(lambda row, recorded: {**show(row, recorded), "by": "BOB"})
    (said,) = failures(folder, view=loud)
    assert said.startswith("shows what it did: golden_board 1: {'by': 'BOB'")


def test_a_view_that_is_gone_is_found(folder: Path):
    """Or nobody would look at its documents any more."""
    other = replace(board(), name="other")
    assert "documents of ['golden_board']" in "".join(failures(folder, view=other))


def test_a_stream_of_nobody_is_found(folder: Path):
    """Each must be folded by somebody."""
    assert (
        "no aggregate has the stream ticket/1"
        in failures(folder, replace(TICKET, stream="desk/{}"))[0]
    )


def test_a_hash_that_changed_is_found(folder: Path):
    """Somebody touched what is golden."""
    with sqlite3.connect(folder / "001-desk.db") as log:
        log.execute("UPDATE events SET actor = 'eve' WHERE position = 2")
    log.close()
    assert "has its hashes" in {said.split(":")[0] for said in failures(folder)}


def test_a_folder_without_logs_tests_nothing(tmp_path: Path):
    """So it is refused."""
    with pytest.raises(AssertionError, match="has no golden log"):
        golden_test(tmp_path, aggregates=[TICKET])


def test_the_fixture_gives_each_log(folder: Path):
    """With the documents that were recorded with it."""
    made = golden_logs(folder)
    function = getattr(made, "__wrapped__", None) or made._get_wrapped_function()
    request = type("Request", (), {"param": folder / "001-desk.db"})
    (golden,) = list(
        map(lambda found: (found.name, found.journal.head(), found.documents), function(request))
    )
    documents = json.loads((folder / "001-desk.json").read_text())
    assert golden == ("001-desk", 3, documents)
    assert documents == {
        "golden_board": {
            "1": {"by": "bob", "title": "No heat"},
            "2": {"by": "bob", "title": "Noise"},
        }
    }
