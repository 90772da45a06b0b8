"""What is claimed of every world of the model of planning, by name, and how it is explored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statelog.domain.planning.algorithm_run import CandidateEmitted
from statelog.domain.planning.progress import session_progress
from statelog.domain.planning.session import Completed, SessionStatus
from statelog.domain.queue.job import JobStatus
from statelog.infrastructure.testing import (
    World,
    always,
    each_move,
    explore,
    never_stuck,
    sometimes,
)
from statelog.infrastructure.testing.explore import Exploration
from statelog.infrastructure.testing.model import Invariant
from tests.model.planning.actors import Operator, Worker
from tests.model.planning.world import WORKING, Model

ONE_RUNNING = "at most one session is running"
ONE_WORKING = "one worker computes at a time"
TERMINAL = "what has ended stays as it is"
TOGETHER = "an ended session has no live run"
RANKED = "completion ranks every candidate of every run once"
ONCE = "a candidate is emitted once"
FORWARD = "progress never goes back"
NOT_LOST = "a session has a job"
JOB_LAST = "a job that ended left no session waiting"
STUCK = "every session ends"

NAMES = (
    *(ONE_RUNNING, ONE_WORKING, TERMINAL, TOGETHER, RANKED, ONCE, FORWARD),
    *(NOT_LOST, JOB_LAST, STUCK),
)


class Claims:
    """The claims about the worlds of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ids = [id for id, _ in model.asked]

    def all(self) -> list[Invariant]:
        """Each under its name."""
        return [
            always(ONE_RUNNING, self._one_running),
            always(ONE_WORKING, self._one_working),
            always(TOGETHER, self._together),
            always(NOT_LOST, self._not_lost),
            always(JOB_LAST, self._job_last),
            each_move(TERMINAL, self._terminal),
            each_move(RANKED, self._ranked),
            each_move(ONCE, self._once),
            each_move(FORWARD, self._forward),
            never_stuck(STUCK, self._rest),
        ]

    def _there(self, world: World) -> list[str]:
        return [id for id in self.ids if self.model.loaded(world, id).version]

    def _one_running(self, world: World) -> bool:
        found = [self.model.status(world, id) for id in self.ids]
        return found.count(SessionStatus.RUNNING) <= 1

    def _one_working(self, world: World) -> bool:
        memories = [world.memory(worker) for worker in self.model.workers]
        return sum(memory is not None and memory.at in WORKING for memory in memories) <= 1

    def _together(self, world: World) -> bool:
        return not any(
            self.model.loaded(world, id).state.ended
            and any(not run.state.ended for run in self.model.runs(world, id))
            for id in self._there(world)
        )

    def _not_lost(self, world: World) -> bool:
        waiting = [id for id in self._there(world) if not self.model.loaded(world, id).state.ended]
        return all(self.model.job(world, id).version for id in waiting)

    def _job_last(self, world: World) -> bool:
        ends = (JobStatus.COMPLETED, JobStatus.FAILED)
        done = [id for id in self.ids if self.model.job(world, id).state.status in ends]
        return all(self.model.loaded(world, id).state.ended for id in done)

    def _terminal(self, before: World, after: World) -> bool:
        for id in self._there(before):
            old, new = self.model.loaded(before, id).state, self.model.loaded(after, id).state
            if old.ended and old.status is not new.status:
                return False
            pairs = zip(self.model.runs(before, id), self.model.runs(after, id), strict=True)
            if any(one.state.ended and one.version != other.version for one, other in pairs):
                return False
        return True

    def _ranked(self, before: World, after: World) -> bool:
        """A permutation of 1..n over what the runs have emitted, all of which have ended."""
        for stream, event in after.appended:
            if isinstance(event, Completed):
                id = stream.split("/")[1]
                found = [run.state for run in self.model.runs(after, id)]
                emitted = {each.id for run in found for each in run.emitted}
                if {each.id for each in event.candidates} != emitted:
                    return False
                places = [each.rank for each in event.candidates]
                if places != list(range(1, len(emitted) + 1)):
                    return False
        return True

    def _once(self, before: World, after: World) -> bool:
        known = {
            each.id
            for id in self._there(before)
            for run in self.model.runs(before, id)
            for each in run.state.emitted
        }
        new = [e.candidate.id for _, e in after.appended if isinstance(e, CandidateEmitted)]
        return not known & set(new)

    def _forward(self, before: World, after: World) -> bool:
        return all(
            self._progress(before, id) <= self._progress(after, id) for id in self._there(before)
        )

    def _progress(self, world: World, id: str) -> float:
        ended = ("completed", "failed")
        found = [run.state for run in self.model.runs(world, id)]
        return session_progress((run.status.value in ended, run.progress) for run in found)

    def _rest(self, world: World) -> bool:
        """Everything that was asked for has ended, and so has its job."""
        return all(
            self.model.loaded(world, id).state.ended and self.model.job(world, id).state.ended
            for id in self._there(world)
        )


def walk(model: Model, goals: Sequence[Any] = (), limit: int = 1_000_000) -> Exploration:
    """Explore every world of the model. Raises `Violation` with the shortest story."""
    actions = Operator(model).actions()
    for name in model.workers:
        actions += Worker(model, name).actions()
    claims = [*Claims(model).all(), *goals]
    return explore(model.start(), actions, claims, limit=limit)


def goals(model: Model) -> list[Invariant]:
    """What must be reached, or the model tests nothing."""
    ids = [id for id, _ in model.asked]

    def some(status: SessionStatus) -> Any:
        return lambda world: any(model.status(world, id) is status for id in ids)

    def twice(world: World) -> bool:
        """A second delivery of a session that has ended."""
        return any(
            model.loaded(world, id).state.ended
            and model.job(world, id).state.attempts == 2
            and model.job(world, id).state.status is JobStatus.COMPLETED
            for id in ids
        )

    found = [
        sometimes(f"a session is {status.value}", some(status))
        for status in (SessionStatus.COMPLETED, SessionStatus.FAILED, SessionStatus.CANCELLED)
    ]
    return [*found, sometimes("a job is delivered again", twice)]
