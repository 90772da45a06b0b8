"""When the events of an imported attempt happened: its start says so for each step (D20).

The log has the time at which they came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from statelog.domain.event import Event, Recorded
from statelog.domain.execution.attempt_events import Started
from statelog.projections.execution.event_types import STEP_EVENTS

Times = Mapping[str, Mapping[str, int]]
"""By step and number of the event: microseconds since 1970 UTC."""

NONE: Final[Times] = {}


def times_of(start: Started) -> Times:
    """The times that a start tells; none for an attempt of this log."""
    found = {}
    for entry in start.steps:
        told = entry.get("ts")
        if isinstance(told, Mapping) and isinstance(entry.get("step_id"), str):
            found[entry["step_id"]] = _whole(told)
    return found or NONE


def _whole(told: Mapping[str, Any]) -> dict[str, int]:
    return {seq: at for seq, at in told.items() if type(at) is int}


def happened_at(times: Times, event: Event, at: int) -> int:
    """When an event happened, which was recorded at this time (microseconds)."""
    if times and isinstance(event, STEP_EVENTS):
        return times.get(event.step_id, {}).get(str(event.seq), at)
    return at


def as_it_happened(events: Iterable[Recorded]) -> Iterator[Recorded]:
    """The events of one attempt, each with the time at which it happened."""
    times = NONE
    for recorded in events:
        event = recorded.event
        if isinstance(event, Started):
            times = times_of(event)
        at = happened_at(times, event, recorded.time)
        yield recorded if at == recorded.time else replace(recorded, time=at)
