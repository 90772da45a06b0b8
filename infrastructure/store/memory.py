"""The log in memory, for tests and trials. `PERSISTENCE_MODULE` of journals without a file."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from eventsourcing.persistence import IntegrityError

from statelog.domain.ids import below, is_below
from statelog.infrastructure.clock import now, unique_id
from statelog.infrastructure.store import factory
from statelog.infrastructure.store.faults import fault
from statelog.infrastructure.store.forks import watch
from statelog.infrastructure.store.leases import Lease
from statelog.infrastructure.store.recorder import LogRecorder, Refusal
from statelog.infrastructure.store.row import Folded, Row
from statelog.infrastructure.store.schema import REFUSALS_KEPT


class MemoryTurn:
    """Alone with the log until the end of the block."""

    def __init__(self, log: MemoryRecorder) -> None:
        self._log = log

    def __enter__(self) -> Self:
        self._log.lock.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self._log.lock.release()

    def head(self) -> tuple[int, int]:
        """Last position and its time."""
        return self._log.head()

    def version(self, stream: str, expected: int | None = None) -> int:
        """Last version of a stream."""
        return self._log.version(stream)

    def by_command(self, command: str) -> Sequence[Row]:
        """Rows of a command."""
        return self._log.by_command(command)

    def insert(self, rows: Sequence[Row]) -> None:
        """Add rows."""
        self._log.insert(rows)

    def erase(self, positions: Sequence[int]) -> None:
        """Let payloads go."""
        self._log.put_data(dict.fromkeys(positions))

    def put_back(self, payloads: Mapping[int, bytes]) -> None:
        """Put payloads back where none is."""
        rows = self._log.rows_at(sorted(payloads))
        self._log.put_data({row.position: row.data or payloads[row.position] for row in rows})

    def lease(self, stream: str) -> Lease | None:
        """The row of a lease."""
        return self._log.lease_rows.get(stream)

    def put_lease(self, lease: Lease) -> None:
        """Write the row of a lease."""
        self._log.lease_rows[lease.stream] = lease


class MemoryRecorder(LogRecorder):
    """A log that lives as long as this object."""

    def __init__(
        self, clock: Callable[[], int] = now, new_id: Callable[[], str] = unique_id
    ) -> None:
        super().__init__(clock, new_id)
        self._lock = threading.RLock()
        self._closed = False
        self._rows: list[Row] = []
        self._streams: dict[str, dict[int, int]] = {}
        self._versions: dict[str, int] = {}
        self._sorted: list[str] = []
        self._commands: dict[str, list[int]] = defaultdict(list)
        self._refusals: deque[Refusal] = deque(maxlen=REFUSALS_KEPT)
        self._refused = 0
        self.lease_rows: dict[str, Lease] = {}
        watch(self)

    @property
    def lock(self) -> threading.RLock:
        """The lock around every use."""
        if self._closed:
            raise fault("closed", Path(":memory:"))
        return self._lock

    def turn(self, *, trusting: bool = False, durable: bool = True) -> MemoryTurn:
        """A turn to write."""
        return MemoryTurn(self)

    def head(self) -> tuple[int, int]:
        """Last position and its time."""
        with self.lock:
            return (len(self._rows), self._rows[-1].time) if self._rows else (0, 0)

    def version(self, stream: str) -> int:
        """Last version of a stream."""
        return self._versions.get(stream, 0)

    def insert(self, rows: Sequence[Row]) -> None:
        """Add rows, all or none."""
        keys = {(row.stream, row.version) for row in rows}
        taken = any(version in self._streams.get(stream, ()) for stream, version in keys)
        if taken or len(keys) < len(rows):
            raise IntegrityError("a version of a stream is taken")
        for row in rows:
            if row.stream not in self._streams:
                self._streams[row.stream] = {}
                insort(self._sorted, row.stream)
            self._streams[row.stream][row.version] = row.position
            self._versions[row.stream] = max(row.version, self._versions.get(row.stream, 0))
            self._commands[row.command].append(row.position)
        self._rows.extend(rows)

    def time_at(self, position: int) -> int:
        """The time of an event."""
        with self.lock:
            return self._rows[position - 1].time

    def folded(
        self, stream: str, upto: int | None = None
    ) -> Generator[Sequence[Folded], None, None]:
        """A whole stream, up to a position, in one batch."""
        last = len(self._rows) if upto is None else upto
        rows = [
            Folded(row.position, row.version, row.name, row.schema, row.data)
            for row in self.stream_rows(stream, -1, None, False, None)
            if row.position <= last
        ]
        if rows:
            yield rows

    def scan(
        self, after: int, upto: int, names: Collection[str], prefix: str | None, limit: int
    ) -> Sequence[Row]:
        """Rows of a range of positions."""
        found: list[Row] = []
        with self.lock:
            for row in self._rows[after:upto]:
                named = not names or row.name in names
                if named and (prefix is None or is_below(row.stream, prefix)):
                    found.append(row)
                    if len(found) == limit:
                        break
        return found

    def positions(
        self, prefix: str, after: int, upto: int, names: Collection[str], newest_first: bool
    ) -> Sequence[int]:
        """Positions below a prefix."""
        exact, low, high = below(prefix)
        with self.lock:
            start, stop = bisect_left(self._sorted, low), bisect_left(self._sorted, high)
            streams = [exact, *self._sorted[start:stop]]
            all_of_them = (p for stream in streams for p in self._streams.get(stream, {}).values())
            found = [
                position
                for position in all_of_them
                if after < position <= upto
                and (not names or self._rows[position - 1].name in names)
            ]
        return sorted(found, reverse=newest_first)

    def rows_at(self, positions: Sequence[int]) -> Sequence[Row]:
        """Rows at these positions, in order of position."""
        with self.lock:
            return [self._rows[position - 1] for position in sorted(positions)]

    def by_command(self, command: str) -> Sequence[Row]:
        """Rows of a command."""
        with self.lock:
            return self.rows_at(self._commands.get(command, ()))

    def stream_rows(
        self, stream: str, above: int, upto: int | None, newest_first: bool, limit: int | None
    ) -> Sequence[Row]:
        """Rows of a stream by version."""
        with self.lock:
            versions = sorted(self._streams.get(stream, ()))
            stop = len(versions) if upto is None else bisect_right(versions, upto)
            wanted = versions[bisect_right(versions, above) : stop]
            ordered = wanted[::-1] if newest_first else wanted
            return [self._rows[self._streams[stream][v] - 1] for v in ordered[:limit]]

    def put_data(self, payloads: Mapping[int, bytes | None]) -> None:
        """Change the payloads of rows, which nothing else of them ever does."""
        for position, data in payloads.items():
            self._rows[position - 1] = self._rows[position - 1]._replace(data=data)

    def mentions(self, text: bytes, stream: str, name: str) -> str | None:
        """A stream other than this that has a text in a payload, other than of this name."""
        with self.lock:
            others = (row for row in self._rows if row.stream != stream and row.name != name)
            return next((row.stream for row in others if text in (row.data or b"")), None)

    def refuse(self, refusal: Refusal) -> None:
        """Keep a refusal."""
        with self.lock:
            self._refused += 1
            self._refusals.append(replace(refusal, id=self._refused))

    def refusals(self, limit: int) -> Sequence[Refusal]:
        """The newest refusals, oldest of them first."""
        with self.lock:
            return list(self._refusals)[-limit:] if limit else []

    def leases(self) -> Sequence[Lease]:
        """Every row of a lease."""
        with self.lock:
            return [self.lease_rows[stream] for stream in sorted(self.lease_rows)]

    def forget_leases(self, now: int) -> None:
        """Remove rows of leases that are over."""
        with self.lock:
            self.lease_rows = {
                stream: lease
                for stream, lease in self.lease_rows.items()
                if lease.expires_at > now or lease.version >= self.version(stream)
            }

    def health(self, *, check: bool) -> Mapping[str, Any]:
        """What there is to know."""
        position, last = self.head()
        return {
            "store": None,
            "writable": True,
            "position": position,
            "last_time": last if position else None,
            "refusals": len(self._refusals),
            "refusals_gone": self._refused - len(self._refusals),
        }

    def before_fork(self) -> None:
        """Let no thread be in the middle of an append."""
        self._lock.acquire()

    def after_fork(self) -> None:
        """Go on, each copy by itself."""
        self._lock.release()

    def close(self) -> None:
        """Let nobody use it any more."""
        self._closed = True


class MemoryFactory(factory.LogFactory):
    """Makes an empty log."""

    def open_log(self, clock: Callable[[], int], new_id: Callable[[], str]) -> LogRecorder:
        """Make it."""
        return MemoryRecorder(clock, new_id)
