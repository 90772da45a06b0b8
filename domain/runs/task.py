"""The task inside a run: one activity's attempt, with a lifecycle table of its own (2.6, P12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, assert_never

from statelog.domain.aggregate import changed
from statelog.domain.lifecycle import SAME, Lifecycle
from statelog.domain.runs.events import (
    TaskCancelled,
    TaskCompleted,
    TaskEvent,
    TaskFailed,
    TaskInterruptRequested,
    TaskKept,
    TaskPreparing,
    TaskQueued,
    TaskStarted,
)


class TaskStatus(Enum):
    """Where a task is; `blocked` and `ready` are reserved (P22)."""

    NEW = "new"
    BLOCKED = "blocked"
    READY = "ready"
    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_NEW, _QUEUED, _PREPARING = TaskStatus.NEW, TaskStatus.QUEUED, TaskStatus.PREPARING
_RUNNING, _COMPLETED = TaskStatus.RUNNING, TaskStatus.COMPLETED
_FAILED, _CANCELLED = TaskStatus.FAILED, TaskStatus.CANCELLED
ENDED = frozenset({_COMPLETED, _FAILED, _CANCELLED})

TASK = Lifecycle(
    _NEW,
    [
        # event     from        to
        (TaskKept, _NEW, _COMPLETED),
        (TaskQueued, _NEW, _QUEUED),
        (TaskPreparing, _QUEUED, _PREPARING),
        (TaskStarted, _QUEUED, _RUNNING),
        (TaskStarted, _PREPARING, _RUNNING),
        (TaskInterruptRequested, _PREPARING, SAME),
        (TaskInterruptRequested, _RUNNING, SAME),
        (TaskCompleted, _PREPARING, _COMPLETED),
        (TaskCompleted, _RUNNING, _COMPLETED),
        (TaskFailed, _PREPARING, _FAILED),
        (TaskFailed, _RUNNING, _FAILED),
        (TaskCancelled, _NEW, _CANCELLED),
        (TaskCancelled, _QUEUED, _CANCELLED),
        (TaskCancelled, _PREPARING, _CANCELLED),
        (TaskCancelled, _RUNNING, _CANCELLED),
    ],
    final=ENDED,
    reserved={TaskStatus.BLOCKED, TaskStatus.READY},
    name="task",
)


@dataclass(frozen=True)
class Task:
    """One activity of the run so far; `kept_from` is the recovered run that completed it."""

    status: TaskStatus = _NEW
    queued_at: float | None = None
    prepared_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    resource_id: str = ""
    runtime_id: str = ""
    runtime_seconds: float = 0.0
    queue_seconds: float = 0.0
    transfer_seconds: float = 0.0
    interference_seconds: float = 0.0
    overhead_seconds: float = 0.0
    transfer_bytes: int = 0
    cost: float = 0.0
    reason: str = ""
    queue_reason: str = ""
    interrupted: bool = False
    kept_from: str = ""
    outputs: tuple[Mapping[str, Any], ...] = ()

    def __hash__(self) -> int:
        return hash((self.status, self.queued_at, self.started_at, self.finished_at))


def evolve_task(task: Task, event: TaskEvent) -> Task:
    """The task after one of its events. Raises `IllegalTransition`."""
    status = TASK.after(task.status, type(event))
    match event:
        case TaskQueued():
            return changed(
                task, status=status, queued_at=event.queued_at, queue_reason=event.reason
            )
        case TaskPreparing():
            return changed(
                task, status=status, prepared_at=event.prepared_at, queue_reason=event.reason
            )
        case TaskInterruptRequested():
            return changed(task, status=status, interrupted=True)
        case TaskFailed() | TaskCancelled():
            return changed(task, status=status, finished_at=event.finished_at, reason=event.reason)
        case TaskStarted() | TaskKept() | TaskCompleted():
            return _with_all(task, status, event)
        case _:
            assert_never(event)


def _with_all(
    task: Task, status: TaskStatus, event: TaskStarted | TaskKept | TaskCompleted
) -> Task:
    """The event's fields are the task's, but for the id it is held by and the run it is from."""
    told = dict(event.__dict__)
    del told["activity_id"]
    if isinstance(event, TaskKept):
        told["kept_from"] = told.pop("from_run_id")
    return changed(task, status=status, **told)
