"""Where an audit reads a log: a store, or a dump that was laid into a table of the same columns."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from statelog.domain.ids import below
from statelog.infrastructure.audit.gone import NAME
from statelog.infrastructure.audit.rules import root_of
from statelog.infrastructure.store.row import COLUMNS, Row
from statelog.infrastructure.store.schema import SELECT
from statelog.infrastructure.store.sqlite import SqliteRecorder

HEADS: Final = (
    "SELECT rowid, position, stream, version, name, schema, time, actor, command, correlation, "
    "cause, meta, NULL, NULL, NULL FROM events WHERE rowid >= ? AND rowid <= ? ORDER BY rowid"
)
_PREVIOUS: Final = (
    "SELECT rowid, position, stream, version, name, schema, time, actor, command, correlation, "
    "cause, meta, NULL, NULL, NULL FROM events WHERE rowid <= ? ORDER BY rowid DESC LIMIT 1"
)
_STREAMS: Final = "SELECT DISTINCT stream FROM events WHERE rowid <= ? ORDER BY stream"
_COUNT: Final = (
    "SELECT (SELECT count(*) FROM events WHERE stream = ?) + "
    "(SELECT count(*) FROM events WHERE stream >= ? AND stream < ?)"
)
_BELOW: Final = (
    f"{SELECT} WHERE rowid IN (SELECT rowid FROM events WHERE stream = ? UNION ALL "
    "SELECT rowid FROM events WHERE stream >= ? AND stream < ?) AND rowid <= ? ORDER BY rowid"
)
_FIND: Final = "SELECT min(position) FROM events WHERE stream = ? AND version = ?"
_ERASURES: Final = (
    "SELECT version, data FROM events WHERE stream = ? AND name = ? AND data IS NOT NULL "
    "AND rowid <= ? ORDER BY version"
)
_ANY: Final = "SELECT 1 FROM events WHERE stream = ? LIMIT 1"
_COMMANDS: Final = (
    "SELECT command, min(rowid), max(rowid) FROM events WHERE rowid <= ? GROUP BY command "
    "HAVING max(rowid) - min(rowid) + 1 <> count(*)"
)
_SIZE: Final = "SELECT max(rowid), count(*) FROM events"

STAGE: Final = (
    f"CREATE TABLE events ({', '.join(COLUMNS)})",
    "CREATE INDEX events_by_stream ON events (stream, version)",
    "CREATE INDEX events_by_command ON events (command)",
)
"""A table that takes any rows, and its indexes, to be made once they are there."""


class Place(NamedTuple):
    """Where a log is: a store, or a `staged` dump."""

    path: Path
    staged: bool = False


class _Reads(Protocol):
    """What both kinds of files are read with."""

    def read(self, sql: str, given: Sequence[object] = ()) -> list[Any]: ...
    def batches(self, sql: str, given: Sequence[object]) -> Iterator[list[Any]]: ...


class _Staged:
    """The table of a dump."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)

    def read(self, sql: str, given: Sequence[object] = ()) -> list[Any]:
        """All rows of a query."""
        return self._db.execute(sql, given).fetchall()

    def batches(self, sql: str, given: Sequence[object]) -> Iterator[list[Any]]:
        """The rows of a query, some at a time."""
        with closing(self._db.execute(sql, given)) as cursor:
            while rows := cursor.fetchmany(200):
                yield rows

    def close(self) -> None:
        self._db.close()


class Source:
    """Reads a log up to its end as it was when the audit began. Raises `StoreError`."""

    def __init__(self, place: Place, upto: int | None = None) -> None:
        self._close: Any
        self._reads: _Reads
        self._staged = place.staged
        if place.staged:
            staged = _Staged(place.path)
            self._reads, self._close = staged, staged.close
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of its clock: not what is asked here
                recorder = SqliteRecorder(place.path, read_only=True)
            self._reads, self._close = recorder.connections, recorder.close
        last, self.size = self._reads.read(_SIZE)[0]
        self.upto: int = (last or 0) if upto is None else upto

    def close(self) -> None:
        """Close the file."""
        self._close()

    def damages(self) -> Iterator[str]:
        """What SQLite finds wrong with the pages and indexes of a store."""
        if not self._staged:
            for (line,) in self._reads.read("PRAGMA integrity_check(10)"):
                if line != "ok":
                    yield str(line)

    def roots(self) -> Iterator[tuple[str, int]]:
        """Each root once, with how many events are below it."""
        nested = None
        for (stream,) in self._rows(_STREAMS, (self.upto,)):
            root = root_of(stream) if isinstance(stream, str) else stream
            if root == nested:
                continue
            if root != stream:
                nested = root
                if self._reads.read(_ANY, (root,)):  # it came with its own stream, some time ago
                    continue
            yield root, self._reads.read(_COUNT, self._bounds(root))[0][0]

    def _bounds(self, root: str) -> tuple[str, str, str]:
        return below(root) if "/" in str(root) else (root, "", "")

    def below(self, root: str) -> Iterator[Row]:
        """The rows of a root in the order of the log; of a root of one part only its own."""
        return map(Row._make, self._rows(_BELOW, (*self._bounds(root), self.upto)))

    def heads(self, first: int, upto: int) -> Iterator[tuple[int, Row]]:
        """Rows without hashes and payloads in the order of the log, with their places."""
        for place, *row in self._rows(HEADS, (first, min(upto, self.upto))):
            yield place, Row._make(row)

    def previous(self, place: int) -> Row | None:
        """The last such row up to a place."""
        found = self._reads.read(_PREVIOUS, (place,))
        return Row._make(found[0][1:]) if found else None

    def scattered(self) -> Iterator[tuple[int, int]]:
        """First and last place of each command whose events do not stand together."""
        for _command, first, last in self._rows(_COMMANDS, (self.upto,)):
            yield first, last

    def find(self, stream: str, version: int) -> int | None:
        """The position of a stream's event with a version."""
        found: int | None = self._reads.read(_FIND, (stream, version))[0][0]
        return found

    def erasures(self, stream: str) -> Iterator[tuple[int, Any]]:
        """Version and data of the erasures in a stream, those that are still told."""
        yield from self._rows(_ERASURES, (stream, NAME, self.upto))

    def _rows(self, sql: str, given: Sequence[object]) -> Iterator[Any]:
        for rows in self._reads.batches(sql, given):
            yield from rows
