"""Every reachable world of a small model, and the shortest story to one that breaks a rule."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from statelog.domain.errors import Conflict, Refused
from statelog.infrastructure.testing.model import Action, Invariant, Move, Violation
from statelog.infrastructure.testing.world import World


@dataclass(frozen=True)
class Exploration:
    """What was explored: worlds, moves between them, the longest of the shortest stories.

    `complete` says that every reachable world was seen and every move from it tried; `fired` and
    `refused` count moves by action and refusals by rule, conflicts under `conflict`.
    """

    states: int
    transitions: int
    depth: int
    complete: bool
    fired: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)


def explore(
    start: World,
    actions: Iterable[Action],
    invariants: Iterable[Invariant] = (),
    *,
    crashes: Iterable[str] = (),
    limit: int = 1_000_000,
    max_depth: int | None = None,
    same: Callable[[World], Hashable] | None = None,
) -> Exploration:
    """Walk breadth first through every world that the actions lead to.

    Each process in `crashes` may crash in every world where it lives. Stops after `limit` worlds
    or at `max_depth` moves, and says so. `same` gives the part of a world that makes it the same
    as another (default: all of it). Raises `Violation` with the shortest story, among stories of
    that length the first in the order of the actions.
    """
    __tracebackhide__ = True
    crashing = (Action(f"{name} crashes", _crash(name), by=name) for name in crashes)
    walk = _Walk([*actions, *crashing], list(invariants), same)
    return walk.run(start, limit, max_depth)


def _crash(process: str) -> Callable[[World], World]:
    return lambda world: world.crash(process)


class _Walk:
    """One exploration. `parents` holds, by number of world, how it was first reached."""

    def __init__(
        self,
        actions: list[Action],
        invariants: list[Invariant],
        same: Callable[[World], Hashable] | None,
    ) -> None:
        self.actions = actions
        self.processes = {action.by for action in actions if action.by is not None}
        self.worlds = [(each.name, each.world) for each in invariants if each.world]
        self.moves = [(each.name, each.move) for each in invariants if each.move]
        self.goals = {each.name: each.goal for each in invariants if each.goal}
        self.rests = [(each.name, each.rest) for each in invariants if each.rest]
        self.same = same
        self.seen: dict[Hashable, int] = {}
        self.keys: list[tuple[int, ...]] = []
        self.parents: list[tuple[int, Move | None]] = []
        self.sources: list[list[int]] = []
        self.fired: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.transitions = 0

    def run(self, start: World, limit: int, max_depth: int | None) -> Exploration:
        __tracebackhide__ = True
        self.start = start
        self._found(start, -1, None)
        queue, depth, complete = deque([(0, 0)]), 0, True
        unexpanded: list[int] = []
        while queue:
            number, at = queue.popleft()
            depth = max(depth, at)
            if at == max_depth or len(self.keys) >= limit:
                unexpanded.append(number)
                complete = False
                continue
            queue.extend((new, at + 1) for new in self._expand(number))
        self._finish(unexpanded)
        counts = (len(self.keys), self.transitions, depth, complete)
        return Exploration(*counts, dict(self.fired), dict(self.refused))

    def _expand(self, number: int) -> Iterator[int]:
        """Try every action in a world; answers the worlds seen for the first time."""
        __tracebackhide__ = True
        before = self.start.at(self.keys[number])
        dead = {name for name in self.processes if not before.alive(name)}
        for action in self.actions:
            if action.by in dead:
                continue
            for after in self._happens(action, before, number):
                self.transitions += 1
                self.fired[action.name] += 1
                for name, holds in self.moves:
                    if not self._asked(name, holds, before, after, parent=number, action=action):
                        self._violated(name, "does not hold", after, number, action)
                known = self.seen.get(after.key if self.same is None else self.same(after))
                if known is None:
                    known = self._found(after, number, action)
                    yield known
                if self.rests:
                    self.sources[known].append(number)

    def _happens(self, action: Action, before: World, number: int) -> Iterator[World]:
        __tracebackhide__ = True
        try:
            moves = action.function(before)
            if isinstance(moves, World):
                yield moves
            elif moves is not None:
                yield from moves
        except Refused as no:
            self.refused[no.rule] += 1
        except Conflict:
            self.refused["conflict"] += 1
        except Exception as error:
            why = f"{action.name} raised {type(error).__name__}: {error}"
            self._violated("no error", why, before, number, None, cause=error)

    def _found(self, world: World, parent: int, action: Action | None) -> int:
        """Number a new world and check what must hold in it."""
        __tracebackhide__ = True
        number = len(self.keys)
        self.seen[world.key if self.same is None else self.same(world)] = number
        self.keys.append(world.key)
        self.parents.append((parent, Move(action.name, world.appended) if action else None))
        if self.rests:
            self.sources.append([])
        for name, holds in self.worlds:
            if not self._asked(name, holds, world, parent=parent, action=action):
                self._violated(name, "does not hold", world, parent, action)
        for name, reached in list(self.goals.items()):
            if self._asked(name, reached, world, parent=parent, action=action):
                del self.goals[name]
        return number

    def _asked(
        self,
        name: str,
        holds: Callable[..., bool],
        *worlds: World,
        parent: int,
        action: Action | None,
    ) -> bool:
        __tracebackhide__ = True
        try:
            return holds(*worlds)
        except Exception as error:
            why = f"raised {type(error).__name__}: {error}"
            self._violated(name, why, worlds[-1], parent, action, cause=error)

    def _finish(self, unexpanded: list[int]) -> None:
        """Check what only the whole walk can tell."""
        __tracebackhide__ = True
        for name in self.goals:
            why = f"not reached in {len(self.keys)} worlds"
            raise Violation(name, why, (), self.start)
        worlds = [self.start.at(key) for key in self.keys] if self.rests else []
        for name, done in self.rests:
            ends = [
                number
                for number, world in enumerate(worlds)
                if self._asked(name, done, world, parent=number, action=None)
            ]
            if stuck := set(range(len(worlds))) - self._leading_to([*ends, *unexpanded]):
                first = min(stuck)
                raise Violation(name, "no moves lead on", self._story(first), worlds[first])

    def _leading_to(self, numbers: list[int]) -> set[int]:
        """Every world from which some moves lead to one of these."""
        leading, waiting = set(numbers), list(numbers)
        while waiting:
            new = set(self.sources[waiting.pop()]) - leading
            leading |= new
            waiting += new
        return leading

    def _violated(
        self,
        name: str,
        why: str,
        world: World,
        parent: int,
        action: Action | None,
        *,
        cause: Exception | None = None,
    ) -> NoReturn:
        __tracebackhide__ = True
        story = self._story(parent)
        if action is not None:
            story.append(Move(action.name, world.appended))
        raise Violation(name, why, story, world) from cause

    def _story(self, number: int) -> list[Move]:
        """The moves from the start to a world."""
        story: list[Move] = []
        while number >= 0:
            number, move = self.parents[number]
            if move is not None:
                story.append(move)
        return story[::-1]
