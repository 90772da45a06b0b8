"""Runs in which each event of the table may happen, for an activity called as samples call it."""

from __future__ import annotations

from typing import Any

from statelog.domain.pmap import PMap
from statelog.domain.runs.events import (
    HandleCompleted,
    HandleFailed,
    HandleRunning,
    HandleStarting,
    HandleStopped,
    Placed,
    TaskCompleted,
    TaskFailed,
    TaskInterruptRequested,
    TaskPreparing,
    TaskStarted,
)
from statelog.domain.runs.handle import Handle, HandleStatus
from statelog.domain.runs.run import Run, RunStatus
from statelog.domain.runs.task import Task, TaskStatus

ACTIVITY = "text"


def with_task(status: TaskStatus, handle: HandleStatus = HandleStatus.NEW) -> Run:
    """A run that goes on, with one activity whose task and handle are in these statuses."""
    return Run(
        RunStatus.RUNNING,
        placed={ACTIVITY: Placed(ACTIVITY, "r")},
        tasks=PMap({ACTIVITY: Task(status)}),
        handles=PMap({ACTIVITY: Handle(handle)}),
    )


_AT_WORK = with_task(TaskStatus.RUNNING, HandleStatus.RUNNING)
_STARTING = with_task(TaskStatus.PREPARING, HandleStatus.STARTING)
_WHERE = {
    TaskPreparing: with_task(TaskStatus.QUEUED),
    TaskStarted: with_task(TaskStatus.PREPARING),
    TaskInterruptRequested: _AT_WORK,
    TaskCompleted: _AT_WORK,
    TaskFailed: _AT_WORK,
    HandleStarting: with_task(TaskStatus.PREPARING),
    HandleRunning: _STARTING,
    HandleCompleted: _AT_WORK,
    HandleFailed: _AT_WORK,
    HandleStopped: _AT_WORK,
}
STATES: dict[Any, Run] = {
    RunStatus.RUNNING: with_task(TaskStatus.NEW),
    **{(RunStatus.RUNNING, event): run for event, run in _WHERE.items()},
}
