"""Rulebooks made ready for an audit: which aggregate a stream is of, and what is asked of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from statelog.domain.aggregate import Aggregate
from statelog.domain.errors import Invalid
from statelog.domain.event import Event
from statelog.domain.ids import decode_part
from statelog.domain.lifecycle import AnyLifecycle
from statelog.domain.rulebook import Audited, Family, Ids, Rule, Rulebook, rules_by_event

Given = str | Rulebook | Audited[Any] | Aggregate[Any]
"""What is audited: declared, or where it is declared, as `module:NAME`."""


class Subject(NamedTuple):
    """An aggregate as its streams are audited; nothing may follow the statuses in `ends`."""

    audited: Audited[Any]
    aggregate: Aggregate[Any]
    rules: Mapping[type[Event], tuple[Rule, ...]]
    names: Mapping[str, type[Event]]
    ends: frozenset[Any]


class Kin(NamedTuple):
    """A family as the streams below its root are audited; `telling` are the events it remembers."""

    family: Family
    rules: Mapping[type[Event], tuple[Rule, ...]]
    events: frozenset[type[Event]]
    telling: frozenset[type[Event]]


class Rules:
    """All that is known of the streams of a log."""

    def __init__(self, books: Iterable[Rulebook]) -> None:
        book = sum(books, Rulebook())
        self.book = book
        self._subjects = [(_parts(each.pattern), _subject(each)) for each in book.aggregates]
        known = {event for each in book.aggregates for event in each.aggregate.lifecycle.events}
        self._kin = [(_parts(each.root), _kin(each, known)) for each in book.families]
        self.subject = lru_cache(maxsize=4096)(self._subject)
        self.kin = lru_cache(maxsize=4096)(self._kin_of)

    @property
    def lifecycles(self) -> dict[str, AnyLifecycle]:
        """Every lifecycle that is audited, by name."""
        return self.book.lifecycles

    def _subject(self, stream: str) -> tuple[Subject, Ids] | None:
        """The aggregate that a stream is of and its ids; None when nobody declared one."""
        parts = stream.split("/")
        for pattern, subject in self._subjects:
            ids = _matched(pattern, parts)
            if ids is not None:
                return subject, ids
        return None

    def _kin_of(self, stream: str) -> Kin | None:
        parts = stream.split("/")
        for pattern, kin in self._kin:
            if _matched(pattern, parts[: len(pattern)]) is not None:
                return kin
        return None


def root_of(stream: str) -> str:
    """What a stream is below: its first two parts. No rule looks at streams of two roots."""
    first, _, rest = stream.partition("/")
    return f"{first}/{rest.partition('/')[0]}" if rest else first


def load(given: Sequence[Given], folders: Sequence[str] = ()) -> Rules:
    """The rules of rulebooks, of aggregates, and of names of either, such as `module:NAME`.

    An `Audited` or `Aggregate` has no rules between streams. Modules are looked for in these
    folders first. Raises `Invalid`.
    """
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]
    return Rules(map(_rulebook, given))


def _rulebook(given: Given) -> Rulebook:
    found = _imported(given) if isinstance(given, str) else given
    if isinstance(found, Aggregate):
        found = Audited(found)
    if isinstance(found, Audited):
        return Rulebook((found,))
    if not isinstance(found, Rulebook):
        why = f"{given} is no Rulebook or Aggregate but of type {type(found).__name__}"
        raise Invalid("with", why)
    return found


def _imported(reference: str) -> Any:
    module, _, name = reference.partition(":")
    if not (module and name.isidentifier()):
        raise Invalid("with", f"{reference!r} is not module:NAME")
    try:
        return getattr(import_module(module), name)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise Invalid("with", f"{reference} cannot be imported: {said}") from error


def _parts(pattern: str) -> list[str]:
    return pattern.split("/")


def _matched(pattern: Sequence[str], parts: Sequence[str]) -> Ids | None:
    if len(pattern) != len(parts):
        return None
    ids = []
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted == "{}":
            ids.append(part)
        elif wanted != part:
            return None
    try:
        return tuple(map(decode_part, ids))
    except (ValueError, UnicodeError):
        return tuple(ids)


def _subject(audited: Audited[Any]) -> Subject:
    lifecycle = audited.aggregate.lifecycle
    events = lifecycle.events
    return Subject(
        audited,
        audited.aggregate,
        {event: rules for event, rules in rules_by_event(audited.rules, events).items() if rules},
        {event.stored_name: event for event in events},
        frozenset(lifecycle.final - {row.source for row in lifecycle.rows}),
    )


def _kin(family: Family, known: set[type[Event]]) -> Kin:
    telling = {event for rule in family.rules for event in rule.shown_by}
    return Kin(
        family,
        {event: rules for event, rules in rules_by_event(family.rules, known).items() if rules},
        frozenset(family.events or known),
        frozenset(telling),
    )
