"""What may happen to one activity of a run: decisions on its task, handle and transfers.

All raise `Refused`: `run_started` and `run_ended` outside a run that goes on (P1),
`planned_activity` for an activity the plan does not have, and what each names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from statelog.domain.aggregate import changed
from statelog.domain.errors import Refused
from statelog.domain.runs.events import (
    HandleCompleted,
    HandleFailed,
    HandleRunning,
    HandleStarting,
    HandleStopped,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskInterruptRequested,
    TaskPreparing,
    TaskQueued,
    TaskStarted,
    TransferCompleted,
)
from statelog.domain.runs.handle import Handle, HandleStatus
from statelog.domain.runs.metrics import queued_for, stages
from statelog.domain.runs.run import Run, going
from statelog.domain.runs.task import ENDED, Task, TaskStatus

AWAITING: Final = "awaiting assigned runtime"
PREPARING: Final = "synchronizing predecessor workspaces and preparing runtime"
INTERRUPTED: Final = "interrupted by a user"


def _task(run: Run, activity_id: str) -> Task:
    going(run)
    return _planned(run, activity_id)


def _planned(run: Run, activity_id: str) -> Task:
    task = run.tasks.get(activity_id)
    if task is None:
        raise Refused(f"activity {activity_id!r} is not in the plan", rule="planned_activity")
    return task


def _in(run: Run, activity_id: str, *statuses: TaskStatus) -> Task:
    task = _task(run, activity_id)
    if task.status not in statuses:
        why = f"the task of activity {activity_id!r} is {task.status.value}"
        raise Refused(why, rule="task_status")
    return task


def queue_task(
    run: Run, *, activity_id: str, at: float, reason: str = AWAITING
) -> list[TaskQueued]:
    """Say that an activity may run; nothing if that was said.

    Raises `Refused` (`predecessors`, `task_status`).
    """
    task = _in(run, activity_id, TaskStatus.NEW, TaskStatus.QUEUED)
    if task.status is TaskStatus.QUEUED:
        return []
    if not run.may_queue(run.placed[activity_id]):
        raise Refused(f"{activity_id!r} waits for a predecessor", rule="predecessors")
    return [TaskQueued(activity_id, at, reason)]


def prepare_task(
    run: Run, *, activity_id: str, at: float, reason: str = PREPARING
) -> list[TaskPreparing]:
    """Admit an activity for its start; nothing if that was said. Raises `Refused`."""
    task = _in(run, activity_id, TaskStatus.QUEUED, TaskStatus.PREPARING)
    return [] if task.status is TaskStatus.PREPARING else [TaskPreparing(activity_id, at, reason)]


def start_handle(
    run: Run,
    *,
    activity_id: str,
    runtime_id: str,
    at: float,
    command: Mapping[str, Any],
    metadata: Mapping[str, Any] | None = None,
    resource_id: str | None = None,
) -> list[HandleStarting]:
    """Say what is about to be started, before it is (P19).

    Raises `Refused`: `task_status` unless the task is being prepared, `handle_exists` for one that
    was started before: it is never started again.
    """
    _in(run, activity_id, TaskStatus.PREPARING)
    if activity_id in run.handles:
        raise Refused(f"activity {activity_id!r} was started before", rule="handle_exists")
    where = run.placed[activity_id].resource_id if resource_id is None else resource_id
    return [HandleStarting(activity_id, where, runtime_id, at, command, metadata or {})]


def _live(run: Run, activity_id: str) -> Handle:
    _task(run, activity_id)
    handle = run.handle(activity_id)
    if handle.status is HandleStatus.NEW:
        raise Refused(f"activity {activity_id!r} has no handle", rule="no_handle")
    if not handle.live:
        why = f"the handle of activity {activity_id!r} is {handle.status.value}"
        raise Refused(why, rule="handle_ended")
    return handle


def handle_running(
    run: Run,
    *,
    activity_id: str,
    external_id: str,
    started_at: float,
    submitted_at: float | None = None,
    container_started_at: float | None = None,
) -> list[HandleRunning | TaskStarted]:
    """Say that the runtime runs it; the task runs with it. Nothing if that was said.

    Raises `Refused` (`no_handle`, `handle_ended`).
    """
    handle = _live(run, activity_id)
    if handle.status is HandleStatus.RUNNING:
        return []
    queue = queued_for(started_at, submitted_at, run.tasks[activity_id].queued_at)
    times = (external_id, started_at, submitted_at, container_started_at)
    where = (handle.resource_id, handle.runtime_id)
    return [
        HandleRunning(activity_id, *times),
        TaskStarted(activity_id, started_at, *where, queue),
    ]


def handle_completed(
    run: Run, *, activity_id: str, at: float, exit_code: int | None = None, log: str = ""
) -> list[HandleCompleted]:
    """Say that the runtime ended it well; whether its task did too is said next.

    Raises `Refused` (`no_handle`, `handle_ended`).
    """
    _live(run, activity_id)
    return [HandleCompleted(activity_id, at, exit_code, log)]


def handle_failed(
    run: Run,
    *,
    activity_id: str,
    at: float,
    failure: str,
    exit_code: int | None = None,
    log: str = "",
) -> list[HandleFailed | TaskFailed]:
    """Say that the runtime ended it badly, or could not stop it; its task failed with it.

    Raises `Refused` (`no_handle`, `handle_ended`).
    """
    _live(run, activity_id)
    return [
        HandleFailed(activity_id, at, failure, exit_code, log),
        TaskFailed(activity_id, at, failure),
    ]


def handle_stopped(
    run: Run,
    *,
    activity_id: str,
    at: float,
    reason: str,
    exit_code: int | None = None,
    log: str = "",
) -> list[HandleStopped | TaskCancelled]:
    """Say that the runtime stopped it as asked; its task is cancelled with it.

    Raises `Refused`: `no_handle`, `handle_ended` for one that ended by itself (P12).
    """
    _live(run, activity_id)
    return [
        HandleStopped(activity_id, at, reason, exit_code, log),
        TaskCancelled(activity_id, at, reason),
    ]


def _open(run: Run, activity_id: str) -> Task:
    task = _in(run, activity_id, TaskStatus.PREPARING, TaskStatus.RUNNING)
    if run.handle(activity_id).live:
        raise Refused(f"activity {activity_id!r} may still run", rule="live_handles")
    return task


def complete_task(
    run: Run,
    *,
    activity_id: str,
    at: float,
    outputs: Sequence[Mapping[str, Any]] = (),
    missing: Sequence[str] = (),
) -> list[TaskCompleted | TaskFailed]:
    """Say that an activity did what it should, with its stage metrics (4.4).

    It failed instead when declared outputs are `missing` (4.3). Raises `Refused`: `task_status`,
    `live_handles`, `no_result` unless its handle completed.
    """
    task, handle = _open(run, activity_id), run.handle(activity_id)
    if handle.status is not HandleStatus.COMPLETED:
        raise Refused(f"nothing says that {activity_id!r} ended well", rule="no_result")
    if missing:
        names = ", ".join(missing)
        return [TaskFailed(activity_id, at, f"expected outputs are missing: {names}")]
    took = stages(
        handle,
        finished_at=at,
        queued_at=task.queued_at,
        price_per_second=run.placed[activity_id].price_per_second,
    )
    return [
        TaskCompleted(
            activity_id,
            at,
            **took.__dict__,
            transfer_seconds=task.transfer_seconds,
            transfer_bytes=task.transfer_bytes,
            outputs=tuple(outputs),
        )
    ]


def fail_task(run: Run, *, activity_id: str, at: float, reason: str) -> list[TaskFailed]:
    """Say that an activity could not be started, or that its result is no good.

    Raises `Refused`: `task_status`, `live_handles`.
    """
    _open(run, activity_id)
    return [TaskFailed(activity_id, at, reason)]


def cancel_task(run: Run, *, activity_id: str, at: float, reason: str) -> list[TaskCancelled]:
    """Say that an activity will not run, or not on; nothing if it was cancelled before.

    Raises `Refused`: `task_status` for one that ended, `live_handles`.
    """
    task = _task(run, activity_id)
    if task.status is TaskStatus.CANCELLED:
        return []
    if task.status in ENDED:
        raise Refused(f"activity {activity_id!r} is {task.status.value}", rule="task_status")
    if run.handle(activity_id).live:
        raise Refused(f"activity {activity_id!r} may still run", rule="live_handles")
    return [TaskCancelled(activity_id, at, reason)]


def record_transfer(run: Run, *, transfer: TransferCompleted) -> list[TransferCompleted]:
    """Keep what was moved; nothing if it is kept. Raises `Refused` (`planned_activity`)."""
    going(run)
    for activity_id in (transfer.producer_activity_id, transfer.consumer_activity_id):
        _planned(run, activity_id)
    return [] if transfer.id in run.transfers else [transfer]


def interrupt(
    run: Run, *, activity_id: str, at: float
) -> list[TaskInterruptRequested | TaskCancelled]:
    """Ask to stop an activity (2.8); nothing if it was cancelled or asked for before.

    Whoever supervises the run stops the runtime, then the task is cancelled. One that is stopped
    already is cancelled at once. Raises `Refused`: `task_ended`, `handle_ended`, `no_handle` while
    there is nothing to stop.
    """
    task, handle = _planned(run, activity_id), run.handle(activity_id)
    if task.status is TaskStatus.CANCELLED:
        return []
    if task.status in ENDED:
        raise Refused(f"activity {activity_id!r} is {task.status.value}", rule="task_ended")
    going(run)
    if handle.status is HandleStatus.STOPPED:
        return [TaskCancelled(activity_id, at, handle.failure or INTERRUPTED)]
    if handle.status is HandleStatus.NEW:
        raise Refused(f"activity {activity_id!r} has nothing to stop yet; wait", rule="no_handle")
    if not handle.live:
        why = f"the handle of activity {activity_id!r} is {handle.status.value}"
        raise Refused(why, rule="handle_ended")
    return [] if task.interrupted else [TaskInterruptRequested(activity_id, at)]


def interrupted(run: Run) -> tuple[str, ...]:
    """Activities that somebody asked to interrupt and that may still run."""
    return tuple(each for each in run.live if run.tasks[each].interrupted)


def with_stopped_handles(task: Task, handle: Handle) -> Task:
    """A task as it is read: one stored running under a handle that ended badly failed (2.6)."""
    if task.status is not TaskStatus.RUNNING:
        return task
    if handle.status not in (HandleStatus.FAILED, HandleStatus.STOPPED):
        return task
    return changed(
        task, status=TaskStatus.FAILED, finished_at=handle.finished_at, reason=handle.failure
    )
