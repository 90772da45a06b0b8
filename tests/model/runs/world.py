"""Every moment of a real run: its log, its commands as processes, and whoever supervises it.

A world holds the real state of the run. Beside it there are memories: of the machine (what became
of each command, and how often it was started), of the worker that has the job, of the job, and of
how much may still go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from statelog.domain.aggregate import Aggregate
from statelog.domain.event import Event
from statelog.domain.runs import activities as on
from statelog.domain.runs.events import Placed, Started
from statelog.domain.runs.handle import HandleStatus
from statelog.domain.runs.run import RUN, Run, RunStatus, complete, fail, start
from statelog.domain.runs.task import TaskStatus
from statelog.infrastructure.testing import Action, World

ID: Final = "r1"
ABSENT, ALIVE, GOOD, BAD, STOPPED = "absent", "alive", "exited 0", "exited 1", "stopped"
NAMES: Final = ("a", "b", "c")
BEGUN: Final = Started(
    "real", "p1", "w1", (Placed("a", "m"), Placed("b", "m"), Placed("c", "m", predecessors=("a",)))
)


class Command(NamedTuple):
    """What became of a command, and how often it was started."""

    state: str = ABSENT
    starts: int = 0


class Chance(NamedTuple):
    """How often each thing may still go wrong."""

    crashes: int = 1
    interrupts: int = 1
    bad_exits: int = 1
    unstoppable: int = 1
    missing: int = 0


ANYTHING: Final = Chance()
WORKS, SPAWNS, RECORDS = "works", "spawns", "records"


class Worker(NamedTuple):
    """What a worker is about to do, and of which activity."""

    at: str = WORKS
    activity: str = ""


class Memory(NamedTuple):
    """All that is no log: commands by activity, the worker if it has the job, the job, chance."""

    commands: tuple[Command, ...] = (Command(),) * len(NAMES)
    worker: Worker | None = None
    open: bool = True
    chance: Chance = ANYTHING

    def command(self, activity: str) -> Command:
        """What became of an activity's command."""
        return self.commands[NAMES.index(activity)]

    def having(self, activity: str, command: Command) -> Memory:
        """The same with another command."""
        at = NAMES.index(activity)
        return self._replace(commands=(*self.commands[:at], command, *self.commands[at + 1 :]))

    def spent(self, what: str) -> Memory:
        """The same with one chance less."""
        left = getattr(self.chance, what) - 1
        return self._replace(chance=self.chance._replace(**{what: left}))


Decide = Callable[..., Sequence[Event]]


