"""The queue job: durable work that one owner at a time has on lease (1.6, 2.4).

All times are integer microseconds since the Unix epoch, UTC. Renewals of a lease are rows beside
the log and no events (P11): the version of the stream is what a lease is of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from typing import Any, Final, assert_never

from statelog.domain.aggregate import Aggregate, changed
from statelog.domain.errors import Invalid, Refused
from statelog.domain.event import Event
from statelog.domain.lifecycle import Lifecycle

MAX_ATTEMPTS: Final = 5
BACKOFF_US: Final = 2_000_000
_DOUBLINGS: Final = 8
_LONGEST: Final = 1000


class Published(Event, name="queue.job.published"):
    """Work was asked for."""

    category: str
    event_type: str
    aggregate_type: str
    aggregate_id: str
    payload: Mapping[str, Any]
    priority: int
    available_at: int
    max_attempts: int
    idempotency_key: str
    created_at: int


class Leased(Event, name="queue.job.leased"):
    """An owner has the job until its lease ends: the next attempt began."""

    owner: str
    attempt: int
    leased_at: int
    expires_at: int


class Completed(Event, name="queue.job.completed"):
    """The work is done."""

    completed_at: int


class Retried(Event, name="queue.job.retried"):
    """The attempt failed, and another is due after a pause."""

    error: str
    available_at: int


class Failed(Event, name="queue.job.failed"):
    """The last attempt failed, or its lease ran out."""

    error: str
    failed_at: int


class Returned(Event, name="queue.job.returned"):
    """The lease ran out or was given back: the job is available, with so many attempts used."""

    reason: str
    available_at: int
    attempts: int


class Cancelled(Event, name="queue.job.cancelled"):
    """Nobody wants the work any more."""

    cancelled_at: int


class JobStatus(Enum):
    """Whether the job waits, is worked on, or has ended."""

    ABSENT, PENDING, LEASED = "absent", "pending", "leased"
    COMPLETED, FAILED, CANCELLED = "completed", "failed", "cancelled"


@dataclass(frozen=True)
class Job:
    """A job as decisions need it; `attempts` counts leases, less those given back unused."""

    status: JobStatus = JobStatus.ABSENT
    category: str = ""
    event_type: str = ""
    aggregate_type: str = ""
    aggregate_id: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict, repr=False)
    priority: int = 0
    available_at: int = 0
    lease_owner: str | None = None
    lease_expires_at: int | None = None
    attempts: int = 0
    max_attempts: int = MAX_ATTEMPTS
    idempotency_key: str = ""
    last_error: str | None = None
    created_at: int = 0
    started_at: int | None = None
    completed_at: int | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing can happen to it any more (P1)."""
        return self.status in _ENDS


JobEvent = Published | Leased | Completed | Retried | Failed | Returned | Cancelled


def evolve(job: Job, event: JobEvent) -> Job:
    """The job after an event."""
    match event:
        case Published():
            return Job(
                job.status,
                event.category,
                event.event_type,
                event.aggregate_type,
                event.aggregate_id,
                event.payload,
                event.priority,
                event.available_at,
                max_attempts=event.max_attempts,
                idempotency_key=event.idempotency_key,
                created_at=event.created_at,
            )
        case Leased():
            return changed(
                job,
                lease_owner=event.owner,
                lease_expires_at=event.expires_at,
                attempts=event.attempt,
                started_at=event.leased_at if job.started_at is None else job.started_at,
            )
        case Completed(completed_at=at) | Cancelled(cancelled_at=at):
            return _free(job, completed_at=at)
        case Retried():
            return _free(job, last_error=event.error, available_at=event.available_at)
        case Failed():
            return _free(job, last_error=event.error, completed_at=event.failed_at)
        case Returned():
            return _free(job, available_at=event.available_at, attempts=event.attempts)
        case _:
            assert_never(event)


def _free(job: Job, **changes: Any) -> Job:
    return changed(job, lease_owner=None, lease_expires_at=None, **changes)


_ABSENT, _PENDING, _LEASED = JobStatus.ABSENT, JobStatus.PENDING, JobStatus.LEASED
_ENDS: Final = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED})

JOB = Aggregate(
    "job",
    Job(),
    evolve,
    Lifecycle(
        _ABSENT,
        [
            # event     from      to
            (Published, _ABSENT, _PENDING),
            (Leased, _PENDING, _LEASED),
            (Completed, _LEASED, JobStatus.COMPLETED),
            (Retried, _LEASED, _PENDING),
            (Failed, _LEASED, JobStatus.FAILED),
            (Returned, _LEASED, _PENDING),
            (Cancelled, _PENDING, JobStatus.CANCELLED),
            (Cancelled, _LEASED, JobStatus.CANCELLED),
        ],
        final=_ENDS,
        name="job",
    ),
)


