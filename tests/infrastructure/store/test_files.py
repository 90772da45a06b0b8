"""A store's files are private, made whole or not at all, and nobody else's are touched."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from statelog.domain import NotFound, StoreError, Unreadable
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import files, schema
from statelog.infrastructure.store.faults import store_error
from statelog.infrastructure.store.sqlite import SqliteRecorder
from statelog.infrastructure.testing.clock import NEW_YEAR, FakeClock
from tests.infrastructure.store.counter import COUNTER, add, run, start


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def digests(folder: Path) -> dict[str, str]:
    return {each.name: sha256(each.read_bytes()).hexdigest() for each in folder.iterdir()}


def refused(path: Path, **options: bool) -> StoreError:
    with pytest.raises(StoreError) as caught:
        Journal(path, **options)
    assert str(path) in caught.value.message
    return caught.value


@pytest.fixture
def filled(store_path: Path) -> Path:
    """A store with one counter at version 2."""
    with Journal(store_path) as journal:
        journal.execute(COUNTER, "a", start, actor="bob")
        journal.execute(COUNTER, "a", add, by=5, actor="bob")
    return store_path


def test_what_is_made_is_private(tmp_path: Path):
    """Files 0600 and folders 0700, whatever the umask is; SQLite's own files follow."""
    before = os.umask(0)
    try:
        store = tmp_path / "new" / "folder" / "desk.db"
        with Journal(store) as journal:
            journal.execute(COUNTER, "a", start, actor="bob")
            found = {each.name: mode(each) for each in store.parent.iterdir()}
    finally:
        os.umask(before)
    suffixes = ("", "-wal", "-shm", ".lock", ".lock.queue")
    assert found == {f"desk.db{suffix}": 0o600 for suffix in suffixes}
    assert mode(store.parent) == mode(store.parent.parent) == 0o700


def test_the_file_is_what_the_page_says(filled: Path):
    """Application id, format number, page size, journal mode, tables, indexes and columns."""
    with closing(sqlite3.connect(filled)) as db:

        def pragma(name: str) -> object:
            return db.execute(f"PRAGMA {name}").fetchone()[0]

        assert pragma("application_id") == 1400138855 == int.from_bytes(b"Stlg", "big")
        assert (pragma("user_version"), pragma("page_size")) == (1, 4096)
        assert pragma("journal_mode") == "wal"
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        tables = {"events", "refusals", "leases", "history"}
        assert tables | {"events_by_name", "events_by_command"} <= names
        assert len(names) == 7


def test_people_read_the_view(filled: Path):
    """ISO time, JSON text and a hexadecimal hash, in any SQLite shell."""
    with Journal(filled, clock=FakeClock(2 * NEW_YEAR + 42)) as journal:
        journal.execute(COUNTER, "a", add, by=7, actor="bob")
        (stored,) = journal.read(after=2)
    with closing(sqlite3.connect(filled)) as db:
        db.row_factory = sqlite3.Row
        (row,) = db.execute("SELECT * FROM history WHERE position = 3")
    assert (row["time"], row["data"]) == ("2082-01-01T00:00:00.000042Z", '{"by":7}')
    assert row["hash"] == stored.hash.hex()


def test_an_empty_file_becomes_a_store(store_path: Path):
    """As the standard library's temporary files are."""
    store_path.touch()
    with Journal(store_path) as journal:
        assert journal.execute(COUNTER, "a", start, actor="bob").position == 1


