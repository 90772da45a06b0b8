"""Views while others work: blue and green, parked and retried, followed, and waited for."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from statelog.domain import StoreError
from statelog.infrastructure import view_rebuild
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.views_contract import (
    STATEMENTS,
    STORY,
    Opened,
    Paid,
    balances,
    evolve_balance,
    tell,
)
from statelog.infrastructure.view import View
from statelog.infrastructure.view_store import ViewStore
from statelog.infrastructure.views import Views
from statelog.projections import replay


@pytest.fixture
def journal(store_path: Path) -> Iterator[Journal]:
    with Journal(store_path) as journal:
        yield journal


def doubled(version: int = 2, told: Callable[[int], None] = lambda position: None) -> Any:
    """The next version of the view of balances: it shows them doubled."""

    def evolve(row: Any, recorded: Any) -> Any:
        told(recorded.position)
        after = evolve_balance(row and {**row, "balance": row["balance"] // 2}, recorded)
        return after and {**after, "balance": 2 * after["balance"]}

    return balances(version=version, evolve=evolve)


def place(journal: Journal) -> tuple[int, int]:
    """Version and position of the stored view of balances."""
    with Views(journal, [balances()]) as views:
        (status,) = views.status()
        return status.version, status.position


def test_a_raised_version_is_swapped_in_while_the_older_one_is_kept_up(journal: Journal):
    """Workers of the older version go on until the swap, and do not hold it up by doing so."""
    tell(journal, STORY[:3])
    folded: list[int] = []
    with Views(journal, [balances()]) as old:
        old.catch_up()

        def busy(position: int) -> None:
            folded.append(position)
            if position <= 3:
                tell(journal, [("a", Paid(1, "rent"))])
                old.catch_up()

        with Views(journal, [doubled(told=busy)]) as new:
            new.catch_up()
            assert folded.count(1) == 1
            assert dict(new.rows("balances")) == replay(doubled(), journal.read())
        assert place(journal) == (2, journal.head())
        assert dict(old.rows("balances")) == replay(balances(), journal.read())
        assert place(journal) == (2, journal.head())


def test_a_rebuild_of_the_older_version_that_took_too_long_is_fenced_out(journal: Journal):
    """It began when the view was its own, and may not replace what a newer release made since."""
    tell(journal, STORY)
    with Views(journal, [balances()]) as old, Views(journal, [doubled()]) as new:
        old.catch_up()
        with pytest.raises(StoreError, match="kept at version 2 and this release makes 1") as no:
            old.rebuild(progress=lambda *_: new.catch_up())
        assert no.value.kind == "newer"
        assert place(journal) == (2, 10)
        assert new.verify() == []
        assert dict(old.rows("balances")) == replay(balances(), journal.read())


def test_a_chunk_of_the_older_version_that_took_too_long_is_fenced_out(journal: Journal):
    """Its transaction sees that the view is no longer its own."""
    tell(journal, STORY[:2])
    with Views(journal, [doubled()]) as new:

        def evolve(row: Any, recorded: Any) -> Any:
            if recorded.position == 3:
                new.catch_up()
            return evolve_balance(row, recorded)

        with Views(journal, [balances(evolve=evolve)]) as old:
            old.catch_up()
            tell(journal, STORY[2:])
            assert dict(old.rows("balances")) == replay(balances(), journal.read())
        assert new.verify() == []
        assert place(journal) == (2, 10)


def test_rows_that_are_being_read_do_not_become_those_of_a_newer_version(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    """A reader that has begun goes on with the rows of its own version."""
    monkeypatch.setattr("statelog.infrastructure.view_store.PAGE", 2)
    tell(journal, [(f"x{number}", Opened("bob")) for number in range(9)])
    tell(journal, [(f"x{number}", Paid(7, "rent")) for number in range(9)])
    with Views(journal, [balances()]) as old, Views(journal, [doubled()]) as new:
        rows = old.rows("balances")
        seen = [next(rows)]
        new.catch_up()
        seen += rows
        assert dict(seen) == replay(balances(), journal.read())


def test_a_rebuilt_view_never_goes_back(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    """Others caught up while it was folded: the new rows are those of the live position."""
    monkeypatch.setattr(view_rebuild, "BATCH", 2)
    tell(journal, STORY)
    with Views(journal, [balances()]) as live:
        live.catch_up()

        def during(*_: object) -> None:
            tell(journal, [("d", Opened("dora"))] if journal.head() == 10 else [])
            live.catch_up()

        store = ViewStore(live.path)
        assert view_rebuild.rebuild(View(balances(), store), journal, during)
        store.close()
        assert live.status()[0].position == 11
        assert live.verify() == []


OLD = """
import sys
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.views_contract import balances
from statelog.infrastructure.views import Views

