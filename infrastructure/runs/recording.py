"""What a supervisor decides on what its threads found, as additions to a change of the run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, assert_never

from statelog.domain.aggregate import Change
from statelog.domain.runs import activities
from statelog.domain.runs.events import Placed
from statelog.domain.runs.run import Run, complete, fail, failure_of
from statelog.domain.runs.task import TaskStatus
from statelog.infrastructure.runs.commands import recorded
from statelog.infrastructure.runs.handles.port import Observation, Seen
from statelog.infrastructure.runs.operations import (
    Found,
    Left,
    Looked,
    Missed,
    Prepared,
    Unprepared,
)

OUTSIDE: Final = "stopped from outside the run"
STUCK: Final = "cannot progress: nothing runs and nothing can be started"
_AT_WORK: Final = (TaskStatus.PREPARING, TaskStatus.RUNNING)


def judged(
    change: Change[Run],
    activity_id: str,
    found: Found,
    *,
    cause: str,
    doom: str,
    given_up: bool,
    at: float,
) -> Change[Run]:
    """The change with what was found of one activity.

    `cause` is why the run ends, if it does, and `doom` why this activity is stopped when neither
    that nor a user is the reason; `given_up` says that it could not be stopped often enough.
    """
    match found:
        case Prepared():
            return _prepared(change, activity_id, found, at)
        case Unprepared(reason):
            reason = f"start activity: {reason}"
            return change.then(activities.fail_task, activity_id=activity_id, at=at, reason=reason)
        case Left():
            return change
        case Looked():
            return _looked(change, activity_id, found, cause, doom)
        case Missed(why):
            if not (given_up and change.state.handle(activity_id).live):
                return change
            failure = "; ".join(filter(None, (doom, f"it could not be stopped: {why}")))
            return change.then(
                activities.handle_failed, activity_id=activity_id, at=at, failure=failure
            )
        case _:
            assert_never(found)


def _prepared(change: Change[Run], activity_id: str, found: Prepared, at: float) -> Change[Run]:
    for transfer in found.transfers:
        change = change.then(activities.record_transfer, transfer=transfer)
    image = found.spec.image
    warning = {"warning": f"image {image} is not used: commands run on the machine itself"}
    return change.then(
        activities.start_handle,
        activity_id=activity_id,
        runtime_id=found.spec.runtime_id,
        at=at,
        command=recorded(found.spec),
        metadata=warning if image else {},
    )


def _looked(
    change: Change[Run], activity_id: str, found: Looked, cause: str, doom: str
) -> Change[Run]:
    seen = found.observation
    if not change.state.handle(activity_id).live or seen.seen is Seen.STARTING:
        return change
    if seen.started_at:
        change = change.then(
            activities.handle_running,
            activity_id=activity_id,
            external_id=seen.external_id,
            started_at=seen.started_at,
            submitted_at=seen.submitted_at or None,
            container_started_at=seen.container_started_at or None,
        )
    if seen.seen is Seen.COMPLETED:
        return _completed(change, activity_id, found)
    if seen.seen is Seen.FAILED:
        return _failed(change, activity_id, seen, seen.failure)
    if seen.seen is Seen.STOPPED:
        return _stopped(change, activity_id, seen, cause, doom)
    return change


def _completed(change: Change[Run], activity_id: str, found: Looked) -> Change[Run]:
    seen = found.observation
    return change.then(
        activities.handle_completed,
        activity_id=activity_id,
        at=seen.finished_at,
        exit_code=seen.exit_code,
        log=seen.log,
    ).then(
        activities.complete_task,
        activity_id=activity_id,
        at=seen.finished_at,
        outputs=found.observed.outputs,
        missing=found.observed.missing,
    )


def _failed(change: Change[Run], activity_id: str, seen: Observation, failure: str) -> Change[Run]:
    return change.then(
        activities.handle_failed,
        activity_id=activity_id,
        at=seen.finished_at,
        failure=failure,
        exit_code=seen.exit_code,
        log=seen.log,
    )


def _stopped(
    change: Change[Run], activity_id: str, seen: Observation, cause: str, doom: str
) -> Change[Run]:
    """Stopped as the run asked, which cancels the task; else it failed."""
    if doom:
        return _failed(change, activity_id, seen, doom)
    if change.state.tasks[activity_id].interrupted:
        reason = activities.INTERRUPTED
    elif cause:
        reason = f"stopped because {cause}"
    else:
        return _failed(change, activity_id, seen, OUTSIDE)
    return change.then(
        activities.handle_stopped,
        activity_id=activity_id,
        at=seen.finished_at,
        reason=reason,
        exit_code=seen.exit_code,
        log=seen.log,
    )


def first_failure(run: Run) -> str | None:
    """The failure that ends the run: the first one in time."""
    failed = [
        (task.finished_at or 0.0, activity_id, task.reason)
        for activity_id in run.placed
        if (task := run.tasks[activity_id]).status is TaskStatus.FAILED
    ]
    if not failed:
        return None
    _, activity_id, reason = min(failed)
    return f"activity {activity_id} failed: {reason}"


def queued(change: Change[Run], at: float) -> Change[Run]:
    """Queue whatever has all its predecessors completed."""
    for activity_id in change.state.ready:
        change = change.then(activities.queue_task, activity_id=activity_id, at=at)
    return change


def admissible(run: Run, lanes: Mapping[str, int]) -> Iterator[Placed]:
    """Queued activities for which there is a lane, in the plan's order of preference (4.3).

    A resource runs as many activities at once as it has lanes; which one does not matter.
    """
    taken = dict.fromkeys(lanes, 0)
    waiting = []
    for placed in run.placed.values():
        status = run.tasks[placed.activity_id].status
        if status in _AT_WORK:
            taken[placed.resource_id] = taken.get(placed.resource_id, 0) + 1
        elif status is TaskStatus.QUEUED:
            waiting.append(placed)
    for placed in sorted(waiting, key=preference):
        if taken.get(placed.resource_id, 0) < lanes.get(placed.resource_id, 1):
            taken[placed.resource_id] = taken.get(placed.resource_id, 0) + 1
            yield placed


def preference(placed: Placed) -> tuple[float, int, int, str]:
    """The order in which activities are admitted."""
    order = (placed.predicted_start_at, -placed.priority, placed.order_on_resource)
    return (*order, placed.activity_id)


def unprepared(run: Run, busy: Collection[str]) -> Iterator[Placed]:
    """Activities whose preparation somebody began and nobody is at: there was a supervisor."""
    for placed in run.placed.values():
        status = run.tasks[placed.activity_id].status
        nobody = placed.activity_id not in busy and placed.activity_id not in run.handles
        if status is TaskStatus.PREPARING and nobody:
            yield placed


def ended(change: Change[Run], cause: str, *, leaving: bool, at: float) -> Change[Run]:
    """The run's end, given that nothing is at work for it and nothing more can be started."""
    run = change.state
    if not first_failure(run) and all(
        task.status is TaskStatus.COMPLETED for task in run.tasks.values()
    ):
        return change.then(complete, at=at)
    if not cause and leaving:
        return change
    return change.then(fail, reason=cause or failure_of(run) or STUCK, at=at)


def unusable(change: Change[Run], reason: str, at: float) -> Change[Run]:
    """The end of a run whose folder is not its own: nothing there says anything about it."""
    for activity_id in change.state.live:
        change = change.then(
            activities.handle_failed, activity_id=activity_id, at=at, failure=reason
        )
    return change.then(fail, reason=reason, at=at)
