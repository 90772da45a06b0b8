"""The log in PostgreSQL. `PERSISTENCE_MODULE` of journals whose store is a URL."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import psycopg
from eventsourcing.persistence import IntegrityError

from statelog.domain.ids import below
from statelog.infrastructure.bell import Bell
from statelog.infrastructure.clock import now, unique_id
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.store import factory
from statelog.infrastructure.store import postgres_schema as schema
from statelog.infrastructure.store.leases import Lease
from statelog.infrastructure.store.postgres_bell import PostgresBell
from statelog.infrastructure.store.postgres_connections import Connections
from statelog.infrastructure.store.postgres_faults import store_error
from statelog.infrastructure.store.postgres_health import health
from statelog.infrastructure.store.postgres_holders import SessionHolders
from statelog.infrastructure.store.postgres_sweeping import sweep
from statelog.infrastructure.store.recorder import LogRecorder, Refusal
from statelog.infrastructure.store.row import Folded, Row
from statelog.infrastructure.store.schema import LARGEST, REFUSALS_KEPT
from statelog.infrastructure.store.turn import CommitFailed, told
from statelog.infrastructure.view_place import on_this_host

_BATCH: Final = 500
_DAY: Final = 86_400_000_000


class PostgresTurn:
    """One write transaction, from the advisory lock to the commit."""

    def __init__(self, connections: Connections, *, durable: bool = True) -> None:
        self._connections = connections
        self._durable = durable
        self._tell = False

    def __enter__(self) -> Self:
        self._db, self._head = self._connections.begin(durable=self._durable)
        return self

    def __exit__(self, *error: object) -> None:
        connections, raised = self._connections, error[1]
        try:
            if raised is None:
                connections.commit(self._db, tell=self._tell)
            else:
                connections.undo(self._db)
        except psycopg.Error as failed:
            connections.undo(self._db)
            raise CommitFailed from store_error(failed, connections.where)
        except BaseException:
            connections.undo(self._db)
            raise
        finally:
            connections.release()
        if isinstance(raised, psycopg.errors.UniqueViolation):
            raise IntegrityError(raised) from raised
        if isinstance(raised, psycopg.Error):
            raise store_error(raised, connections.where) from raised

    def head(self) -> tuple[int, int]:
        """Last position and its time."""
        return self._head

    def version(self, stream: str, expected: int | None = None) -> int:
        """Last version of a stream."""
        found = self._db.execute(schema.VERSION, (stream,)).fetchone()
        return (found and found[0]) or 0

    def by_command(self, command: str) -> Sequence[Row]:
        """Rows of a command."""
        return _rows(self._db.execute(schema.BY_COMMAND, (command,), binary=True).fetchall())

    def insert(self, rows: Sequence[Row]) -> None:
        """Add rows."""
        for start in range(0, len(rows), _BATCH):
            some = rows[start : start + _BATCH]
            self._db.execute(schema.insert(len(some)), [value for row in some for value in row])
        self._head, self._tell = (rows[-1].position, rows[-1].time), True

    def erase(self, positions: Sequence[int]) -> None:
        """Let payloads go."""
        self._db.execute(schema.ERASE, (list(positions),))

    def put_back(self, payloads: Mapping[int, bytes]) -> None:
        """Put payloads back where none is."""
        for at, data in payloads.items():
            self._db.execute(schema.PUT_BACK, (data, at))

    def refuse(self, refusal: Refusal) -> None:
        """Add a refusal and let the oldest go."""
        added = self._db.execute(schema.REFUSE, list(vars(refusal).values())[1:]).fetchone()
        assert added is not None
        self._db.execute(schema.FORGET, (added[0] - REFUSALS_KEPT,))

    def lease(self, stream: str) -> Lease | None:
        """The row of a lease."""
        found = self._db.execute(schema.LEASE, (stream,)).fetchone()
        return None if found is None else Lease._make(found)

    def put_lease(self, lease: Lease) -> None:
        """Write the row of a lease."""
        self._db.execute(schema.PUT_LEASE, lease)

    def forget_leases(self, now: int) -> None:
        """Remove rows of leases that are over."""
        self._db.execute(schema.FORGET_LEASES, (now,))


class PostgresRecorder(LogRecorder):
    """A log in a database that other threads, processes and hosts read and write too.

    Raises `Invalid`, `NotFound` and `StoreError` when it cannot be opened; warns when its last
    time is more than a day ahead of the clock.
    """

    patience = 5.0
    """Seconds to wait for other writers, and for a server that comes back."""

    def __init__(
        self,
        url: str,
        clock: Callable[[], int] = now,
        new_id: Callable[[], str] = unique_id,
        *,
        read_only: bool = False,
        create: bool = True,
    ) -> None:
        super().__init__(clock, new_id)
        self.connections = Connections(
            url, read_only=read_only, patience=self.patience, create=create
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
                f"the last event of {self.connections.where} is {ahead // 3_600_000_000} hours "
                "ahead of this clock: new events get its time until the clock has caught up",
                RuntimeWarning,
                stacklevel=2,
            )

    @property
    def writable(self) -> bool:
        """Whether events can be appended."""
        return self.connections.writable

    def turn(self, *, trusting: bool = False, durable: bool = True) -> PostgresTurn:
        """A turn to write."""
        return PostgresTurn(self.connections, durable=durable)

    def bell(self) -> Bell:
        """LISTEN and NOTIFY."""
        return PostgresBell(self.connections)

    def views_path(self) -> Path:
        """Views stay in a file of this host."""
        return on_this_host(self.connections.id)

    def holders(self) -> Holders:
        """Advisory locks of sessions."""
        return SessionHolders(self.connections)

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
        """A whole stream, up to a position, in batches: no session is held between two."""
        above, last = -1, LARGEST if upto is None else upto
        while rows := self.connections.read(schema.FOLDED, (stream, above, last, _BATCH)):
            yield rows
            if len(rows) < _BATCH:
                return
            above = rows[-1][1]

    def scan(
        self, after: int, upto: int, names: Collection[str], prefix: str | None, limit: int
    ) -> Sequence[Row]:
        """Rows of a range of positions."""
        sql = schema.scan(named=bool(names), below=prefix is not None)
        bounds = () if prefix is None else below(prefix)
        return _rows(self.connections.read(sql, (after, upto, *_any(names), *bounds, limit)))

    def positions(
        self, prefix: str, after: int, upto: int, names: Collection[str], newest_first: bool
    ) -> array[int]:
        """Positions below a prefix."""
        exact, low, high = below(prefix)
        sql = schema.positions_below(named=bool(names), newest_first=newest_first)
        named = _any(names)
        found = self.connections.read(
            sql, (after, upto, exact, *named, after, upto, low, high, *named)
        )
        return array("q", [number for (number,) in found])

    def strays(self) -> array[int]:
        """Positions below 1."""
        return array("q", [number for (number,) in self.connections.read(schema.STRAYS)])

    def rows_at(self, positions: Sequence[int]) -> Sequence[Row]:
        """Rows at these positions, in order of position."""
        return _rows(self.connections.read(schema.ROWS_AT, (list(positions),)))

    def by_command(self, command: str) -> Sequence[Row]:
        """Rows of a command. While a commit is in doubt, those once it has ended.

        The server may still be at work on a commit whose session was lost, and keeps its lock
        until it has ended; so the look-up takes its turn.
        """
        if not self.connections.doubt:
            return _rows(self.connections.read(schema.BY_COMMAND, (command,)))
        with told(self.turn(durable=False)) as turn:
            return turn.by_command(command)

    def stream_rows(
        self, stream: str, above: int, upto: int | None, newest_first: bool, limit: int | None
    ) -> Sequence[Row]:
        """Rows of a stream by version."""
        last = LARGEST if upto is None else upto
        sql = schema.stream_rows(newest_first=newest_first)
        return _rows(self.connections.read(sql, (stream, above, last, limit)))

    def mentions(self, text: bytes, stream: str, name: str) -> str | None:
        """A stream other than this that has a text in a payload, other than of this name."""
        found = self.connections.read(schema.MENTIONS, (stream, name, text))
        return found[0][0] if found else None

    def sweep(self) -> bool:
        """Write the table anew without what was erased; no while somebody may still see it."""
        return sweep(self.connections)

    def refuse(self, refusal: Refusal) -> None:
        """Keep a refusal, without waiting for the disk."""
        with told(self.turn(durable=False)) as turn:
            turn.refuse(refusal)

    def refusals(self, limit: int) -> Sequence[Refusal]:
        """The newest refusals, oldest of them first."""
        rows = self.connections.read(schema.REFUSALS, (limit,))
        return [Refusal(*row) for row in reversed(rows)]

    def leases(self) -> Sequence[Lease]:
        """Every row of a lease."""
        return [Lease._make(row) for row in self.connections.read(schema.ALL_LEASES)]

    def forget_leases(self, now: int) -> None:
        """Remove rows of leases that are over."""
        with told(self.turn(durable=False)) as turn:
            turn.forget_leases(now)

    def health(self, *, check: bool) -> Mapping[str, Any]:
        """What there is to know about the store and its server."""
        return health(self.connections, check=check)

    def close(self) -> None:
        """Close every session."""
        self.connections.close()


def _any(names: Collection[str]) -> tuple[list[str], ...]:
    return (list(names),) if names else ()


def _rows(tuples: list[Any]) -> list[Row]:
    return [Row._make(each) for each in tuples]


class PostgresFactory(factory.LogFactory):
    """Opens the URL in `STATELOG_STORE`.

    `READ_ONLY` is `y` to only read it, `CREATE` is `n` to make none where none is.
    """

    def open_log(self, clock: Callable[[], int], new_id: Callable[[], str]) -> LogRecorder:
        """Open the database."""
        url, read_only = self.env["STATELOG_STORE"], self.env.get("READ_ONLY") == "y"
        create = self.env.get("CREATE") != "n"
        return PostgresRecorder(url, clock, new_id, read_only=read_only, create=create)
