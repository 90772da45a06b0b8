"""The framework of event-sourced state machines: events, lifecycles, aggregates, errors."""

from statelog.domain.aggregate import Aggregate, Change, Loaded, changed
from statelog.domain.errors import (
    Conflict,
    IllegalTransition,
    Invalid,
    NotFound,
    OutcomeUnknown,
    Refused,
    StatelogError,
    StoreError,
    Unreadable,
)
from statelog.domain.event import Event, Recorded
from statelog.domain.lifecycle import SAME, Lifecycle
from statelog.domain.pmap import PMap

__all__ = [
    "SAME",
    "Aggregate",
    "Change",
    "Conflict",
    "Event",
    "IllegalTransition",
    "Invalid",
    "Lifecycle",
    "Loaded",
    "NotFound",
    "OutcomeUnknown",
    "PMap",
    "Recorded",
    "Refused",
    "StatelogError",
    "StoreError",
    "Unreadable",
    "changed",
]
