"""Sealing and verifying: what is legal afterwards, what is refused, and odd files."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from statelog.domain.errors import Invalid, StoreError
from statelog.infrastructure.audit.checkpoint import Checkpoint, parse_checkpoint
from statelog.infrastructure.audit.findings import Finding
from statelog.infrastructure.audit.merkle import EMPTY, Tree
from statelog.infrastructure.audit.sealing import seal, verify
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.contracts import COUNTER, add
from tests.house.repo import ROOT
from tests.infrastructure.audit.logs import Shelf, fill, rows_of
from tests.infrastructure.audit.test_tampering import STANDALONE, module_of


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


@pytest.fixture
def journal(store_path: Path) -> Iterator[Journal]:
    """A log of 30 events in a file."""
    with Journal(store_path) as made:
        fill(made, 30)
        yield made


def sql(journal: Journal, statement: str, *given: object) -> None:
    """Change the file by hand, beside the journal."""
    with closing(sqlite3.connect(journal.store)) as db:
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute(statement, given)
        db.commit()


def test_the_root_is_that_of_the_stored_leaf_hashes(journal: Journal):
    """Which anybody can compute from one column."""
    made = seal(journal)
    leaves = [row.hash for row in journal.rows()]
    assert (made.size, made.root) == (30, Tree(leaves).root)
    assert made.origin == f"statelog/{leaves[0].hex()[:16]}"
    assert (made.extensions, made.signatures) == ((), ())


def test_sealing_writes_nothing(journal: Journal):
    """No event, no file: the same log gives the same checkpoint."""
    before = {path: path.stat().st_size for path in journal.store.parent.iterdir()}
    assert seal(journal) == seal(journal)
    assert {path: path.stat().st_size for path in journal.store.parent.iterdir()} == before
    assert journal.head() == 30


def test_a_part_and_a_name_can_be_chosen(journal: Journal):
    """Up to a position; origin and extension lines as given."""
    made = seal(journal, upto=7, origin="example.com/log", extensions=["note: a"])
    assert (made.origin, made.size, made.extensions) == ("example.com/log", 7, ("note: a",))
    assert verify(journal, parse_checkpoint(str(made).encode())).later == 23


def test_events_that_come_later_do_no_harm(journal: Journal):
    """They are counted, and not covered: also when they are tampered with."""
    made = seal(journal)
    journal.execute(COUNTER, "1", add, times=5, actor="bob")
    verdict = verify(journal, made)
    assert (verdict.finding, verdict.later, verdict.erased) == (None, 5, 0)
    sql(journal, "UPDATE events SET actor = 'eve' WHERE position = 31")
    assert verify(journal, made).finding is None
    with pytest.raises(StoreError, match="event 31: changed header"):
        seal(journal)


def test_payloads_may_go(journal: Journal):
    """Erased before or after sealing: the root still verifies, and they are counted."""
    sql(journal, "UPDATE events SET data = NULL WHERE position = 3")
    made = seal(journal)
    sql(journal, "UPDATE events SET data = NULL WHERE position BETWEEN 10 AND 12")
    assert (verify(journal, made).finding, verify(journal, made).erased) == (None, 4)


def test_a_log_in_memory_is_sealed_alike(journal: Journal):
    """The hashes are the same wherever the log is kept."""
    with Journal(clock=lambda: 1) as one:
        fill(one, 9)
        assert verify(one, seal(one)).finding is None


def test_an_empty_log_needs_a_name():
    """There is no first leaf hash to make one of; its root is that of the empty tree."""
    with Journal() as empty:
        with pytest.raises(Invalid, match="origin"):
            seal(empty)
        made = seal(empty, origin="example.com/new")
        assert (made.size, made.root) == (0, EMPTY)
        assert verify(empty, made).finding is None


def test_every_log_holds_to_the_checkpoint_of_the_empty_one(journal: Journal):
    assert verify(journal, Checkpoint("o", 0, EMPTY)).finding is None
    assert verify(journal, Checkpoint("o", 0, bytes(32))).finding is not None


def test_a_checkpoint_of_another_log_does_not_fit(journal: Journal, shelf: Shelf):
    """Nothing is wrong with any event, so no position is named."""
    with Journal(shelf.put(rows_of(30)), read_only=True) as other:
        verdict = verify(journal, seal(other))
    assert verdict.finding is not None
    assert (verdict.finding.kind, verdict.finding.position) == ("rewritten", None)
    assert "another log" in str(verdict.finding)


def test_a_bad_key_is_found_before_a_long_log_is_read(journal: Journal):
    """And so is an origin that no key can have."""
    read: list[int] = []
    with pytest.raises(Invalid, match="not a private key"):
        seal(journal, key=b"no key", progress=lambda *at: read.append(1))
    assert read == []


def test_progress_is_told_page_by_page(shelf: Shelf):
    """How many of how many, growing."""
    seen: list[tuple[int, int]] = []
    with Journal(shelf.put(rows_of(1203)), read_only=True) as long:
        made = seal(long, progress=lambda *at: seen.append(at))
        assert seen == [(500, 1203), (1000, 1203)]
        assert verify(long, made, lambda *at: seen.append(at)).finding is None
    assert len(seen) == 4


ODD: dict[str, tuple[str, str]] = {
    "text that is not UTF-8": ("actor = CAST(x'ff' AS TEXT)", "unreadable"),
    "a blob for a text": ("actor = CAST(actor AS BLOB)", "changed header"),
    "a text for a hash": ("data_hash = 'x'", "changed header"),
    "a text for the leaf hash": ("hash = 'x'", "changed hash"),
    "a number for a payload": ("data = 7", "changed data"),
    "a text for a payload": ("data = CAST(data AS TEXT)", "changed data"),
    "a text for a number": ("version = 'x'", "changed header"),
    "a fraction": ("time = 1.5", "changed header"),
    "broken JSON in meta": ("meta = '{'", "changed header"),
    "a NUL character": ("actor = actor || char(0)", "changed header"),
    "an empty text for none": ("cause = ''", "changed header"),
}


@pytest.mark.parametrize(("change", "kind"), ODD.values(), ids=ODD)
def test_values_that_nobody_writes_are_found(journal: Journal, change: str, kind: str):
    """SQLite takes any value in any column; each is a finding, at its position."""
    made = seal(journal)
    sql(journal, f"UPDATE events SET {change} WHERE position = 17")
    found = verify(journal, made).finding
    assert found is not None
    assert (found.position, found.kind) == (17, kind)
    standalone = module_of(STANDALONE)
    assert standalone.first_fault(journal.store, made.size, made.root)[0] == 17


def test_the_first_of_many_is_named(journal: Journal):
    """Whatever follows it, unreadable rows included."""
    made = seal(journal)
    sql(journal, "UPDATE events SET actor = CAST(x'ff' AS TEXT) WHERE position = 9")
    sql(journal, "UPDATE events SET data = x'7b7d20' WHERE position = 8")
    assert verify(journal, made).finding == Finding(
        8, "changed data", "its payload does not have the hash that its header holds"
    )


def test_a_busy_store_is_no_finding(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    """What may be read a moment later is said as it is."""

    def busy(*given: object, **more: object) -> None:
        raise StoreError("busy", "in use")

    made = seal(journal)
    monkeypatch.setattr(journal, "rows", busy)
    with pytest.raises(StoreError, match="in use"):
        verify(journal, made)


def test_a_damaged_log_is_not_sealed(journal: Journal):
    """A checkpoint over it would make the damage look right."""
    sql(journal, "UPDATE events SET actor = 'eve' WHERE position = 4")
    with pytest.raises(StoreError, match="cannot be sealed: event 4: changed header") as raised:
        seal(journal)
    assert raised.value.kind == "damaged"


def test_logs_of_every_release_can_be_sealed(shelf: Shelf):
    """What an earlier release wrote has the hashes it needs."""
    for golden in (ROOT / "tests" / "golden").glob("*.db"):
        shelf.path.write_bytes(golden.read_bytes())
        shelf.path.chmod(0o600)
        with Journal(shelf.path, read_only=True) as journal:
            assert verify(journal, seal(journal)).finding is None, golden


Standalone = Callable[..., int]


@pytest.fixture
def main() -> Standalone:
    found: Standalone = module_of(STANDALONE).main
    return found


def test_the_stand_alone_verifier_answers_by_its_exit_code(
    shelf: Shelf, tmp_path: Path, main: Standalone, capsys: pytest.CaptureFixture[str]
):
    """0 as sealed, 1 not, 2 no answer."""
    rows, note = rows_of(12), tmp_path / "checkpoint.txt"
    with Journal(shelf.put(rows), read_only=True) as journal:
        note.write_text(str(seal(journal)), encoding="utf-8")
    given = [str(shelf.path), str(note)]
    assert main(given) == 0
    assert "the first 12 events are as they were sealed" in capsys.readouterr().out
    shelf.put([*rows[:4], *rows[5:]])
    assert main(given) == 1
    assert capsys.readouterr().out == "NOT as sealed: event 5: the event is missing\n"
    for wrong in ([], [given[0]], [given[1], given[1]], [given[0], given[0]], [*given[:1], "no"]):
        assert main(wrong) == 2
        assert capsys.readouterr().out == ""


def test_the_stand_alone_verifier_is_short_and_alone():
    """At most 150 lines, the standard library only, and it says what it cannot do."""
    import ast
    import sys

    text = STANDALONE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    tree = ast.walk(ast.parse(text))
    imported = {
        name.split(".")[0]
        for node in tree
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert imported <= set(sys.stdlib_module_names)
    assert "NOT check the checkpoint's signature" in text


def test_both_read_the_same_notes(tmp_path: Path):
    """What one takes for a checkpoint, the other does; signature lines apart."""
    from tests.infrastructure.audit.test_checkpoint import BROKEN, PUBLISHED

    standalone = module_of(STANDALONE)
    good = parse_checkpoint(PUBLISHED.encode())
    assert standalone.read_checkpoint(PUBLISHED.encode()) == (good.size, good.root)
    signatures = {name for name in BROKEN if "in a name" in name} | {"an empty line at the end"}
    signatures |= {"a hyphen for the dash", "a signature of nothing", "too much"}
    for name, text in BROKEN.items():
        if name not in signatures:
            with pytest.raises(standalone.NoAnswer):
                standalone.read_checkpoint(text.encode())
