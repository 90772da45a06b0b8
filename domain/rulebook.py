"""Rulebooks: what an audit checks of a domain's logs, declared once, beside its aggregates.

A domain declares one `Rulebook`: its aggregates, the rules that decisions about one of them keep,
and its families, the rules that hold between streams below one root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from statelog.domain.aggregate import Aggregate
from statelog.domain.event import Event
from statelog.domain.lifecycle import AnyLifecycle

T = TypeVar("T")

Ids = tuple[str, ...]
"""The parts of a stream name that a pattern such as `plan/{}/attempt/{}` leaves open, decoded."""


Meta = Mapping[str, Any]
"""The metadata of an envelope, empty when it has none."""


class Rule(NamedTuple):
    """A named claim about an event: the state before, the event, whose it is, the state after.

    `says` is a sentence for one who reads that it was broken. `on` are the events it is about, all
    when there are none; `shown_by` are the events whose last one before shows that it was broken.
    """

    name: str
    holds: Callable[[Any, Any, Any, Any], bool]
    says: str = ""
    on: tuple[type[Event], ...] = ()
    shown_by: tuple[type[Event], ...] = ()


@dataclass(frozen=True)
class Entity:
    """Things inside a stream with a lifecycle of their own; `id_of` tells whose an event is."""

    lifecycle: AnyLifecycle
    id_of: Callable[[Any], str]


@dataclass(frozen=True)
class Audited(Generic[T]):
    """An aggregate, the rules that its own events keep, and the things inside it.

    Rules get its states, and the `Ids` of its stream as whose event it is. A stream that `spares`
    names by the metadata of its first event keeps to the lifecycle alone: neither these rules nor
    those of a family are for it.
    """

    aggregate: Aggregate[T]
    rules: tuple[Rule, ...] = ()
    entities: tuple[Entity, ...] = ()
    spares: Callable[[Meta], bool] = lambda meta: False

    @property
    def pattern(self) -> str:
        """The pattern of its stream names."""
        return self.aggregate.stream or f"{self.aggregate.name}/{{}}"


@dataclass(frozen=True)
class Family:
    """Rules between all streams below one root, such as `plan/{}`, in the order of the log.

    `evolve(state, event, whose)` folds what rules ask for from `blank`; `whose` is what `member`
    makes of the `Ids` of the event's stream. Only `events` (none: all) change the state.
    """

    root: str
    blank: Any
    evolve: Callable[[Any, Any, Any], Any]
    rules: tuple[Rule, ...]
    events: tuple[type[Event], ...] = ()
    member: Callable[[Ids], Any] = lambda ids: ids


@dataclass(frozen=True)
class Rulebook:
    """All that an audit checks of one domain.

    `private` are stored names of events whose payloads an export may leave out.
    """

    aggregates: tuple[Audited[Any], ...] = ()
    families: tuple[Family, ...] = ()
    private: frozenset[str] = frozenset()

    @property
    def lifecycles(self) -> dict[str, AnyLifecycle]:
        """The lifecycles of its aggregates and of the things inside them, by name."""
        found: dict[str, AnyLifecycle] = {}
        for audited in self.aggregates:
            tables = (audited.aggregate.lifecycle, *(each.lifecycle for each in audited.entities))
            found.update((table.name, table) for table in tables)
        return found

    def __add__(self, other: Rulebook) -> Rulebook:
        return Rulebook(
            self.aggregates + other.aggregates,
            self.families + other.families,
            self.private | other.private,
        )


def rules_by_event(
    rules: Iterable[Rule], events: Iterable[type[Event]]
) -> dict[type[Event], tuple[Rule, ...]]:
    """The rules about each of these events, so that nobody asks those that say nothing of it."""
    every = tuple(rules)
    return {
        event: tuple(rule for rule in every if not rule.on or issubclass(event, rule.on))
        for event in events
    }
