"""Random histories of one aggregate: whatever it decides, replay must give the same state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from unittest import TestCase

from statelog.domain.aggregate import Aggregate
from statelog.domain.errors import IllegalTransition, Invalid, Refused
from statelog.domain.event import Event

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")

Given = Mapping[str, "SearchStrategy[Any]"]


def walk(
    aggregate: Aggregate[T],
    decisions: Mapping[Callable[..., Any], Given],
    *,
    invariants: Mapping[str, Callable[[T], bool]] | None = None,
    examples: int = 100,
    steps: int = 30,
) -> type[TestCase]:
    """A test case for pytest and unittest: name it `TestTicket`, say, in a test module.

    Hypothesis makes `examples` histories of up to `steps` decisions, with keyword arguments drawn
    from the strategies given for each. What a decision refuses changes nothing. Its events are
    stored and read back as a journal does it; replaying them gives the decided state, after each
    decision and once more from the first event; and each invariant, by name, holds for every
    state. A failure is printed as the shortest program that Hypothesis found. It can be pasted
    into a test: the class it names, `WalkTicket` say, is the attribute `machine` of the test case.
    """
    from hypothesis import HealthCheck, settings, stateful

    def begin(self: Any) -> None:
        stateful.RuleBasedStateMachine.__init__(self)
        self._now, self._recorded = aggregate.blank, []

    def replay(self: Any) -> None:
        replayed = aggregate.fold(self._recorded)
        assert replayed == self._now, f"replay from the first event: {_differ(replayed, self._now)}"

    rule: Any = stateful.rule
    body: dict[str, Any] = {"__init__": begin, "teardown": replay}
    for decision, given in decisions.items():
        act = _act(aggregate, decision)
        body[act.__name__] = rule(**given)(act)
    for name, holds in (invariants or {}).items():
        check = _check(name, holds)
        body[check.__name__] = stateful.invariant()(check)
    title = f"Walk{aggregate.name.title().replace('_', '')}"
    machine: Any = type(title, (stateful.RuleBasedStateMachine,), body)
    case: type[TestCase] = machine.TestCase
    case.machine = machine  # type: ignore[attr-defined]
    case.settings = settings(  # type: ignore[attr-defined]
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    return case


def _act(aggregate: Aggregate[Any], decision: Callable[..., Any]) -> Callable[..., None]:
    from hypothesis import currently_in_test_context, event, stateful

    name = decision.__name__

    def note(said: str) -> None:
        """A printed program runs on its own too, where nobody counts."""
        if currently_in_test_context():
            event(said)

    def act(self: Any, **given: Any) -> None:
        try:
            events, state = aggregate.decide(self._now, decision, **given)
        except Refused as no:
            note(f"{name} refused: {no.rule}")
            return
        except (Invalid, IllegalTransition) as no:
            note(f"{name}: {type(no).__name__}")
            return
        read = [_stored(each) for each in events]
        replayed = aggregate.fold(read, self._now)
        assert replayed == state, f"replay of {name}: {_differ(replayed, state)}"
        self._now = state
        self._recorded += read

    act.__name__ = name + "_" * hasattr(stateful.RuleBasedStateMachine, name)
    return act


def _check(name: str, holds: Callable[[Any], bool]) -> Callable[..., None]:
    def check(self: Any) -> None:
        assert holds(self._now), f"{name} does not hold for {self._now!r}"

    check.__name__ = "always_" + "".join(c if c.isalnum() else "_" for c in name)
    return check


def _stored(event: Event) -> Event:
    """The event as it is after a trip through the log."""
    from statelog.infrastructure import codec

    return codec.decode(event.stored_name, event.schema, codec.encode(event))


def _differ(replayed: object, decided: object) -> str:
    return f"the states differ\n  replayed {replayed!r}\n  decided  {decided!r}"
