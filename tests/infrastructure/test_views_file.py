"""The file of views can be lost, replaced and shared; it is never a reason to lose or wait."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from statelog.domain import StoreError
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.views_contract import (
    STATEMENTS,
    STORY,
    Opened,
    Paid,
    balances,
    evolve_balance,
    poisoned,
    show_statement,
    tell,
)
from statelog.infrastructure.views import Views
from statelog.projections import Projection, replay


@pytest.fixture
def journal(store_path: Path) -> Iterator[Journal]:
    with Journal(store_path) as journal:
        yield journal


@pytest.fixture
def path(store_path: Path) -> Path:
    return store_path.with_name("statelog.db.views.db")


@pytest.fixture
def left_strange(store_path: Path, damaged_store: Callable[[Path], None]) -> None:
    """For tests that leave a file of views nobody can verify."""
    damaged_store(store_path)


def sql(path: Path, *statements: str) -> list[tuple[object, ...]]:
    """What plain SQL answers to the last statement."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        return [db.execute(statement).fetchall() for statement in statements][-1]


def rows(journal: Journal, *projections: Projection[Any]) -> dict[str, dict[str, object]]:
    """All rows of freshly opened views, verified."""
    with Views(journal, projections or [balances()]) as views:
        assert views.verify() == []
        return {name: dict(views.rows(name)) for name in views.names}


def is_right(journal: Journal) -> bool:
    return rows(journal)["balances"] == replay(balances(), journal.read())


def test_each_view_is_a_table_for_plain_sql(journal: Journal, path: Path):
    """Columns keep the type of their value, the document is JSON text, the state is only where it
    is needed, the position is that of the last event of the row."""
    tell(journal, STORY)
    rows(journal, balances(), STATEMENTS)
    columns = "SELECT group_concat(name) FROM pragma_table_info('{}')"
    assert sql(path, columns.format("balances")) == [("key,owner,balance,document,position",)]
    assert sql(path, columns.format("statements")) == [("key,status,document,state,position",)]
    assert sql(path, "SELECT key, owner, balance, position FROM balances") == [
        ("a", "alice", 14, 9),
    ]
    assert sql(path, "SELECT document FROM balances") == [
        ('{"owner":"alice","balance":14,"payments":[["rent",5],["rent",7],["gift",2]]}',)
    ]
    assert sql(path, "SELECT key, status, document IS NULL, position FROM statements") == [
        ("a", "open", 0, 9),
        ("b", "closed", 0, 10),
        ("c", None, 1, 8),
    ]
    assert sql(path, "SELECT view, version, position, error FROM view_positions") == [
        ("balances", 1, 10, None),
        ("statements", 1, 10, None),
    ]


def test_columns_take_any_value_of_a_document(journal: Journal, path: Path):
    """Numbers stay numbers and text stays text; what SQL has no type for is JSON text."""
    values = {
        "i": 1, "r": 1.5, "big": 2**63, "t": "12", "b": True, "n": None, "l": [1], "m": {"a": 1},
    }  # fmt: skip
    projection: Projection[Any] = Projection(
        "kinds",
        {},
        lambda row, _: values,
        key=lambda recorded: "k",
        events=(Opened,),
        columns={name: itemgetter(name) for name in values},
    )
    tell(journal, STORY[:1])
    assert rows(journal, projection) == {"kinds": {"k": values}}
    assert sql(path, f"SELECT {', '.join(values)} FROM kinds") == [
        (1, 1.5, str(2**63), "12", 1, None, "[1]", '{"a":1}')
    ]


def test_the_files_are_private(journal: Journal, path: Path):
    """Whatever the umask."""
    before = os.umask(0)
    try:
        tell(journal, STORY)
        with Views(journal, [balances()]) as views:
            views.catch_up()
            made = [each for each in path.parent.iterdir() if each.name.startswith(path.name)]
            assert len(made) >= 4
            assert {stat.S_IMODE(each.stat().st_mode) for each in made} == {0o600}
    finally:
        os.umask(before)


@pytest.mark.usefixtures("left_strange")
@pytest.mark.parametrize("content", [b"not a database", b"x" * 5000])
def test_a_file_that_is_no_database_is_refused(journal: Journal, path: Path, content: bytes):
    """And is what it was."""
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is not a file of views") as caught:
        Views(journal, [balances()])
    assert (caught.value.kind, path.read_bytes()) == ("foreign", content)


