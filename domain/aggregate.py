"""Aggregates: a name, a blank state, a fold and a lifecycle; decisions are plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from statelog.domain.event import Event
from statelog.domain.ids import Id, stream_name
from statelog.domain.lifecycle import AnyLifecycle

T = TypeVar("T")
P = ParamSpec("P")

_new, _set = object.__new__, object.__setattr__

Decision = Callable[Concatenate[T, P], Sequence[Event]]
"""A command: (state, keyword arguments) -> events. No events means: said already."""


def changed(state: T, /, **changes: Any) -> T:
    """A copy of a frozen dataclass (without slots) with some fields changed.

    The same as `dataclasses.replace` without its checks and a fifth of its cost, which is most of
    the cost of a fold; a name that is not a field raises `AttributeError`.
    """
    before = state.__dict__
    fields = before | changes
    if len(fields) != len(before):
        raise AttributeError(f"{type(state).__name__} has no {sorted(changes.keys() - before)}")
    copy = _new(type(state))
    _set(copy, "__dict__", fields)
    return copy


@dataclass(frozen=True)
class Aggregate(Generic[T]):
    """A kind of thing with one lifecycle.

    `blank` is the state before the first event, a frozen dataclass whose `status` field is moved
    by the lifecycle alone; `evolve(state, event)` moves the rest. `stream` is the pattern of its
    stream names, one `{}` for each part of an id (default: `<name>/{}`).
    """

    name: str
    blank: T
    evolve: Callable[[T, Any], T]
    lifecycle: AnyLifecycle
    stream: str = ""

    def stream_of(self, id: Id) -> str:
        """The stream name of one instance."""
        return stream_name(self.stream or f"{self.name}/{{}}", id)

    def apply(self, state: T, event: Event) -> T:
        """The state after a recorded event. Raises `IllegalTransition`."""
        return self.fold((event,), state)

    def apply_new(self, state: T, event: Event) -> T:
        """The state after a new event; retired rows are refused. Raises `IllegalTransition`."""
        old = state.status  # type: ignore[attr-defined]
        status = self.lifecycle.after_new(old, type(event))
        evolved = self.evolve(state, event)
        if evolved.status is status:  # type: ignore[attr-defined]
            return evolved
        return changed(evolved, status=status)

    def fold(self, events: Iterable[Event], state: T | None = None) -> T:
        """The state after recorded events, from `state` (default: blank)."""
        current: Any = self.blank if state is None else state
        targets, evolve = self.lifecycle.targets, self.evolve
        for event in events:
            try:
                status = targets[type(event)][id(current.status)]
            except KeyError:
                status = self.lifecycle.after(current.status, type(event))
            current = evolve(current, event)
            if current.status is not status:
                current = changed(current, status=status)
        return cast("T", current)

    def decide(
        self, state: T, decision: Decision[T, P], *args: P.args, **given: P.kwargs
    ) -> tuple[tuple[Event, ...], T]:
        """Events of a decision and the state after them.

        Raises what the decision raises (`Refused`, `Invalid`), and `IllegalTransition` for an
        event the lifecycle does not allow.
        """
        events = tuple(decision(state, *args, **given))
        current = state
        for event in events:
            current = self.apply_new(current, event)
        return events, current

    def blank_of(self, id: Id) -> Loaded[T]:
        """The instance before its first event."""
        return Loaded(self, id, self.blank, 0)


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """One instance as it was read: its state and the version that state is of."""

    aggregate: Aggregate[T]
    id: Id
    state: T
    version: int

    @property
    def stream(self) -> str:
        """Its stream name."""
        return self.aggregate.stream_of(self.id)

    def decide(self, decision: Decision[T, P], *args: P.args, **given: P.kwargs) -> Change[T]:
        """The change a decision asks for. Raises what `Aggregate.decide` raises."""
        events, state = self.aggregate.decide(self.state, decision, *args, **given)
        return Change(self, events, state)

    def guard(self) -> Change[T]:
        """A change without events: a commit with it lands only while this version is current."""
        return Change(self, (), self.state)


@dataclass(frozen=True)
class Change(Generic[T]):
    """Decided events waiting to be committed, and the state after them."""

    before: Loaded[T]
    events: tuple[Event, ...]
    state: T

    def then(self, decision: Decision[T, P], *args: P.args, **given: P.kwargs) -> Change[T]:
        """This change and what a further decision adds to it, as one."""
        events, state = self.before.aggregate.decide(self.state, decision, *args, **given)
        return Change(self.before, (*self.events, *events), state)

    @property
    def stream(self) -> str:
        """The stream it appends to."""
        return self.before.stream

    @property
    def expect(self) -> int:
        """The version the stream must still have."""
        return self.before.version

    @property
    def after(self) -> Loaded[T]:
        """The instance once the change is committed."""
        version = self.before.version + len(self.events)
        return Loaded(self.before.aggregate, self.before.id, self.state, version)
