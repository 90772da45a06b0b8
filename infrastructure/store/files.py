"""A store's files: made whole or not at all, and refused when they are not ours."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote_from_bytes

from statelog.domain.errors import NotFound, StoreError
from statelog.infrastructure.store.faults import fault, os_error, store_error
from statelog.infrastructure.store.locks import QUEUE, FileLock
from statelog.infrastructure.store.schema import APPLICATION_ID, FORMAT, PAGE_SIZE, TABLES


def beside(path: Path, suffix: str) -> Path:
    """A file that belongs to a store, such as its lock."""
    return path.with_name(path.name + suffix)


def uri(path: Path, options: str) -> str:
    """The SQLite URI of an absolute path; any character may be in it."""
    return f"file://{quote_from_bytes(os.fsencode(path))}?{options}"


def prepare(path: Path, *, read_only: bool, patience: float) -> bool:
    """Make the store when there is none, and check it; answers whether it can be written.

    Raises `NotFound` for a missing store that would only be read, `StoreError` foreign, newer,
    read-only, damaged, busy, full or io. What it refuses it leaves untouched.
    """
    with _reporting(path):
        if not _exists(path):
            if read_only:
                raise NotFound("store", str(path))
            _make(path, patience)
        for suffix in ("", "-wal", "-shm", ".lock", f".lock{QUEUE}"):
            _refuse_strange(beside(path, suffix))
        _check_header(path)
        return not read_only and writable(path)


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise os_error(error, path) from error
    except sqlite3.Error as error:
        raise store_error(error, path) from error


def _exists(path: Path) -> bool:
    """Whether there is a store to check; an empty file, as temporary files are, is none yet."""
    _refuse_strange(path)
    return os.path.lexists(path) and path.stat().st_size > 0


def _refuse_strange(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise StoreError("foreign", f"{path} is a symbolic link; name the file it points to")
    if not stat.S_ISREG(found.st_mode):
        raise StoreError("foreign", f"{path} is not a regular file; name another")
    if found.st_uid != os.geteuid():
        raise StoreError("foreign", f"{path} belongs to user {found.st_uid}; run as its owner")


def writable(path: Path) -> bool:
    """Whether a store may be written.

    By its mode also for root, who could write anyway and would surprise the owner.
    """
    return bool(path.stat().st_mode & 0o200) and all(
        os.access(place, os.W_OK) for place in (path, path.parent)
    )


def header(path: Path) -> tuple[int, int]:
    """Application id and format of a SQLite file, which is not touched. Raises `sqlite3.Error`."""
    # Through SQLite, without locks or a WAL: closing a descriptor of our own on this file would
    # drop the locks that other connections of this process hold on it.
    with closing(sqlite3.connect(uri(path, "mode=ro&immutable=1"), uri=True)) as db:
        # In a checkpoint, and after one that was cut short, the file may be shorter than its first
        # page says, the rest being in the WAL. Only with this does SQLite not call that damage.
        db.execute("PRAGMA writable_schema = 1")
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
    return application, version


def _check_header(path: Path) -> None:
    application, version = header(path)
    if application != APPLICATION_ID:
        raise fault("foreign", path)
    if version > FORMAT:
        raise StoreError(
            "newer",
            f"{path} has format {version} and this release reads {FORMAT}; upgrade statelog",
        )


def _make(path: Path, patience: float) -> None:
    _make_folder(path.parent)
    if not os.access(path.parent, os.W_OK):
        raise fault("read-only", path)
    lock = FileLock(beside(path, ".lock"), patience)
    with closing(lock), lock:
        if _exists(path):
            return
        new = beside(path, f".new-{os.getpid()}")
        with suppress(FileNotFoundError):
            new.unlink()
        try:
            _build(new)
            new.rename(path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
    _sync_folder(path.parent)


def _make_folder(folder: Path) -> None:
    """`mkdir` with `parents` would give the mode to the last folder alone."""
    if not folder.exists():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _build(path: Path) -> None:
    """A complete store in one file; closing it leaves no WAL behind."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        db.execute("BEGIN IMMEDIATE")
        for statement in TABLES:
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {FORMAT}")
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode = WAL")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
