"""Raw SQLite on the very table, indexes and settings that the journal has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import schema
from statelog.infrastructure.store.row import Row

CHECKPOINT = 1000 // 5
"""Rows between two checkpoints: about as many as the journal takes for a thousand pages."""


class RawLog:
    """Inserts rows that are ready, one durable transaction each; nothing is checked."""

    def __init__(self, path: Path) -> None:
        Journal(path).close()
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA wal_autocheckpoint = 0")
        self._db.execute("PRAGMA synchronous = FULL")
        self._rows = 0

    def insert(self, row: Row) -> None:
        """Add one row and wait for the disk."""
        execute = self._db.execute
        execute("BEGIN IMMEDIATE")
        execute(schema.INSERT, row)
        execute("COMMIT")
        self._rows += 1
        if self._rows % CHECKPOINT == 0:
            execute("PRAGMA wal_checkpoint(PASSIVE)")

    def insert_each(self, rows: Iterable[Row]) -> None:
        """Add rows, one transaction each."""
        for row in rows:
            self.insert(row)

    def close(self) -> None:
        """Close the file."""
        self._db.close()
