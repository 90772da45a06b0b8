"""What every store does alike: the rules of an append, reading by prefix, eventsourcing's port."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from typing import Any
from uuid import UUID

from eventsourcing.persistence import (
    ApplicationRecorder,
    ListenNotifySubscription,
    Notification,
    StoredEvent,
    Subscription,
)

from statelog.domain.errors import Conflict
from statelog.infrastructure.bell import Bell
from statelog.infrastructure.clock import now, unique_id
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.store.appending import Appending
from statelog.infrastructure.store.leases import Lease
from statelog.infrastructure.store.row import Appended, Batch, Draft, Folded, Row, Stamp
from statelog.infrastructure.store.turn import CommitFailed, Turn, told

PAGE = 500
NEAR = 10_000
"""An `after` this close to the head is read by position; a wider gap through the index."""


@dataclass(frozen=True)
class Refusal:
    """A command that a rule refused; `time` in microseconds, UTC."""

    id: int
    time: int
    actor: str
    stream: str
    version: int
    command: str | None
    rule: str
    reason: str


class LogRecorder(ApplicationRecorder):
    """A log of rows. A store brings the primitives; the rules of the log are here, once."""

    def __init__(self, clock: Callable[[], int] = now, new_id: Callable[[], str] = unique_id):
        self.clock = clock
        self.new_id = new_id
        self._listeners: set[Flag] = set()
        self._appending = Appending(self)

    @abstractmethod
    def turn(self, *, trusting: bool = False, durable: bool = True) -> Turn:
        """A turn to write; one that is not `durable` does not wait for the disk.

        A `trusting` one may believe what its last commit left instead of asking, because an
        insert follows; it may then raise `OutOfDate` from `version` and at its end.
        """

    @abstractmethod
    def head(self) -> tuple[int, int]:
        """Last position and its time, zeros for an empty log."""

    @abstractmethod
    def time_at(self, position: int) -> int:
        """The time of an event that exists."""

    @abstractmethod
    def folded(
        self, stream: str, upto: int | None = None
    ) -> Generator[Sequence[Folded], None, None]:
        """A whole stream up to a position, with only what a fold needs, in batches of some rows.

        To be closed, also when it is not read to its end.
        """

    @abstractmethod
    def scan(
        self, after: int, upto: int, names: Collection[str], prefix: str | None, limit: int
    ) -> Sequence[Row]:
        """The first rows with after < position <= upto; no names: any; no prefix: all."""

    @abstractmethod
    def positions(
        self, prefix: str, after: int, upto: int, names: Collection[str], newest_first: bool
    ) -> Sequence[int]:
        """Positions below a prefix, sorted."""

    @abstractmethod
    def rows_at(self, positions: Sequence[int]) -> Sequence[Row]:
        """Rows at these positions, in order of position."""

    @abstractmethod
    def by_command(self, command: str) -> Sequence[Row]:
        """Rows of a command in log order."""

    @abstractmethod
    def mentions(self, text: bytes, stream: str, name: str) -> str | None:
        """A stream, other than this one, whose payloads have a text in them; None when none has.

        Payloads of events of the name are not looked at.
        """

    def sweep(self) -> bool:
        """Leave nothing of erased payloads behind; no while somebody is in the way."""
        return True

    @abstractmethod
    def refuse(self, refusal: Refusal) -> None:
        """Keep a refusal under the next id, and let the oldest go beyond the limit."""

    @abstractmethod
    def refusals(self, limit: int) -> Sequence[Refusal]:
        """The newest refusals, oldest of them first."""

    @abstractmethod
    def leases(self) -> Sequence[Lease]:
        """Every row of a lease."""

    @abstractmethod
    def forget_leases(self, now: int) -> None:
        """Remove the rows that expired and whose streams are at a later version."""

    @abstractmethod
    def health(self, *, check: bool) -> Mapping[str, Any]:
        """What there is to know about the store itself."""

    @abstractmethod
    def close(self) -> None:
        """Give up everything; every later call raises `StoreError` closed."""

    def bell(self) -> Bell | None:
        """The store's own bell; None where it is one beside a file, or of threads alone."""
        return None

    def views_path(self) -> Path | None:
        """The file where its views are kept, if it has no file of its own that they are beside."""
        return None

    def holders(self) -> Holders | None:
        """The store's own holders; None where they are locks beside a file, or none."""
        return None

    def strays(self) -> Sequence[int]:
        """Positions below 1: none, unless somebody put a row there by hand."""
        return ()

    @property
    def writable(self) -> bool:
        """Whether events can be appended."""
        return True

    def append(self, batch: Batch) -> Appended:
        """Append a batch as one, unless its command was carried out before.

        Raises `Conflict` naming the first stream that is not at its expected version,
        `OutcomeUnknown`, and `StoreError`.
        """
        return self._appending.append(batch)

    def rewrite(
        self, batch: Batch, erase: Sequence[int] = (), put_back: Mapping[int, bytes] | None = None
    ) -> Appended:
        """Append events and let payloads go, or put some back, as one.

        The event says what becomes of the payloads, and is the only one that is written with it.
        Raises `Conflict` naming the first stream that is not at its expected version,
        `OutcomeUnknown`, and `StoreError`.
        """
        return self._appending.rewrite(batch, erase, put_back or {})

    def take(self, rows: Sequence[Row]) -> None:
        """Add rows of another log as they are, if they follow the last one.

        Raises `Conflict` when they do not, and `StoreError`.
        """
        with told(self.turn()) as turn:
            last, _time = turn.head()
            if last != rows[0].position - 1:
                raise Conflict("the log", rows[0].position - 1, last)
            turn.insert(rows)
        self.wake()

    def below(self, prefix: str, after: int, upto: int, names: Collection[str]) -> Iterator[Row]:
        """Rows below a prefix in log order. No read stays open between two of them."""
        if upto - after <= NEAR:
            yield from self.whole(after, upto, names, None, prefix)
            return
        positions = self.positions(prefix, after, upto, names, False)
        for start in range(0, len(positions), PAGE):
            yield from self.rows_at(positions[start : start + PAGE])

    def newest(self, prefix: str, name: str) -> Iterator[Row]:
        """Rows of one name below a prefix, newest first; the first is cheap."""
        positions = self.positions(prefix, 0, self.head()[0], (name,), True)
        start, size = 0, 1
        while start < len(positions):
            yield from reversed(self.rows_at(positions[start : start + size]))
            start, size = start + size, min(size * 8, PAGE)

    def whole(
        self,
        after: int,
        upto: int,
        names: Collection[str],
        limit: int | None,
        prefix: str | None = None,
    ) -> Iterator[Row]:
        """Rows of the whole log in order, at most `limit`."""
        left = limit if limit is not None else upto
        while left > 0 and after < upto:
            size = min(PAGE, left)
            rows = self.scan(after, upto, names, prefix, size)
            yield from rows
            if len(rows) < size:
                return
            after, left = rows[-1].position, left - len(rows)

    def position_at(self, time: int) -> int:
        """The last position whose time is not after `time`, 0 when there is none."""
        low = 0
        high, last = self.head()
        if last <= time:
            return high
        while low < high:
            middle = (low + high + 1) // 2
            if self.time_at(middle) <= time:
                low = middle
            else:
                high = middle - 1
        return low

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        """Append events of `eventsourcing` applications, with their topics as names.

        Raises `IntegrityError` when a version is taken.
        """
        drafts = [
            Draft(str(each.originator_id), each.originator_version, each.topic, 1, each.state)
            for each in stored_events
        ]
        stamp = Stamp("eventsourcing", self.new_id())
        try:
            with self.turn() as turn:
                rows, _position = self._appending.insert(turn, drafts, stamp)
        except CommitFailed as failed:
            rows = self._appending.landed(stamp.command, failed)
        self.wake()
        return [row.position for row in rows]

    @abstractmethod
    def stream_rows(
        self, stream: str, above: int, upto: int | None, newest_first: bool, limit: int | None
    ) -> Sequence[Row]:
        """Rows of a stream with above < version <= upto."""

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Events of one stream, as `eventsourcing` asks for them."""
        above = -1 if gt is None else gt
        rows = self.stream_rows(str(originator_id), above, lte, desc, limit)
        return [StoredEvent(row.stream, row.version, row.name, row.data or b"") for row in rows]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Events of the whole log, as `eventsourcing` asks for them."""
        after = (start or 0) - (1 if inclusive_of_start and start else 0)
        upto = self.head()[0] if stop is None else stop
        return [
            Notification(row.stream, row.version, row.name, row.data or b"", row.position)
            for row in self.whole(after, upto, topics, limit)
        ]

    def max_notification_id(self) -> int | None:
        """The last position, None for an empty log."""
        return self.head()[0] or None

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Events from `gt` on and then new ones. Only writers of this object wake it at once."""
        return LogSubscription(self, gt, topics)

    def listen(self, flag: Flag) -> None:
        """Set this flag after every append."""
        self._listeners.add(flag)

    def unlisten(self, flag: Flag) -> None:
        """Do no longer."""
        self._listeners.discard(flag)

    def wake(self) -> None:
        """Tell who listens that there are new rows."""
        for flag in tuple(self._listeners):
            flag.set()


class LogSubscription(ListenNotifySubscription[LogRecorder]):
    """The events of a log from a position on, without end until it is stopped."""

    def __init__(self, recorder: LogRecorder, gt: int | None, topics: Sequence[str]) -> None:
        super().__init__(recorder, gt, topics)
        recorder.listen(self._has_been_notified)
        self._has_been_notified.set()

    def stop(self) -> None:
        """End it."""
        super().stop()
        self._recorder.unlisten(self._has_been_notified)
