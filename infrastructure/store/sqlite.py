"""The log in one SQLite file. `PERSISTENCE_MODULE` of journals that have a file."""

from __future__ import annotations

import sqlite3
import warnings
from array import array
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from eventsourcing.persistence import IntegrityError

from statelog.domain.ids import below
from statelog.infrastructure.clock import now, unique_id
from statelog.infrastructure.store import factory, schema
from statelog.infrastructure.store.connections import Connections, Left
from statelog.infrastructure.store.drivers import STOCK, Driver, driver
from statelog.infrastructure.store.faults import store_error
from statelog.infrastructure.store.files import prepare
from statelog.infrastructure.store.health import health
from statelog.infrastructure.store.leases import Lease
from statelog.infrastructure.store.recorder import LogRecorder, Refusal
from statelog.infrastructure.store.row import Folded, Row
from statelog.infrastructure.store.turn import CommitFailed, OutOfDate, told

_ROW_SIZE = 300
_DAY = 86_400_000_000


class SqliteTurn:
    """One write transaction, from the lock to the commit.

    With `trusting` an insert follows, and the end of the log is believed to be where this
    process's last commit left it. The insert proves it: positions are dense, so the next one is
    free only while nobody else has written.
    """

    def __init__(
        self, connections: Connections, *, durable: bool = True, trusting: bool = False
    ) -> None:
        self._connections = connections
        self._durable = durable
        self._trusting = trusting
        self._left: Left | None = None
        self._believed = self._inserted = False
        self._size = 0
        self._head: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        self._db = self._connections.begin(durable=self._durable)
        if self._trusting:
            self._left = self._connections.left
        return self

    def __exit__(self, *error: object) -> None:
        connections, raised = self._connections, error[1]
        try:
            if raised is None:
                connections.commit(self._db, self._size)
                connections.left = self._left
            else:
                connections.left = None
                connections.undo(self._db)
        except sqlite3.Error as failed:
            connections.left = None
            connections.undo(self._db)
            raise CommitFailed from store_error(failed, connections.path)
        finally:
            connections.release(durable=self._durable)
        if isinstance(raised, sqlite3.IntegrityError):
            raise (OutOfDate if self._believed else IntegrityError)(raised) from raised
        if isinstance(raised, sqlite3.Error):
            raise store_error(raised, connections.path) from raised

    def head(self) -> tuple[int, int]:
        """Last position and its time."""
        if self._head is None:
            self._head = self._db.execute(schema.HEAD).fetchone() or (0, 0)
        return self._head

    def version(self, stream: str, expected: int | None = None) -> int:
        """Last version of a stream. Raises `OutOfDate`.

        One below the `expected` is not believed: whoever expects more has seen what others wrote.
        """
        left = self._left
        if left is not None and (known := left.versions.get(stream, -1)) >= (expected or 0):
            self._believed, self._head = True, left.head
            return known
        found = self._db.execute(schema.HEAD_AND_VERSION, (stream,)).fetchone() or (0, 0, 0)
        if self._believed and found[:2] != self._head:
            raise OutOfDate
        self._head = found[:2]
        return found[2] or 0

    def by_command(self, command: str) -> Sequence[Row]:
        """Rows of a command."""
        return _rows(self._db.execute(schema.BY_COMMAND, (command,)).fetchall())

    def insert(self, rows: Sequence[Row]) -> None:
        """Add rows."""
        if len(rows) == 1:
            self._db.execute(schema.INSERT, rows[0])
        else:
            self._db.executemany(schema.INSERT, rows)
        last = rows[-1]
        versions = {row.stream: row.version for row in rows}
        if self._inserted and self._left is not None:
            versions = {**self._left.versions, **versions}
        self._inserted, self._head = True, (last.position, last.time)
        self._left = Left(self._head, versions)
        self._size += sum([len(row.data or b"") for row in rows]) + _ROW_SIZE * len(rows)

    def erase(self, positions: Sequence[int]) -> None:
        """Let payloads go, and overwrite the bytes that were theirs."""
        self._db.execute("PRAGMA secure_delete = ON")
        try:
            self._db.executemany(schema.ERASE, [(position,) for position in positions])
        finally:
            self._db.execute("PRAGMA secure_delete = OFF")
        self._size += _ROW_SIZE * len(positions)

    def put_back(self, payloads: Mapping[int, bytes]) -> None:
        """Put payloads back where none is."""
        self._db.executemany(schema.PUT_BACK, [(data, at) for at, data in payloads.items()])
        self._size += sum(map(len, payloads.values())) + _ROW_SIZE * len(payloads)

    def refuse(self, refusal: Refusal) -> None:
        """Add a refusal and let the oldest go."""
        values = list(vars(refusal).values())[1:]
        added = self._db.execute(schema.REFUSE, values).lastrowid or 0
        self._db.execute(schema.FORGET, (added - schema.REFUSALS_KEPT,))
        self._size = _ROW_SIZE

    def lease(self, stream: str) -> Lease | None:
        """The row of a lease; files of earlier releases get the table now."""
        self._db.execute(schema.LEASES)
        found = self._db.execute(schema.LEASE, (stream,)).fetchone()
        return None if found is None else Lease._make(found)

    def put_lease(self, lease: Lease) -> None:
        """Write the row of a lease."""
        self._db.execute(schema.PUT_LEASE, lease)
        self._size = _ROW_SIZE

    def forget_leases(self, now: int) -> None:
        """Remove rows of leases that are over."""
        self._db.execute(schema.LEASES)
        self._db.execute(schema.FORGET_LEASES, (now,))
        self._size = _ROW_SIZE


