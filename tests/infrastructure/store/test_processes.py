"""Several processes, forks, kills and commits that fail: no acknowledged event is ever lost."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from statelog.domain import OutcomeUnknown, StoreError
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import appending, connections
from statelog.infrastructure.store.locks import FileLock
from statelog.infrastructure.store.row import Row, hash_of
from statelog.infrastructure.store.sqlite import SqliteRecorder
from tests.infrastructure.store.counter import COUNTER, add, child, run, start

WRITE = """
with Journal(sys.argv[1]) as journal:
    journal.execute(COUNTER, sys.argv[2], start, actor="bob")
    print("ready", flush=True)
    for number in range(int(sys.argv[3])):
        journal.execute(COUNTER, sys.argv[2], add, actor="bob")
        while True:
            try:
                journal.execute(
                    COUNTER, "shared", add, actor="bob", command=f"{sys.argv[2]}-{number}")
                break
            except Conflict:
                pass
        print(number, flush=True)
"""


def check(store: Path) -> None:
    """Dense positions, dense versions, times in order, every hash right, SQLite content."""
    with Journal(store) as journal:
        found = journal.health(check=True)
        assert (found["quick_check"], found["dense"]) == (["ok"], True)
    with closing(sqlite3.connect(store)) as db:
        rows = [Row._make(row) for row in db.execute("SELECT * FROM events ORDER BY position")]
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    assert [row.time for row in rows] == sorted(row.time for row in rows)
    versions: dict[str, int] = {}
    for row in rows:
        assert row.version == versions.get(row.stream, 0) + 1
        versions[row.stream] = row.version
        assert hash_of(row) == row.hash


def test_processes_append_at_once(store_path: Path):
    """To streams of their own and to one they share: none lost, none doubled, one order."""
    with Journal(store_path) as journal:
        journal.execute(COUNTER, "shared", start, actor="bob")
    processes = [child(WRITE, store_path, number, 40) for number in range(3)]
    for process in processes:
        printed, _ = process.communicate(timeout=60)
        assert process.returncode == 0, printed
    check(store_path)
    with Journal(store_path) as journal:
        assert journal.head() == 1 + 3 + 2 * 3 * 40
        assert journal.load(COUNTER, "shared").state.total == 120
        assert [journal.load(COUNTER, str(each)).state.total for each in range(3)] == [40] * 3


def test_a_writer_is_killed(store_path: Path):
    """At a random moment, six times: what it was told is there, and the store works on."""
    chance = random.Random(1)
    with Journal(store_path) as journal:
        journal.execute(COUNTER, "shared", start, actor="bob")
    for number in range(6):
        process = child(WRITE, store_path, number, 10_000)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        printed, _ = process.communicate(timeout=60)
        told = [int(line) for line in printed.splitlines(keepends=True) if line.endswith("\n")]
        with Journal(store_path) as journal:
            assert journal.load(COUNTER, str(number)).state.total >= len(told)
            for each in told:
                assert len(journal.find(f"{number}-{each}")) == 1
            assert journal.execute(COUNTER, "shared", add, actor="alice").recorded
    check(store_path)


@pytest.mark.parametrize("statement", ["BEGIN", "SELECT", "INSERT", "COMMIT", "after"])
def test_a_writer_is_killed_between_two_statements(store_path: Path, statement: str):
    """All of an append is there or nothing of it, and no lock stays behind."""
    code = """
journal = Journal(sys.argv[1])
journal.execute(COUNTER, "a", start, actor="bob")
connections = journal.recorder.connections
class Deadly:
    def __init__(self, db): self._db = db
    def __getattr__(self, name): return getattr(self._db, name)
    def execute(self, sql, *given):
        if sql.startswith(sys.argv[2]): os.kill(os.getpid(), signal.SIGKILL)
        done = self._db.execute(sql, *given)
        if sql == "COMMIT" and sys.argv[2] == "after": os.kill(os.getpid(), signal.SIGKILL)
        return done
    def executemany(self, sql, rows):
        return self._db.executemany(sql, rows)
connections._writer = Deadly(connections._writer)
a, b = journal.load(COUNTER, "a"), journal.load(COUNTER, "b")
if sys.argv[2] == "INSERT":
    Deadly.executemany = lambda self, sql, rows: (
        self._db.execute(sql, rows[0]), os.kill(os.getpid(), signal.SIGKILL))
