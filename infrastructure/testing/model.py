"""What a model is made of: actions, invariants, and the story of one that does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from statelog.domain.event import Event
from statelog.infrastructure.testing.world import World

Moves = World | Iterable[World] | None


@dataclass(frozen=True)
class Action:
    """Something that may happen: from a world to the worlds it may lead to; None means to none.

    `Refused` and `Conflict` raised by it mean that it does not happen; every other error is found
    as a violation. With `by`, it happens only while that process is alive.
    """

    name: str
    function: Callable[[World], Moves]
    by: str | None = None


@dataclass(frozen=True)
class Invariant:
    """A named claim about worlds; made by `always`, `each_move`, `sometimes` and `never_stuck`."""

    name: str
    world: Callable[[World], bool] | None = None
    move: Callable[[World, World], bool] | None = None
    goal: Callable[[World], bool] | None = None
    rest: Callable[[World], bool] | None = None


def always(name: str, holds: Callable[[World], bool]) -> Invariant:
    """It holds in every world, the first one included."""
    return Invariant(f"always {name}", world=holds)


def each_move(name: str, holds: Callable[[World, World], bool]) -> Invariant:
    """It holds for the worlds before and after every move."""
    return Invariant(f"each move {name}", move=holds)


def sometimes(name: str, reached: Callable[[World], bool]) -> Invariant:
    """Some world has it: a model in which nothing happens tests nothing."""
    return Invariant(f"sometimes {name}", goal=reached)


def never_stuck(name: str, done: Callable[[World], bool]) -> Invariant:
    """From every world some moves lead to one that is done; so nothing waits for ever."""
    return Invariant(f"never stuck {name}", rest=done)


class Move(NamedTuple):
    """One move of a story: the action's name, and (stream, event) of all that it appended."""

    action: str
    appended: tuple[tuple[str, Event], ...]


class Violation(AssertionError):
    """An invariant does not hold: its name, the shortest story to that, and the world there."""

    def __init__(self, invariant: str, why: str, story: Sequence[Move], world: World) -> None:
        self.invariant = invariant
        self.why = why
        self.story = tuple(story)
        self.world = world
        super().__init__("\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        count = f"{len(self.story)} move" + ("" if len(self.story) == 1 else "s")
        yield f"{self.invariant}: {self.why} after {count}"
        for at, move in enumerate(self.story, 1):
            yield f"{at:>3}. {move.action}"
            yield from (f"       {stream}  {event!r}" for stream, event in move.appended)
        yield from (f"  => {line}" for line in self.world.describe())