@dataclass(frozen=True)
class Model:
    """The parts of the model, each of which a seeded bug may replace by a wrong one."""

    chance: Chance = ANYTHING
    run: Aggregate[Run] = RUN
    start: Decide = start
    queue: Decide = on.queue_task
    complete: Decide = complete
    fail: Decide = fail
    ready: Callable[[Run], tuple[str, ...]] = lambda run: run.ready
    spawns_first: bool = False
    spawns_again: bool = False
    believes: bool = False
    waits_for_the_unborn: bool = False

    def begin(self) -> World:
        """Nothing has happened."""
        return World().remember("memory", Memory(chance=self.chance))

    def actions(self) -> list[Action]:
        """Everything that may happen, by what it is called in stories."""
        moves: dict[str, Callable[[World], Iterator[World]]] = {
            "the worker gets the job": self._gets,
            "the worker crashes": self._crashes,
            "the worker begins the run": self._begins,
            "the worker queues": partial(self._each, self._queues),
            "the worker prepares": partial(self._each, self._prepares),
            "the worker records a start": partial(self._each, self._starts),
            "the worker spawns": self._spawns,
            "the worker looks": partial(self._each, self._looks),
            "the worker settles": partial(self._each, self._settles),
            "the worker misses an output": partial(self._each, self._misses),
            "the worker stops a command": partial(self._each, self._stops),
            "the worker cannot stop a command": partial(self._each, self._cannot_stop),
            "the worker records a stop": self._records,
            "the worker completes the run": self._completes,
            "the worker fails the run": self._fails,
            "the job is done": self._done,
            "a command exits well": partial(self._exits, GOOD),
            "a command exits badly": partial(self._exits, BAD),
            "somebody interrupts": partial(self._each, self._interrupts),
            "a late worker reports": partial(self._each, self._late),
        }
        return [Action(name, move) for name, move in moves.items()]

    # the job

    def _gets(self, world: World) -> Iterator[World]:
        if world.memory("memory").open and world.memory("memory").worker is None:
            yield _with(world, worker=Worker())

    def _crashes(self, world: World) -> Iterator[World]:
        memory = world.memory("memory")
        if memory.worker is not None and memory.chance.crashes:
            yield world.remember("memory", memory.spent("crashes")._replace(worker=None))

    def _done(self, world: World) -> Iterator[World]:
        if self._works(world) and self._state(world).ended:
            yield _with(world, worker=None, open=False)

    # the worker: each move reads, decides and commits at once

    def _works(self, world: World) -> bool:
        return bool(world.memory("memory").worker == Worker())

    def _state(self, world: World) -> Run:
        return world.state(self.run, ID)

    def _commit(self, world: World, decide: Decide, **given: Any) -> World:
        return world.commit(world.load(self.run, ID).decide(decide, **given))

    def _each(self, move: Callable[[World, str], World | None], world: World) -> Iterator[World]:
        if self._state(world).start is not None:
            found = (move(world, each) for each in NAMES)
            yield from (each for each in found if each is not None)

    def _going(self, world: World) -> Run | None:
        """The run while the worker is at work on it and it goes on."""
        run = self._state(world)
        going = self._works(world) and run.status is RunStatus.RUNNING
        return run if going else None

    def _begins(self, world: World) -> Iterator[World]:
        run = self._state(world)
        if self._works(world) and (run.start is None or (self.start is not start and run.ended)):
            yield self._commit(world, self.start, started=BEGUN)

    def _failing(self, run: Run) -> bool:
        return any(run.tasks[each].status is TaskStatus.FAILED for each in NAMES)

    def _queues(self, world: World, name: str) -> World | None:
        run = self._going(world)
        if run is None or self._failing(run) or name not in self.ready(run):
            return None
        return self._commit(world, self.queue, activity_id=name, at=0.0)

    def _prepares(self, world: World, name: str) -> World | None:
        run = self._going(world)
        if run is None or self._failing(run) or run.tasks[name].status is not TaskStatus.QUEUED:
            return None
        return self._commit(world, on.prepare_task, activity_id=name, at=0.0)

    def _starts(self, world: World, name: str) -> World | None:
        run = self._going(world)
        if run is None or self._failing(run) or run.tasks[name].status is not TaskStatus.PREPARING:
            return None
        if name in run.handles:
            return None
        if self.spawns_first and world.memory("memory").command(name).starts == 0:
            return _started(world, name)
        given = {"activity_id": name, "runtime_id": "local", "at": 0.0, "command": {}}
        return _with(self._commit(world, on.start_handle, **given), worker=Worker(SPAWNS, name))

    def _spawns(self, world: World) -> Iterator[World]:
        worker = world.memory("memory").worker
        if worker is not None and worker.at == SPAWNS:
            yield _with(_started(world, worker.activity), worker=Worker())

    def _looks(self, world: World, name: str) -> World | None:
        """What an inspection finds of a handle that is not known to have ended."""
        run, command = self._going(world), world.memory("memory").command(name)
        if run is None or not run.handle(name).live:
            return None
        if command.state == ABSENT and self.spawns_again:
            return _started(world, name)
        if command.state == ALIVE and self.spawns_again and command.starts < 2:
            return _started(world, name)
        found = {"activity_id": name, "at": 0.0}
        if command.state == ABSENT and not self.waits_for_the_unborn:
            return self._commit(world, on.handle_failed, **found, failure="never started")
        if command.state == ALIVE and run.handle(name).status is HandleStatus.STARTING:
            seen = {"activity_id": name, "external_id": "7", "started_at": 0.0}
            return self._commit(world, on.handle_running, **seen)
        if command.state == GOOD or (command.state == BAD and self.believes):
            return self._commit(world, on.handle_completed, **found)
        if command.state in (BAD, STOPPED):
            why = f"it {command.state}"
            if command.state == STOPPED and self._to_stop(run, name):
                return self._commit(world, on.handle_stopped, activity_id=name, at=0.0, reason=why)
            return self._commit(world, on.handle_failed, **found, failure=why)
        return None

    def _settled(self, world: World, name: str) -> bool:
        """Whether the handle completed and its task does not know yet."""
        run = self._going(world)
        if run is None or run.handle(name).status is not HandleStatus.COMPLETED:
            return False
        return run.tasks[name].status in (TaskStatus.PREPARING, TaskStatus.RUNNING)

    def _settles(self, world: World, name: str) -> World | None:
        if not self._settled(world, name):
            return None
        return self._commit(world, on.complete_task, activity_id=name, at=0.0)

    def _misses(self, world: World, name: str) -> World | None:
        """The command exited well, and a declared output is not there."""
        memory = world.memory("memory")
        if not memory.chance.missing or not self._settled(world, name):
            return None
        world = world.remember("memory", memory.spent("missing"))
        return self._commit(world, on.complete_task, activity_id=name, at=0.0, missing=["x"])

    def _to_stop(self, run: Run, name: str) -> bool:
        return run.handle(name).live and (self._failing(run) or run.tasks[name].interrupted)

    def _stops(self, world: World, name: str) -> World | None:
        run, memory = self._going(world), world.memory("memory")
        if run is None or not self._to_stop(run, name) or memory.command(name).state != ALIVE:
            return None
        stopped = memory.having(name, memory.command(name)._replace(state=STOPPED))
        return world.remember("memory", stopped._replace(worker=Worker(RECORDS, name)))

    def _cannot_stop(self, world: World, name: str) -> World | None:
        """The command ends, but whoever stopped it cannot tell."""
        run, memory = self._going(world), world.memory("memory")
        if run is None or not self._to_stop(run, name) or not memory.chance.unstoppable:
            return None
        if memory.command(name).state != ALIVE:
            return None
        gone = memory.having(name, memory.command(name)._replace(state=STOPPED))
        world = world.remember("memory", gone.spent("unstoppable"))
        why = "it could not be stopped"
        return self._commit(world, on.handle_failed, activity_id=name, at=0.0, failure=why)

    def _records(self, world: World) -> Iterator[World]:
        worker = world.memory("memory").worker
        if worker is not None and worker.at == RECORDS:
            given = {"activity_id": worker.activity, "at": 0.0, "reason": "stopped"}
            yield _with(self._commit(world, on.handle_stopped, **given), worker=Worker())

    def _completes(self, world: World) -> Iterator[World]:
        run = self._going(world)
        if run is not None and not self._failing(run):
            yield self._commit(world, self.complete, at=0.0)

    def _fails(self, world: World) -> Iterator[World]:
        """When an activity failed, or when one was stopped and no other can go on."""
        run = self._going(world)
        if run is None:
            return
        statuses = {run.tasks[each].status for each in NAMES}
        idle = not statuses & {TaskStatus.QUEUED, TaskStatus.PREPARING, TaskStatus.RUNNING}
        ended_short = TaskStatus.CANCELLED in statuses and idle and not run.ready
        if self._failing(run) or ended_short:
            yield self._commit(world, self.fail, reason="x", at=0.0)

    # everybody else

    def _exits(self, how: str, world: World) -> Iterator[World]:
        memory = world.memory("memory")
        if how == BAD and not memory.chance.bad_exits:
            return
        left = memory.spent("bad_exits") if how == BAD else memory
        for name in NAMES:
            if memory.command(name).state == ALIVE:
                ended = memory.command(name)._replace(state=how)
                yield world.remember("memory", left.having(name, ended))

    def _interrupts(self, world: World, name: str) -> World | None:
        memory = world.memory("memory")
        if not memory.chance.interrupts:
            return None
        world = world.remember("memory", memory.spent("interrupts"))
        return self._commit(world, on.interrupt, activity_id=name, at=0.0)

    def _late(self, world: World, name: str) -> World | None:
        """A worker that was given up for lost reports the end of a handle it saw running."""
        if not self._state(world).ended:
            return None
        return self._commit(world, on.handle_completed, activity_id=name, at=0.0)


def _with(world: World, **changes: Any) -> World:
    return world.remember("memory", world.memory("memory")._replace(**changes))


def _started(world: World, name: str) -> World:
    memory = world.memory("memory")
    again = Command(ALIVE, memory.command(name).starts + 1)
    return world.remember("memory", memory.having(name, again))
