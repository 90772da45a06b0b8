"""What may happen next, written by hand, told to each thing after a real past.

`lifecycle_test` puts a state where the table says; here a thing comes there by its events, and what
may follow is written from the rules and not from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from statelog.domain import Event, IllegalTransition
from statelog.domain.erasure import ERASURE, Erased, Restored
from statelog.domain.execution import attempt_events as steps
from statelog.domain.execution.step_lifecycle import STEP, StepState, evolve_step
from statelog.domain.planning import algorithm_run, session
from statelog.domain.planning.algorithm_run import ALGORITHM_RUN
from statelog.domain.planning.session import SESSION
from statelog.domain.queue import job
from statelog.domain.queue.job import JOB
from statelog.domain.runs import events as runs
from statelog.domain.runs.handle import HANDLE, Handle, evolve_handle
from statelog.domain.runs.task import TASK, Task, evolve_task
from statelog.domain.workflows import definitions
from statelog.domain.workflows.definitions import SCOPE
from statelog.infrastructure.testing.sample import sample

Past = tuple[type[Event], ...]
Next = Mapping[type[Event], str]


class Thing(NamedTuple):
    """A thing: blank, its next state, its events, and what may follow each past."""

    blank: Any
    after: Callable[[Any, Event], Any]
    events: tuple[type[Event], ...]
    follows: Mapping[Past, Next]


QUEUED = (session.Created,)
BEGUN = (*QUEUED, session.Started)
CHOSEN: Next = {session.CandidateSelected: "same"}
RUNS = (algorithm_run.Queued, algorithm_run.Started)
HELD = (job.Published, job.Leased)
USED = (definitions.ScopeRegistered, definitions.ScopeUsed)
GONE = (definitions.ScopeRegistered, definitions.ScopeRemoved)
PREPARED = (runs.TaskQueued, runs.TaskPreparing)
WORKING = (*PREPARED, runs.TaskStarted)
TASK_ENDS: Next = {
    runs.TaskCompleted: "COMPLETED",
    runs.TaskFailed: "FAILED",
    runs.TaskCancelled: "CANCELLED",
}
NOTED: Next = {steps.StepProgress: "same", steps.StepArtifact: "same", steps.StepEmitted: "same"}
HANDLE_ENDS: Next = {
    runs.HandleCompleted: "COMPLETED",
    runs.HandleFailed: "FAILED",
    runs.HandleStopped: "STOPPED",
}

THINGS = {
    "job": Thing(
        JOB.blank,
        JOB.apply_new,
        JOB.lifecycle.events,
        {
            (): {job.Published: "PENDING"},
            (job.Published,): {job.Leased: "LEASED", job.Cancelled: "CANCELLED"},
            HELD: {
                job.Completed: "COMPLETED",
                job.Retried: "PENDING",
                job.Failed: "FAILED",
                job.Returned: "PENDING",
                job.Cancelled: "CANCELLED",
            },
            (*HELD, job.Retried): {job.Leased: "LEASED", job.Cancelled: "CANCELLED"},
            (*HELD, job.Completed): {},
            (*HELD, job.Failed): {},
            (job.Published, job.Cancelled): {},
            (*HELD, job.Cancelled): {},
        },
    ),
    "scope": Thing(
        SCOPE.blank,
        SCOPE.apply_new,
        SCOPE.lifecycle.events,
        {
            (): {definitions.ScopeRegistered: "REGISTERED"},
            USED[:1]: {definitions.ScopeUsed: "USED", definitions.ScopeRemoved: "REMOVED"},
            USED: {},
            GONE: {definitions.ScopeRegistered: "REGISTERED"},
        },
    ),
    "session": Thing(
        SESSION.blank,
        SESSION.apply_new,
        SESSION.lifecycle.events,
        {
            (): {session.Created: "QUEUED"},
            QUEUED: {
                session.Started: "RUNNING",
                session.Failed: "FAILED",
                session.Cancelled: "CANCELLED",
                **CHOSEN,
            },
            BEGUN: {
                session.Requeued: "QUEUED",
                session.Completed: "COMPLETED",
                session.Failed: "FAILED",
                session.Cancelled: "CANCELLED",
                **CHOSEN,
            },
            (*BEGUN, session.Completed): CHOSEN,
            (*BEGUN, session.Failed): CHOSEN,
            (*QUEUED, session.Cancelled): CHOSEN,
        },
    ),
    "algorithm_run": Thing(
        ALGORITHM_RUN.blank,
        ALGORITHM_RUN.apply_new,
        ALGORITHM_RUN.lifecycle.events,
        {
            (): {algorithm_run.Queued: "QUEUED"},
            RUNS[:1]: {algorithm_run.Started: "RUNNING", algorithm_run.Cancelled: "CANCELLED"},
            RUNS: {
                algorithm_run.Started: "same",
                algorithm_run.Progressed: "same",
                algorithm_run.CandidateEmitted: "same",
                algorithm_run.Completed: "COMPLETED",
                algorithm_run.Failed: "FAILED",
                algorithm_run.Cancelled: "CANCELLED",
            },
            (*RUNS, algorithm_run.Completed): {},
            (*RUNS, algorithm_run.Failed): {},
            (*RUNS[:1], algorithm_run.Cancelled): {},
        },
    ),
    "task": Thing(
        Task(),
        evolve_task,
        TASK.events,
        {
            (): {
                runs.TaskKept: "COMPLETED",
                runs.TaskQueued: "QUEUED",
                runs.TaskCancelled: "CANCELLED",
            },
            PREPARED[:1]: {
                runs.TaskPreparing: "PREPARING",
                runs.TaskStarted: "RUNNING",
                runs.TaskCancelled: "CANCELLED",
            },
            PREPARED: {
                runs.TaskStarted: "RUNNING",
                runs.TaskInterruptRequested: "same",
                **TASK_ENDS,
            },
            WORKING: {runs.TaskInterruptRequested: "same", **TASK_ENDS},
            (*WORKING, runs.TaskCompleted): {},
            (*WORKING, runs.TaskFailed): {},
            (*WORKING, runs.TaskCancelled): {},
        },
    ),
    "step": Thing(
        StepState(),
        evolve_step,
        STEP.events,
        {
            (): {
                steps.StepStarted: "RUNNING",
                steps.StepSkipped: "REUSED",
                steps.StepFailed: "FAILED",
                steps.StepBlocked: "BLOCKED",
            },
            (steps.StepStarted,): {
                **NOTED,
                steps.StepSucceeded: "SUCCEEDED",
                steps.StepFailed: "FAILED",
            },
            (steps.StepStarted, steps.StepSucceeded): {},
            (steps.StepStarted, steps.StepFailed): {steps.StepRetryUnimplemented: "same"},
            (steps.StepSkipped,): {},
            (steps.StepBlocked,): {},
        },
    ),
    "erasure": Thing(
        ERASURE.blank,
        ERASURE.apply_new,
        ERASURE.lifecycle.events,
        {
            (): {Erased: "GONE"},
            (Erased,): {Erased: "same", Restored: "BACK"},
            (Erased, Restored): {Erased: "GONE", Restored: "same"},
        },
    ),
    "handle": Thing(
        Handle(),
        evolve_handle,
        HANDLE.events,
        {
            (): {runs.HandleStarting: "STARTING"},
            (runs.HandleStarting,): {runs.HandleRunning: "RUNNING", **HANDLE_ENDS},
            (runs.HandleStarting, runs.HandleRunning): HANDLE_ENDS,
            (runs.HandleStarting, runs.HandleCompleted): {},
            (runs.HandleStarting, runs.HandleFailed): {},
            (runs.HandleStarting, runs.HandleStopped): {},
        },
    ),
}


def cases() -> Iterator[Any]:
    """Each thing after each past, and each of its events."""
    for name, thing in THINGS.items():
        for past in thing.follows:
            for event in thing.events:
                words = " ".join(each.__name__ for each in past) or "nothing"
                yield pytest.param(thing, past, event, id=f"{name}: {words}, {event.__name__}")


@pytest.mark.parametrize(("thing", "past", "event"), list(cases()))
def test_what_may_follow(thing: Thing, past: Past, event: type[Event]):
    """It leads where the rules say, or is refused."""
    state = thing.blank
    for each in past:
        state = thing.after(state, sample(each))
    led = thing.follows[past].get(event)
    if led is None:
        with pytest.raises(IllegalTransition):
            thing.after(state, sample(event))
        return
    after = thing.after(state, sample(event)).status
    assert after.name == (state.status.name if led == "same" else led)
