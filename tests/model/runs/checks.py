"""What must hold of every real run, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from statelog.domain.runs.handle import HandleStatus
from statelog.domain.runs.run import Run, RunStatus
from statelog.domain.runs.task import ENDED, TaskStatus
from statelog.infrastructure.testing import (
    World,
    always,
    each_move,
    explore,
    never_stuck,
    sometimes,
)
from statelog.infrastructure.testing.explore import Exploration
from tests.model.runs.world import ALIVE, GOOD, ID, NAMES, Memory, Model

ORPHANS: Final = "no command runs when its run has ended"
NAMED: Final = "nothing runs that no record names"
ONCE: Final = "no command is started twice"
OPEN: Final = "no task is open when its run has ended"
TERMINAL: Final = "what has ended stays as it is"
ORDER: Final = "nothing begins before what it waits for completed"
TRUE: Final = "a task completed only if its command exited well"
WHOLE: Final = "a run completed only if all its tasks did"
STUCK: Final = "every run ends, and so does its job"

_LIVE: Final = (HandleStatus.STARTING, HandleStatus.RUNNING)
_WAITS: Final = {"c": ("a",)}


class Claims:
    """The claims about worlds of one model."""

    def __init__(self, model: Model) -> None:
        self._aggregate = model.run

    def run(self, world: World) -> Run:
        return world.state(self._aggregate, ID)

    def memory(self, world: World) -> Memory:
        found: Memory = world.memory("memory")
        return found

    def orphans(self, world: World) -> bool:
        run = self.run(world)
        alive = any(command.state == ALIVE for command in self.memory(world).commands)
        live = any(run.handle(each).status in _LIVE for each in NAMES)
        return not run.ended or not (alive or live)

    def named(self, world: World) -> bool:
        run, memory = self.run(world), self.memory(world)
        return all(memory.command(each).state != ALIVE or each in run.handles for each in NAMES)

    def once(self, world: World) -> bool:
        return all(command.starts <= 1 for command in self.memory(world).commands)

    def open(self, world: World) -> bool:
        run = self.run(world)
        return not run.ended or all(run.tasks[each].status in ENDED for each in NAMES)

    def terminal(self, before: World, after: World) -> bool:
        old, new = self.run(before), self.run(after)
        if old.ended:
            return old is new or old == new
        kept_tasks = all(
            new.tasks[each] == task for each, task in old.tasks.items() if task.status in ENDED
        )
        kept_handles = all(
            new.handles[each] == handle for each, handle in old.handles.items() if not handle.live
        )
        return kept_tasks and kept_handles

    def order(self, world: World) -> bool:
        run = self.run(world)
        return all(
            run.tasks[before].status is TaskStatus.COMPLETED
            for name, waits in _WAITS.items()
            if run.start is not None
            and run.tasks[name].status not in (TaskStatus.NEW, TaskStatus.CANCELLED)
            for before in waits
        )

    def true(self, world: World) -> bool:
        run, memory = self.run(world), self.memory(world)
        return all(
            memory.command(name).state == GOOD
            for name, task in run.tasks.items()
            if task.status is TaskStatus.COMPLETED
        )

    def whole(self, world: World) -> bool:
        run = self.run(world)
        if run.status is not RunStatus.COMPLETED:
            return True
        return all(run.tasks[each].status is TaskStatus.COMPLETED for each in NAMES)

    def ended(self, world: World) -> bool:
        return self.run(world).ended and not self.memory(world).open


GOALS: Final[dict[str, Callable[[Run, Memory], bool]]] = {
    "a run completes": lambda run, memory: run.status is RunStatus.COMPLETED,
    "a run completes after a crash": lambda run, memory: (
        run.status is RunStatus.COMPLETED and memory.chance.crashes == 0
    ),
    "a run fails while another activity had completed": lambda run, memory: (
        run.status is RunStatus.FAILED and run.tasks["b"].status is TaskStatus.COMPLETED
    ),
    "what does not depend on an interrupted activity completes": lambda run, memory: (
        run.status is RunStatus.FAILED
        and run.tasks["a"].reason == "stopped"
        and run.tasks["b"].status is TaskStatus.COMPLETED
    ),
    "a command was never started although its start was recorded": lambda run, memory: any(
        handle.failure == "never started" for handle in run.handles.values()
    ),
    "a command could not be stopped": lambda run, memory: any(
        handle.failure == "it could not be stopped" for handle in run.handles.values()
    ),
    "a command ends before anybody saw it run": lambda run, memory: any(
        handle.status is HandleStatus.COMPLETED and not handle.external_id
        for handle in run.handles.values()
    ),
}
"""What is worth seeing, and is seen."""


def walk(model: Model, *, goals: bool = False) -> Exploration:
    """Explore the model. Raises `Violation`."""
    claims = Claims(model)
    found = [
        sometimes(name, lambda world, seen=seen: seen(claims.run(world), claims.memory(world)))
        for name, seen in GOALS.items()
        if goals
    ]
    invariants = [
        always(ORPHANS, claims.orphans),
        always(NAMED, claims.named),
        always(ONCE, claims.once),
        always(OPEN, claims.open),
        each_move(TERMINAL, claims.terminal),
        always(ORDER, claims.order),
        always(TRUE, claims.true),
        always(WHOLE, claims.whole),
        never_stuck(STUCK, claims.ended),
    ]
    return explore(model.begin(), model.actions(), [*invariants, *found])


NAMES_OF_CLAIMS: Final = (ORPHANS, NAMED, ONCE, OPEN, TERMINAL, ORDER, TRUE, WHOLE, STUCK)
