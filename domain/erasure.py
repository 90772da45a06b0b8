"""Erasures: what is kept of streams whose payloads are gone, in an event of the same log.

A unit is what stands below the first two parts of a stream name, such as `plan/p`. Each has one
stream of erasures. The newest event there tells all that is kept of the unit, so that those before
it are not needed any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Generic, TypeVar, assert_never

from statelog.domain.aggregate import Aggregate, Loaded, changed
from statelog.domain.errors import Invalid, Refused
from statelog.domain.event import Event
from statelog.domain.ids import stream_name
from statelog.domain.lifecycle import SAME, Lifecycle
from statelog.domain.rulebook import Audited, Rulebook

T = TypeVar("T")

_PREFIX: Final = "erasure/"


@dataclass(frozen=True)
class KeptStream:
    """The state of an aggregate as JSON text, and the stream's version and position it is of."""

    version: int
    position: int
    state: str


@dataclass(frozen=True)
class KeptRow:
    """The state of a view's row as JSON text, None when there was none.

    `version` is the view's; `position` is that of the last event that touched the row.
    """

    view: str
    version: int
    key: str
    position: int
    state: str | None


@dataclass(frozen=True)
class Earlier:
    """An erasure before this one: where it is in the log, and why it was done."""

    position: int
    reason: str


class Erased(Event, name="statelog.log.erased"):
    """Payloads are gone; here is what is kept, as of the position `upto`.

    `events` counts the payloads that went with this event. `archived` ones can be restored.
    """

    reason: str
    upto: int
    events: int
    streams: Mapping[str, KeptStream]
    rows: tuple[KeptRow, ...]
    archived: bool = False
    earlier: tuple[Earlier, ...] = ()


class Restored(Event, name="statelog.log.restored"):
    """Archived payloads are back."""

    events: int


class ErasureStatus(Enum):
    """Whether payloads of a unit are gone."""

    NONE, GONE, BACK = "none", "gone", "back"


@dataclass(frozen=True)
class Erasure:
    """The erasures of one unit: what the newest one kept."""

    status: ErasureStatus = ErasureStatus.NONE
    kept: Erased | None = None


def evolve(erasure: Erasure, event: Erased | Restored) -> Erasure:
    """The erasures after an event."""
    match event:
        case Erased():
            return changed(erasure, kept=event)
        case Restored():
            return erasure
        case _:
            assert_never(event)


_NONE, _GONE, _BACK = ErasureStatus.NONE, ErasureStatus.GONE, ErasureStatus.BACK

ERASURE: Final = Aggregate(
    "erasure",
    Erasure(),
    evolve,
    Lifecycle(
        _NONE,
        [
            # event    from   to
            (Erased, _NONE, _GONE),
            (Erased, _GONE, SAME),
            (Erased, _BACK, _GONE),
            (Restored, _GONE, _BACK),
            (Restored, _BACK, SAME),
        ],
        name="erasure",
    ),
)
"""What was erased of one unit, and what was put back."""

RULEBOOK: Final = Rulebook((Audited(ERASURE),))
"""Erasures."""


def erase(erasure: Erasure, *, erased: Erased) -> list[Erased]:
    """Let payloads go. Raises `Invalid` without a reason, `Refused` when none are there."""
    if not erased.reason.strip():
        raise Invalid("reason", "is a text that says why")
    if not erased.events:
        raise Refused("there is no payload to erase", rule="nothing_to_erase")
    return [erased]


def restore(erasure: Erasure, *, events: int) -> list[Restored]:
    """Put payloads back. Raises `Refused` when none were erased."""
    if erasure.status is _NONE:
        raise Refused("nothing of this was erased or archived", rule="nothing_erased")
    return [Restored(events=events)] if events else []


def unit_of(stream: str) -> str:
    """The unit that a stream belongs to."""
    return "/".join(stream.split("/", 2)[:2])


def erasures_of(stream: str) -> str:
    """The stream of the erasures that concern a stream; of such a one, itself."""
    return stream if stream.startswith(_PREFIX) else stream_name("erasure/{}", unit_of(stream))


@dataclass(frozen=True)
class Erasable(Generic[T]):
    """How streams of an aggregate are erased, declared by its domain.

    `unfinished` says why a state is not to be erased, None when it is (default: its status is
    final). `remains` is what later decisions need of it. `beside` are aggregates of the same unit
    that must be finished too; they have as many of the ids as their patterns take. `mentioned`
    ones are not erased while other streams name their ids.
    """

    aggregate: Aggregate[T]
    unfinished: Callable[[T], str | None] | None = None
    remains: Callable[[T], T] = field(default=lambda state: state)
    beside: tuple[Erasable[Any], ...] = ()
    mentioned: bool = False

    def why_not(self, loaded: Loaded[Any]) -> str | None:
        """Why an instance is not to be erased yet."""
        if self.unfinished is not None:
            return self.unfinished(loaded.state)
        status, final = loaded.state.status, self.aggregate.lifecycle.final
        return None if status in final else f"it is {status.value}, which is not final"