def test_a_store_is_made_whole_or_not_at_all(store_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A failure half-way leaves neither a store nor rubbish, and the next try works."""
    monkeypatch.setattr(files, "TABLES", (*schema.TABLES, "CREATE NONSENSE"))
    refused(store_path)
    left = {each.name for each in store_path.parent.iterdir()}
    assert left == {f"{store_path.name}.lock", f"{store_path.name}.lock.queue"}
    monkeypatch.undo()
    with Journal(store_path) as journal:
        assert journal.head() == 0


def test_many_make_one_store(store_path: Path):
    """Processes that open a store that is not there all get the same one."""
    code = "Journal(sys.argv[1]).execute(COUNTER, sys.argv[2], start, actor='bob')"
    from tests.infrastructure.store.counter import child

    processes = [child(code, store_path, number) for number in range(4)]
    for process in processes:
        printed, _ = process.communicate(timeout=60)
        assert process.returncode == 0, printed
    with Journal(store_path) as journal:
        assert [each.position for each in journal.read()] == [1, 2, 3, 4]


def not_sqlite(path: Path) -> None:
    path.write_bytes(b"Dear diary, this is not a database. " * 200)


def other_application(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes (text)")
        db.execute("PRAGMA journal_mode = WAL")
        db.commit()


def newer(path: Path) -> None:
    Journal(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 2")


def symbolic_link(path: Path) -> None:
    Journal(path.with_name("real.db")).close()
    path.symlink_to(path.with_name("real.db"))


def dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere.db"))


def linked_lock(path: Path) -> None:
    Journal(path).close()
    path.with_name(path.name + ".lock").unlink()
    path.with_name(path.name + ".lock").symlink_to(path.with_name("victim"))


def linked_wal(path: Path) -> None:
    Journal(path).close()
    path.with_name(path.name + "-wal").symlink_to(path.with_name("victim"))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (not_sqlite, "foreign"),
        (other_application, "foreign"),
        (newer, "newer"),
        (symbolic_link, "foreign"),
        (dangling_link, "foreign"),
        (linked_lock, "foreign"),
        (linked_wal, "foreign"),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_not_ours_is_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], None], kind: str, read_only: bool
):
    """Refused with the right kind, and not one byte beside or in it has changed."""
    path = tmp_path / "desk.db"
    make(path)
    before = {each.name: each.lstat().st_mtime_ns for each in tmp_path.iterdir()}
    content = {each.name: each.read_bytes() for each in tmp_path.iterdir() if not each.is_symlink()}
    assert refused(path, read_only=read_only).kind == kind
    assert {each.name: each.lstat().st_mtime_ns for each in tmp_path.iterdir()} == before
    assert {
        each.name: each.read_bytes() for each in tmp_path.iterdir() if not each.is_symlink()
    } == content


def test_a_folder_is_not_a_store(tmp_path: Path):
    """Nor is anything else that is not a regular file."""
    assert refused(tmp_path).kind == "foreign"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_file_of_another_user_is_refused(filled: Path):
    """Root too: its WAL would lock the owner out."""
    os.chown(filled, 12345, 12345)
    assert refused(filled).kind == "foreign"


def test_reading_makes_no_store(store_path: Path):
    """A name that is not there is not found, and still not there."""
    with pytest.raises(NotFound):
        Journal(store_path, read_only=True)
    assert list(store_path.parent.iterdir()) == []


def check_reads_only(journal: Journal) -> None:
    assert journal.read_only
    assert journal.load(COUNTER, "a").state.total == 5
    assert len(list(journal.history("counter/a"))) == 2
    assert journal.refusals() == []
    assert journal.execute(COUNTER, "a", start, actor="bob").recorded == ()
    with pytest.raises(StoreError) as caught:
        journal.execute(COUNTER, "a", add, actor="bob")
    assert caught.value.kind == "read-only"


def test_a_journal_that_only_reads(filled: Path):
    """It reads everything, sees what others write meanwhile, and writes nothing."""
    with Journal(filled, read_only=True) as journal:
        check_reads_only(journal)
        with Journal(filled) as other:
            other.execute(COUNTER, "b", start, actor="bob")
        assert journal.head() == 3


def test_a_store_without_write_permission_is_read(filled: Path):
    """By its mode, also for root."""
    filled.chmod(0o400)
    before = filled.read_bytes()
    with Journal(filled) as journal:
        check_reads_only(journal)
    assert filled.read_bytes() == before


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that a process without root's powers can reach."""
    folder = Path(tempfile.mkdtemp(prefix="statelog-"))
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


def test_a_folder_without_write_permission_is_read(shared_folder: Path):
    """SQLite cannot make the files of its WAL there, and the store is read all the same."""
    store = shared_folder / "desk.db"
    with Journal(store) as journal:
        journal.execute(COUNTER, "a", start, actor="bob")
        journal.execute(COUNTER, "a", add, by=5, actor="bob")
    for lock in shared_folder.glob("desk.db.lock*"):
        lock.unlink()
    before = digests(shared_folder)
    code = """
from tests.infrastructure.store.test_files import check_reads_only
user = int(sys.argv[2])
if user:
    os.setgroups([]); os.setgid(user); os.setuid(user)
with Journal(sys.argv[1]) as journal:
    check_reads_only(journal)
try:
    Journal(os.path.join(os.path.dirname(sys.argv[1]), "new.db"))
except StoreError as error:
    print(error.kind)
"""
    user = 0
    if os.geteuid() == 0:
        user = 12345
        os.chown(shared_folder, user, user)
        os.chown(store, user, user)
    shared_folder.chmod(0o500)
    assert run(code, store, user) == "read-only"
    assert digests(shared_folder) == before


def test_a_full_disk_keeps_what_was_there(filled: Path):
    """The append is refused as a whole, reading goes on, and room makes it work again."""
    with Journal(filled) as journal:
        journal.execute(COUNTER, "b", start, actor="bob")
        recorder = journal.recorder
        assert isinstance(recorder, SqliteRecorder)
        writer = recorder.connections._writer
        assert writer is not None
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError) as caught:
            journal.execute(COUNTER, "a", add, times=1000, actor="bob")
        assert caught.value.kind == "full"
        assert (journal.head(), journal.load(COUNTER, "a").version) == (3, 2)
        writer.execute("PRAGMA max_page_count = 1000000")
        assert journal.execute(COUNTER, "a", add, times=1000, actor="bob").position == 1003


