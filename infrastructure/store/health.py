"""What `store doctor` wants to know about a file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from typing import Any

from statelog.infrastructure.store import schema
from statelog.infrastructure.store.connections import Connections
from statelog.infrastructure.store.files import beside

FIXED = (3, 51, 3)


def sqlite_fault(version: str = sqlite3.sqlite_version) -> str | None:
    """What is known to be wrong with this build of SQLite, if anything."""
    if tuple(map(int, version.split("."))) >= FIXED:
        return None
    return (
        "before 3.51.3, two connections that checkpoint at the same moment can corrupt the file; "
        "statelog never lets two do so, other programs must not checkpoint"
    )


def health(connections: Connections, *, check: bool) -> Mapping[str, Any]:
    """Facts about the file; with `check` also SQLite's quick check and the density of the log."""
    read = connections.read
    head, last = (read(schema.HEAD) or [(0, None)])[0]
    (kept, newest) = read("SELECT count(*), max(id) FROM refusals")[0]
    found = {
        "store": str(connections.path),
        "format": read("PRAGMA user_version")[0][0],
        "sqlite_version": connections.driver.version,
        "sqlite_fault": sqlite_fault(connections.driver.version),
        "writable": connections.writable,
        "mode": f"{os.stat(connections.path).st_mode & 0o777:04o}",
        "journal_mode": read("PRAGMA journal_mode")[0][0],
        "bytes": _size(connections, ""),
        "wal_bytes": _size(connections, "-wal"),
        "position": head,
        "last_time": last,
        "refusals": kept,
        "refusals_gone": (newest or 0) - kept,
    }
    if check:
        found["quick_check"] = [line for (line,) in read("PRAGMA quick_check")]
        (count,) = read("SELECT count(*) FROM events")[0]
        found["dense"] = count == found["position"]
    return found


def _size(connections: Connections, suffix: str) -> int:
    try:
        return beside(connections.path, suffix).stat().st_size
    except FileNotFoundError:
        return 0