@pytest.mark.usefixtures("left_strange")
@pytest.mark.parametrize("wal", [False, True])
def test_a_database_of_somebody_else_is_refused(journal: Journal, path: Path, wal: bool):
    """Though it has no application id; nothing is written to it."""
    sql(path, f"PRAGMA journal_mode = {'wal' if wal else 'delete'}", "CREATE TABLE mine (a)")
    content = path.read_bytes()
    with pytest.raises(StoreError, match="is not a file of views") as caught:
        Views(journal, [balances()])
    assert (caught.value.kind, path.read_bytes()) == ("foreign", content)


def test_the_log_itself_is_refused_as_a_file_of_views(journal: Journal, store_path: Path):
    """Naming the wrong file damages nothing."""
    with pytest.raises(StoreError, match="is not a file of views"):
        Views(journal, [balances()], store_path)


@pytest.mark.usefixtures("left_strange")
def test_a_link_and_a_folder_are_refused(journal: Journal, path: Path):
    """Only a regular file is ours."""
    path.symlink_to(path.with_name("elsewhere.db"))
    with pytest.raises(StoreError, match="not a regular file"):
        Views(journal, [balances()])
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="not a regular file"):
        Views(journal, [balances()])


@pytest.mark.usefixtures("left_strange")
def test_an_older_layout_is_made_anew_and_a_newer_one_refused(journal: Journal, path: Path):
    """The log has everything; only a newer release knows what a newer file has."""
    tell(journal, STORY)
    rows(journal)
    sql(path, "PRAGMA user_version = 0", "DROP TABLE view_positions")
    assert is_right(journal)
    sql(path, "PRAGMA user_version = 2")
    with pytest.raises(StoreError, match="layout 2") as caught:
        Views(journal, [balances()])
    assert caught.value.kind == "newer"


def test_an_empty_file_is_no_file(journal: Journal, path: Path):
    """What a crash at the worst moment may leave."""
    path.touch()
    tell(journal, STORY)
    assert is_right(journal)


@pytest.mark.parametrize("suffixes", [("",), ("", "-wal", "-shm"), ("", "-wal", "-shm", ".lock")])
def test_a_deleted_file_is_made_anew_while_it_is_open(journal: Journal, path: Path, suffixes):
    """The next read sees everything, in a file that others see too."""
    tell(journal, STORY[:5])
    with Views(journal, [balances()]) as views:
        views.catch_up()
        for suffix in suffixes:
            path.with_name(path.name + suffix).unlink()
        tell(journal, STORY[5:])
        assert dict(views.rows("balances")) == replay(balances(), journal.read())
        assert path.exists()
        assert is_right(journal)
        assert views.verify() == []


