"""A dump laid into a table beside nothing else, so that it is audited as a store is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Final

from statelog.domain.errors import Malformed
from statelog.infrastructure.audit.envelope import LINES
from statelog.infrastructure.audit.source import STAGE, Place
from statelog.infrastructure.audit.violations import Tally
from statelog.infrastructure.jsonl import row_of
from statelog.infrastructure.store.row import Row
from statelog.infrastructure.store.schema import INSERT

_MOST: Final = 64 * 2**20
"""Bytes of a line; a longer one is no event, and reading it whole might take all memory."""


def stage(
    lines: BinaryIO,
    folder: Path,
    tally: Tally,
    progress: Callable[[int, int], None] | None = None,
) -> Place:
    """Lay the lines of a dump into a table in a folder; tallies those that are no events.

    The folder is the caller's to remove. `progress` is told how many lines and bytes were read.
    """
    path = folder / "dump.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for setting in ("journal_mode = OFF", "synchronous = OFF"):
            db.execute(f"PRAGMA {setting}")
        table, *indexes = STAGE
        db.execute(table)
        db.execute("BEGIN")
        db.executemany(INSERT, _rows(lines, tally, progress))
        for index in indexes:
            db.execute(index)
        db.execute("COMMIT")
    return Place(path, staged=True)


def _rows(
    lines: BinaryIO, tally: Tally, progress: Callable[[int, int], None] | None
) -> Iterator[Row]:
    number = read = 0
    while line := lines.readline(_MOST):
        number += 1
        read += len(line)
        if line.isspace():
            continue
        try:
            row = row_of(line)
            if not all(-(2**63) <= each < 2**63 for each in row if type(each) is int):
                raise Malformed("line", "has an integer beyond 64 bits")
            yield row
        except Malformed as error:
            tally.line(number, LINES, str(error))
        if progress is not None and number % 10_000 == 0:
            progress(number, read)
