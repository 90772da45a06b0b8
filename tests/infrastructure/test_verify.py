"""Verification names what is wrong, where, and which event should have made it right."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.views_contract import (
    STATEMENTS,
    STORY,
    Paid,
    balances,
    evolve_balance,
    tell,
)
from statelog.infrastructure.verify import Difference
from statelog.infrastructure.views import Views


@pytest.fixture
def journal(store_path: Path, damaged_store: Callable[[Path], None]) -> Iterator[Journal]:
    damaged_store(store_path)
    with Journal(store_path) as journal:
        tell(journal, STORY)
        with Views(journal, [balances(), STATEMENTS]) as views:
            views.catch_up()
        yield journal


def damage(journal: Journal, *statements: str) -> None:
    path = f"{journal.store}.views.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            assert db.execute(statement).rowcount > 0


def verified(journal: Journal) -> list[Difference]:
    with Views(journal, [balances(), STATEMENTS]) as views:
        return views.verify()


PAID, OPENED, CLOSED = (f"testing.account.{name}" for name in ("paid", "opened", "closed"))


def test_what_is_right_has_no_difference(journal: Journal):
    """Otherwise nothing below means anything."""
    assert verified(journal) == []


def test_a_wrong_value_is_named_with_the_event_that_gave_the_right_one(journal: Journal):
    """The last event that changed that field, not the last one of the row."""
    damage(
        journal,
        """UPDATE balances SET document = json_set(document, '$.owner', 'eve',
           '$.payments[1][1]', 8) WHERE key = 'a'""",
    )
    assert verified(journal) == [
        Difference("balances", "a", "owner", 1, OPENED, '"eve"', '"alice"'),
        Difference("balances", "a", "payments[1][1]", 6, PAID, "8", "7"),
    ]


def test_a_field_too_many_and_one_missing(journal: Journal):
    """Neither is taken for null."""
    damage(
        journal,
        """UPDATE statements SET document = json_remove(json_set(document, '$.more', NULL),
           '$.purposes.gift') WHERE key = 'a'""",
    )
    found = verified(journal)
    assert Difference("statements", "a", "purposes.gift", 9, PAID, None, "[2]") in found
    assert Difference("statements", "a", "more", 0, "", "null", None) in found
    assert len(found) == 2


def test_a_wrong_column(journal: Journal):
    """Beside a right document; also one of another type."""
    damage(
        journal,
        "UPDATE balances SET balance = 14.0",
        "UPDATE statements SET status = 'closed' WHERE key = 'a'",
    )
    assert verified(journal) == [
        Difference("balances", "a", "column balance", 9, PAID, "14.0", "14"),
        Difference("statements", "a", "column status", 9, PAID, '"closed"', '"open"'),
    ]


def test_a_wrong_state_and_a_wrong_position(journal: Journal):
    """What nobody sees decides what the next event makes of the row."""
    damage(
        journal,
        "UPDATE statements SET state = replace(state, 'alice', 'eve') WHERE key = 'c'",
        "UPDATE statements SET position = 4 WHERE key = 'b'",
    )
    assert [(each.key, each.field, each.position) for each in verified(journal)] == [
        ("b", "column position", 10),
        ("c", "column state", 8),
    ]


def test_other_bytes_of_the_same_value(journal: Journal):
    """Byte-identical is what is promised."""
    damage(journal, "UPDATE balances SET document = replace(document, ':', ': ')")
    (found,) = verified(journal)
    assert (found.key, found.field, found.position) == ("a", "", 9)


def test_entries_in_another_order(journal: Journal):
    """Their order is part of the document."""
    damage(
        journal,
        """UPDATE balances SET document =
           '{"balance":14,"owner":"alice","payments":[["rent",5],["rent",7],["gift",2]]}'""",
    )
    (found,) = verified(journal)
    assert (found.key, found.field) == ("a", "")


@pytest.mark.parametrize("text", ["{", "", "'x'", "NULL", "X'00'", "17"])
def test_a_document_that_is_none(journal: Journal, text: str):
    """Whatever is there instead of it."""
    text = text if text in ("NULL", "X'00'", "17") else f"'{text.replace(chr(39), chr(39) * 2)}'"
    damage(journal, f"UPDATE balances SET document = {text} WHERE key = 'a'")
    (found,) = verified(journal)
    assert (found.view, found.key, found.field, found.position) == ("balances", "a", "", 9)


def test_rows_too_many_and_rows_missing(journal: Journal):
    """With the event that removed the one, and the last one of the other."""
    damage(
        journal,
        "INSERT INTO balances SELECT 'b', owner, balance, document, 3 FROM balances",
        "INSERT INTO balances SELECT 'zz', owner, balance, document, 3 FROM balances WHERE key='a'",
        "DELETE FROM statements WHERE key = 'a'",
    )
    too_many, unknown, missing = verified(journal)
    assert (too_many.key, too_many.field, too_many.rebuilt) == ("b", "", None)
    assert (too_many.position, too_many.event) == (10, CLOSED)
    assert (unknown.key, unknown.position, unknown.event) == ("zz", 0, "")
    assert (missing.key, missing.stored, missing.position) == ("a", None, 9)


def test_a_missing_row_that_is_not_shown(journal: Journal):
    """A row without a document is a row."""
    damage(journal, "DELETE FROM statements WHERE key = 'c'")
    (found,) = verified(journal)
    assert (found.key, found.stored, found.rebuilt) == ("c", None, "null")


def test_one_view_alone(journal: Journal):
    """The other one is not looked at."""
    damage(journal, "UPDATE balances SET balance = 0")
    with Views(journal, [balances(), STATEMENTS]) as views:
        assert views.verify("statements") == []
        assert [each.view for each in views.verify("balances")] == ["balances"]


def test_a_rebuild_mends_it(journal: Journal):
    """All that verification finds comes from the log."""
    damage(journal, "UPDATE balances SET balance = 0", "DELETE FROM statements WHERE key = 'b'")
    with Views(journal, [balances(), STATEMENTS]) as views:
        views.rebuild()
        assert views.verify() == []


def test_verification_on_a_read_only_log_compares_the_file(journal: Journal, store_path: Path):
    """At the position it has, and not the copy in memory."""
    tell(journal, [("a", Paid(1, "rent"))])
    with Journal(store_path, read_only=True) as reader:
        with Views(reader, [balances(), STATEMENTS]) as views:
            assert views.verify() == []
        damage(journal, "UPDATE balances SET balance = 0")
        with Views(reader, [balances(), STATEMENTS]) as views:
            assert (views.get("balances", "a") or {})["balance"] == 15
            assert [str(each) for each in views.verify()] == [
                f"balances 'a' column balance: stored 0, rebuilt 14 (event 9, {PAID})"
            ]


def test_a_fold_that_is_not_pure_is_found(journal: Journal):
    """A clock, chance or a global in a projection shows as a difference."""
    told = []

    def evolve(row, recorded):
        told.append(recorded)
        return evolve_balance(row, recorded) and {"owner": "", "balance": len(told)}

    with Views(journal, [balances(version=2, evolve=evolve)]) as views:
        assert views.verify() != []


def test_a_log_that_cannot_be_folded_any_more_is_a_difference(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    """The event is named; nothing is said about rows."""
    from statelog.domain import event

    monkeypatch.delitem(event._registry, PAID)
    found, _ = verified(journal)
    assert (found.key, found.position, found.event) == ("", 3, PAID)
    assert "cannot be read" in str(found)
