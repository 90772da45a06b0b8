"""A consistent copy of a store's file while others write to it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from statelog.domain.errors import Refused
from statelog.infrastructure.store.faults import os_error, store_error
from statelog.infrastructure.store.files import beside, uri, writable
from statelog.infrastructure.store.schema import HEAD

PATIENCE_S: Final = 30.0


def back_up(store: Path, path: Path) -> int:
    """Copy a store's file as one moment had it into a new file, mode 0600; its last position.

    Writers do not wait. The new name is taken first, so that nothing is overwritten, and holds an
    empty file until the copy is complete and on the disk. Raises `Refused` (`backup_exists`) and
    `StoreError`.
    """
    path = path.absolute()
    _take(path)
    new = beside(path, f".new-{os.getpid()}")
    try:
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _copy(store, new)
        position = _head(new)
        _sync(new)
        new.rename(path)
        _sync(path.parent)
    except BaseException as error:
        for made in (new, path):
            made.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise os_error(error, path) from error
        if isinstance(error, sqlite3.Error):
            raise store_error(error, path) from error
        raise
    return position


def _take(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    except FileExistsError as error:
        reason = f"{path} is there already; name a new file"
        raise Refused(reason, rule="backup_exists") from error
    except OSError as error:
        raise os_error(error, path) from error


def _copy(store: Path, new: Path) -> None:
    """All pages in one read transaction, by a connection that can write nothing."""
    alone = not any(beside(store, suffix).exists() for suffix in ("-wal", "-shm"))
    options = "mode=ro&immutable=1" if alone and not writable(store) else "mode=ro"
    with (
        closing(sqlite3.connect(uri(store, options), uri=True, timeout=PATIENCE_S)) as source,
        closing(sqlite3.connect(new, isolation_level=None)) as copy,
    ):
        # The copy is thrown away when it fails, so it needs no journal of its own.
        copy.execute("PRAGMA journal_mode = OFF")
        source.backup(copy)


def _head(path: Path) -> int:
    """Read without a WAL, which would leave files beside the copy."""
    with closing(sqlite3.connect(uri(path, "mode=ro&immutable=1"), uri=True)) as copy:
        found = copy.execute(HEAD).fetchone()
    return int(found[0]) if found else 0


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
