"""Exporting: a log, or part of it, as lines that come in again bit by bit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import BinaryIO, Final

from statelog.domain.ids import is_below
from statelog.infrastructure.exchange.cloudevents import event_line
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.jsonl import line_of
from statelog.infrastructure.store.row import Row

JSONL: Final = "jsonl"
CLOUDEVENTS: Final = "cloudevents"
FORMATS: Final = (JSONL, CLOUDEVENTS)

Progress = Callable[[int, int], None]


class Export:
    """Writes events as lines, in the order of the log.

    Events of the stored names `private` go without their data, as erased ones do. `events` and
    `left_out` count.
    """

    def __init__(
        self, journal: Journal, *, format: str = JSONL, private: Collection[str] = ()
    ) -> None:
        self._journal = journal
        self._private = private
        self._format = format
        self.events = 0
        self.left_out = 0

    def write(
        self, file: BinaryIO, prefix: str | None = None, progress: Progress | None = None
    ) -> None:
        """Write the whole log as it is now, or what is below a prefix."""
        head = self._journal.head()
        line = self._line()
        for row in self._rows(prefix, head):
            file.write(line(self._open(row)) + b"\n")
            self.events += 1
            if progress:
                progress(row.position, head)

    def _rows(self, prefix: str | None, head: int) -> Iterator[Row]:
        rows = self._journal.rows(upto=head)
        if prefix is None:
            return rows
        return (row for row in rows if is_below(row.stream, prefix))

    def _line(self) -> Callable[[Row], bytes]:
        if self._format == JSONL:
            return line_of
        first = next(self._journal.rows(upto=1), None)
        source = f"urn:statelog:{'' if first is None else first.hash.hex()[:32]}"
        return lambda row: event_line(row, source)

    def _open(self, row: Row) -> Row:
        if row.name not in self._private or row.data is None:
            return row
        self.left_out += 1
        return row._replace(data=None)