def test_what_a_deleted_file_left_beside_it_is_not_taken_for_its_own(journal: Journal, path: Path):
    """The WAL of the old file would put old pages into the new one."""
    tell(journal, [(f"x{number}", Opened("bob")) for number in range(10)])
    with Views(journal, [balances()]) as views:
        views.catch_up()
        path.unlink()
        with Views(journal, [balances()]) as others:
            assert sql(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'balances'") == [(0,)]
            assert dict(others.rows("balances")) == replay(balances(), journal.read())
            assert sql(path, "PRAGMA integrity_check") == [("ok",)]


def test_other_columns_are_made_anew(journal: Journal, path: Path):
    """Also when nobody raised the version, and while another process has the file open."""
    tell(journal, STORY[:5])
    plain = Projection("balances", {}, evolve_balance, key=balances().key, events=balances().events)
    with Views(journal, [balances()]) as views:
        views.catch_up()
        assert rows(journal, plain)["balances"] == replay(balances(), journal.read())
        columns = "SELECT group_concat(name) FROM pragma_table_info('balances')"
        assert sql(path, columns) == [("key,document,position",)]
        tell(journal, STORY[5:])
        assert dict(views.rows("balances")) == replay(balances(), journal.read())
        assert sql(path, columns) == [("key,owner,balance,document,position",)]


def test_a_state_of_another_shape_is_made_anew(journal: Journal, path: Path):
    """A stored state that cannot be read is no reason to stop."""
    tell(journal, STORY[:7])
    rows(journal, STATEMENTS)
    sql(path, """UPDATE statements SET state = '{"other":1}'""")
    tell(journal, STORY[7:])
    assert rows(journal, STATEMENTS)["statements"] == replay(STATEMENTS, journal.read())


def test_a_restored_backup_that_is_shorter(journal: Journal, store_path: Path, tmp_path: Path):
    """The views were ahead of what is the log now."""
    tell(journal, STORY[:4])
    backup = tmp_path / "backup.db"
    sql(store_path, f"VACUUM INTO '{backup}'")
    tell(journal, STORY[4:])
    assert is_right(journal)
    journal.close()
    restore(backup, store_path)
    with Journal(store_path) as restored:
        assert restored.head() == 4
        assert is_right(restored)


def test_a_restored_backup_that_went_on(journal: Journal, store_path: Path, tmp_path: Path):
    """The log is as long as before or longer, and has other events."""
    tell(journal, STORY[:4])
    backup = tmp_path / "backup.db"
    sql(store_path, f"VACUUM INTO '{backup}'")
    tell(journal, STORY[4:7])
    assert is_right(journal)
    journal.close()
    restore(backup, store_path)
    with Journal(store_path) as restored:
        tell(restored, [("a", Paid(amount, "other")) for amount in range(3)])
        assert restored.head() == 7
        assert is_right(restored)


def restore(backup: Path, store: Path) -> None:
    for suffix in ("-wal", "-shm"):
        store.with_name(store.name + suffix).unlink(missing_ok=True)
    shutil.copy(backup, store)
    store.chmod(0o600)


def test_a_read_only_log_is_folded_in_memory(journal: Journal, store_path: Path, path: Path):
    """And the file of views stays as it is, behind or missing."""
    tell(journal, STORY[:5])
    rows(journal)
    tell(journal, STORY[5:])
    content = path.read_bytes()
    for _ in range(2):
        with Journal(store_path, read_only=True) as reader, Views(reader, [balances()]) as views:
            assert not views.stored
            assert dict(views.rows("balances")) == replay(balances(), journal.read())
            assert views.verify() == []
            assert views.status()[0].position == (5 if path.exists() else 10)
        assert not path.exists() or path.read_bytes() == content
        path.unlink(missing_ok=True)
    assert not path.exists()


def test_views_that_cannot_be_written_are_folded_in_memory(journal: Journal, path: Path):
    """Somebody may have made them read-only on purpose."""
    tell(journal, STORY[:5])
    rows(journal)
    tell(journal, STORY[5:])
    path.chmod(0o400)
    with Views(journal, [balances()]) as views:
        assert not views.stored
        assert dict(views.rows("balances")) == replay(balances(), journal.read())
        assert views.verify() == []
    path.chmod(0o600)
    assert sql(path, "SELECT position FROM view_positions") == [(5,)]


def test_a_newer_version_in_the_file_is_left_alone(journal: Journal, path: Path):
    """Two releases share a store: the older one folds its own view in memory."""
    tell(journal, STORY[:5])
    newer = balances(version=2, evolve=lambda row, recorded: {"owner": "new", "balance": 0})
    with Views(journal, [newer]) as new, Views(journal, [balances(), STATEMENTS]) as old:
        new.catch_up()
        tell(journal, STORY[5:])
        assert dict(old.rows("balances")) == replay(balances(), journal.read())
        assert old.verify() == []
        assert sql(path, "SELECT version, position FROM view_positions WHERE view='balances'") == [
            (2, 5)
        ]
        assert dict(old.rows("statements")) == replay(STATEMENTS, journal.read())
    with Views(journal, [balances()]) as old, pytest.raises(StoreError, match="at version 2"):
        old.rebuild()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_rows_and_position_move_together(journal: Journal, path: Path):
    """A process that dies between two rows leaves neither of them and the old position."""
    tell(journal, STORY[:3])
    rows(journal, STATEMENTS)
    before = sql(path, "SELECT * FROM statements")
    tell(journal, STORY[3:])
    child = os.fork()
    if child == 0:

        def dies(key, row):
            if key == "b":
                os._exit(9)
            return show_statement(key, row)

        dying = Projection(
            "statements", STATEMENTS.blank, STATEMENTS.evolve, key=STATEMENTS.key,
            events=STATEMENTS.events, show=dies, columns=STATEMENTS.columns,
        )  # fmt: skip
        Views(journal, [dying]).catch_up()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert sql(path, "SELECT * FROM statements") == before
    assert sql(path, "SELECT position FROM view_positions") == [(3,)]
    assert rows(journal, STATEMENTS)["statements"] == replay(STATEMENTS, journal.read())


def test_rows_stay_readable_until_a_rebuild_replaces_them(journal: Journal, path: Path):
    """Neither readers nor writers of the log wait for it."""
    tell(journal, STORY)
    seen = []

    def during(*_: object) -> None:
        tell(journal, [("e", Opened("eve"))] if not seen else [])
        with Views(journal, [balances()]) as others:
            seen.append(dict(others.rows("balances")))

    with Views(journal, [balances()]) as views:
        views.catch_up()
        views.rebuild(progress=during)
        assert seen
        assert set(seen[0]) == {"a", "e"}
        assert set(dict(views.rows("balances"))) == {"a", "e"}
        assert views.verify() == []


def test_a_log_writer_never_waits_for_views(journal: Journal, path: Path):
    """Somebody holds the file of views for ever: events are appended all the same."""
    tell(journal, STORY[:3])
    rows(journal)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        tell(journal, STORY[3:])
        views = Views(journal, [balances()], patience=0.05)
        with pytest.raises(StoreError) as caught:
            views.catch_up()
        assert caught.value.kind == "busy"
        db.execute("ROLLBACK")
    assert dict(views.rows("balances")) == replay(balances(), journal.read())
    views.close()


def test_what_is_remembered_counts_only_where_it_was_left(journal: Journal, path: Path):
    """The state of a growing row is not read again; one that others moved is."""
    tell(journal, STORY[:1])
    with Views(journal, [balances()]) as views, Views(journal, [balances()]) as others:

        def paid(amount: int, by: Views) -> int:
            tell(journal, [("a", Paid(amount, "rent"))])
            return int((by.get("balances", "a") or {})["balance"])

        views.catch_up()
        assert paid(5, views) == 5
        sql(path, "UPDATE balances SET document = json_set(document, '$.balance', 1000000)")
        assert paid(10, views) == 15
        assert paid(100, others) == 115
        assert paid(1000, views) == 1115
        assert views.verify() == []


def test_a_fold_that_was_overtaken_is_thrown_away(journal: Journal):
    """Another process went further meanwhile: going back would fold some events twice."""
    tell(journal, STORY[:2])
    with Views(journal, [balances()]) as others:
        others.catch_up()
        tell(journal, [("a", Paid(1, "rent"))])
        overtaken = []

        def evolve(row, recorded):
            if not overtaken:
                overtaken.append(recorded.position)
                tell(journal, [("b", Paid(10, "rent"))])
                others.catch_up()
            return evolve_balance(row, recorded)

        with Views(journal, [balances(evolve=evolve)]) as views:
            views.catch_up()
            assert overtaken == [3]
            assert others.verify() == []
            assert (views.get("balances", "b") or {})["balance"] == 10


def test_a_first_fold_that_was_overtaken_replaces_nothing(journal: Journal):
    """Several processes may start at once; what the first one made is not thrown away."""
    tell(journal, STORY[:2])
    overtaken = []
    with Views(journal, [balances()]) as others:

        def evolve(row, recorded):
            if not overtaken:
                overtaken.append(recorded.position)
                tell(journal, [("b", Paid(10, "rent"))])
                others.catch_up()
            return evolve_balance(row, recorded)

        with Views(journal, [balances(evolve=evolve)]) as views:
            views.catch_up()
            assert overtaken == [1]
            assert views.status()[0].position == 3


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_may_use_its_parents_views(journal: Journal):
    """With a connection of its own."""
    tell(journal, STORY[:5])
    with Views(journal, [balances()]) as views:
        views.catch_up()
        child = os.fork()
        if child == 0:
            tell(journal, STORY[5:])
            right = dict(views.rows("balances")) == replay(balances(), journal.read())
            os._exit(0 if right and not views.verify() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert dict(views.rows("balances")) == replay(balances(), journal.read())
        assert views.verify() == []


FOLLOWER = """
import sys
from pathlib import Path
from statelog.infrastructure import catch_up
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.views_contract import STATEMENTS, balances
from statelog.infrastructure.views import Views

catch_up.CHUNK = 3
with Journal(sys.argv[1]) as journal, Views(journal, [balances(), STATEMENTS]) as views:
    print("ready", flush=True)
    while journal.head() < int(sys.argv[2]):
        views.catch_up()
    views.catch_up()
    print([str(found) for found in views.verify()])
"""


def test_several_processes_catch_up_one_file(journal: Journal, store_path: Path):
    """Together with a writer of the log: no event is folded twice and none is left out."""
    end = 120
    followers = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(FOLLOWER), str(store_path), str(end)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for follower in followers:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "ready\n"
    tell(journal, [("a", Opened("alice"))])
    tell(journal, [("a", Paid(amount, "rent")) for amount in range(1, end)])
    for follower in followers:
        assert follower.communicate(timeout=60)[0] == "[]\n"
        assert follower.returncode == 0
    with Views(journal, [balances()]) as views:
        assert (views.get("balances", "a") or {})["balance"] == sum(range(end))


def test_a_killed_process_leaves_a_file_that_goes_on(journal: Journal, store_path: Path):
    """Five of them, at any moment of their catching up."""
    tell(journal, [("a", Opened("alice"))])
    for round_ in range(5):
        follower = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(FOLLOWER), str(store_path), "1000000"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert follower.stdout is not None
        assert follower.stdout.readline() == "ready\n"
        tell(journal, [("a", Paid(amount, "rent")) for amount in range(20)])
        time.sleep(0.005 * round_)
        follower.kill()
        follower.communicate()
        assert is_right(journal)


class Overtaken:
    """A journal that tells its head, and then others write and catch up."""

    def __init__(self, journal: Journal, others: Views) -> None:
        self._journal = journal
        self._others = others
        self.store, self.read_only, self.read = journal.store, False, journal.read
        self.follow, self.views_path = journal.follow, journal.views_path

    def head(self) -> int:
        head = self._journal.head()
        tell(self._journal, [("a", Paid(1, "rent"))])
        self._others.catch_up()
        return head


def test_a_view_that_others_moved_ahead_is_not_made_anew(journal: Journal):
    """Nor is a mark beyond a head that was read before it taken for a log that lost events."""
    tell(journal, STORY[:3])
    folded = []

    def evolve(row, recorded):
        folded.append(recorded.position)
        return evolve_balance(row, recorded)

    with Views(journal, [balances()]) as others:
        others.catch_up()
        with Views(Overtaken(journal, others), [balances(evolve=evolve)]) as views:
            for _ in range(5):
                views.catch_up()
        assert folded == []
        assert others.verify() == []


def test_a_stopped_view_goes_on_where_it_stopped(journal: Journal, path: Path):
    """Once the code can fold the event; what was right before is not folded again."""
    tell(journal, STORY)
    with Views(journal, [poisoned("gift")]) as views:
        views.catch_up()
    assert sql(path, "SELECT position, error IS NULL FROM view_positions") == [(6, 0)]
    folded = []

    def evolve(row, recorded):
        folded.append(recorded.position)
        return evolve_balance(row, recorded)

    with Views(journal, [balances(evolve=evolve)]) as views:
        views.catch_up()
        assert folded == [7, 8, 9, 10]
        assert views.status()[0].error is None
        assert views.verify() == []


def test_a_checkpoint_that_was_cut_short(journal: Journal, path: Path, tmp_path: Path):
    """Its first page is written and says that the file is longer; the rest is in the WAL."""
    tell(journal, STORY)
    copy = tmp_path / "copy.db"
    with Views(journal, [balances(), STATEMENTS], path):
        with Views(journal, [balances(), STATEMENTS], path) as views:
            views.catch_up()
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    wal, size = Path(f"{copy}-wal").read_bytes()[32:], 24 + 4096
    frames = [wal[at : at + size] for at in range(0, len(wal), size)]
    first = [frame[24:] for frame in frames if frame[:4] == b"\0\0\0\1"][-1]
    with copy.open("r+b") as file:
        file.write(first)
    assert int.from_bytes(first[28:32]) * 4096 > copy.stat().st_size
    with Views(journal, [balances(), STATEMENTS], copy) as views:
        assert [status.position for status in views.status()] == [journal.head()] * 2
        assert views.verify() == []
