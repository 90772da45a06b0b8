"""Whose stream an event is in: the plan, and the attempt if it is an attempt's."""

from __future__ import annotations

from functools import lru_cache

from statelog.domain.errors import Invalid
from statelog.domain.event import Recorded
from statelog.domain.ids import stream_name, stream_parts


def plan_of(recorded: Recorded) -> str | None:
    """The plan whose own, slot's or attempt's stream holds the event; None for others."""
    return _owners(recorded.stream)[0]


def stream_of(plan_id: str) -> str | None:
    """The stream that every event of a plan is in or below; None for what cannot be an ID."""
    try:
        return stream_name("plan/{}", plan_id)
    except Invalid:
        return None


def attempt_of(recorded: Recorded) -> str | None:
    """The execution ID of the attempt whose stream holds the event; None for others."""
    return _owners(recorded.stream)[1]


def eid(recorded: Recorded) -> str:
    """The name of one event in the whole log: `stream@version`."""
    return f"{recorded.stream}@{recorded.version}"


@lru_cache(maxsize=4096)
def _owners(stream: str) -> tuple[str | None, str | None]:
    match stream_parts(stream):
        case ("plan", plan_id) | ("plan", plan_id, "slot"):
            return plan_id, None
        case ("plan", plan_id, "attempt", execution_id):
            return plan_id, execution_id
        case _:
            return None, None
