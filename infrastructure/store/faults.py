"""What SQLite and the operating system say, as the kinds of `StoreError`."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from statelog.domain.errors import StoreError

_KINDS = {
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_NOTADB: "foreign",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_ERROR: "damaged",
}
_ERRNO = {
    errno.ENOSPC: "full",
    errno.EDQUOT: "full",
    errno.EACCES: "read-only",
    errno.EPERM: "read-only",
    errno.EROFS: "read-only",
    errno.ELOOP: "foreign",
}
_WAL_INDEX = 32 << 10
_CANNOT_OPEN = sqlite3.SQLITE_CANTOPEN
_SAY = {
    "busy": "{path} is in use by another program; try again",
    "full": "the disk is full: nothing was written to {path}; make room and try again",
    "read-only": "{path} cannot be written; check the permissions of the file and its folder",
    "foreign": "{path} is not a statelog store; name another file",
    "damaged": "{path} is damaged ({why}); restore a backup",
    "closed": "{path} was closed; open it again",
    "io": "{path} cannot be read or written ({why})",
}


def fault(kind: str, path: Path, why: object = "") -> StoreError:
    """A `StoreError` of a kind, with the sentence that says what to do."""
    return StoreError(kind, _SAY[kind].format(path=path, why=why))


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """The `StoreError` for what SQLite raised."""
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return fault("closed", path)
    code = getattr(error, "sqlite_errorcode", None)
    primary = (code or 0) & 0xFF
    if primary == sqlite3.SQLITE_IOERR and _no_room(path):
        return fault("full", path)
    hint = "; check the permissions of it and its folder" if primary == _CANNOT_OPEN else ""
    return fault(_KINDS.get(primary, "io"), path, f"{error}{hint}")


def _no_room(path: Path) -> bool:
    """Whether SQLite's index of a WAL cannot grow, which it tells as an error of the disk."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _WAL_INDEX


def os_error(error: OSError, path: Path) -> StoreError:
    """The `StoreError` for what the operating system said."""
    return fault(_ERRNO.get(error.errno or 0, "io"), path, error.strerror or error)
