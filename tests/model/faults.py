"""Everything that goes wrong with a process, and how it comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from statelog.domain.errors import Conflict
from statelog.infrastructure.execution.closing import Ending
from statelog.infrastructure.testing import Action, World
from tests.model.attempting import next_step
from tests.model.processes import Process
from tests.model.world import Chance, Memory, Model

FAULTS = ("crash", "lose the lock", "stop", "fail to append", "be cancelled")


class Faults:
    """What goes wrong with one process."""

    GIVING_UP_FAILED = "giving up"

    def __init__(self, model: Model, process: Process) -> None:
        self.model, self.process, self.name = model, process, process.name

    def actions(self) -> list[Action]:
        """Each fault that may happen, and how the process comes back."""
        known: dict[str, list[tuple[str, Callable[..., Any]]]] = {
            "crash": [("crashes", self._crashes)],
            "lose the lock": [("loses its lock", self._loses)],
            "stop": [("is stopped", self._stops)],
            "fail to append": [("fails to append", self._fails)],
            "be cancelled": [("is cancelled", self._is_cancelled)],
        }
        moves = [move for kind in self.model.faults for move in known[kind]]
        faults = [Action(f"{self.name} {label}", self._fault(how)) for label, how in moves]
        back = [
            Action(f"{self.name} starts again", self._starts_again),
            Action(f"{self.name} goes on", self._goes_on, by=self.name),
        ]
        return faults + back

    def _fault(self, function: Callable[[World, Memory], Any]) -> Callable[[World], Any]:
        def happens(world: World) -> Iterator[World]:
            chance, me = world.memory("chance"), world.memory(self.name)
            if chance.left and me is not None:
                less = world.remember("chance", chance._replace(left=chance.left - 1))
                yield from _each(function(less, me))

        return happens

    def _crashes(self, world: World, me: Memory) -> World:
        return world.crash(self.name)

    def _starts_again(self, world: World) -> World | None:
        """A new process after a crash, or a new holder for one that lost its lock and is done."""
        me = world.memory(self.name)
        if me is not None and (me.locked or me.stopped or me.at not in ("idle", "fenced")):
            return None
        chance: Chance = world.memory("chance")
        counts = dict(chance.holders)
        counts[self.name] += 1
        world = world.remember("chance", chance._replace(holders=tuple(counts.items())))
        holder = f"{self.name}.{counts[self.name]}"
        starting = me is None
        return world.remember(self.name, Memory(holder=holder, starting=starting))

    def _loses(self, world: World, me: Memory) -> World | None:
        if not me.locked or me.at == "idle":
            return None
        return world.remember(self.name, me._replace(locked=False))

    def _stops(self, world: World, me: Memory) -> World | None:
        return None if me.stopped else world.remember(self.name, me._replace(stopped=True))

    def _goes_on(self, world: World) -> World | None:
        me = world.memory(self.name)
        return world.remember(self.name, me._replace(stopped=False)) if me.stopped else None

    def _fails(self, world: World, me: Memory) -> World | None:
        """The store takes nothing: a close is owed, a result is given up, or that is owed too."""
        if me.stopped:
            return None
        then = {"starting": "owing", "running": "owing", "judging": "giving up"}
        then["giving up"] = self.GIVING_UP_FAILED
        at = then.get(me.at)
        return None if at is None else world.remember(self.name, me._replace(at=at))

    def _is_cancelled(self, world: World, me: Memory) -> World | None:
        """It is told to end: before the start, or between two steps."""
        if me.stopped or me.at not in ("starting", "running"):
            return None
        if me.at == "starting":
            return self._is_not_started(world, me)
        attempt = self.process.attempt(world, me)
        if next_step(attempt.state) is None:
            return None
        return self.process.ends(world, me, Ending("cancelled", {"message": "cancelled"}))

    def _is_not_started(self, world: World, me: Memory) -> World:
        execution = me.slot.state.execution_id
        change = self.process._release(me.slot, execution, "not_started")
        try:
            after = self.model.commit(world, self.name, change)
        except Conflict:
            return self.process._fenced(world, me)
        return after.remember(self.name, me.idle())


def _each(moves: World | Iterable[World] | None) -> Iterable[World]:
    if moves is None:
        return ()
    return (moves,) if isinstance(moves, World) else moves
