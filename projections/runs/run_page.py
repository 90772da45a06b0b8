"""The `run_page` view: all there is to see of one run (5, 1.7 to 1.12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from statelog.domain.runs.events import Placed, TransferCompleted
from statelog.domain.runs.handle import Handle
from statelog.domain.runs.task import Task, TaskStatus
from statelog.domain.runs.totals import tidy
from statelog.domain.runs.transfer import handle_id, task_id
from statelog.domain.times import iso
from statelog.domain.workflows.shape import show as camel_case
from statelog.projections.projection import Projection
from statelog.projections.runs.run_document import run_document
from statelog.projections.runs.seen import RUN_EVENTS, Said, Seen, below, evolve, run_of

_RUN, _ACTIVITY = "execution_run", "activity_execution"
TYPES: Final[Mapping[str, str]] = {
    "runs.run.started": "execution.run.started",
    "runs.run.completed": "execution.run.completed",
    "runs.run.failed": "execution.run.failed",
    "runs.task.started": "activity.started",
    "runs.task.completed": "activity.completed",
    "runs.task.failed": "activity.failed",
    "runs.task.cancelled": "activity.failed",
}
"""What the events of a run are called on its page, by stored name (1.12)."""

_STATUS: Final = {"started": "running", "completed": "completed", "failed": "failed"}


def show(run_id: str, seen: Seen) -> dict[str, Any] | None:
    """The page, None before the run started."""
    if seen.start is None:
        return None
    rows = seen.rows
    transfers = sorted(seen.transfers.values(), key=lambda each: (each.started_at, each.id))
    return {
        "run": _run(run_id, seen),
        "activities": [_activity(run_id, placed, task) for placed, task in rows],
        "dataTransfers": [_transfer(run_id, each) for each in transfers],
        "handles": [
            _handle(run_id, each.activity_id, seen.handles[each.activity_id])
            for each in seen.placed
            if each.activity_id in seen.handles
        ],
        "events": [
            _event(run_id, int(version), seen.said[version], seen) for version in sorted(seen.said)
        ],
        "dataObjects": [],
        "dataLocations": [],
        "artifactMaterializations": [],
        "artifactTransferRuns": [],
    }


def _run(run_id: str, seen: Seen) -> dict[str, Any]:
    assert seen.start is not None
    rows = seen.rows
    tasks = [task for _, task in rows]
    moved = seen.transfers.values()
    completed = sum(task.status is TaskStatus.COMPLETED for task in tasks)
    return run_document(
        run_id,
        seen.start,
        status=seen.status,
        sums={
            "compute": tidy(sum(task.runtime_seconds for task in tasks)),
            "transfer": tidy(sum(sorted(each.duration_seconds for each in moved))),
            "queue": tidy(sum(task.queue_seconds for task in tasks)),
            "interference": tidy(sum(task.interference_seconds for task in tasks)),
            "overhead": tidy(sum(task.overhead_seconds for task in tasks)),
        },
        transferred_bytes=sum(each.bytes for each in moved),
        counts=(len(rows), completed),
        completed=seen.completed,
        reason=seen.failed.reason if seen.failed else "",
        times=(seen.started_us, seen.ended_us),
    )


def _activity(run_id: str, placed: Placed, task: Task) -> dict[str, Any]:
    """A task (1.8). Its data is ready when it is queued."""
    shown: dict[str, Any] = {
        "id": task_id(run_id, placed.activity_id),
        "executionRunId": run_id,
        "planAssignmentId": placed.assignment_id,
        "activityId": placed.activity_id,
        "plannedResourceId": placed.resource_id,
        "allocatedResourceId": task.resource_id or None,
        "runtimeId": task.runtime_id or None,
        "attempt": 1,
        "status": task.status.value,
        "readyAt": task.queued_at,
        "dataReadyAt": task.queued_at,
        "queuedAt": task.queued_at,
        "startedAt": task.started_at,
        "finishedAt": task.finished_at,
        "runtimeSeconds": task.runtime_seconds,
        "queueSeconds": task.queue_seconds,
        "transferSeconds": task.transfer_seconds,
        "interferenceSeconds": task.interference_seconds,
        "overheadSeconds": task.overhead_seconds,
        "transferBytes": task.transfer_bytes,
        "cost": task.cost,
        "failureReason": task.reason or None,
        "metadata": _metadata(placed, task) or None,
    }
    return _without_nothing(shown)


def _metadata(placed: Placed, task: Task) -> dict[str, Any]:
    return _without_nothing(
        {
            "pricePerSecond": placed.price_per_second,
            "queueReason": task.queue_reason or None,
            "preparationStartedAt": task.prepared_at,
            "interruptRequested": task.interrupted or None,
            "keptFromRunId": task.kept_from or None,
            "outputs": [dict(each) for each in task.outputs] or None,
        }
    )


def _handle(run_id: str, activity_id: str, handle: Handle) -> dict[str, Any]:
    """A handle (1.9); what its runtime says of its timing is in the metadata."""
    timing = {
        "submittedAt": handle.submitted_at,
        "containerStartedAt": handle.container_started_at,
    }
    metadata = {**handle.metadata, **_without_nothing(timing)}
    return _without_nothing(
        {
            "id": handle_id(run_id, activity_id),
            "runId": run_id,
            "activityId": activity_id,
            "resourceId": handle.resource_id,
            "runtimeId": handle.runtime_id,
            "externalId": handle.external_id or None,
            "status": handle.status.value,
            "startedAt": handle.started_at,
            "finishedAt": handle.finished_at,
            "exitCode": handle.exit_code,
            "failure": handle.failure or None,
            "log": handle.log or None,
            "command": dict(handle.command) or None,
            "metadata": metadata or None,
        }
    )


def _transfer(run_id: str, transfer: TransferCompleted) -> dict[str, Any]:
    return {"executionRunId": run_id, "status": "completed", **camel_case(transfer)}


def _event(run_id: str, version: int, said: Said, seen: Seen) -> dict[str, Any]:
    """An event as 1.12 has it."""
    about = said.activity_id
    return {
        "id": f"{run_id}@{version}",
        "eventType": TYPES[said.name],
        "aggregateType": _ACTIVITY if about else _RUN,
        "aggregateId": task_id(run_id, about) if about else run_id,
        "payload": _activity_payload(run_id, said, seen) if about else _run_payload(said, seen),
        "occurredAt": iso(said.time),
    }


def _run_payload(said: Said, seen: Seen) -> dict[str, Any]:
    assert seen.start is not None
    if said.name == "runs.run.started":
        return {"mode": seen.start.mode, "schedulePlanId": seen.start.schedule_plan_id}
    if seen.completed is not None:
        figures = seen.completed
        return {"makespanSeconds": figures.makespan_seconds, "cost": figures.cost}
    return {"reason": seen.failed.reason if seen.failed else ""}


def _activity_payload(run_id: str, said: Said, seen: Seen) -> dict[str, Any]:
    task = seen.tasks.get(said.activity_id) or Task()
    status = said.name.rpartition(".")[2]
    ended = status != "started"
    return _without_nothing(
        {
            "executionRunId": run_id,
            "activityId": said.activity_id,
            "status": _STATUS.get(status, status),
            "runtimeSeconds": task.runtime_seconds if ended else 0.0,
            "failureReason": (task.reason or None) if ended else None,
        }
    )


def _without_nothing(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


run_page: Final[Projection[Seen]] = Projection(
    "run_page",
    Seen(),
    evolve,
    key=run_of,
    events=RUN_EVENTS,
    show=show,
    columns={
        "status": lambda page: page["run"]["status"],
        "mode": lambda page: page["run"]["mode"],
    },
    below=below,
)
"""The page of each run."""
