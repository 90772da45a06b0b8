"""A job's rules, one by one (2.4)."""

from __future__ import annotations

from typing import Any

import pytest

from statelog.domain import Invalid
from statelog.domain.event import Event
from statelog.domain.queue import job
from statelog.domain.queue.job import (
    JOB,
    Cancelled,
    Completed,
    Failed,
    JobStatus,
    Leased,
    Published,
    Retried,
    Returned,
    backoff_us,
    keyed_id,
)
from statelog.infrastructure.testing import scenario

SECOND = 1_000_000
NOW = 1_000 * SECOND


def published(**changes: Any) -> Published:
    given: dict[str, Any] = {
        "category": "orchestration",
        "event_type": "planning.session.requested",
        "aggregate_type": "planning_session",
        "aggregate_id": "s1",
        "payload": {"sessionId": "s1"},
        "priority": 0,
        "available_at": NOW,
        "max_attempts": 5,
        "idempotency_key": "planning-session:s1",
        "created_at": NOW,
        **changes,
    }
    return Published(**given)


def leased(attempt: int = 1, *, owner: str = "alice", at: int = NOW) -> Leased:
    return Leased(owner, attempt, at, at + 30 * SECOND)


HELD = (published(), leased())
ASKED: dict[str, Any] = {"category": "c", "event_type": "t", "payload": {"n": 1}, "now": NOW}


def test_it_is_published_available_at_once():
    """Unless a moment is given."""
    out = scenario(JOB).when(job.publish, **ASKED)
    assert (out.state.status, out.state.available_at, out.state.max_attempts) == (
        JobStatus.PENDING,
        NOW,
        5,
    )
    later = scenario(JOB).when(job.publish, **ASKED, available_at=NOW + 1)
    assert later.state.available_at == NOW + 1


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("category", {"category": ""}),
        ("eventType", {"event_type": ""}),
        ("maxAttempts", {"max_attempts": 0}),
    ],
)
def test_what_it_cannot_be_without(field: str, wrong: dict[str, Any]):
    """The field is named."""
    with pytest.raises(Invalid) as no:
        job.publish(JOB.blank, **{**ASKED, **wrong})
    assert no.value.field == field


ENDINGS: tuple[tuple[Event, ...], ...] = (
    (),
    (leased(),),
    (leased(), Completed(NOW)),
    (leased(), Failed("no", NOW)),
    (Cancelled(NOW),),
)


@pytest.mark.parametrize("past", ENDINGS, ids=lambda past: "-".join(type(e).__name__ for e in past))
def test_a_key_is_published_once(past: tuple[Event, ...]):
    """Whatever became of it and whatever the payload is now; planning case 47."""
    given = {**ASKED, "key": "planning-session:s1", "payload": {"other": True}}
    scenario(JOB, published(), *past).when(job.publish, **given).then_nothing()


@pytest.mark.parametrize("key", ["", "another"])
def test_an_id_belongs_to_one_job(key: str):
    """A job with another key, or none, is not mistaken for it."""
    scenario(JOB, published()).when(job.publish, **ASKED, key=key).then_refused("job_id")


def test_a_keyed_id_is_32_digits_of_the_key_alone():
    """And any text is a key."""
    assert keyed_id("execution-run:r1") == keyed_id("execution-run:r1")
    assert keyed_id("execution-run:r1") != keyed_id("execution-run:r2")
    for key in ("a", "\ud800", "ü" * 9999):
        assert len(keyed_id(key)) == 32
        assert set(keyed_id(key)) <= set("0123456789abcdef")


def test_a_lease_counts_an_attempt():
    """Its start is that of the job only the first time."""
    given = {"owner": "alice", "now": NOW, "expires_at": NOW + 5}
    first = scenario(JOB, published()).when(job.lease, **given)
    first.then(Leased("alice", 1, NOW, NOW + 5))
    assert (first.state.attempts, first.state.started_at) == (1, NOW)
    past = (*HELD, Retried("no", NOW))
    second = scenario(JOB, *past).when(job.lease, **{**given, "now": NOW + 9})
    assert (second.state.attempts, second.state.started_at) == (2, NOW)


def test_nobody_leases_what_is_not_available():
    """Not yet, not any more, or with somebody."""
    given = {"owner": "bob", "now": NOW, "expires_at": NOW + 5}
    later = scenario(JOB, published(available_at=NOW + 1))
    later.when(job.lease, **given).then_refused("job_available")
    for past in ENDINGS[1:]:
        scenario(JOB, published(), *past).when(job.lease, **given).then_refused("job_pending")
    with pytest.raises(Invalid, match="owner"):
        job.lease(scenario(JOB, published()).state, **{**given, "owner": ""})