with Journal(sys.argv[1]) as journal, Views(journal, [balances()]) as views:
    print("ready", flush=True)
    wrong, swapped = [], False
    while journal.head() < int(sys.argv[2]) or not swapped:
        with Views(journal, [balances()]) as file:
            swapped = file.status()[0].version > 1
        row = views.get("balances", "a")
        if row and row["balance"] != sum(amount for _, amount in row["payments"]):
            wrong.append(row)
    print(wrong, [str(found) for found in views.verify()])
"""
NEW = """
import sys
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.views import Views
from tests.infrastructure.test_views_live import doubled

with Journal(sys.argv[1]) as journal, Views(journal, [doubled()]) as views:
    views.catch_up()
    print([str(found) for found in views.verify()], views.status()[0].version)
"""


def test_two_releases_share_a_store_while_writers_go_on(journal: Journal, store_path: Path):
    """Each sees its own rows at any time, and the file ends at the newer one's version."""

    def begin(code: str, *words: object) -> subprocess.Popen[str]:
        args = [sys.executable, "-c", textwrap.dedent(code), str(store_path), *map(str, words)]
        return subprocess.Popen(args, stdout=subprocess.PIPE, text=True)

    tell(journal, [("a", Opened("alice"))])
    old = begin(OLD, 121)
    assert old.stdout is not None
    assert old.stdout.readline() == "ready\n"
    tell(journal, [("a", Paid(amount, "rent")) for amount in range(40)])
    new = begin(NEW)
    tell(journal, [("a", Paid(amount, "rent")) for amount in range(80)])
    assert new.communicate(timeout=60)[0] == "[] 2\n"
    assert old.communicate(timeout=60)[0] == "[] []\n"
    assert (old.returncode, new.returncode, place(journal)[0]) == (0, 0, 2)


def test_a_parked_view_is_not_folded_again_until_it_is_retried(journal: Journal):
    """The same code would fail there again; after a fix `retry` goes on where it stopped."""
    asked: list[int] = []
    fixed: list[bool] = []

    def evolve(row: Any, recorded: Any) -> Any:
        asked.append(recorded.position)
        if recorded.position == 7 and not fixed:
            raise ValueError("poison")
        return evolve_balance(row, recorded)

    tell(journal, STORY)
    with Views(journal, [balances(evolve=evolve), STATEMENTS]) as views:
        views.catch_up()
        asked.clear()
        for number in range(3):
            tell(journal, [(f"x{number}", Opened("bob"))])
            views.catch_up()
            assert views.get("balances", "a") == {
                "owner": "alice", "balance": 12, "payments": [["rent", 5], ["rent", 7]],
            }  # fmt: skip
        parked, free = views.status()
        assert (parked.position, parked.lag, free.lag, asked) == (6, 7, 0, [])
        assert parked.error is not None
        views.retry("balances")
        assert (asked, views.status()[0].position) == ([7], 6)
        fixed.append(True)
        asked.clear()
        views.retry("balances")
        assert (asked, views.status()[0].error) == ([7, 8, 9, 10, 11, 12, 13], None)
        assert views.verify() == []


def test_what_another_process_mended_is_not_parked_here(journal: Journal):
    """The mark moved on, and so does this one."""
    tell(journal, STORY)
    poison = [True]

    def evolve(row: Any, recorded: Any) -> Any:
        if recorded.position == 7 and poison:
            raise ValueError("poison")
        return evolve_balance(row, recorded)

    with Views(journal, [balances(evolve=evolve)]) as views:
        views.catch_up()
        with Views(journal, [balances()]) as mended:
            mended.catch_up()
        tell(journal, [("d", Opened("dora"))])
        assert views.get("balances", "d") is not None


def test_one_sees_what_one_wrote(journal: Journal):
    """The position of a commit is all that has to be handed on."""
    with Views(journal, [balances()]) as views:
        tell(journal, STORY)
        assert views.wait("balances", journal.head(), timeout_s=0)
        assert views.status()[0].position == 10


