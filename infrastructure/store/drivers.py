"""Which build of SQLite a log is kept with: Python's own, or that of `apsw`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from statelog.domain.errors import Invalid

if TYPE_CHECKING:
    import apsw

STOCK: Final = "sqlite3"
APSW: Final = "apsw"

Given = Sequence[Any]


class Cursor(Protocol):
    """The rows of a statement."""

    def fetchall(self) -> list[Any]:
        """All that are left."""

    def fetchone(self) -> Any:
        """The next one, None at the end."""

    def fetchmany(self, size: int) -> list[Any]:
        """The next ones, none at the end."""

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None:
        """Read no further."""

    @property
    def lastrowid(self) -> int | None:
        """The id of the row that was inserted last."""


class Connection(Protocol):
    """What a log needs of a connection; every method raises `sqlite3.Error`."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was begun and has not ended."""

    def execute(self, sql: str, given: Given = ..., /) -> Cursor:
        """Run a statement."""

    def executemany(self, sql: str, given: Iterable[Given], /) -> Cursor:
        """Run a statement once for each."""

    def close(self) -> None:
        """Let go of the file."""


class Driver(Protocol):
    """Opens connections: `connect(uri, seconds to wait for a lock)`."""

    version: str

    def connect(self, uri: str, patience: float) -> Connection:
        """A connection that begins no transaction by itself, for any one thread at a time."""


class Stock:
    """The `sqlite3` of the standard library."""

    version = sqlite3.sqlite_version

    def connect(self, uri: str, patience: float) -> Connection:
        """Open with it."""
        return sqlite3.connect(
            uri, uri=True, timeout=patience, isolation_level=None, check_same_thread=False
        )


class Apsw:
    """The SQLite that comes with `apsw`, newer than most systems' own (extra `apsw`)."""

    def __init__(self) -> None:
        import apsw

        self.version = apsw.sqlite_lib_version()

    def connect(self, uri: str, patience: float) -> Connection:
        """Open with it."""
        import apsw

        with _translated():
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
            connection = apsw.Connection(uri, flags=flags)
            connection.set_busy_timeout(int(patience * 1000))
        return _Connection(connection)


DRIVERS: Final[dict[str, Callable[[], Driver]]] = {STOCK: Stock, APSW: Apsw}


def driver(name: str) -> Driver:
    """The driver of a name. Raises `Invalid`."""
    if name not in DRIVERS:
        raise Invalid("driver", f"must be one of {', '.join(DRIVERS)}, not {name!r}")
    try:
        return DRIVERS[name]()
    except ImportError:
        raise Invalid("driver", f"needs an extra: pip install 'statelog[{name}]'") from None


class _Connection:
    """An `apsw` connection with the manners of one of `sqlite3`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._db = connection

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, sql: str, given: Given = (), /) -> Cursor:
        with _translated():
            return _Cursor(self._db, self._db.execute(sql, tuple(given)))

    def executemany(self, sql: str, given: Iterable[Given], /) -> Cursor:
        with _translated():
            return _Cursor(self._db, self._db.executemany(sql, map(tuple, given)))

    def close(self) -> None:
        with _translated():
            self._db.close()


class _Cursor:
    def __init__(self, connection: apsw.Connection, cursor: apsw.Cursor) -> None:
        self._db, self._rows = connection, cursor

    def fetchall(self) -> list[Any]:
        with _translated():
            return self._rows.fetchall()

    def fetchone(self) -> Any:
        with _translated():
            return self._rows.fetchone()

    def fetchmany(self, size: int) -> list[Any]:
        rows = []
        with _translated():
            for row in self._rows:
                rows.append(row)
                if len(rows) == size:
                    break
        return rows

    def __iter__(self) -> Iterator[Any]:
        with _translated():
            yield from self._rows

    def close(self) -> None:
        self._rows.close(True)

    @property
    def lastrowid(self) -> int | None:
        return self._db.last_insert_rowid()


@contextmanager
def _translated() -> Iterator[None]:
    """What `apsw` raises, as `sqlite3` does."""
    import apsw

    try:
        yield
    except (apsw.ConnectionClosedError, apsw.CursorClosedError) as error:
        raise sqlite3.ProgrammingError(f"closed: {error}") from error
    except apsw.ConstraintError as error:
        raise _coded(sqlite3.IntegrityError(str(error)), error) from error
    except apsw.Error as error:
        raise _coded(sqlite3.OperationalError(str(error)), error) from error


def _coded(made: sqlite3.Error, error: apsw.Error) -> sqlite3.Error:
    made.sqlite_errorcode = getattr(error, "extendedresult", 0) or getattr(error, "result", 0)
    return made
