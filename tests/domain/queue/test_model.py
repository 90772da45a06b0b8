"""Every world of a job and two workers keeps every claim, and each claim is broken once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from statelog.domain import Lifecycle
from statelog.domain.queue import job as jobs
from statelog.domain.queue.job import JOB, Cancelled, Job, JobStatus, Leased, Returned
from statelog.infrastructure.store.leases import TAKEN, Leases
from statelog.infrastructure.testing import Violation
from tests.domain.queue import model as m
from tests.domain.queue.model import Model, reached, walk


def test_every_world_keeps_every_claim():
    """And all that is worth seeing happens in some of them."""
    model = Model()
    goals = [
        reached(model, "a job is completed", JobStatus.COMPLETED),
        reached(model, "a job fails by its handler", JobStatus.FAILED, "no"),
        reached(model, "a job fails by its leases", JobStatus.FAILED, "ran out"),
        reached(model, "a job is cancelled", JobStatus.CANCELLED),
    ]
    found = walk(model, goals=goals)
    assert found.complete
    assert found.states > 1000
    assert model.seen == {"a renewal fails", "a late end is refused"}
    for worker in m.WORKERS:
        for move in ("leases it", "renews", "takes the lease", "says that it ran out", "crashes"):
            assert found.fired[f"{worker} {move}"]


def test_a_job_ends_without_anybody_s_help():
    """Whoever crashes wherever, the workers that are started again end it."""
    assert walk(Model(cancels=False)).complete


def test_workers_of_one_name_do_not_end_each_other_s_leases():
    """As two threads, or a worker that was started again under its old name."""
    assert walk(Model(owners=("alice", "alice"))).complete


def lease_early(job: Job, *, owner: str, now: int, expires_at: int) -> list[Leased]:
    return [Leased(owner, job.attempts + 1, now, expires_at)]


def expire_for_ever(job: Job, *, now: int, expires_at: int | None) -> list[Returned]:
    return [Returned("ran out", now, job.attempts)]


def give_back_dearly(job: Job, *, owner: str, reason: str, now: int) -> list[Returned]:
    jobs.held(job, owner=owner)
    return [Returned(reason, now, job.attempts)]


def cancel_anything(job: Job, *, now: int) -> list[Cancelled]:
    return [Cancelled(now)] if job.status is JobStatus.COMPLETED else jobs.cancel(job, now=now)


class TakenForEver(Leases):
    """One that was taken never ends, so nobody goes on where a sweeper crashed."""

    def take(self, stream: str, version: int, now: int) -> bool:
        with self._log.turn(durable=False) as turn:
            found = turn.lease(stream)
            if found and found.version == version and found.owner == TAKEN:
                return False
        return super().take(stream, version, now)


LOOSE = replace(
    JOB,
    lifecycle=Lifecycle(
        JobStatus.ABSENT,
        [
            *((row.event, row.source, row.target) for row in JOB.lifecycle.rows),
            (Cancelled, JobStatus.COMPLETED, JobStatus.CANCELLED),
        ],
        name="job",
    ),
)


@dataclass(frozen=True)
class Bug:
    """What is wrong, the claim that catches it in how many moves, and the part that is."""

    what: str
    caught_by: str
    moves: int
    parts: dict[str, Any]


BUGS = (
    Bug("a sweep does not take the lease first", m.KEEPS, 8, {"takes_first": False}),
    Bug(
        "an end is decided by the owner's name",
        m.ONE_END,
        10,
        {"ends_by_name": True, "owners": ("alice", "alice")},
    ),
    Bug("a sweep does not look at attempts", m.ATTEMPTS, 14, {"expire": expire_for_ever}),
    Bug("what is done can be cancelled", m.FINAL, 4, {"job": LOOSE, "cancel": cancel_anything}),
    Bug("a handler does not guard its writes", m.FENCED, 4, {"guarded": False}),
    Bug("a stop counts as an attempt", m.FREE, 3, {"give_back": give_back_dearly}),
    Bug("a pause is not waited for", m.EARLY, 5, {"lease": lease_early}),
    Bug("a taken lease stays taken", m.STUCK, 8, {"leases": TakenForEver, "cancels": False}),
)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what)
def test_a_seeded_bug_is_caught_by_name(bug: Bug):
    """By the claim it breaks, in as many moves as it takes."""
    with pytest.raises(Violation) as found:
        walk(Model(**bug.parts))
    assert found.value.invariant.endswith(bug.caught_by)
    assert len(found.value.story) == bug.moves, found.value


def test_every_claim_has_its_bug():
    """None is there for show."""
    assert {bug.caught_by for bug in BUGS} == set(m.CLAIMS)