journal.commit(a.decide(add), b.decide(start), actor="bob", command="c-1")
"""
    process = child(code, store_path, statement)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, printed
    with Journal(store_path) as journal:
        landed = statement == "after"
        assert len(journal.find("c-1")) == (2 if landed else 0)
        assert journal.head() == (3 if landed else 1)
        journal.execute(COUNTER, "a", add, actor="bob")
    check(store_path)


def test_a_fork_goes_on_by_itself(store_path: Path):
    """Parent and child use the journal they had, and neither spoils the other's connections."""
    code = """
journal = Journal(sys.argv[1])
journal.execute(COUNTER, "a", start, actor="bob")
reader = journal.history("counter")
next(reader)
child = os.fork()
for _ in range(30):
    journal.execute(COUNTER, "a" if child else "b", add if child else start, actor="bob")
    journal.execute(COUNTER, "shared", start, actor="bob")
    assert journal.load(COUNTER, "a").version >= 1
if not child:
    journal.execute(COUNTER, "b", add, actor="bob")
    journal.close()
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
journal.execute(COUNTER, "a", add, actor="bob")
print(journal.load(COUNTER, "a").state.total, journal.load(COUNTER, "b").state.total)
journal.close()
"""
    assert run(code, store_path) == "31 1"
    check(store_path)


def test_a_fork_while_a_thread_writes(store_path: Path):
    """The child does not wait for a lock that only the parent's thread could give up."""
    code = """
import threading, warnings
warnings.simplefilter("ignore")
done = False
def write():
    while not done:
        journal.execute(COUNTER, "a", add, actor="bob")
for journal in (Journal(sys.argv[1]), Journal()):
    done = False
    journal.execute(COUNTER, "a", start, actor="bob")
    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(5):
        pid = os.fork()
        if not pid:
            signal.alarm(20)
            journal.execute(COUNTER, str(os.getpid()), start, actor="bob")
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    done = True
    thread.join()
    journal.close()
"""
    run(code, store_path)
    check(store_path)


def test_a_turn_is_alone_with_the_log(store_path: Path, monkeypatch: pytest.MonkeyPatch):
    """From its first look at the log on it holds the lock of the file and SQLite's own."""
    original = appending.stamped
    seen = []

    def looking(*given: Any) -> Any:
        other = sqlite3.connect(store_path, timeout=0)
        with closing(other), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        lock = FileLock(store_path.with_name(store_path.name + ".lock"), patience=0)
        with closing(lock), pytest.raises(StoreError), lock:
            pass
        seen.append(given)
        return original(*given)

    with Journal(store_path) as journal:
        monkeypatch.setattr(appending, "stamped", looking)
        assert journal.execute(COUNTER, "a", start, actor="bob").position == 1
    assert len(seen) == 1


def test_readers_never_wait_for_a_writer(store_path: Path):
    """A transaction that is open elsewhere delays nobody who reads."""
    with Journal(store_path) as journal, closing(sqlite3.connect(store_path)) as other:
        journal.execute(COUNTER, "a", start, actor="bob")
        other.execute("BEGIN IMMEDIATE")
        before = time.monotonic()
        for _ in range(50):
            assert journal.load(COUNTER, "a").version == 1
        assert time.monotonic() - before < SqliteRecorder.patience / 2
        other.rollback()


