"""Logs made by hand: recorded events with dense positions, stream versions and growing times."""

from __future__ import annotations

from statelog.domain.event import Event, Recorded
from statelog.domain.ids import stream_name
from statelog.infrastructure.codec import decoder, encode

SECOND = 1_000_000
START = 1_767_261_600 * SECOND
"""2026-01-01T10:00:00Z, in microseconds."""


class Log:
    """A log in memory. Every event goes through the codec, and is a second later than the last."""

    def __init__(self) -> None:
        self.events: list[Recorded] = []
        self._versions: dict[str, int] = {}

    def append(self, stream: str, *events: Event, actor: str = "bob") -> Recorded:
        """Append to a stream; answers the last event."""
        for event in events:
            version = self._versions[stream] = self._versions.get(stream, 0) + 1
            position = len(self.events) + 1
            self.events.append(
                Recorded(
                    position=position,
                    stream=stream,
                    version=version,
                    name=event.stored_name,
                    schema=event.schema,
                    time=START + position * SECOND,
                    actor=actor,
                    command=f"c{position}",
                    correlation=None,
                    cause=None,
                    meta=None,
                    data=encode(event),
                    data_hash=b"",
                    hash=b"",
                    decoder=decoder,
                )
            )
        return self.events[-1]

    def plan(self, *events: Event, id: str = "p", actor: str = "bob") -> Recorded:
        """Append to a plan's stream."""
        return self.append(stream_name("plan/{}", id), *events, actor=actor)

    def slot(self, *events: Event, id: str = "p") -> Recorded:
        """Append to a plan's slot."""
        return self.append(stream_name("plan/{}/slot", id), *events)

    def attempt(self, execution_id: str, *events: Event, id: str = "p") -> Recorded:
        """Append to an attempt's stream."""
        return self.append(stream_name("plan/{}/attempt/{}", (id, execution_id)), *events)
