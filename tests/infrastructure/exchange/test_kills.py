"""Killed anywhere: nothing is half done that the same command does not finish."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from statelog.infrastructure.exchange.archiving import archive, restore
from statelog.infrastructure.exchange.exporting import Export
from statelog.infrastructure.exchange.importing import Import
from statelog.infrastructure.journal import Journal
from tests.house.repo import ROOT
from tests.infrastructure.exchange.parcels import PARCEL, arrive, eraser, filled, rows
from tests.infrastructure.store.counter import child

MOST = 60
DYING = f"""
sys.path.insert(0, {str(ROOT)!r})
import shutil, traceback
from pathlib import Path
from statelog.infrastructure.exchange import archiving, importing
from statelog.infrastructure.store import connections
from tests.infrastructure.exchange.parcels import eraser

importing.BATCH = 2
left = 0

class Dying:
    '''Dies in front of its n-th statement.'''
    def __init__(self, db): self._db = db
    def __getattr__(self, name): return getattr(self._db, name)
    def _count(self):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    def execute(self, sql, *given):
        self._count()
        return self._db.execute(sql, *given)
    def executemany(self, sql, given):
        self._count()
        return self._db.executemany(sql, given)

begin = connections.Connections._open_writer
connections.Connections._open_writer = lambda self: Dying(begin(self))

def work(what, store):
    file = store.with_name('file.jsonl')
    with Journal(store) as journal:
        if what == 'erase':
            made = eraser(journal)
            made.erase(made.units('parcel'), 'why')
        elif what == 'archive':
            archiving.archive(eraser(journal), 'parcel', file, 'why')
        elif what == 'restore':
            archiving.restore(journal, file, actor='bob')
        else:
            with file.open('rb') as lines:
                importing.Import(journal).read(lines)

what, prepared, copies = sys.argv[1], *map(Path, sys.argv[2:])
for at in range(1, {MOST}):
    store = shutil.copytree(prepared, copies / str(at)) / 's.db'
    pid = os.fork()
    if not pid:
        left = at
        try:
            work(what, store)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
    if not status:
        break
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which all that is there may be erased."""
    folder = tmp_path_factory.mktemp("prepared")
    with Journal(folder / "s.db") as journal:
        filled(journal)
        journal.execute(PARCEL, "a-live", arrive, actor="bob")
    return folder


def deaths(prepared: Path, tmp_path: Path, work: str) -> Iterator[Path]:
    """Copies of the store, each after a process died in it one statement later, and a last one."""
    copies = tmp_path / "copies"
    copies.mkdir()
    process = child(DYING, work, prepared, copies)
    printed, _ = process.communicate(timeout=120)
    *died, last = map(int, printed.split())
    assert (set(died), last) == ({-signal.SIGKILL}, 0)
    assert len(died) > 4
    for at in range(1, len(died) + 2):
        yield copies / str(at) / "s.db"


def words(store: Path) -> bytes:
    return b"".join(path.read_bytes() for path in store.parent.glob("s.db*") if path.is_file())


def test_an_erasure_is_killed(prepared: Path, tmp_path: Path):
    """Views are as they were at any time, and in the end no byte is left."""
    with Journal(prepared / "s.db") as journal:
        before = rows(journal)
    for store in deaths(prepared, tmp_path, "erase"):
        with Journal(store) as journal:
            assert rows(journal) == before
            made = eraser(journal, views=())
            assert made.erase(made.units("parcel"), "why").swept
            assert {row.data for row in journal.rows() if row.stream.startswith("parcel")} == {None}
        assert b'{"place":' not in words(store)


def test_an_archive_is_killed(prepared: Path, tmp_path: Path):
    """The same again finishes it, with the same file, and the file restores everything."""
    with Journal(prepared / "s.db") as journal:
        before, seen = list(journal.rows()), rows(journal)
    for store in deaths(prepared, tmp_path, "archive"):
        file = store.with_name("file.jsonl")
        with Journal(store) as journal:
            assert rows(journal) == seen
            archive(eraser(journal), "parcel", file, "why")
            restore(journal, file, actor="bob")
            assert list(journal.rows())[: len(before)] == before
            assert rows(journal) == seen


def test_a_restore_is_killed(prepared: Path, tmp_path: Path):
    folder = shutil.copytree(prepared, tmp_path / "archived")
    with Journal(folder / "s.db") as journal:
        before, seen = list(journal.rows()), rows(journal)
        archive(eraser(journal), "parcel", folder / "file.jsonl", "why")
    for store in deaths(folder, tmp_path, "restore"):
        with Journal(store) as journal:
            assert rows(journal) == seen
            restore(journal, store.with_name("file.jsonl"), actor="bob")
            assert list(journal.rows())[: len(before)] == before


def test_an_import_is_killed(prepared: Path, tmp_path: Path):
    """What is there is the beginning of the log, and the same again brings the rest."""
    empty = tmp_path / "empty"
    empty.mkdir()
    with Journal(prepared / "s.db") as journal:
        before = list(journal.rows())
        with (empty / "file.jsonl").open("wb") as file:
            Export(journal).write(file)
    for store in deaths(empty, tmp_path, "import"):
        with Journal(store) as journal:
            found = list(journal.rows())
            assert found == before[: len(found)]
            with store.with_name("file.jsonl").open("rb") as file:
                assert Import(journal).read(file).there == len(found)
            assert list(journal.rows()) == before