def test_the_owner_completes_it():
    """The lease is cleared."""
    done = scenario(JOB, *HELD).when(job.complete, owner="alice", now=NOW + 3)
    done.then(Completed(NOW + 3))
    assert (done.state.lease_owner, done.state.lease_expires_at) == (None, None)
    assert done.state.completed_at == NOW + 3


ENDERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "complete": (job.complete, {"now": NOW}),
    "fail": (job.fail, {"now": NOW, "error": "no"}),
    "give back": (job.give_back, {"now": NOW, "reason": "stopping"}),
}


@pytest.mark.parametrize("name", ENDERS)
def test_nobody_else_ends_it(name: str):
    """Planning case 49; nor anybody when nobody has it."""
    decision, given = ENDERS[name]
    scenario(JOB, *HELD).when(decision, owner="bob", **given).then_refused("job_owner")
    waiting = scenario(JOB, *HELD, Returned("expired", NOW, 1))
    waiting.when(decision, owner="alice", **given).then_refused("job_owner")


@pytest.mark.parametrize("name", [*ENDERS, "cancel"])
@pytest.mark.parametrize("end", [Completed(NOW), Failed("no", NOW), Cancelled(NOW)], ids=repr)
def test_an_end_is_an_end(end: Event, name: str):
    """Whoever comes late is refused (P1); cancelling twice says nothing new."""
    past = scenario(JOB, *HELD, end)
    if name != "cancel":
        decision, given = ENDERS[name]
        past.when(decision, owner="alice", **given).then_refused("job_ended")
    elif isinstance(end, Cancelled):
        past.when(job.cancel, now=NOW).then_nothing()
    else:
        past.when(job.cancel, now=NOW).then_refused("job_ended")


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(1, 2), (2, 4), (3, 8), (8, 256), (9, 512), (10, 512), (99, 512)]
)
def test_the_pause_doubles_eight_times(attempts: int, seconds: int):
    """2 s x 2^min(attempts - 1, 8)."""
    assert backoff_us(attempts) == seconds * SECOND
    past = (published(max_attempts=100), leased(attempts))
    failed = scenario(JOB, *past).when(job.fail, owner="alice", error="no", now=NOW)
    failed.then(Retried("no", NOW + seconds * SECOND))
    assert failed.state.last_error == "no"


def test_the_last_failure_is_final_and_now():
    """Not in the future, as a backed-off time would be (U6, P11)."""
    past = scenario(JOB, published(max_attempts=2), leased(2))
    failed = past.when(job.fail, owner="alice", error="x" * 2000, now=NOW + 7)
    failed.then(Failed("x" * 1000, NOW + 7))
    assert (failed.state.completed_at, failed.state.lease_owner) == (NOW + 7, None)


def test_what_is_given_back_costs_no_attempt():
    """Restarting workers would else fail a job that nothing is wrong with."""
    past = scenario(JOB, *HELD, Retried("no", NOW), leased(2))
    back = past.when(job.give_back, owner="alice", reason="stopping", now=NOW + 1)
    back.then(Returned("stopping", NOW + 1, 1))
    assert (back.state.status, back.state.attempts) == (JobStatus.PENDING, 1)


def test_an_expired_lease_returns_the_job():
    """Available at once, with its attempts as they are; planning case 50."""
    end = NOW + 30 * SECOND
    scenario(JOB, *HELD).when(job.expire, now=end - 1).then_refused("job_lease")
    out = scenario(JOB, *HELD).when(job.expire, now=end)
    assert (out.state.status, out.state.attempts, out.state.available_at) == (
        JobStatus.PENDING,
        1,
        end,
    )


def test_a_renewed_lease_runs_until_it_says():
    """The row beside the log, not the event, tells the end."""
    end = NOW + 30 * SECOND
    held = scenario(JOB, *HELD)
    held.when(job.expire, now=end, expires_at=end + 1).then_refused("job_lease")
    held.when(job.expire, now=end + 1, expires_at=end + 1).then(
        Returned("the lease of alice ran out", end + 1, 1)
    )


def test_an_expired_last_lease_fails_the_job():
    """P11, against U5."""
    end = NOW + 30 * SECOND
    past = scenario(JOB, published(max_attempts=1), leased())
    out = past.when(job.expire, now=end)
    out.then(Failed("the lease of alice ran out", end))


def test_what_is_not_leased_does_not_expire():
    """Nor twice."""
    for past in ((), ENDINGS[0], *ENDINGS[2:]):
        scenario(JOB, published(), *past).when(job.expire, now=10 * NOW).then_refused("job_lease")


def test_it_is_cancelled_while_it_waits_or_is_worked_on():
    """And what is not there is not."""
    for past in ((published(),), HELD):
        out = scenario(JOB, *past).when(job.cancel, now=NOW + 2)
        out.then(Cancelled(NOW + 2))
        assert (out.state.completed_at, out.state.lease_owner) == (NOW + 2, None)
    scenario(JOB).when(job.cancel, now=NOW).then_refused("job_exists")
