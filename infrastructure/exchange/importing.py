"""Importing: the lines of an export become the rows that they were, or nothing of a batch does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, Final

from statelog.domain.errors import Invalid, Refused
from statelog.infrastructure.exchange.lines import Lines, checked
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import Row

BATCH: Final = 1000
OTHER: Final = "other_log"

Progress = Callable[[int, int], None]
"""Told how many events were read, and of how many bytes."""


@dataclass(frozen=True)
class Imported:
    """What came in: `events` are new, `there` were in the log; `without_data` have no payload."""

    events: int
    there: int
    without_data: int


class Import:
    """Adds the events of a file to a log that is empty, or whose every event the file has first.

    Hashes, positions, versions and times are checked, of each line by itself and against the log.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._head = journal.head()
        self._last: Row | None = None
        self._there = self._without = 0

    def read(self, file: BinaryIO, progress: Progress | None = None) -> Imported:
        """Import a file, so many events a commit; the same again goes on where it stopped.

        Raises `Malformed` and `Invalid` naming line and field, `Refused` (`other_log`) for a log
        that holds other events, `StoreError`. What came before the error stays.
        """
        lines, added = Lines(file), 0
        rows = self._new(lines)
        while batch := list(islice(rows, BATCH)):
            self._journal.take(batch)
            added += len(batch)
            if progress:
                progress(lines.number, lines.read)
        if self._last is None or self._last.position < self._head:
            self._ended_early()
        return Imported(added, self._there, self._without)

    def _ended_early(self) -> None:
        if self._head:
            at = 0 if self._last is None else self._last.position
            reason = f"the log has {self._head} events, and the file ends at {at}"
            raise Refused(reason, rule=OTHER)

    def _new(self, lines: Lines) -> Iterator[Row]:
        versions: dict[str, int] = {}
        for row in lines.rows():
            self._follows(row, versions, lines.number)
            checked(row, lines.number)
            self._last = row
            versions[row.stream] = row.version
            self._without += row.data is None
            if row.position > self._head:
                yield row
            else:
                self._same(row, lines.number)

    def _same(self, row: Row, number: int) -> None:
        own = next(self._journal.rows(after=row.position - 1, upto=row.position), None)
        if own is None or own.hash != row.hash:
            reason = f"line {number}: the log has another event at position {row.position}"
            raise Refused(reason, rule=OTHER)
        self._there += 1

    def _follows(self, row: Row, versions: dict[str, int], number: int) -> None:
        last, version = self._last, versions.get(row.stream, 0)
        wanted = 1 if last is None else last.position + 1
        if row.position != wanted:
            raise Invalid(f"line {number}: position", f"is {row.position}, and {wanted} comes next")
        if row.version != version + 1:
            why = f"is {row.version}, and {version + 1} comes next in {row.stream}"
            raise Invalid(f"line {number}: version", why)
        if last is not None and row.time < last.time:
            raise Invalid(f"line {number}: time", "is earlier than that of the event before")