def test_the_wal_is_checkpointed(store_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By the writer, every so many pages, so that it does not grow with the log."""
    monkeypatch.setattr(connections, "CHECKPOINT_PAGES", 100)
    with Journal(store_path) as journal:
        journal.execute(COUNTER, "a", start, actor="bob")
        for _ in range(120):
            journal.execute(COUNTER, "b", start, actor="bob")
            loaded = journal.load(COUNTER, "a")
            journal.commit(loaded.decide(add), actor="bob")
        wal = store_path.with_name(store_path.name + "-wal").stat().st_size
        assert wal < 250 * 4096
    check(store_path)


def broken_commit(
    monkeypatch: pytest.MonkeyPatch, *, lands: bool, reads: bool
) -> Callable[[], None]:
    """Let each COMMIT raise as a failing disk would, before or after it took effect."""
    original = connections.Connections.commit

    def commit(self: Any, db: sqlite3.Connection, size: int) -> None:
        if lands:
            original(self, db, size)
        raise sqlite3.OperationalError("disk I/O error")

    def unreadable(self: Any, sql: str, given: Any = ()) -> Any:
        raise StoreError("io", "disk I/O error")

    monkeypatch.setattr(connections.Connections, "commit", commit)
    if not reads:
        monkeypatch.setattr(connections.Connections, "read", unreadable)
    return monkeypatch.undo


def test_a_commit_that_failed_and_landed(store_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The journal looks its command up and returns as if nothing had happened."""
    with Journal(store_path) as journal:
        loaded = journal.load(COUNTER, "a")
        mend = broken_commit(monkeypatch, lands=True, reads=True)
        done = journal.commit(loaded.decide(start), actor="bob")
        mend()
        assert (done.position, done.repeated, len(done.recorded)) == (1, False, 1)
        assert journal.load(COUNTER, "a") == done.loaded[0]
        assert journal.execute(COUNTER, "a", add, actor="bob").version == 2


def test_a_commit_that_failed_and_did_not_land(store_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The error is what the disk said, and the same command may be given again."""
    with Journal(store_path) as journal:
        change = journal.load(COUNTER, "a").decide(start)
        mend = broken_commit(monkeypatch, lands=False, reads=True)
        with pytest.raises(StoreError) as caught:
            journal.commit(change, actor="bob", command="c-1")
        mend()
        assert caught.value.kind == "io"
        assert journal.head() == 0
        assert not journal.commit(change, actor="bob", command="c-1").repeated


@pytest.mark.parametrize("lands", [False, True])
def test_a_commit_of_which_nobody_knows(
    store_path: Path, monkeypatch: pytest.MonkeyPatch, lands: bool
):
    """The look-up fails too: the outcome is unknown until the command is given again."""
    with Journal(store_path) as journal:
        change = journal.load(COUNTER, "a").decide(start)
        mend = broken_commit(monkeypatch, lands=lands, reads=False)
        with pytest.raises(OutcomeUnknown) as caught:
            journal.commit(change, actor="bob", command="c-1")
        mend()
        assert caught.value.command == "c-1"
        again = journal.commit(change, actor="bob", command="c-1")
        assert (again.repeated, again.version, journal.head()) == (lands, 1, 1)


def test_an_interrupted_append_leaves_nothing(store_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Ctrl-C between two statements rolls back and gives up both locks."""
    with Journal(store_path) as journal:
        change = journal.load(COUNTER, "a").decide(start)

        def interrupted(*_: object) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(appending, "stamped", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.commit(change, actor="bob")
        monkeypatch.undo()
        with Journal(store_path) as other:
            assert other.commit(change, actor="bob").position == 1


def test_refusals_are_bounded(store_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The oldest go, the number of those gone is known, and none waits for the disk."""
    monkeypatch.setattr("statelog.infrastructure.store.schema.REFUSALS_KEPT", 10)
    with Journal(store_path) as journal:
        for number in range(25):
            journal.refuse(
                actor="bob", stream="s", version=1, command=None, rule="r", reason=f"{number}\ud800"
            )
        kept = journal.refusals()
        assert [each.id for each in kept] == list(range(16, 26))
        assert kept[-1].reason == "24\\ud800"
        found = journal.health()
        assert (found["refusals"], found["refusals_gone"]) == (10, 15)
        journal.execute(COUNTER, "a", start, actor="bob")
        store = journal.recorder
        assert isinstance(store, SqliteRecorder)
        writer = store.connections._writer
        assert writer is not None
        assert writer.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_prefix_is_found_without_reading_the_table(store_path: Path):
    """Positions come from an index alone, in both forms and both directions."""
    from statelog.infrastructure.store.schema import positions_below

    with Journal(store_path), closing(sqlite3.connect(store_path)) as db:
        for names in (0, 2):
            for newest_first in (False, True):
                sql = positions_below(names, newest_first=newest_first)
                marks = ["?"] * sql.count("?")
                plan = db.execute(f"EXPLAIN QUERY PLAN {sql}", marks).fetchall()
                searches = [line[-1] for line in plan if "events" in line[-1]]
                assert len(searches) == 2
                assert all("SEARCH events USING COVERING INDEX" in line for line in searches)


def test_closing_waits_for_nobody_who_reads(store_path: Path):
    """A thread that still reads gets an error of its own kind, and no file stays open."""
    journal = Journal(store_path)
    journal.execute(COUNTER, "a", start, actor="bob")
    kinds: list[str] = []

    def read() -> None:
        try:
            while True:
                journal.load(COUNTER, "a")
        except StoreError as error:
            kinds.append(error.kind)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.02)
    journal.close()
    for thread in threads:
        thread.join()
    assert kinds == ["closed"] * 3
    held = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    assert [each for each in held if each.startswith(str(store_path))] == []
