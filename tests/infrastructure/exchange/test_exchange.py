"""Exports and imports: the same log on the other side, or a line and a field that are wrong."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain import Conflict, Invalid, Refused
from statelog.domain.errors import Malformed
from statelog.infrastructure.exchange import lines
from statelog.infrastructure.exchange.exporting import CLOUDEVENTS, FORMATS, Export
from statelog.infrastructure.exchange.importing import BATCH, Import, Imported
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import Draft, Row, Stamp, stamped
from statelog.infrastructure.testing.strategies import json_values, text
from tests.infrastructure.exchange.parcels import ITEM, PARCEL, Moved, erase, filled, move, pack

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
TEXTS = st.none() | NAMES
DATA = st.one_of(
    json_values().map(lambda value: json.dumps(value, sort_keys=True).encode()),
    json_values().map(lambda value: json.dumps(value, separators=(",", ":")).encode()),
    text().map(lambda found: found.encode()),
    st.sampled_from(
        [b"null", b'"text"', b"1e400", b"[1.0]", b'{"b":1,"a":2}', b"18446744073709551616"]
    ),
)


@st.composite
def logs(draw: Any) -> list[Row]:
    """Rows that a store may hold, of whatever names, stamps and payloads; some without data."""
    found: list[Row] = []
    versions: dict[str, int] = {}
    for at in range(draw(st.integers(0, 6))):
        stream = draw(st.sampled_from(["a", "a/b", "%C3%A9/x"]))
        versions[stream] = versions.get(stream, 0) + 1
        meta = draw(st.none() | st.dictionaries(text(), json_values(), max_size=2).map(json.dumps))
        stamp = Stamp(draw(NAMES), draw(NAMES), draw(TEXTS), draw(TEXTS), meta)
        draft = Draft(stream, versions[stream], draw(NAMES), draw(st.integers(1, 9)), draw(DATA))
        (row,) = stamped([draft], stamp, at, 10**15 + at * 12345)
        found.append(row if draw(st.integers(0, 4)) else row._replace(data=None))
    return found


def exported(journal: Journal, form: str = "jsonl", **options: Any) -> bytes:
    file = io.BytesIO()
    Export(journal, format=form, **options).write(file)
    return file.getvalue()


def imported(journal: Journal, text: bytes) -> Imported:
    return Import(journal).read(io.BytesIO(text))


@settings(max_examples=150, deadline=None)
@given(rows=logs(), form=st.sampled_from(FORMATS))
def test_any_log_comes_back(rows: list[Row], form: str):
    """Every column of every row, to the byte; in both formats."""
    with Journal() as journal, Journal() as other:
        if rows:
            journal.take(rows)
        text = exported(journal, form)
        assert imported(other, text).events == len(rows)
        assert list(other.rows()) == rows
        assert exported(other, form) == text


@pytest.fixture
def log(tmp_path: Path) -> bytes:
    """The lines of a log with two parcels, one of them erased."""
    with Journal(tmp_path / "first.db") as journal:
        filled(journal)
        erase(journal, "parcel/a")
        return exported(journal)


def test_a_store_comes_back(tmp_path: Path, log: bytes):
    """Through a file of its own; an erasure comes along, so views and states are as they were."""
    with Journal(tmp_path / "first.db") as journal, Journal(tmp_path / "copy.db") as copy:
        done = imported(copy, log)
        assert (done.events, done.there, done.without_data) == (8, 0, 5)
        assert list(copy.rows()) == list(journal.rows())
        assert copy.load(PARCEL, "a") == journal.load(PARCEL, "a")
        copy.execute(ITEM, ("a", "2"), pack, what="x", actor="bob")
        assert copy.head() == 9


def test_the_same_again_adds_what_is_new(tmp_path: Path, log: bytes):
    with Journal(tmp_path / "first.db") as journal, Journal() as copy:
        imported(copy, log)
        assert imported(copy, log) == Imported(0, 8, 5)
        journal.execute(PARCEL, "a-live", move, place="far", actor="bob")
        assert imported(copy, exported(journal)) == Imported(1, 8, 5)
        assert list(copy.rows()) == list(journal.rows())


def test_a_log_with_other_events_is_refused(log: bytes):
    """Also one that has more than the file."""
    with Journal() as other:
        filled(other, "b")
        before = list(other.rows())
        with pytest.raises(Refused, match="line 1: the log has another event at position 1"):
            imported(other, log)
        assert list(other.rows()) == before
    with Journal() as longer:
        imported(longer, log)
        short = b"".join(log.splitlines(keepends=True)[:3])
        with pytest.raises(Refused, match="the log has 8 events, and the file ends at 3"):
            imported(longer, short)


def test_rows_follow_the_last_one_or_do_not_come_in(log: bytes):
    """Somebody else may have written since the file was compared with the log."""
    with Journal() as journal, Journal() as copy:
        imported(journal, log)
        found = list(journal.rows())
        with pytest.raises(Conflict):
            copy.take(found[1:])
        copy.take(found[:2])
        with pytest.raises(Conflict):
            copy.take(found[1:])
        copy.take(found[2:])
        assert list(copy.rows()) == found


def test_what_came_before_an_error_stays_and_the_rest_follows(monkeypatch: pytest.MonkeyPatch):
    """Each batch is one commit; a file that is mended goes on from there."""
    assert BATCH > 100
    monkeypatch.setattr("statelog.infrastructure.exchange.importing.BATCH", 3)
    with Journal() as journal, Journal() as copy:
        filled(journal)
        text = exported(journal)
        broken = text.replace(b'"parcel/a","version":3', b'"parcel/a","version":2')
        with pytest.raises(Invalid):
            imported(copy, broken)
        assert copy.head() == 6
        assert imported(copy, text) == Imported(1, 6, 0)
        assert list(copy.rows()) == list(journal.rows())


Change = Callable[[dict[str, Any]], Any]


def put(**values: Any) -> Change:
    return lambda line: line.update(values)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (put(position=9), "line 3: position"),
        (put(version=7), "line 3: version"),
        (put(version="1"), "line 3: version"),
        (put(time="yesterday"), "line 3: time"),
        (put(time=1), "line 3: time"),
        (put(time="2099-01-01T00:00:00Z"), "line 3: hash"),
        (put(stream="parcel/b"), "line 3: hash"),
        (put(stream="parcel/a"), "line 3: version"),
        (put(stream="parcel//b"), "line 3: stream"),
        (put(stream="a b"), "line 3: stream"),
        (put(name=""), "line 3: name"),
        (put(schema=0), "line 3: schema"),
        (put(schema=2**70), "line 3: schema"),
        (put(actor="eve"), "line 3: hash"),
        (put(actor=""), "line 3: actor"),
        (put(command="x\0"), "line 3: command"),
        (put(correlation=1), "line 3: correlation"),
        (put(meta={}), "line 3: hash"),
        (put(meta="[]"), "line 3: meta"),
        (put(meta="no"), "line 3: meta"),
        (put(data={"what": "x"}), "line 3: data_hash"),
        (put(data_hash="00"), "line 3: data_hash"),
        (put(data_hash="0" * 64), "line 3: data_hash"),
        (put(hash="0" * 64), "line 3: hash"),
        (lambda line: line.pop("hash"), "line 3: hash"),
        (lambda line: line.pop("stream"), "line 3: stream"),
    ],
)
def test_what_is_wrong_is_named(change: Change, field: str):
    """Line and field; nothing of the batch comes in."""
    with Journal() as journal, Journal() as copy:
        filled(journal)
        found = [json.loads(line) for line in exported(journal).splitlines()]
        change(found[2])
        with pytest.raises(Invalid) as caught:
            imported(copy, "\n".join(map(json.dumps, found)).encode())
        assert caught.value.field == field
        assert copy.head() == 0


def test_an_earlier_time_is_no_log():
    """Each line by itself may be right, and the order wrong."""
    stamp = Stamp("bob", "c")
    (one,) = stamped([Draft("a", 1, "n", 1, b"1")], stamp, 0, 5)
    (two,) = stamped([Draft("a", 2, "n", 1, b"1")], stamp, 1, 4)
    with Journal() as journal, Journal() as copy:
        journal.take([one, two])
        with pytest.raises(Invalid, match="line 2: time"):
            imported(copy, exported(journal))


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"1", b'{"a":1}', b"\xff\xfe", b'{"specversion":"0.3"}']
)
def test_what_is_no_event(line: bytes):
    with Journal() as journal, pytest.raises(Malformed, match="line 1"):
        imported(journal, line + b"\n")


def test_lines_are_bounded(monkeypatch: pytest.MonkeyPatch):
    """A file without an end of line is not read whole."""
    monkeypatch.setattr(lines, "LONGEST", 1000)
    with Journal() as journal:
        file = io.BytesIO(b"x" * 100_000)
        with pytest.raises(Malformed, match="line 1: is longer than 1,000 bytes"):
            Import(journal).read(file)
        assert file.tell() <= 1001


def test_empty_lines_and_an_empty_file_are_nothing(log: bytes):
    with Journal() as journal:
        assert imported(journal, b"") == Imported(0, 0, 0)
        assert imported(journal, b"\n" + log.replace(b"\n", b"\n\n")).events == 8


def test_cloudevents_are_such(log: bytes):
    """Required attributes, and extensions whose names and values the specification allows."""
    with Journal() as journal:
        imported(journal, log)
        found = [json.loads(line) for line in exported(journal, CLOUDEVENTS).splitlines()]
    for at, event in enumerate(found, 1):
        assert (event["specversion"], event["id"]) == ("1.0", str(at))
        assert event["source"].startswith("urn:statelog:")
        assert all(name.isalnum() and name.islower() for name in event if name != "data")
        assert all(isinstance(value, str) for name, value in event.items() if name != "data")
    assert len({event["source"] for event in found}) == 1
    live = next(event for event in found if event["type"] == Moved.stored_name and "data" in event)
    assert (live["subject"], live["data"]) == ("parcel/a-live", {"place": "hill"})


@pytest.mark.parametrize("form", FORMATS)
def test_private_payloads_stay_at_home(form: str):
    """Such an event goes without its data; its hashes still say what it was."""
    with Journal() as journal, Journal() as copy:
        filled(journal)
        export = Export(journal, format=form, private={Moved.stored_name})
        file = io.BytesIO()
        export.write(file)
        assert (export.events, export.left_out) == (7, 2)
        assert b"harbour" not in file.getvalue()
        assert imported(copy, file.getvalue()).without_data == 2
        assert [row.hash for row in copy.rows()] == [row.hash for row in journal.rows()]


def test_a_part_is_what_is_below(log: bytes):
    """It is no log, and does not come in as one."""
    with Journal() as journal, Journal() as copy:
        imported(journal, log)
        file = io.BytesIO()
        Export(journal).write(file, "parcel/a-live")
        found = [json.loads(line)["stream"] for line in file.getvalue().splitlines()]
        assert found == ["parcel/a-live"] * 2
        with pytest.raises(Invalid, match="line 1: position: is 2, and 1 comes next"):
            imported(copy, file.getvalue())