def test_what_others_have_yet_to_commit_is_waited_for(journal: Journal, store_path: Path):
    """By another thread, and by another process."""
    code = """
    import sys
    from statelog.infrastructure.journal import Journal
    from statelog.infrastructure.testing.views_contract import Opened, tell
    with Journal(sys.argv[1]) as journal:
        tell(journal, [("b", Opened("bob"))])
    """
    with Views(journal, [balances()]) as views:
        timer = threading.Timer(0.05, lambda: tell(journal, [("a", Opened("alice"))]))
        timer.start()
        assert views.wait("balances", 1, timeout_s=60)
        timer.join()
        writer = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(store_path)])
        assert views.wait("balances", 2, timeout_s=60)
        assert writer.wait(60) == 0
        assert views.get("balances", "b") is not None


def test_waiting_ends_when_the_time_is_up_or_an_event_stops_the_view(journal: Journal):
    """And says that it did not get there."""
    tell(journal, STORY)

    def evolve(row: Any, recorded: Any) -> Any:
        raise ValueError("poison")

    with Views(journal, [balances(evolve=evolve), STATEMENTS]) as views:
        assert not views.wait("statements", 11, timeout_s=0.05)
        begin = time.monotonic()
        assert not views.wait("balances", 3, timeout_s=600)
        assert time.monotonic() - begin < 300


def test_followed_views_keep_up_with_every_writer(journal: Journal, store_path: Path):
    """Whoever reads their tables with SQL sees what was written, soon and without a command."""
    stop = threading.Event()
    with Views(journal, [balances(), STATEMENTS]) as views, Journal(store_path) as other:
        follower = threading.Thread(target=views.follow, args=(stop.is_set,))
        follower.start()
        try:
            for step in STORY:
                tell(other, [step])
                reached(views, other.head())
        finally:
            stop.set()
            follower.join(60)
        assert not follower.is_alive()
        assert views.verify() == []


def reached(views: Views, position: int) -> None:
    """Wait until all views are there, without catching up."""
    until = time.monotonic() + 60
    while {each.position for each in views.status()} != {position}:
        assert time.monotonic() < until, views.status()
        time.sleep(0.001)


def test_a_busy_file_is_no_end_of_following(journal: Journal, store_path: Path):
    """Somebody holds the file of views for longer than anybody waits: then it goes on."""
    stop = threading.Event()
    tell(journal, STORY[:3])
    with Views(journal, [balances()], patience=0.01) as views:
        views.catch_up()
        with closing(sqlite3.connect(str(views.path), isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            tell(journal, STORY[3:])
            with pytest.raises(StoreError, match="busy"):
                views.catch_up()
            follower = threading.Thread(target=views.follow, args=(stop.is_set,))
            follower.start()
            time.sleep(0.1)
            assert follower.is_alive()
            db.execute("ROLLBACK")
        try:
            reached(views, 10)
        finally:
            stop.set()
            follower.join(60)


def test_a_poison_event_parks_its_view_while_the_others_are_followed(journal: Journal):
    """`status` says where each is."""
    stop = threading.Event()

    def evolve(row: Any, recorded: Any) -> Any:
        if recorded.position > 2:
            raise ValueError("poison")
        return evolve_balance(row, recorded)

    with Views(journal, [balances(evolve=evolve), STATEMENTS]) as views:
        follower = threading.Thread(target=views.follow, args=(stop.is_set,))
        follower.start()
        try:
            tell(journal, STORY)
            until = time.monotonic() + 60
            while views.status()[1].position < 10 and time.monotonic() < until:
                time.sleep(0.001)
        finally:
            stop.set()
            follower.join(60)
        parked, free = views.status()
        assert (parked.position, parked.lag, free.lag, free.error) == (2, 8, 0, None)
        assert parked.error == "event 3 (testing.account.paid): ValueError: poison"


FOLLOWING = """
import sys
from statelog.infrastructure import catch_up
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.views_contract import balances
from statelog.infrastructure.views import Views

catch_up.CHUNK = 2
with Journal(sys.argv[1]) as journal, Views(journal, [balances()]) as views:
    print("ready", flush=True)
    views.follow(lambda: False)
"""


def test_killed_followers_leave_each_event_its_one_effect(journal: Journal, store_path: Path):
    """Two of them at a time, killed while they fold: no payment is counted twice or left out."""
    tell(journal, [("a", Opened("alice"))])
    for round_ in range(4):
        args = [sys.executable, "-c", FOLLOWING, str(store_path)]
        pair = [subprocess.Popen(args, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for each in pair:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        tell(journal, [("a", Paid(amount, "rent")) for amount in range(15 + round_)])
        for each in pair:
            each.kill()
            each.communicate()
        with Views(journal, [balances()]) as views:
            assert views.verify() == []
            (row,) = (row for _, row in views.rows("balances"))
            assert len(row["payments"]) == sum(15 + done for done in range(round_ + 1))
