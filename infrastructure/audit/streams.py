"""Streams below one root against their lifecycles and rules, row by row in the order of the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from statelog.domain.errors import IllegalTransition
from statelog.domain.event import Event
from statelog.domain.rulebook import Ids, Meta, Rule
from statelog.infrastructure.audit.envelope import VERSIONS, Envelopes
from statelog.infrastructure.audit.rules import Kin, Rules, Subject
from statelog.infrastructure.audit.violations import Shown, Tally, shown
from statelog.infrastructure.store.row import Row

OWNERS: Final = "a stream is of a declared aggregate"
KINDS: Final = "an event is of its stream's aggregate"
TRANSITIONS: Final = "only declared transitions"
FOLDS: Final = "the fold takes every event"


class _Stream:
    """One stream: how far it is, and its aggregate's state while payloads are there to fold."""

    __slots__ = ("ids", "last", "moved", "opaque", "spared", "state", "status", "subject")

    def __init__(self, found: tuple[Subject, Ids] | None, meta: Meta) -> None:
        self.subject: Subject | None = None if found is None else found[0]
        self.ids: Ids = () if found is None else found[1]
        self.last: Shown | None = None
        self.moved: Shown | None = None
        self.opaque = False
        self.spared = self.subject is not None and self.subject.audited.spares(meta)
        self.state = None if self.subject is None else self.subject.aggregate.blank
        self.status = None if self.state is None else self.state.status


class Root:
    """Everything below one root of a log. A stream of another root begins another one."""

    def __init__(self, rules: Rules, envelopes: Envelopes, tally: Tally) -> None:
        self._rules = rules
        self._envelopes = envelopes
        self._tally = tally
        self._streams: dict[str, _Stream] = {}
        self._kin: Kin | None = None
        self._history: Any = None
        self._told: dict[type[Event], Shown] = {}

    def take(self, row: Row) -> None:
        """Judge the next row."""
        if not self._envelopes.sound(row):
            return
        event = self._envelopes.event(row)
        stream = self._streams.get(row.stream) or self._begin(row)
        last = stream.last
        wanted = 1 if last is None else last.version + 1
        if row.version != wanted:
            why = f"it has version {row.version}, and {wanted} comes next in this stream"
            self._tally.add(row, VERSIONS, why, () if last is None else (last,))
        stream.last = shown(row)
        if stream.subject is None:
            return
        if event is None or stream.opaque:
            self._unread(row, stream, stream.subject)
        elif row.name not in stream.subject.names:
            self._foreign(row, stream, stream.subject)
        elif self._fold(row, event, stream, stream.subject):
            kin = None if stream.spared else self._kin
            if kin is not None:
                self._between(row, event, stream, kin)

    def _begin(self, row: Row) -> _Stream:
        found = self._rules.subject(row.stream)
        if not self._streams:
            self._kin = self._rules.kin(row.stream)
            self._history = None if self._kin is None else self._kin.family.blank
        stream = self._streams[row.stream] = _Stream(found, _meta(row))
        if found is None:
            self._tally.add(row, OWNERS, "no declared aggregate has streams of this form")
        return stream

    def _foreign(self, row: Row, stream: _Stream, subject: Subject) -> None:
        known = self._envelopes.known(row)
        if known is not None:
            what = f"{subject.aggregate.name} has no event {row.name}"
            self._tally.add(row, KINDS, what, _but_none(stream.moved))

    def _unread(self, row: Row, stream: _Stream, subject: Subject) -> None:
        """What can be said without the payload: only the lifecycle, by the name alone.

        Once a payload is gone, so is what later ones would be folded into.
        """
        if row.data is None:
            stream.opaque, self._kin = True, None
        event = self._envelopes.known(row)
        if event is None:
            return
        if row.name not in subject.names:
            self._foreign(row, stream, subject)
            return
        try:
            status = subject.aggregate.lifecycle.after(stream.status, event)
        except IllegalTransition as error:
            self._illegal(row, stream, error)
            return
        self._move(row, stream, status)

    def _fold(self, row: Row, event: Event, stream: _Stream, subject: Subject) -> bool:
        before = stream.state
        try:
            after = subject.aggregate.fold((event,), before)
        except IllegalTransition as error:
            self._illegal(row, stream, error)
            return False
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            self._tally.add(row, FOLDS, why, _but_none(stream.moved))
            return False
        moved, stream.state = stream.moved, after
        if after.status is not stream.status or stream.moved is None:
            self._move(row, stream, after.status)
        rules = subject.rules.get(type(event))
        if rules is not None and not stream.spared:
            for rule in _broken(rules, before, event, stream.ids, after):
                self._tally.add(row, rule.name, rule.says, _but_none(moved))
        return True

    def _illegal(self, row: Row, stream: _Stream, error: IllegalTransition) -> None:
        self._tally.add(row, TRANSITIONS, str(error), _but_none(stream.moved))

    def _move(self, row: Row, stream: _Stream, status: Any) -> None:
        if status is not stream.status or stream.moved is None:
            stream.status, stream.moved = status, shown(row)
            assert stream.subject is not None
            if status in stream.subject.ends:
                stream.state, stream.opaque = None, True

    def _between(self, row: Row, event: Event, stream: _Stream, kin: Kin) -> None:
        kind, before = type(event), self._history
        member = kin.family.member(stream.ids)
        after = before
        if kind in kin.events:
            try:
                after = kin.family.evolve(before, event, member)
            except Exception:  # what cannot be folded was told by its own stream
                return
        rules = kin.rules.get(kind)
        if rules is not None:
            for rule in _broken(rules, before, event, member, after):
                said = [self._told[each] for each in rule.shown_by if each in self._told]
                self._tally.add(row, rule.name, rule.says, said)
        self._history = after
        if kind in kin.telling:
            self._told[kind] = shown(row)


def _meta(row: Row) -> Meta:
    try:
        meta = orjson.loads(row.meta) if row.meta else {}
    except orjson.JSONDecodeError:
        return {}
    return meta if isinstance(meta, dict) else {}


def _but_none(moved: Shown | None) -> tuple[Shown, ...]:
    return () if moved is None else (moved,)


def _broken(
    rules: Iterable[Rule], before: Any, event: Event, whose: Any, after: Any
) -> Sequence[Rule]:
    """The rules that an event breaks; one that cannot make sense of the event is broken by it."""
    found: list[Rule] = []
    for rule in rules:
        try:
            if rule.holds(before, event, whose, after):
                continue
        except Exception:
            pass
        found.append(rule)
    return found