def test_a_file_that_may_not_grow(filled: Path):
    """The error comes from COMMIT; the journal looks, finds nothing, and says what it was."""
    code = """
import resource
with Journal(sys.argv[1]) as journal:
    journal.execute(COUNTER, "b", start, actor="bob")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, resource.RLIM_INFINITY))
    for _ in range(2):
        try:
            journal.execute(COUNTER, "a", add, times=1000, actor="bob")
        except StoreError as error:
            print(error.kind, journal.head())
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(journal.execute(COUNTER, "a", add, actor="bob").position)
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    assert run(code, filled).splitlines() == ["io 3", "io 3", "4"]


def test_another_program_holds_the_store(filled: Path, monkeypatch: pytest.MonkeyPatch):
    """Busy, after a bounded wait; reading goes on; afterwards writing does too."""
    monkeypatch.setattr(SqliteRecorder, "patience", 0.05)
    with Journal(filled) as journal, closing(sqlite3.connect(filled)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as caught:
            journal.execute(COUNTER, "a", add, actor="bob")
        assert (caught.value.kind, caught.value.retryable) == ("busy", True)
        assert journal.load(COUNTER, "a").version == 2
        other.rollback()
        assert journal.execute(COUNTER, "a", add, actor="bob").version == 3


def test_a_damaged_file_is_said_to_be(filled: Path, damaged_store: Callable[[Path], None]):
    """Pages overwritten with rubbish."""
    damaged_store(filled)
    with filled.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 4)
    assert refused(filled).kind == "damaged"


def test_a_file_that_was_replaced_is_not_written(
    filled: Path, monkeypatch: pytest.MonkeyPatch, damaged_store: Callable[[Path], None]
):
    """Events would go into a file that nobody can open any more."""
    monkeypatch.setattr("statelog.infrastructure.store.connections.LOOK_EVERY", 0.0)
    damaged_store(filled)
    with Journal(filled) as journal:
        filled.rename(filled.with_name("old.db"))
        shutil.copy(filled.with_name("old.db"), filled)
        with pytest.raises(StoreError) as caught:
            journal.execute(COUNTER, "a", add, actor="bob")
    assert caught.value.kind == "damaged"


def test_an_erased_payload(filled: Path, damaged_store: Callable[[Path], None]):
    """History shows the header; folding names the position."""
    damaged_store(filled)
    with closing(sqlite3.connect(filled)) as db:
        db.execute("UPDATE events SET data = NULL WHERE position = 2")
        db.commit()
    with Journal(filled) as journal:
        erased = list(journal.history("counter/a"))[1]
        assert (erased.data, erased.version) == (None, 2)
        with pytest.raises(Unreadable) as caught:
            journal.load(COUNTER, "a")
        assert caught.value.position == 2


def test_a_log_from_the_future_warns(store_path: Path):
    """More than a day ahead of the clock; a day is a wrong time zone and no more."""
    day = 86_400_000_000
    with Journal(store_path, clock=FakeClock(NEW_YEAR + day)) as journal:
        journal.execute(COUNTER, "a", start, actor="bob")
    with warnings.catch_warnings():
        Journal(store_path, clock=FakeClock(NEW_YEAR)).close()
    with pytest.warns(RuntimeWarning, match="ahead of this clock"):
        journal = Journal(store_path, clock=FakeClock(NEW_YEAR - 1))
    with journal:
        assert journal.execute(COUNTER, "b", start, actor="bob").recorded[0].time == NEW_YEAR + day
        assert journal.health()["behind_us"] == day + 1


def test_health_says_what_a_doctor_asks(filled: Path):
    """Versions, sizes, positions, clock; the slow checks when they are asked for."""
    with Journal(filled) as journal:
        journal.execute(COUNTER, "a", add, actor="bob")
        found = journal.health(check=True)
        assert found["store"] == str(filled)
        assert (found["position"], found["format"], found["journal_mode"]) == (3, 1, "wal")
        assert found["sqlite_version"] == sqlite3.sqlite_version
        assert (found["quick_check"], found["dense"]) == (["ok"], True)
        assert found["bytes"] >= 4096
        assert found["wal_bytes"] > 0
        assert (found["mode"], found["writable"]) == ("0600", True)
        assert "quick_check" not in journal.health()


def test_a_store_may_have_any_name(tmp_path: Path):
    """Characters that mean something in URIs and patterns mean nothing here."""
    store = tmp_path / "a b?c#d%20é;mode=ro.db"
    with Journal(store) as journal:
        journal.execute(COUNTER, "a", start, actor="bob")
    assert store.exists()
    with Journal(str(store), read_only=True) as journal:
        assert journal.head() == 1
    with Journal(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.db")) as journal:
        assert journal.head() == 0


def test_a_checkpoint_that_was_cut_short(store_path: Path):
    """The file is shorter than its first page says, and what is missing is in the WAL: as after
    a kill, or a disk that was full, in the middle of a checkpoint. The store opens all the same."""
    code = """
import resource
journal = Journal(sys.argv[1])
journal.execute(COUNTER, "a", start, actor="bob")
journal.execute(COUNTER, "a", add, times=500, actor="bob")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
size = os.path.getsize(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
journal.close()
print(size == os.path.getsize(sys.argv[1]))
"""
    assert run(code, store_path) == "True"
    assert int.from_bytes(store_path.read_bytes()[28:32]) * 4096 > store_path.stat().st_size
    with Journal(store_path, read_only=True) as journal:
        assert journal.head() == 501
    with Journal(store_path) as journal:
        assert journal.load(COUNTER, "a").version == 501
        assert journal.execute(COUNTER, "a", add, actor="bob").position == 502
        assert journal.health(check=True)["quick_check"] == ["ok"]


def test_a_store_that_cannot_be_opened_says_what_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError) as raised:
        sqlite3.connect(tmp_path)
    told = str(store_error(raised.value, tmp_path))
    assert str(tmp_path) in told
    assert "check the permissions" in told
