"""The file of views: made when missing or of an older layout, refused when it is not ours."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlite_utils import Database

from statelog.domain.errors import StoreError
from statelog.infrastructure.store.faults import os_error, store_error
from statelog.infrastructure.store.files import beside, header, uri
from statelog.infrastructure.view_rows import POSITIONS

APPLICATION_ID = 0x53746C76
LAYOUT = 1

_POSITIONS = f"""
CREATE TABLE {POSITIONS} (
    view TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    position INTEGER NOT NULL,
    hash BLOB NOT NULL,
    error TEXT
)
"""


@contextmanager
def reporting(path: Path | None) -> Iterator[None]:
    """What SQLite and the system say, as `StoreError`."""
    place = path or Path(":memory:")
    try:
        yield
    except OSError as error:
        raise os_error(error, place) from error
    except sqlite3.Error as error:
        raise _told(store_error(error, place), place) from error


def _told(error: StoreError, path: Path) -> StoreError:
    say = {
        "foreign": f"{path} is not a file of views; move it away, and it is made from the log",
        "damaged": f"{path} is damaged; delete it, and it is made again from the log",
    }
    return StoreError(error.kind, say.get(error.kind, error.message))


def in_memory() -> sqlite3.Connection:
    """A file of views that is none."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    db.execute(_POSITIONS)
    return db


def open_file(path: Path, patience: float) -> sqlite3.Connection:
    """A connection that may write, to a file that is made when it is missing, empty or older.

    The caller holds the lock of its writers. Raises `StoreError` foreign, newer, read-only.
    """
    _refuse_strange(path)
    if not path.exists() or path.stat().st_size == 0 or layout(path) < LAYOUT:
        _make(path)
    if not (path.stat().st_mode & 0o200 and os.access(path, os.W_OK)):
        raise StoreError("read-only", f"{path} cannot be written")
    db = connect(path, "mode=rw", patience)
    db.execute("PRAGMA synchronous = NORMAL")
    return db


def connect(path: Path, options: str, patience: float) -> sqlite3.Connection:
    """A connection to a file that is there; it runs what it is told and begins nothing itself."""
    return sqlite3.connect(
        uri(path, options),
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,
    )


def read_file(path: Path, patience: float) -> sqlite3.Connection:
    """A connection that only reads a file that is there. Raises `StoreError` foreign, newer."""
    _refuse_strange(path)
    layout(path)
    alone = not any(beside(path, suffix).exists() for suffix in ("-wal", "-shm"))
    return connect(path, "mode=ro&immutable=1" if alone else "mode=ro", patience)


def _refuse_strange(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        raise StoreError("foreign", f"{path} is not a regular file; move it away")
    if found.st_uid != os.geteuid():
        raise StoreError("foreign", f"{path} belongs to user {found.st_uid}; run as its owner")


def layout(path: Path) -> int:
    """The layout of a file of views. Raises `StoreError` foreign or newer, and touches nothing."""
    application, version = header(path)
    if application != APPLICATION_ID:
        raise _told(StoreError("foreign", ""), path)
    if version > LAYOUT:
        raise StoreError(
            "newer", f"{path} has layout {version} and this release reads {LAYOUT}; upgrade"
        )
    return version


def _make(path: Path) -> None:
    """Complete in one step, so that nobody ever sees half a file."""
    new = beside(path, f".new-{os.getpid()}")
    with suppress(FileNotFoundError):
        new.unlink()
    try:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _build(new)
        for suffix in ("-wal", "-shm"):
            beside(path, suffix).unlink(missing_ok=True)
        new.rename(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _build(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(_POSITIONS)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {LAYOUT}")
        Database(db, execute_plugins=False).enable_wal()
