"""Small logs on disk, made from rows: as a journal writes them, or as somebody leaves them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import Row
from statelog.infrastructure.store.schema import INSERT
from statelog.infrastructure.testing.clock import FakeClock, FakeIds
from statelog.infrastructure.testing.contracts import COUNTER, add, start


def fill(journal: Journal, events: int) -> None:
    """Append events with all kinds of headers to an empty journal."""
    for number in range(events):
        given = {} if number % 3 else {"meta": {"n": number, "ä": None}, "correlation": "k"}
        cause = {"cause": f"counter/{number % 4}@1"} if number % 5 == 0 else {}
        decision, payload = (start, {}) if number < 4 else (add, {"by": number})
        journal.execute(
            COUNTER, str(number % 4), decision, actor="alïce", **given, **cause, **payload
        )


def rows_of(events: int) -> list[Row]:
    """The rows of such a log; every seventh payload is erased."""
    with Journal(clock=FakeClock(), new_id=FakeIds()) as journal:
        fill(journal, events)
        return [
            row if row.position % 7 else row._replace(data=None) for row in journal.rows(after=0)
        ]


class Shelf:
    """A folder where logs are put, one after another, in the same file."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o700)
        self._blank = folder / "blank.db"
        self.path = folder / "log.db"
        Journal(self._blank).close()

    def put(self, rows: Sequence[Row]) -> Path:
        """Make the file hold these rows."""
        for suffix in ("-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        shutil.copyfile(self._blank, self.path)
        self.path.chmod(0o600)
        with closing(sqlite3.connect(self.path)) as db:
            db.execute("PRAGMA synchronous = OFF")
            db.executemany(INSERT, rows)
            db.commit()
        return self.path