class SqliteRecorder(LogRecorder):
    """A log in a file that other threads and processes read and write too.

    Raises `NotFound` and `StoreError` when it cannot be opened; warns when its last time is more
    than a day ahead of the clock.
    """

    patience = 5.0
    """Seconds to wait for another program before `StoreError` busy."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], int] = now,
        new_id: Callable[[], str] = unique_id,
        *,
        read_only: bool = False,
        driver: Driver | None = None,
    ) -> None:
        super().__init__(clock, new_id)
        self.path = path.absolute()
        writable = prepare(self.path, read_only=read_only, patience=self.patience)
        self.connections = Connections(
            self.path, writable=writable, patience=self.patience, driver=driver
        )
        try:
            self._warn_of_a_future()
        except BaseException:
            self.connections.close()
            raise

    def _warn_of_a_future(self) -> None:
        ahead = self.head()[1] - self.clock()
        if ahead > _DAY:
            warnings.warn(
                f"the last event of {self.path} is {ahead // 3_600_000_000} hours ahead of this "
                "clock: new events get its time until the clock has caught up",
                RuntimeWarning,
                stacklevel=2,
            )

    @property
    def writable(self) -> bool:
        """Whether events can be appended."""
        return self.connections.writable

    def turn(self, *, trusting: bool = False, durable: bool = True) -> SqliteTurn:
        """A turn to write."""
        return SqliteTurn(self.connections, trusting=trusting, durable=durable)

    def head(self) -> tuple[int, int]:
        """Last position and its time."""
        found = self.connections.read(schema.HEAD)
        return found[0] if found else (0, 0)

    def time_at(self, position: int) -> int:
        """The time of an event."""
        time: int = self.connections.read(schema.TIME_AT, (position,))[0][0]
        return time

    def folded(
        self, stream: str, upto: int | None = None
    ) -> Generator[Sequence[Folded], None, None]:
        """A whole stream, up to a position, in batches."""
        if upto is None:
            return self.connections.batches(schema.FOLDED, (stream,))
        return self.connections.batches(schema.FOLDED_UPTO, (stream, upto))

    def scan(
        self, after: int, upto: int, names: Collection[str], prefix: str | None, limit: int
    ) -> Sequence[Row]:
        """Rows of a range of positions."""
        sql = schema.scan(len(names), below=prefix is not None)
        bounds = () if prefix is None else below(prefix)
        return _rows(self.connections.read(sql, (after, upto, *names, *bounds, limit)))

    def positions(
        self, prefix: str, after: int, upto: int, names: Collection[str], newest_first: bool
    ) -> array[int]:
        """Positions below a prefix, from an index alone."""
        exact, low, high = below(prefix)
        sql = schema.positions_below(len(names), newest_first=newest_first)
        given = (after, upto, exact, *names, after, upto, low, high, *names)
        return self.connections.read_numbers(sql, given)

    def strays(self) -> array[int]:
        """Positions below 1."""
        return self.connections.read_numbers(schema.STRAYS, ())

    def rows_at(self, positions: Sequence[int]) -> Sequence[Row]:
        """Rows at these positions, in order of position."""
        wanted = list(positions)
        low, high = min(wanted), max(wanted)
        if high - low + 1 == len(wanted):
            return self.scan(low - 1, high, (), None, len(wanted))
        size = 1 << (len(wanted) - 1).bit_length()  # few statements, so each is prepared once
        sql = f"{schema.SELECT} WHERE position IN ({schema.marks(size)}) ORDER BY position"
        padded = wanted + wanted[-1:] * (size - len(wanted))
        return _rows(self.connections.read(sql, padded))

    def by_command(self, command: str) -> Sequence[Row]:
        """Rows of a command."""
        return _rows(self.connections.read(schema.BY_COMMAND, (command,)))

    def stream_rows(
        self, stream: str, above: int, upto: int | None, newest_first: bool, limit: int | None
    ) -> Sequence[Row]:
        """Rows of a stream by version."""
        sql = (
            f"{schema.SELECT} WHERE stream = ? AND version > ? AND version <= ? "
            f"ORDER BY version {'DESC' if newest_first else ''} LIMIT ?"
        )
        last = schema.LARGEST if upto is None else upto
        return _rows(
            self.connections.read(sql, (stream, above, last, -1 if limit is None else limit))
        )

    def mentions(self, text: bytes, stream: str, name: str) -> str | None:
        """A stream other than this that has a text in a payload, other than of this name."""
        found = self.connections.read(schema.MENTIONS, (stream, name, text))
        return found[0][0] if found else None

    def sweep(self) -> bool:
        """Empty the WAL, where older pages may still be; no while somebody reads them."""
        return self.connections.truncate()

    def refuse(self, refusal: Refusal) -> None:
        """Keep a refusal, without waiting for the disk."""
        with told(self.turn(durable=False)) as turn:
            turn.refuse(refusal)

    def refusals(self, limit: int) -> Sequence[Refusal]:
        """The newest refusals, oldest of them first."""
        rows = self.connections.read(schema.REFUSALS, (limit,))
        return [Refusal(*row) for row in reversed(rows)]

    def leases(self) -> Sequence[Lease]:
        """Every row of a lease; none in a file that has no table of them yet."""
        if not self.connections.read(schema.HAS_LEASES):
            return []
        return [Lease._make(row) for row in self.connections.read(schema.ALL_LEASES)]

    def forget_leases(self, now: int) -> None:
        """Remove rows of leases that are over."""
        with told(self.turn(durable=False)) as turn:
            turn.forget_leases(now)

    def health(self, *, check: bool) -> Mapping[str, Any]:
        """What there is to know about the file."""
        return health(self.connections, check=check)

    def close(self) -> None:
        """Close every connection."""
        self.connections.close()


def _rows(tuples: list[Any]) -> list[Row]:
    return [Row._make(each) for each in tuples]


class SqliteFactory(factory.LogFactory):
    """Opens the file in `STATELOG_STORE` with `SQLITE_DRIVER`; `READ_ONLY` is `y` to only read."""

    def open_log(self, clock: Callable[[], int], new_id: Callable[[], str]) -> LogRecorder:
        """Open the file."""
        path = Path(self.env["STATELOG_STORE"])
        read_only = self.env.get("READ_ONLY") == "y"
        chosen = driver(self.env.get("SQLITE_DRIVER") or STOCK)
        return SqliteRecorder(path, clock, new_id, read_only=read_only, driver=chosen)
