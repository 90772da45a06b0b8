"""Which transitions, statuses and refusals a log has seen, of every declared lifecycle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from statelog.domain.errors import IllegalTransition, Unreadable
from statelog.domain.event import Event
from statelog.domain.rulebook import Entity
from statelog.infrastructure import codec
from statelog.infrastructure.audit.rules import Rules, Subject
from statelog.infrastructure.store.recorder import Refusal
from statelog.infrastructure.store.row import Row
from statelog.infrastructure.usage import Usage


def coverage(
    rows: Iterable[Row],
    rules: Rules,
    refusals: Iterable[Refusal] = (),
    progress: Callable[[int], None] | None = None,
) -> dict[str, Usage]:
    """How much of each lifecycle the rows of a log used, which come in its order.

    What no lifecycle allows is passed over: it is for an audit to tell. `progress` is told the
    position now and then.
    """
    found = _Coverage(rules, refusals)
    for count, row in enumerate(rows, 1):
        found.take(row)
        if progress is not None and count % 10_000 == 0:
            progress(row.position)
    found.end()
    return found.usages


class _Thing:
    """One stream, or one thing inside it: its status, and since when."""

    __slots__ = ("entered", "status")

    def __init__(self, status: Any) -> None:
        self.status = status
        self.entered: int | None = None


class _Coverage:
    def __init__(self, rules: Rules, refusals: Iterable[Refusal]) -> None:
        self.usages = {name: Usage(each) for name, each in rules.lifecycles.items()}
        self._rules = rules
        self._things: dict[str, _Thing] = {}
        self._inside: dict[tuple[str, str, str], _Thing] = {}
        self._refusals: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for each in refusals:
            self._refusals[each.stream].append((each.version, each.rule))

    def take(self, row: Row) -> None:
        found = self._rules.subject(row.stream)
        if found is None:
            return
        subject = found[0]
        event = subject.names.get(row.name)
        lifecycle = subject.aggregate.lifecycle
        thing = self._things.get(row.stream)
        if thing is None:
            thing = self._things[row.stream] = _Thing(lifecycle.new)
        if self._refusals:
            self._refused(row.stream, row.version, subject, thing)
        if event is None:
            return
        self._move(self.usages[lifecycle.name], thing, event, row.time)
        for entity in subject.audited.entities:
            if event in entity.lifecycle.targets:
                self._inner(row, entity, event)

    def end(self) -> None:
        """What was refused after the last event of a stream, or before its first."""
        for stream in list(self._refusals):
            found = self._rules.subject(stream)
            if found is not None:
                subject = found[0]
                thing = self._things.get(stream) or _Thing(subject.aggregate.lifecycle.new)
                self._refused(stream, 2**63, subject, thing)

    def _inner(self, row: Row, entity: Entity, event: type[Event]) -> None:
        if row.data is None:
            return
        try:
            id = entity.id_of(codec.decode(row.name, row.schema, row.data, row.position))
        except (Unreadable, AttributeError):
            return
        key = (row.stream, entity.lifecycle.name, id)
        thing = self._inside.get(key)
        if thing is None:
            thing = self._inside[key] = _Thing(entity.lifecycle.new)
        self._move(self.usages[entity.lifecycle.name], thing, event, row.time)

    def _move(self, usage: Usage, thing: _Thing, event: type[Event], time: int) -> None:
        try:
            target = usage.lifecycle.after(thing.status, event)
        except IllegalTransition:
            return
        name = event.__name__
        thing.entered = usage.moved(thing.status, name, target, thing.entered, time)
        thing.status = target

    def _refused(self, stream: str, version: int, subject: Subject, thing: _Thing) -> None:
        """Count what was refused while the stream was as it is before this version."""
        waiting = self._refusals.get(stream)
        if waiting is None:
            return
        usage = self.usages[subject.aggregate.lifecycle.name]
        for at, rule in waiting:
            if at < version:
                usage.refused[thing.status.name, rule] += 1
        left = [each for each in waiting if each[0] >= version]
        if left:
            self._refusals[stream] = left
        else:
            del self._refusals[stream]
