"""The persistence module's half of `eventsourcing`: factory, mapper and event store."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    EventStore,
    InfrastructureFactory,
    JSONTranscoder,
    Mapper,
    ProcessRecorder,
    StoredEvent,
    TrackingRecorder,
)

from statelog.domain.event import Recorded
from statelog.infrastructure import codec
from statelog.infrastructure.clock import now, unique_id
from statelog.infrastructure.store.recorder import LogRecorder
from statelog.infrastructure.store.row import recorded


class LogMapper(Mapper[str]):
    """Stored names instead of topics, our codec instead of a transcoder."""

    def __init__(self) -> None:
        super().__init__(JSONTranscoder())

    def to_stored_event(self, domain_event: DomainEventProtocol[str]) -> StoredEvent:
        """The stored form of a `Recorded` envelope."""
        given = cast(Recorded, domain_event)
        data = codec.encode(given.event) if given.data is None else given.data
        return StoredEvent(given.stream, given.version, given.name, data)


class LogStore(EventStore[str]):
    """Reads `Recorded` envelopes of a stream."""

    recorder: LogRecorder

    def get(
        self,
        originator_id: str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Iterator[DomainEventProtocol[str]]:
        """Events of a stream with gt < version <= lte, as `Recorded` envelopes."""
        above = -1 if gt is None else gt
        rows = self.recorder.stream_rows(originator_id, above, lte, desc, limit)
        return (recorded(row, codec.decoder) for row in rows)


class LogFactory(InfrastructureFactory[TrackingRecorder]):
    """Builds one log. Snapshots, tracking and process recorders do not exist here."""

    _log: LogRecorder | None = None

    @abstractmethod
    def open_log(self, clock: Callable[[], int], new_id: Callable[[], str]) -> LogRecorder:
        """Open the store that the environment names."""

    def log_recorder(self, clock: Callable[[], int], new_id: Callable[[], str]) -> LogRecorder:
        """Open the store with a clock and ids of the caller's."""
        self._log = self.open_log(clock, new_id)
        return self._log

    def application_recorder(self) -> ApplicationRecorder:
        """Open the store with the system clock."""
        return self.log_recorder(now, unique_id)

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        """There is no second kind of recorder, so no snapshots."""
        _absent("snapshots")

    def tracking_recorder(self, tracking_recorder_class: Any = None) -> TrackingRecorder:
        """Views keep their position beside their rows, in a file of their own."""
        _absent("tracking records")

    def process_recorder(self) -> ProcessRecorder:
        """Views keep their position beside their rows, in a file of their own."""
        _absent("process recorders")

    def close(self) -> None:
        """Close the store."""
        if self._log is not None:
            self._log.close()


def _absent(what: str) -> NoReturn:
    raise NotImplementedError(f"a statelog store has no {what}")
