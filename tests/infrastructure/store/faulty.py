"""Real SQLite whose connections fail at a chosen statement, in several ways."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pytest

from tests.house.repo import ROOT

_connect = sqlite3.connect
_PRODUCT = str(ROOT / "infrastructure")


@dataclass(frozen=True)
class Fault:
    """How a statement fails. `done`: it was carried out; `undone`: the transaction is gone too."""

    name: str
    code: int
    done: bool = False
    undone: bool = False

    def error(self) -> sqlite3.OperationalError:
        """As `sqlite3` raises it."""
        error = sqlite3.OperationalError(self.name)
        error.sqlite_errorcode = self.code
        return error


FAULTS = (
    Fault("BUSY", sqlite3.SQLITE_BUSY),
    Fault("FULL", sqlite3.SQLITE_FULL),
    Fault("FULL, rolled back", sqlite3.SQLITE_FULL, undone=True),
    Fault("IOERR", sqlite3.SQLITE_IOERR),
    Fault("IOERR, rolled back", sqlite3.SQLITE_IOERR, undone=True),
    Fault("IOERR, done", sqlite3.SQLITE_IOERR, done=True),
)
QUICK = FAULTS[0], FAULTS[2], FAULTS[5]
"""One of each way: nothing happened, all of it is gone, it was carried out."""


@dataclass
class Plan:
    """Which statement of an operation fails, and how; it counts all of them."""

    at: int = -1
    fault: Fault = FAULTS[0]
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Text and place in the product of each statement, in order."""

    def run(self, db: sqlite3.Connection, sql: str, execute: Callable[[], Any]) -> Any:
        """Carry a statement out, or not."""
        self.seen.append((" ".join(sql.split()), _place()))
        if len(self.seen) - 1 != self.at:
            return execute()
        if self.fault.done:
            execute()
        if self.fault.undone and db.in_transaction:
            sqlite3.Connection.execute(db, "ROLLBACK")
        raise self.fault.error()


def _place() -> str:
    """File and line of the nearest caller in the product, "" for a test's own statement."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_PRODUCT):
            return f"{name[len(str(ROOT)) + 1 :]}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@contextmanager
def failing(plan: Plan) -> Iterator[Plan]:
    """Connections that are opened meanwhile follow the plan."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *given: Any) -> Any:
            return plan.run(self, sql, lambda: super(Connection, self).execute(sql, *given))

        def executemany(self, sql: str, *given: Any) -> Any:
            return plan.run(self, sql, lambda: super(Connection, self).executemany(sql, *given))

        def executescript(self, sql: str, *given: Any) -> Any:
            return plan.run(self, sql, lambda: super(Connection, self).executescript(sql, *given))

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = _connect(*args, **{**options, "factory": Connection})
        return db

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        yield plan
