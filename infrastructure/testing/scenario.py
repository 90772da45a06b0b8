"""Given these events, when this decision, then these events: an aggregate's rules as tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from itertools import zip_longest
from textwrap import wrap
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

from statelog.domain.aggregate import Aggregate, Decision
from statelog.domain.errors import IllegalTransition, Invalid, Refused, StatelogError
from statelog.domain.event import Event

T = TypeVar("T")
P = ParamSpec("P")

WIDTH = 44
"""Characters of each of the two columns of a failure message, at most."""

Block = tuple[str, ...]
"""The lines that show one event, or one way of saying no."""


def scenario(aggregate: Aggregate[T], *given: Event) -> Scenario[T]:
    """An instance that has had these events.

    Fails with `AssertionError` when its lifecycle does not allow them in this order.
    """
    __tracebackhide__ = True
    state = aggregate.blank
    for at, event in enumerate(given):
        try:
            state = aggregate.apply(state, event)
        except IllegalTransition as no:
            before = "".join(f"\n  {n}. {past!r}" for n, past in enumerate(given[:at], 1))
            raise AssertionError(f"given event {at + 1}, {event!r}: {no}{before}") from None
    return Scenario(aggregate, given, state)


@dataclass(frozen=True)
class Scenario(Generic[T]):
    """An instance with a past: `given` events, and the `state` they lead to."""

    aggregate: Aggregate[T]
    given: tuple[Event, ...]
    state: T

    def when(self, decision: Decision[T, P], *args: P.args, **kwargs: P.kwargs) -> Outcome[T]:
        """What the decision says. Errors other than a no are raised at once: they are bugs."""
        named = [f"{name}={value!r}" for name, value in kwargs.items()]
        call = f"{_name(decision)}({', '.join([*map(repr, args), *named])})"
        title = f"{self.aggregate.name}: {call} after {_count(self.given)}"
        try:
            events, state = self.aggregate.decide(self.state, decision, *args, **kwargs)
        except (Refused, Invalid, IllegalTransition) as no:
            return Outcome(title, (), self.state, no)
        return Outcome(title, events, state, None)


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What a decision said: `events` and the `state` after them, or a no."""

    title: str
    events: tuple[Event, ...]
    after: T
    no: StatelogError | None

    @property
    def state(self) -> T:
        """The state after the events. Fails when the decision said no."""
        __tracebackhide__ = True
        if self.no is not None:
            raise AssertionError(f"{self.title} said no: {_said(self.no)}")
        return self.after

    def then(self, *expected: Event) -> Outcome[T]:
        """Exactly these events, in this order."""
        __tracebackhide__ = True
        if self.no is not None or self.events != expected:
            self._fail("gave other events", [_block(event) for event in expected])
        return self

    def then_nothing(self) -> Outcome[T]:
        """No events: it was said already."""
        __tracebackhide__ = True
        if self.no is not None or self.events:
            self._fail("was expected to change nothing", [("(no events)",)])
        return self

    def then_refused(self, rule: str) -> Outcome[T]:
        """Refused by this rule."""
        __tracebackhide__ = True
        if not (isinstance(self.no, Refused) and self.no.rule == rule):
            self._fail(f"was not refused by rule {rule!r}", [(f"Refused [{rule}]",)])
        return self

    def then_invalid(self, field: str) -> Outcome[T]:
        """Not accepted, because of this field of the input."""
        __tracebackhide__ = True
        if not (isinstance(self.no, Invalid) and self.no.field == field):
            self._fail(f"did not find {field!r} invalid", [(f"Invalid {field}",)])
        return self

    def then_illegal(self, event: type[Event]) -> Outcome[T]:
        """The decision returned an event of this type, and the lifecycle has no row for it."""
        __tracebackhide__ = True
        if not (isinstance(self.no, IllegalTransition) and event.__name__ in self.no.event):
            self._fail(f"did not run into the lifecycle by {event.__name__}", [("no such row",)])
        return self

    def _fail(self, why: str, expected: Sequence[Block]) -> NoReturn:
        __tracebackhide__ = True
        actual = [_block(event) for event in self.events] or [("(no events)",)]
        if self.no is not None:
            actual = [(type(self.no).__name__, *_wrapped(str(self.no)))]
        shown = side_by_side(expected or [("(no events)",)], actual)
        raise AssertionError(f"{self.title} {why}\n{shown}")


def side_by_side(expected: Sequence[Block], actual: Sequence[Block]) -> str:
    """Both lists of blocks in two columns, equal ones level, with `!` where a line differs."""
    lines = [("expected", "actual"), *_level(expected, actual)]
    width = max(len(left) for left, _ in lines)
    head, *rest = (f"{left:<{width}} | {right}".rstrip() for left, right in lines)
    marks = ("  " if left == right else "! " for left, right in lines[1:])
    return "\n".join(["  " + head, *(mark + line for mark, line in zip(marks, rest, strict=True))])


def _level(expected: Sequence[Block], actual: Sequence[Block]) -> Iterator[tuple[str, str]]:
    matcher = SequenceMatcher(None, expected, actual, autojunk=False)
    for _, i, j, k, m in matcher.get_opcodes():
        for left, right in zip_longest(expected[i:j], actual[k:m], fillvalue=()):
            yield from zip_longest(left, right, fillvalue="")


def _block(event: Event) -> Block:
    """The class name, then a line for each field, wrapped."""
    shown = ((each.name, getattr(event, each.name)) for each in fields(event))  # type: ignore[arg-type]
    return (type(event).__name__, *(line for pair in shown for line in _field(*pair)))


def _field(name: str, value: Any) -> list[str]:
    return _wrapped(f"{name}={value!r}")


def _wrapped(text: str) -> list[str]:
    return wrap(
        text, WIDTH, initial_indent="  ", subsequent_indent="    ", replace_whitespace=False
    )


def _said(no: StatelogError) -> str:
    return f"{type(no).__name__}: {no}"


def _name(decision: Any) -> str:
    return getattr(decision, "__name__", repr(decision))


def _count(events: Sequence[Event]) -> str:
    return f"{len(events)} event" + ("" if len(events) == 1 else "s")
