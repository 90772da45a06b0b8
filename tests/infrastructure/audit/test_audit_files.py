"""Logs in files: what is said of rows in memory is said of a store and a dump of them too."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from io import BytesIO
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.errors import Invalid, Malformed
from statelog.infrastructure.audit import conformance, envelope
from statelog.infrastructure.audit.conformance import Audit, audit, audit_rows
from statelog.infrastructure.audit.source import Source
from statelog.infrastructure.audit.staging import stage
from statelog.infrastructure.audit.streams import TRANSITIONS
from statelog.infrastructure.audit.violations import Tally
from statelog.infrastructure.cli.all_rules import RULEBOOKS
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.jsonl import line_of, row_of
from statelog.infrastructure.store.row import Row
from statelog.infrastructure.testing.contracts import COUNTER, add, start
from tests.golden.test_golden import LOGS
from tests.infrastructure.audit.forging import FORGERIES, Log, renumbered
from tests.infrastructure.audit.legal import SPECS, legal, rules
from tests.infrastructure.audit.logs import Shelf, rows_of

OF_DUMPS = {"a_version_again", "a_position_twice", "a_type_that_is_not_its_own"}
"""What no store can hold, or gives back as it was."""


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def dumped(rows: list[Row], folder: Path) -> Audit:
    """The audit of a dump."""
    tally = Tally(100)
    lines = BytesIO(b"".join(line_of(row) + b"\n" for row in rows))
    folder.joinpath("dump.db").unlink(missing_ok=True)
    return audit(stage(lines, folder, tally), SPECS, tally=tally)


def told(found: Audit) -> list[tuple]:
    return sorted((each.position, each.rule, each.why, each.stream) for each in found.violations)


def test_a_store_and_a_dump_are_told_what_rows_are(shelf: Shelf, tmp_path: Path):
    """Each forgery once, in a store where it fits into one, and in a dump."""
    random = Random(7)
    for forger in FORGERIES:
        forged = None
        while forged is None:
            forged = forger(Log(legal(random.randrange(60), 120), random))
        rows = forged[0]
        expected = told(audit_rows(rows, rules()))
        assert expected
        if forger.__name__ != "a_type_that_is_not_its_own":
            assert told(dumped(rows, tmp_path)) == expected, forger.__name__
        positions = {row.position for row in rows}
        versions = {(row.stream, row.version) for row in rows}
        if len(positions) == len(versions) == len(rows) and forger.__name__ not in OF_DUMPS:
            in_order = sorted(rows, key=lambda row: row.position)
            expected = told(audit_rows(in_order, rules()))
            assert told(audit(shelf.put(rows), SPECS)) == expected, forger.__name__


def test_several_processes_find_the_same(shelf: Shelf):
    """Two processes, a violation in each kind of work, and the same in one."""
    rows = renumbered(row for row in rows_of(400))
    rows[200] = rows[200]._replace(time=rows[199].time - 5)
    rows[300] = rows[300]._replace(command=rows[3].command)
    path = shelf.put(rows)
    one, two = (audit(path, SPECS, jobs=jobs) for jobs in (1, 2))
    assert told(one) == told(two)
    assert {envelope.TIMES, envelope.COMMANDS, envelope.HEADERS} <= set(one.counts)
    assert one.counts == two.counts


def test_every_violation_is_counted_and_the_first_are_kept(shelf: Shelf):
    """With a limit of three, those of lowest position of each rule."""
    rows = [row._replace(actor="mallory") for row in rows_of(40)]
    found = audit(shelf.put(rows), SPECS, limit=3)
    assert found.counts[envelope.HEADERS] == 40
    kept = [each.position for each in found.violations if each.rule == envelope.HEADERS]
    assert kept == [1, 2, 3]


def test_roots_are_told_once_each(shelf: Shelf):
    """Also those whose streams do not stand together in the order of stream names."""
    with Journal(shelf.put([])) as journal:
        for name in ("a", "a-b", "a.b", "a0", "b"):
            journal.execute(COUNTER, name, start, actor="bob")
        rows = list(journal.rows())
    nested = [
        row._replace(stream=f"{row.stream}/part/1", position=row.position + 5, command="x")
        for row in rows
    ]
    source = Source(conformance.Place(shelf.put([*rows, *nested])))
    assert {count for _, count in source.roots()} == {2}
    names = [root for root, _ in source.roots()]
    assert sorted(names) == sorted({f"counter/{name}" for name in ("a", "a-b", "a.b", "a0", "b")})
    assert sum(len(list(source.below(root))) for root in names) == 10
    source.close()


def test_of_payloads_that_are_gone_only_an_erasure_is_asked_for():
    """Headers are still held to the lifecycle; what would be folded from data is not asked for."""
    for seed in range(20):
        rows = legal(seed, 100)
        random = Random(seed)
        erased = [row._replace(data=None) if random.random() < 0.3 else row for row in rows]
        gone = audit_rows(erased, rules(), limit=len(rows))
        assert {each.rule for each in gone.violations} == {envelope.GONE}
        assert [each.position for each in gone.violations] == [
            row.position for row in erased if row.data is None
        ]
    rows = [row._replace(data=None) for row in legal("x", 100)]
    first = next(row for row in rows if row.name == "contract.counter.started")
    stopped = next(row for row in rows if row.name == "contract.counter.stopped")
    again = renumbered([*rows[: stopped.position], first, *rows[stopped.position :]])
    emptied = [row._replace(data_hash=rows[0].data_hash) for row in again]
    found = audit_rows([row._replace(data=None) for row in emptied], rules())
    assert TRANSITIONS in found.counts


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_golden_logs_break_no_rule(log: Path, shelf: Shelf):
    """What earlier releases wrote is still right."""
    shelf.path.write_bytes(log.read_bytes())
    shelf.path.chmod(0o600)
    found = audit(shelf.path, RULEBOOKS)
    assert (found.events > 100, told(found)) == (True, [])


def test_a_journal_in_memory_is_audited_too():
    """Against aggregates that are given, not named."""
    with Journal() as journal:
        journal.execute(COUNTER, "a", start, actor="bob")
        journal.execute(COUNTER, "a", add, by=2, actor="bob")
        assert audit(journal, [COUNTER]).good
        assert audit(journal, []).counts == {"a stream is of a declared aggregate": 1}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("json", "'json' is not module:NAME"),
        ("no_such_module:X", "ModuleNotFoundError"),
        ("json:NONE", "AttributeError"),
        ("json:dumps", "is no Rulebook or Aggregate but of type function"),
    ],
)
def test_a_name_that_cannot_be_used_is_input_that_is_wrong(shelf: Shelf, name: str, why: str):
    """It says which, and why."""
    with pytest.raises(Invalid, match="with: ") as error:
        audit(shelf.put([]), [name])
    assert why in str(error.value)


# lines


def test_lines_are_read_back_bit_for_bit():
    """Rows of all kinds, erased ones too."""
    for row in [*rows_of(60), *legal(1, 60)]:
        assert row_of(line_of(row)) == row


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=40), st.text(max_size=20))
def test_any_payload_comes_back(data: bytes, meta: str):
    """Canonical or not, JSON or not, as long as it is text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return
    row = rows_of(1)[0]._replace(data=data, meta=meta)
    assert row_of(line_of(row)) == row


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nonsense", "line: is not JSON"),
        (b"[]", "line: is not a JSON object"),
        (b"{}", "position: is missing"),
    ],
)
def test_a_line_that_is_no_event_is_refused(line: bytes, said: str):
    """With the field, or the line itself."""
    with pytest.raises(Malformed, match=said):
        row_of(line)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("position", "1", "must be an integer"),
        ("version", True, "must be an integer"),
        ("stream", None, "must be text"),
        ("cause", 5, "must be text or null"),
        ("time", "yesterday", "must be microseconds or ISO 8601 with a zone"),
        ("time", "2026-01-01T00:00:00", "must be microseconds or ISO 8601 with a zone"),
        ("hash", "abc", "must be 64 hexadecimal digits"),
    ],
)
def test_a_field_of_another_type_is_named(field: str, value: object, said: str):
    """So that whoever made the dump can mend it."""
    good = json.loads(line_of(rows_of(1)[0]))
    with pytest.raises(Malformed, match=f"{field}: {said}"):
        row_of(json.dumps({**good, field: value}).encode())


def test_a_line_that_is_no_event_is_a_violation(tmp_path: Path):
    """The others are audited all the same."""
    tally, lines = Tally(100), [line_of(row) for row in legal(2, 60)]
    text = b"\n".join([*lines[:3], b"nonsense", b"", *lines[3:]])
    place = stage(BytesIO(text), tmp_path, tally)
    found = audit(place, SPECS, tally=tally)
    assert [(each.position, each.rule) for each in found.violations] == [(4, envelope.LINES)]
    assert str(found.violations[0]).startswith("line 4: a line is an event: line: is not JSON")
    assert found.events == len(lines)


def test_a_damaged_index_is_damage(tmp_path: Path, damaged_store: Callable[[Path], None]):
    """Its events are all there, and what is read by it is wrong."""
    store = tmp_path / "s.db"
    damaged_store(store)
    with Journal(store) as journal:
        journal.execute(COUNTER, "a", start, actor="bob")
    with closing(sqlite3.connect(store, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = 1")
        db.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, '(command)', '(actor)') "
            "WHERE name = 'events_by_command'"
        )
    found = audit(store, [COUNTER])
    assert {each.rule for each in found.violations} == {envelope.INTACT}
    assert str(found.violations[0]).startswith("the file is intact: ")
