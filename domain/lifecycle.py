"""Lifecycles: declared transition tables over `transitions`, compiled to one dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, TypeVar

from transitions import Machine

from statelog.domain.errors import IllegalTransition
from statelog.domain.event import Event

S = TypeVar("S", bound=Enum)


class Same:
    """Marks a row that keeps the status."""

    def __repr__(self) -> str:
        return "SAME"


SAME: Final = Same()


class Row(NamedTuple, Generic[S]):
    """One transition: this event, in this status, leads to that status."""

    event: type[Event]
    source: S
    target: S
    retired: bool


Declared = tuple[type[Event], S, S | Same]


class Lifecycle(Generic[S]):
    """A declared lifecycle.

    `rows` are (event, from, to) with `SAME` as `to` for a row that keeps the status; creation is a
    row from `new`. `final` statuses have no row to another. `reserved` statuses are declared and
    never reached. `retired` rows are legal on replay and refused for new events.

    Raises `ValueError` when two rows share event and status, two events share a class name (the
    machine would take them for one), a status is unreachable and not reserved (or reserved and
    reached), a final status is left, or two members of the status enumeration share a value.
    """

    def __init__(
        self,
        new: S,
        rows: Sequence[Declared[S]],
        *,
        final: Iterable[S] = (),
        reserved: Iterable[S] = (),
        retired: Sequence[Declared[S]] = (),
        name: str = "",
    ) -> None:
        self.new = new
        self.statuses: type[S] = type(new)
        self.name = name or self.statuses.__qualname__
        self.final = frozenset(final)
        self.reserved = frozenset(reserved)
        self.rows: tuple[Row[S], ...] = (
            *(self._row(row, retired=False) for row in rows),
            *(self._row(row, retired=True) for row in retired),
        )
        self._check()
        self.targets = _targets(self.rows)
        self._new_targets = _targets(row for row in self.rows if not row.retired)

    def _row(self, declared: Declared[S], *, retired: bool) -> Row[S]:
        event, source, target = declared
        return Row(event, source, source if isinstance(target, Same) else target, retired)

    def _check(self) -> None:
        aliases = set(self.statuses.__members__) - {status.name for status in self.statuses}
        if aliases:
            raise ValueError(f"{self.name}: {sorted(aliases)} repeat the value of another status")
        by_name = {row.event.__name__: row.event for row in self.rows}
        if wrong := {row.event for row in self.rows} - set(by_name.values()):
            names = sorted(event.__name__ for event in wrong)
            raise ValueError(f"{self.name}: two events are called {names}")
        pairs = [(row.event, row.source) for row in self.rows]
        for event, source in pairs:
            if pairs.count((event, source)) > 1:
                raise ValueError(f"{self.name}: two rows for {event.__name__} in {source.name}")
        for row in self.rows:
            if row.source in self.final and row.target is not row.source:
                raise ValueError(f"{self.name}: final {row.source.name} is left")
        self._check_reach()

    def _check_reach(self) -> None:
        reached = {self.new}
        while more := {row.target for row in self.rows if row.source in reached} - reached:
            reached |= more
        if wrong := reached & self.reserved:
            raise ValueError(f"{self.name}: reserved but reached: {_names(wrong)}")
        if wrong := set(self.statuses) - reached - self.reserved:
            raise ValueError(f"{self.name}: unreachable and not reserved: {_names(wrong)}")

    @cached_property
    def events(self) -> tuple[type[Event], ...]:
        """The events of the table, in order of first appearance."""
        return tuple(dict.fromkeys(row.event for row in self.rows))

    @cached_property
    def machine(self) -> Machine:
        """The `transitions` machine that defines the table; it is asked, never bound to a model."""
        return Machine(
            model=None,
            states=self.statuses,
            initial=self.new,
            auto_transitions=False,
            transitions=[
                {"trigger": row.event.__name__, "source": row.source, "dest": row.target}
                for row in self.rows
            ],
        )

    def allows(self, status: S, event: type[Event]) -> bool:
        """Whether a new event of this type may be appended in this status."""
        return id(status) in self._new_targets.get(event, ())

    def after(self, status: S, event: type[Event]) -> S:
        """The status after a recorded event, retired rows included.

        Raises `IllegalTransition` when the table has no such row.
        """
        try:
            return self.targets[event][id(status)]
        except KeyError:
            raise IllegalTransition(self.name, status.name, event.__name__) from None

    def after_new(self, status: S, event: type[Event]) -> S:
        """The status after a new event. Raises `IllegalTransition`, also for a retired row."""
        try:
            return self._new_targets[event][id(status)]
        except KeyError:
            self.after(status, event)
            raise IllegalTransition(self.name, status.name, f"{event.__name__} (retired)") from None


Targets = dict[type[Event], dict[int, S]]
"""The status that follows, by event and then by `id` of the status.

A member of an enumeration is there once and for ever, and its `__hash__` is Python code, which
would take most of the time of a look-up.
"""


def _targets(rows: Iterable[Row[S]]) -> Targets[S]:
    targets: Targets[S] = {}
    for row in rows:
        targets.setdefault(row.event, {})[id(row.source)] = row.target
    return targets


def _names(statuses: Iterable[Enum]) -> list[str]:
    return sorted(status.name for status in statuses)


AnyLifecycle = Lifecycle[Any]
