"""Tables of views, and the position in the log that each has reached."""

from __future__ import annotations

import ctypes
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from statelog.infrastructure.store.files import beside
from statelog.infrastructure.store.locks import FileLock
from statelog.infrastructure.view_file import in_memory, open_file, read_file, reporting
from statelog.infrastructure.view_rows import POSITIONS, Row, RowFormat

PAGE = 100
_STAGE = '"rows-aside"'
"""No view can have this name, which would hide it."""


@dataclass(frozen=True)
class Mark:
    """How far a stored view is: all events up to `position`, whose hash in the log is `hash`.

    `error` says why it is no further: the next event that it reads cannot be folded.
    """

    version: int
    position: int
    hash: bytes
    error: str | None = None

    @property
    def place(self) -> tuple[int, int, bytes]:
        """What decides the rows: views at one place have the same rows."""
        return self.version, self.position, self.hash


class ViewStore:
    """The file of views of one log; with `path` None one in memory that behaves the same.

    It can always be made again from the log, so it is written without waiting for the disk. Its
    writers take turns by a lock of their own; nothing here touches the log. One thread at a time.
    Raises `StoreError` foreign, newer, read-only, damaged, busy, full or io.
    """

    def __init__(
        self, path: Path | None, *, patience: float = 30.0, read_only: bool = False
    ) -> None:
        self.path = path
        self._patience = patience
        self._read_only = read_only
        self._open()

    def _open(self) -> None:
        self._pid = os.getpid()
        self._lock: FileLock | None = None
        self._identity: tuple[int, int] | None = None
        self._fitting: dict[str, int] = {}
        with reporting(self.path):
            if self.path is None:
                self._db = in_memory()
            elif self._read_only:
                self._db = read_file(self.path, self._patience)
            else:
                self._lock = FileLock(beside(self.path, ".lock"), self._patience)
                with self._lock:
                    self._db = open_file(self.path, self._patience)
                    self._identity = _identity(self.path)

    def refresh(self) -> None:
        """Reopen after a fork, and when the file was deleted or replaced."""
        if self.path is None or self._read_only:
            return
        if self._pid == os.getpid() and _identity(self.path) == self._identity:
            return
        # Closing here would touch the WAL by its name, which is the parent's or a newer file's by
        # now: the connection is leaked on purpose.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._db))
        if self._lock is not None:
            self._lock.close()
        self._open()

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Everything read within is of one moment."""
        with reporting(self.path):
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction, undone when the block raises; other writers wait."""
        with reporting(self.path), self._turn():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Checkpoints run in COMMIT, so no two connections ever checkpoint at once."""
        if self._lock is None:
            yield
        else:
            with self._lock:
                yield

    def _all(self, sql: str, *given: object) -> list[Any]:
        with reporting(self.path):
            return self._db.execute(sql, given).fetchall()

    def mark(self, name: str) -> Mark | None:
        """Where a view is; None when it was never stored."""
        sql = f"SELECT version, position, hash, error FROM {POSITIONS} WHERE view = ?"
        found = self._all(sql, name)
        return Mark(*found[0]) if found else None

    def fits(self, view: RowFormat[Any]) -> bool:
        """Whether the view's table has its columns, looked up again when any table changed."""
        (schema,) = self._all("PRAGMA schema_version")[0]
        if self._fitting.get(view.name) == schema:
            return True
        with reporting(self.path):
            table = Database(self._db, execute_plugins=False).table(view.name)
            fits = tuple(column.name for column in table.columns) == view.columns
        if fits:
            self._fitting[view.name] = schema
        return fits

    def state(self, view: RowFormat[Any], key: str) -> str | None:
        """The stored state of a row, as `RowFormat.state` reads it."""
        sql = f'SELECT "{view.state_column}" FROM "{view.name}" WHERE key = ?'
        found = self._all(sql, key)
        return found[0][0] if found else None

    def document(self, view: RowFormat[Any], key: str) -> str | None:
        """The document of a row; None when it is absent or not shown."""
        found = self._all(f'SELECT document FROM "{view.name}" WHERE key = ?', key)
        return found[0][0] if found else None

    def page(
        self, view: RowFormat[Any], column: str, after: str | None
    ) -> list[tuple[str, str | None]]:
        """Key and one column of the next rows by key; none at the end."""
        select = f'SELECT key, "{column}" FROM "{view.name}"'
        if after is None:
            return self._all(f"{select} ORDER BY key LIMIT {PAGE}")
        return self._all(f"{select} WHERE key > ? ORDER BY key LIMIT {PAGE}", after)

    def rows(self, view: RowFormat[Any]) -> Iterator[Row]:
        """All stored rows; read them within `reading`."""
        names = ", ".join(f'"{column}"' for column in view.columns)
        with reporting(self.path):
            yield from self._db.execute(f'SELECT {names} FROM "{view.name}" ORDER BY key')

    def count(self, view: RowFormat[Any]) -> int:
        """How many rows are stored."""
        return int(self._all(f'SELECT count(*) FROM "{view.name}"')[0][0])

    def save(
        self, view: RowFormat[Any], rows: Iterable[Row], removed: Iterable[str], mark: Mark
    ) -> None:
        """Put rows, remove others and move the mark; call it within `writing`."""
        sets = ", ".join(f'"{column}" = excluded."{column}"' for column in view.columns[1:])
        self._db.executemany(f"{_insert(view)} ON CONFLICT (key) DO UPDATE SET {sets}", rows)
        gone = ((key,) for key in removed)
        self._db.executemany(f'DELETE FROM "{view.name}" WHERE key = ?', gone)
        self._move(view.name, mark)

    def replace(self, view: RowFormat[Any], rows: Iterable[Row], mark: Mark) -> None:
        """Put rows in place of all there are; call it within `writing`."""
        self._db.execute(f'DROP TABLE IF EXISTS "{view.name}"')
        self._db.execute(_create(view, f'TABLE "{view.name}"'))
        self._db.executemany(_insert(view), rows)
        self._move(view.name, mark)

    def stage(self, view: RowFormat[Any], batches: Iterable[Iterable[Row]]) -> None:
        """Lay rows aside, where nobody else sees them and nothing is left when this process ends.

        They take the place of those that were laid aside before, of whatever view.
        """
        with reporting(self.path):
            self.unstage()
            self._db.execute(_create(view, f"TEMP TABLE {_STAGE}"))
            for rows in batches:
                self._db.executemany(_insert(view, _STAGE), rows)

    def staged_state(self, view: RowFormat[Any], key: str) -> str | None:
        """The state of a row that was laid aside, as `RowFormat.state` reads it."""
        found = self._all(f'SELECT "{view.state_column}" FROM temp.{_STAGE} WHERE key = ?', key)
        return found[0][0] if found else None

    def replace_by_stage(self, view: RowFormat[Any], mark: Mark) -> None:
        """Put the rows that were laid aside in place of all there are, within `writing`."""
        self.replace(view, (), mark)
        self._db.execute(f'INSERT INTO main."{view.name}" SELECT * FROM temp.{_STAGE}')

    def unstage(self) -> None:
        """Forget what was laid aside."""
        with reporting(self.path):
            self._db.execute(f"DROP TABLE IF EXISTS temp.{_STAGE}")

    def _move(self, name: str, mark: Mark) -> None:
        self._db.execute(
            f"INSERT OR REPLACE INTO {POSITIONS} VALUES (?, ?, ?, ?, ?)",
            (name, *mark.place, mark.error),
        )


def _create(view: RowFormat[Any], table: str) -> str:
    """No types: every column keeps numbers as numbers and text as text."""
    columns = ", ".join(f'"{column}"' for column in view.columns[1:])
    return f"CREATE {table} (key TEXT PRIMARY KEY, {columns})"


def _insert(view: RowFormat[Any], table: str | None = None) -> str:
    marks = ",".join("?" * len(view.columns))
    name = f'"{view.name}"' if table is None else f"temp.{table}"
    return f"INSERT INTO {name} VALUES ({marks})"


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
