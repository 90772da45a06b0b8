"""The rules of `domain/execution/invariants.py` over the events of one plan, in their order."""

from __future__ import annotations

from collections.abc import Iterable

from statelog.domain.event import Event
from statelog.domain.execution import invariants
from statelog.domain.execution.plan_history import History, evolve
from statelog.domain.ids import stream_parts

Entry = tuple[str, Event]
"""The stream of an event, and the event."""


def audited(log: Iterable[Entry]) -> list[str]:
    """Every rule that an event of a log breaks, in the order of the log."""
    history, found = History(), []
    for stream, event in log:
        parts = stream_parts(stream)
        execution_id = parts[3] if len(parts) > 3 else None
        after = evolve(history, event, execution_id)
        found += invariants.broken(history, event, execution_id, after)
        history = after
    return found
