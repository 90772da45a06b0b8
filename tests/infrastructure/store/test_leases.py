"""Leases in files: those that have no table for them yet, other processes, and views."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.leases import Lease
from statelog.infrastructure.testing.clock import NEW_YEAR
from tests.infrastructure.store.counter import COUNTER, run, start

LEASE = Lease("counter/a", 1, "bob", NEW_YEAR)


def earlier_file(path: Path) -> None:
    """A store as it was before leases were."""
    with Journal(path) as journal:
        journal.execute(COUNTER, "a", start, actor="bob")
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE leases")
        db.commit()


def test_a_file_of_an_earlier_release_has_no_leases(store_path: Path):
    """Reading says so and changes nothing."""
    earlier_file(store_path)
    with Journal(store_path, read_only=True) as journal:
        assert journal.leases.all() == []
    with closing(sqlite3.connect(store_path)) as db:
        assert db.execute("SELECT 1 FROM sqlite_master WHERE name = 'leases'").fetchall() == []


def test_the_table_is_made_when_it_is_needed(store_path: Path):
    """By whichever comes first of a renewal, a taking and a clean-up; others see it at once."""
    for first in ("renew", "take", "forget"):
        store_path.unlink(missing_ok=True)
        earlier_file(store_path)
        with Journal(store_path) as journal, Journal(store_path) as other:
            assert other.leases.all() == []
            if first == "renew":
                assert journal.leases.renew(*LEASE)
            elif first == "take":
                assert journal.leases.take("counter/a", 1, NEW_YEAR)
            else:
                journal.leases.forget(NEW_YEAR)
            assert len(other.leases.all()) == (0 if first == "forget" else 1)
            assert other.leases.renew(*LEASE) is (first != "take")


RENEW = """
with Journal(sys.argv[1]) as journal:
    print(journal.leases.renew("counter/a", 1, sys.argv[2], 5))
"""


def test_a_lease_holds_against_another_process(store_path: Path):
    """And its own is renewed by whatever process says its name."""
    with Journal(store_path) as journal:
        journal.execute(COUNTER, "a", start, actor="bob")
        journal.leases.renew(*LEASE)
    assert run(RENEW, store_path, "alice") == "False"
    assert run(RENEW, store_path, "bob") == "True"
