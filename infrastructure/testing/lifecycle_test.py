"""One line that tests a lifecycle: `test_lifecycle = lifecycle_test(TICKET)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from statelog.domain.aggregate import Aggregate, changed
from statelog.domain.errors import IllegalTransition
from statelog.domain.event import Event, event_type
from statelog.domain.lifecycle import AnyLifecycle
from statelog.infrastructure.testing.sample import sample


class Check(NamedTuple):
    """One claim about a lifecycle; `run` raises `AssertionError` when it does not hold."""

    name: str
    run: Callable[[], None]


def lifecycle_test(
    subject: Aggregate[Any] | AnyLifecycle,
    *,
    samples: Mapping[type[Event], Event] | None = None,
    states: Mapping[Any, Any] | None = None,
) -> Callable[[Check], None]:
    """A pytest test, to be given a name that begins with `test_`, with one case for each claim.

    Every row leads where it says, and the fold accepts its event without moving the status; every
    other pair of status and event is refused; retired rows are replayed and not written; the
    compiled table and the machine agree; a final status has no way out; every event is stored
    under a name of its own. Of a bare lifecycle only the table is tested. Where a plain sample or a
    status alone will not do, `samples` gives events by type, and `states` gives states by status
    or by (status, event type).
    """
    import pytest

    found = list(checks(subject, samples=samples, states=states))

    @pytest.mark.parametrize("check", found, ids=[check.name for check in found])
    def test(check: Check) -> None:
        __tracebackhide__ = True
        check.run()

    test.__doc__ = "Every row of the lifecycle holds, and nothing else may happen."
    return test


def checks(
    subject: Aggregate[Any] | AnyLifecycle,
    *,
    samples: Mapping[type[Event], Event] | None = None,
    states: Mapping[Any, Any] | None = None,
) -> Iterator[Check]:
    """The claims one by one, for those who do not use pytest."""
    aggregate = subject if isinstance(subject, Aggregate) else None
    table = aggregate.lifecycle if aggregate is not None else subject
    assert not isinstance(table, Aggregate)
    yield from _Table(table).checks()
    if aggregate is not None:
        yield from _Fold(aggregate, dict(samples or {}), dict(states or {})).checks()


@dataclass(frozen=True)
class _Table:
    """Claims about the table alone."""

    lifecycle: AnyLifecycle

    def checks(self) -> Iterator[Check]:
        """One claim for each pair of status and event, and one for each status and event."""
        declared = {(row.source, row.event): row for row in self.lifecycle.rows}
        for status in self.lifecycle.statuses:
            for event in self.lifecycle.events:
                row = declared.get((status, event))
                pair = f"{status.name} {event.__name__}"
                if row is None:
                    yield Check(f"{pair} is refused", _call(self.refused, status, event))
                elif row.retired:
                    check = _call(self.retired, status, event, row.target)
                    yield Check(f"{pair} is retired", check)
                else:
                    check = _call(self.row, status, event, row.target)
                    yield Check(f"{pair} leads to {row.target.name}", check)
                check = _call(self.machine_agrees, status, event)
                yield Check(f"{pair} is what the machine says", check)
        for status in sorted(self.lifecycle.final, key=lambda status: status.name):
            yield Check(f"{status.name} is final", _call(self.final, status))
        for event in self.lifecycle.events:
            yield Check(f"{event.__name__} has a stored name", _call(self.stored, event))

    def row(self, status: Any, event: type[Event], target: Enum) -> None:
        """A row leads where it says, on replay and for new events."""
        assert self.lifecycle.allows(status, event), f"{event.__name__} is not allowed"
        for found in (self.lifecycle.after(status, event), self.lifecycle.after_new(status, event)):
            assert found is target, f"leads to {found.name}, declared is {target.name}"

    def refused(self, status: Any, event: type[Event]) -> None:
        """A pair without a row is refused, on replay and for new events."""
        assert not self.lifecycle.allows(status, event), f"{event.__name__} is allowed"
        for ask in (self.lifecycle.after, self.lifecycle.after_new):
            try:
                found = ask(status, event)
            except IllegalTransition:
                continue
            raise AssertionError(f"leads to {found.name}, and no row declares it")

    def retired(self, status: Any, event: type[Event], target: Enum) -> None:
        """A retired row is replayed, and refused for new events."""
        found = self.lifecycle.after(status, event)
        assert found is target, f"leads to {found.name}, declared is {target.name}"
        assert not self.lifecycle.allows(status, event), f"{event.__name__} is allowed"
        try:
            self.lifecycle.after_new(status, event)
        except IllegalTransition:
            return
        raise AssertionError(f"a new {event.__name__} is accepted, and its row is retired")

    def machine_agrees(self, status: Any, event: type[Event]) -> None:
        """The compiled table answers as the `transitions` machine does."""
        found = self.lifecycle.machine.get_transitions(event.__name__, status)
        machine = [transition.dest for transition in found]
        try:
            compiled = [self.lifecycle.after(status, event).name]
        except IllegalTransition:
            compiled = []
        assert compiled == machine, f"compiled table: {compiled}, machine: {machine}"

    def final(self, status: Any) -> None:
        """No event leads out of a final status."""
        for event in self.lifecycle.events:
            try:
                found = self.lifecycle.after(status, event)
            except IllegalTransition:
                continue
            assert found is status, f"{event.__name__} leads out of it, to {found.name}"

    def stored(self, event: type[Event]) -> None:
        """The event can be stored, and is found again by its name."""
        assert event.stored_name, f"{event.__name__} has no stored name: class X(Event, name=...)"
        assert event_type(event.stored_name) is event, f"{event.stored_name} is another event"


@dataclass(frozen=True)
class _Fold:
    """Claims about the fold: what evolve does with each row's event."""

    aggregate: Aggregate[Any]
    samples: dict[type[Event], Event]
    states: dict[Any, Any]

    def checks(self) -> Iterator[Check]:
        """One claim for each row."""
        for row in self.aggregate.lifecycle.rows:
            name = f"{row.source.name} {row.event.__name__} is folded"
            yield Check(name, _call(self.folded, row.source, row.event, row.target))

    def folded(self, status: Any, event: type[Event], target: Enum) -> None:
        """Evolve accepts the event and leaves the status alone."""
        __tracebackhide__ = True
        state = self.states.get((status, event), self.states.get(status))
        if state is None:
            state = changed(self.aggregate.blank, status=status)
        assert state.status is status, f"states[{status.name}] is in {state.status.name}"
        happened = self._sample(event)
        try:
            evolved = self.aggregate.evolve(state, happened)
        except Exception as error:
            raise AssertionError(
                f"evolve raised {type(error).__name__}: {error}\n"
                f"  state {state!r}\n  event {happened!r}\n"
                "  (where a plain sample will not do, give samples={event: ...} or "
                "states={status: ...})"
            ) from error
        assert isinstance(evolved, type(self.aggregate.blank)), f"evolve returned {evolved!r}"
        assert evolved.status is status, (
            f"evolve moved status to {evolved.status.name}; the lifecycle alone does that"
        )
        after = self.aggregate.apply(state, happened).status
        assert after is target, f"the fold leads to {after.name}, declared is {target.name}"

    def _sample(self, event: type[Event]) -> Event:
        if event in self.samples:
            return self.samples[event]
        try:
            return sample(event)
        except TypeError as error:
            raise AssertionError(f"samples={{{event.__name__}: ...}} is needed: {error}") from None


def _call(function: Callable[..., None], *args: Any) -> Callable[[], None]:
    def run() -> None:
        __tracebackhide__ = True
        function(*args)

    return run
