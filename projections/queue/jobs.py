"""The `jobs` view: every job of the queue without its payload (1.6)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from statelog.domain.aggregate import changed
from statelog.domain.event import Event, Recorded
from statelog.domain.ids import stream_parts
from statelog.domain.queue.job import (
    JOB,
    Cancelled,
    Completed,
    Failed,
    Job,
    JobStatus,
    Leased,
    Published,
    Retried,
    Returned,
)
from statelog.domain.times import iso
from statelog.projections.projection import Projection

JOB_NAMES: Final = frozenset(event.stored_name for event in JOB.lifecycle.events)
"""Stored names of everything that happens to jobs."""

_LEADS_TO: Final[dict[type[Event], JobStatus]] = {
    Published: JobStatus.PENDING,
    Leased: JobStatus.LEASED,
    Completed: JobStatus.COMPLETED,
    Retried: JobStatus.PENDING,
    Failed: JobStatus.FAILED,
    Returned: JobStatus.PENDING,
    Cancelled: JobStatus.CANCELLED,
}


@lru_cache(maxsize=4096)
def job_of(stream: str) -> str | None:
    """The job whose stream this is; None for others."""
    match stream_parts(stream):
        case ("job", job_id):
            return job_id
        case _:
            return None


def after(job: Job, event: Any) -> Job:
    """The job after an event, without its payload. A view shows what was recorded, legal or not."""
    return changed(JOB.evolve(job, event), payload={}, status=_LEADS_TO[type(event)])


def document(job_id: str, job: Job) -> dict[str, Any]:
    """What clients see of a job: never its payload."""
    shown = {
        "id": job_id,
        "category": job.category,
        "eventType": job.event_type,
        "aggregateType": job.aggregate_type or None,
        "aggregateId": job.aggregate_id or None,
        "status": job.status.value,
        "priority": job.priority,
        "availableAt": iso(job.available_at),
        "leaseOwner": job.lease_owner,
        "leaseExpiresAt": _time(job.lease_expires_at),
        "attempts": job.attempts,
        "maxAttempts": job.max_attempts,
        "idempotencyKey": job.idempotency_key or None,
        "lastError": job.last_error,
        "createdAt": iso(job.created_at),
        "startedAt": _time(job.started_at),
        "completedAt": _time(job.completed_at),
    }
    return {name: value for name, value in shown.items() if value is not None}


def _time(time: int | None) -> str | None:
    return None if time is None else iso(time)


def _key(recorded: Recorded) -> str | None:
    return job_of(recorded.stream)


jobs: Final[Projection[Job]] = Projection(
    "jobs",
    JOB.blank,
    lambda job, recorded: after(job, recorded.event),
    key=_key,
    events=JOB.lifecycle.events,
    show=document,
    columns={
        "status": lambda row: row["status"],
        "category": lambda row: row["category"],
        "event_type": lambda row: row["eventType"],
        "aggregate_id": lambda row: row.get("aggregateId"),
        "created_at": lambda row: row["createdAt"],
    },
)
"""One row a job. The end of a lease is that of its beginning; renewals are no events."""
