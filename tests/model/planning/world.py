"""What the model of planning is made of: sessions, their runs and jobs, workers, an operator.

Streams, tables and decisions are those of the product. A step of a worker is one append of the
product; where that decides again after a conflict, the step decides on what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from statelog.domain.aggregate import Aggregate, Change, Loaded
from statelog.domain.planning import algorithm_run as runs
from statelog.domain.planning import session as sessions
from statelog.domain.planning.algorithm_run import ALGORITHM_RUN, AlgorithmRun
from statelog.domain.planning.candidate import PlanCandidate
from statelog.domain.planning.estimate import Estimate
from statelog.domain.planning.problem import Problem
from statelog.domain.planning.ranking import rank
from statelog.domain.planning.session import SESSION, Selection, Session, SessionStatus
from statelog.domain.queue import job as jobs
from statelog.domain.queue.job import JOB, Job
from statelog.domain.workflows.resources import Scope, Topology
from statelog.domain.workflows.schedule_plan import Predicted, SchedulePlan
from statelog.domain.workflows.workflow import WorkflowVersion
from statelog.infrastructure.testing import World

NOW = 10**15
"""Always: every pause is over, and a lease has run out when somebody says so."""

PROBLEM = Problem(WorkflowVersion("w"), Scope("x"), Topology("t"))
ATTEMPTS = 2
WORKING = ("begins", "inside")
"""Where a worker is that has the turn and has started its session."""


class Memory(NamedTuple):
    """What a worker remembers: where it is, with which session, and at which of its runs."""

    at: str = "idle"
    session: str = ""
    run: int = 0


class Chance(NamedTuple):
    """How often something may still go wrong that would go on for ever."""

    left: int = 0
    crashes: int = 0
    last: str = ""
    """The session that was started last, which the log tells."""


def candidate(session: str, algorithm: str) -> PlanCandidate:
    """The one candidate of a run; the same one again after an interruption."""
    name, promised = f"{session}-{algorithm}", Predicted(1.0, 1.0, True)
    plan = SchedulePlan(f"plan-{name}", predicted=promised)
    return PlanCandidate(
        f"candidate-{name}", session, name, algorithm, "time", plan, name, name, promised, True
    )


@dataclass(frozen=True)
class Model:
    """How wide the world is, and the parts a bug may replace."""

    asked: tuple[tuple[str, tuple[str, ...]], ...] = (("s", ("a", "b")),)
    workers: tuple[str, ...] = ("one", "two")
    operations: tuple[str, ...] = ("cancels", "selects")
    faults: tuple[str, ...] = ("crash",)
    most_faults: int = 0
    most_crashes: int = 4
    tells_progress: bool = False

    session: Aggregate[Session] = SESSION
    run: Aggregate[AlgorithmRun] = ALGORITHM_RUN
    finish: Callable[..., Any] = sessions.finish
    emit: Callable[..., Any] = runs.emit
    cancels_runs: bool = True
    creates_at_once: bool = True
    tells_of_the_last_failure: bool = True
    requeues_the_last: bool = True
    waits_for_the_turn: bool = True
    skips: Callable[[Session], bool] = field(default=lambda session: session.ended)
    ranked: Callable[[Sequence[AlgorithmRun]], Sequence[AlgorithmRun]] = lambda ended: ended
    interrupted_is_done: bool = False
    frees_the_lock: bool = True

    def start(self) -> World:
        """Nothing is there, and every worker is idle."""
        world = World().remember("chance", Chance(self.most_faults, self.most_crashes))
        for worker in self.workers:
            world = world.remember(worker, Memory())
        return world

    # streams

    def loaded(self, world: World, id: str) -> Loaded[Session]:
        return world.load(self.session, id)

    def status(self, world: World, id: str) -> SessionStatus:
        return self.loaded(world, id).state.status

    def algorithms(self, id: str) -> tuple[str, ...]:
        return dict(self.asked)[id]

    def runs(self, world: World, id: str) -> list[Loaded[AlgorithmRun]]:
        """In the order in which they were selected."""
        return [world.load(self.run, (id, each)) for each in self.algorithms(id)]

    def job(self, world: World, id: str) -> Loaded[Job]:
        return world.load(JOB, f"job-{id}")

    # appends of the product

    def create(self, id: str) -> tuple[Any, ...]:
        """Session and runs, in one append with the job (P2)."""
        chosen = tuple(Selection(each) for each in self.algorithms(id))
        given = {"problem": PROBLEM, "algorithms": chosen, "known": self.algorithms(id)}
        created = self.session.blank_of(id).decide(sessions.create, **given)
        asked = {"objective": "time", "configuration": {}, "estimate": Estimate()}
        queued = [
            self.run.blank_of((id, each)).decide(runs.queue, algorithm=each, **asked)
            for each in self.algorithms(id)
        ]
        return (created, *queued)

    def publish(self, world: World, id: str) -> Change[Job]:
        """The job of a session."""
        return self.job(world, id).decide(
            jobs.publish,
            category="orchestration",
            event_type="planning.session.requested",
            payload={"sessionId": id},
            now=0,
            max_attempts=ATTEMPTS,
            key=f"planning-session:{id}",
        )

    def ended(self, world: World, id: str, decision: Any, **given: Any) -> tuple[Any, ...]:
        """The end of a session with that of its live runs."""
        change = self.loaded(world, id).decide(decision, **given)
        if not (change.events and self.cancels_runs):
            return (change,)
        return (change, *(each.decide(runs.cancel) for each in self.runs(world, id)))

    def job_ends(self, world: World, id: str, change: Change[Job]) -> World:
        """A change of a job; with its final failure the session fails too."""
        failed = any(isinstance(event, jobs.Failed) for event in change.events)
        if not failed or not self.tells_of_the_last_failure:
            return world.commit(change)
        if self.loaded(world, id).state.ended:
            return world.commit(change)
        return world.commit(change, *self.ended(world, id, sessions.fail, reason="given up"))

    def ranking(self, world: World, id: str) -> Any:
        """Ranks over all candidates of all runs."""
        states = [each.state for each in self.runs(world, id)]
        return rank([each for state in self.ranked(states) for each in state.emitted])

    # workers

    def has_turn(self, world: World, worker: str) -> bool:
        """Whether a living worker holds the kernel's lock."""
        memory = world.memory(worker)
        return memory is not None and memory.at in ("has the turn", "ghost", *WORKING)

    def turn_is_free(self, world: World) -> bool:
        return not any(self.has_turn(world, worker) for worker in self.workers)

    def owns(self, world: World, worker: str, id: str) -> bool:
        """Whether the worker knows that it has the job on lease."""
        memory = world.memory(worker)
        return memory is not None and memory.at != "idle" and memory.session == id
