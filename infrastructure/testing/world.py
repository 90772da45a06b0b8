"""Worlds: what several aggregates and processes are at one moment, as one frozen value."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar, cast

from statelog.domain.aggregate import Aggregate, Change, Loaded
from statelog.domain.errors import Conflict, Invalid
from statelog.domain.event import Event
from statelog.domain.ids import Id

T = TypeVar("T")

Key = tuple[int, ...]
"""A world's identity: for each stream and process, in order of appearance, a number of its value;
0 for a stream or process that is as in the beginning."""


class _Dead(Enum):
    DEAD = "dead"


DEAD = _Dead.DEAD


class Space:
    """The values that worlds of one exploration are made of, each kept once."""

    def __init__(self) -> None:
        self.slots: dict[Hashable, int] = {}
        self.names: list[tuple[str, str]] = []
        self.blanks: list[Any] = []
        self.cells: list[Any] = [None]
        self._processes: dict[str, int] = {}
        self._numbers: dict[Hashable, int] = {}
        self._frozen: dict[int, tuple[Any, Hashable]] = {}

    def stream_slot(self, aggregate: Aggregate[Any], id: Id) -> int:
        """The place of a stream in every key."""
        slot = self.slots.get((id, aggregate.name))
        if slot is None:
            blank = aggregate.blank_of(id)
            slot = self._slot("stream", blank.stream, blank)
            self.slots[id, aggregate.name] = slot
        if self.blanks[slot].aggregate is not aggregate:
            raise ValueError(f"{self.names[slot][1]} belongs to another aggregate")
        return slot

    def process_slot(self, name: str) -> int:
        """The place of a process in every key."""
        slot = self._processes.get(name)
        if slot is None:
            slot = self._processes[name] = self._slot("process", name, None)
        return slot

    def _slot(self, kind: str, name: str, blank: Any) -> int:
        slot = self.slots.setdefault((kind, name, None), len(self.names))
        if slot == len(self.names):
            self.names.append((kind, name))
            self.blanks.append(blank)
        return slot

    def number(self, slot: int, value: Any, version: int = 0, content: Any = None) -> int:
        """The number of a value in a slot; the same for one of equal version and content."""
        key: Hashable = (slot, version, content)
        try:
            number = self._numbers.get(key)
        except TypeError:
            key = (slot, version, self._freeze(content))
            number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.cells)
            self.cells.append(value)
        return number

    def _freeze(self, value: Any) -> Hashable:
        """A hashable stand-in for a value that holds mappings, lists or sets."""
        known = self._frozen.get(id(value))
        if known is not None:
            return known[1]
        if len(self._frozen) > 10_000:
            self._frozen.clear()
        frozen = self._stand_in(value)
        # the value is kept beside it, so that no other one can have its id meanwhile
        self._frozen[id(value)] = (value, frozen)
        return frozen

    def _stand_in(self, value: Any) -> Hashable:
        if isinstance(value, Mapping):
            return (dict, frozenset((key, self._freeze(each)) for key, each in value.items()))
        if isinstance(value, list | tuple):
            return (type(value), *map(self._freeze, value))
        if isinstance(value, set | frozenset):
            return frozenset(map(self._freeze, value))
        if isinstance(value, Loaded):
            return (Loaded, value.stream, value.version, self._freeze(value.state))
        if is_dataclass(value):
            held = (self._freeze(getattr(value, each.name)) for each in fields(value))
            return (type(value), *held)
        return cast(Hashable, value)


class World:
    """Streams with their states and versions, and processes with what they remember or dead.

    A world never changes: each method that acts returns another one. States and memories are
    frozen values; those that hold mappings or lists are compared by content.
    """

    __slots__ = ("_appended", "_key", "_space")

    def __init__(
        self,
        space: Space | None = None,
        key: Key = (),
        appended: tuple[tuple[str, Event], ...] = (),
    ) -> None:
        self._space = space or Space()
        self._key = key
        self._appended = appended

    def load(self, aggregate: Aggregate[T], id: Id) -> Loaded[T]:
        """One instance as it is now; version 0 and blank when it has no events."""
        return cast(Loaded[T], self._get(self._space.stream_slot(aggregate, id)))

    def state(self, aggregate: Aggregate[T], id: Id) -> T:
        """The state of one instance."""
        return self.load(aggregate, id).state

    def commit(self, *changes: Change[Any]) -> World:
        """All the changes in one append, or none.

        Raises `Conflict` when a stream is no longer at the version a change was decided against,
        `Invalid` when changes of one stream do not follow each other.
        """
        space, key, appended = self._space, self._key, list(self._appended)
        if len(changes) > 1:
            _follow_each_other(changes)
        moved: set[int] = set()
        for change in changes:
            slot = space.stream_slot(change.before.aggregate, change.before.id)
            if slot not in moved and change.expect != self._get(slot).version:
                raise Conflict(change.stream, change.expect, self._get(slot).version)
            moved.add(slot)
            if change.events:
                after = change.after
                key = _with(key, slot, space.number(slot, after, after.version, after.state))
                appended += [(change.stream, event) for event in change.events]
        return World(space, key, tuple(appended))

    def remember(self, process: str, memory: Hashable) -> World:
        """The process, alive, with this as all that it remembers."""
        slot = self._space.process_slot(process)
        number = 0 if memory is None else self._space.number(slot, memory, content=memory)
        return World(self._space, _with(self._key, slot, number), self._appended)

    def memory(self, process: str) -> Any:
        """What a process remembers; None before it remembered anything and when it is dead."""
        held = self._get(self._space.process_slot(process))
        return None if held is DEAD else held

    def crash(self, process: str) -> World:
        """The process is dead and what it remembered is lost; `remember` starts it again."""
        return self.remember(process, DEAD)

    def alive(self, process: str) -> bool:
        """Whether the process has not crashed, or was started again."""
        return self._get(self._space.process_slot(process)) is not DEAD

    @property
    def appended(self) -> tuple[tuple[str, Event], ...]:
        """(stream, event) of all that was appended since the exploration handed out a world."""
        return self._appended

    @property
    def key(self) -> Key:
        """Its identity within one exploration."""
        return self._key

    def at(self, key: Key) -> World:
        """The world of the same exploration that has this key."""
        return World(self._space, key)

    def _get(self, slot: int) -> Any:
        key, space = self._key, self._space
        number = key[slot] if slot < len(key) else 0
        return space.cells[number] if number else space.blanks[slot]

    def contents(self) -> Iterator[tuple[str, str, Any]]:
        """(`stream`, name, loaded) and (`process`, name, memory) of all but what is blank."""
        for slot, number in enumerate(self._key):
            if number:
                yield (*self._space.names[slot], self._space.cells[number])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, World):
            return NotImplemented
        if self._space is other._space:
            return self._key == other._key
        return sorted(self.contents(), key=_named) == sorted(other.contents(), key=_named)

    def __hash__(self) -> int:
        return hash(frozenset((kind, name) for kind, name, _ in self.contents()))

    def __repr__(self) -> str:
        return "World(" + "; ".join(self.describe()) + ")"

    def describe(self) -> Iterator[str]:
        """A line for each stream and process that is not blank."""
        for kind, name, value in sorted(self.contents(), key=lambda each: (each[0] != "stream",)):
            if kind == "stream":
                yield f"{name} v{value.version} {value.state!r}"
            else:
                yield f"{name} is dead" if value is DEAD else f"{name} remembers {value!r}"


def _follow_each_other(changes: tuple[Change[Any], ...]) -> None:
    reached: dict[str, int] = {}
    for change in changes:
        if reached.get(change.stream, change.expect) != change.expect:
            raise Invalid("changes", f"those of {change.stream} do not follow each other")
        reached[change.stream] = change.expect + len(change.events)


def _with(key: Key, slot: int, number: int) -> Key:
    """The key with one slot changed; what is as in the beginning at its end is left out."""
    if slot >= len(key):
        return (*key, *(0,) * (slot - len(key)), number) if number else key
    new = (*key[:slot], number, *key[slot + 1 :])
    while new and new[-1] == 0:
        new = new[:-1]
    return new


def _named(content: tuple[str, str, Any]) -> tuple[str, str]:
    return content[:2]