def keyed_id(key: str) -> str:
    """The id of the job with an idempotency key: 32 hexadecimal digits.

    So the first version of one stream is what makes a key unique, whoever publishes it.
    """
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def backoff_us(attempts: int) -> int:
    """The pause after so many attempts: 2, 4, 8 ... seconds, at most 512 (2.4)."""
    return BACKOFF_US << min(attempts - 1, _DOUBLINGS)


def publish(
    job: Job,
    *,
    category: str,
    event_type: str,
    payload: Mapping[str, Any],
    now: int,
    aggregate_type: str = "",
    aggregate_id: str = "",
    priority: int = 0,
    available_at: int | None = None,
    max_attempts: int = MAX_ATTEMPTS,
    key: str = "",
) -> list[Published]:
    """Ask for work; nothing if its key was published before, whatever its payload and status.

    Raises `Invalid` for an empty category or type or fewer than one attempt, and `Refused`
    (`job_id`) when the id belongs to a job with another key or none.
    """
    for name, text in (("category", category), ("eventType", event_type)):
        if not text:
            raise Invalid(name, "must not be empty")
    if max_attempts < 1:
        raise Invalid("maxAttempts", f"must be at least 1, not {max_attempts}")
    if job.status is not _ABSENT:
        if key and key == job.idempotency_key:
            return []
        raise Refused("there is a job with this id", rule="job_id")
    return [
        Published(
            category,
            event_type,
            aggregate_type,
            aggregate_id,
            payload,
            priority,
            now if available_at is None else available_at,
            max_attempts,
            key,
            now,
        )
    ]


def lease(job: Job, *, owner: str, now: int, expires_at: int) -> list[Leased]:
    """Give the job to an owner. Raises `Refused` (`job_pending`, `job_available`), `Invalid`."""
    if not owner:
        raise Invalid("owner", "must not be empty")
    if job.status is not _PENDING:
        raise Refused(f"the job is {job.status.value}", rule="job_pending")
    if job.available_at > now:
        raise Refused("the job is not available yet", rule="job_available")
    return [Leased(owner, job.attempts + 1, now, expires_at)]


def held(job: Job, *, owner: str) -> None:
    """Raises `Refused` (`job_ended`, `job_owner`) unless this owner has the job."""
    if job.ended:
        raise Refused(f"the job is {job.status.value}", rule="job_ended")
    if job.status is not _LEASED or job.lease_owner != owner:
        raise Refused(f"{owner} does not have the job", rule="job_owner")


def complete(job: Job, *, owner: str, now: int) -> list[Completed]:
    """Say that the work is done. Raises `Refused` (`job_ended`, `job_owner`)."""
    held(job, owner=owner)
    return [Completed(now)]


def fail(job: Job, *, owner: str, error: str, now: int) -> list[Retried | Failed]:
    """Say that an attempt failed: another is due later, unless it was the last one.

    Raises `Refused` (`job_ended`, `job_owner`).
    """
    held(job, owner=owner)
    if job.attempts >= job.max_attempts:
        return [Failed(error[:_LONGEST], now)]
    return [Retried(error[:_LONGEST], now + backoff_us(job.attempts))]


def give_back(job: Job, *, owner: str, reason: str, now: int) -> list[Returned]:
    """Return the job unfinished because its worker stops; the attempt does not count.

    Raises `Refused` (`job_ended`, `job_owner`).
    """
    held(job, owner=owner)
    return [Returned(reason[:_LONGEST], now, job.attempts - 1)]


def expire(job: Job, *, now: int, expires_at: int | None = None) -> list[Returned | Failed]:
    """Take the job from an owner whose lease ran out; the attempt counts (P11).

    `expires_at` is what the lease was renewed to. Raises `Refused` (`job_lease`) when there is no
    lease or it still runs.
    """
    ends = job.lease_expires_at if expires_at is None else expires_at
    if job.status is not _LEASED or ends is None or ends > now:
        raise Refused("no lease of the job has run out", rule="job_lease")
    reason = f"the lease of {job.lease_owner} ran out"[:_LONGEST]
    if job.attempts >= job.max_attempts:
        return [Failed(reason, now)]
    return [Returned(reason, now, job.attempts)]


def cancel(job: Job, *, now: int) -> list[Cancelled]:
    """Let nobody do the work; nothing if it is cancelled. Raises `Refused` (`job_ended`, ...)."""
    if job.status is _ABSENT:
        raise Refused("there is no such job", rule="job_exists")
    if job.status is JobStatus.CANCELLED:
        return []
    if job.ended:
        raise Refused(f"the job is {job.status.value}", rule="job_ended")
    return [Cancelled(now)]
