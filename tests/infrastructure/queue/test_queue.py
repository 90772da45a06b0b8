"""The queue on both stores: what is published, who has it, and what is kept of a late word."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from statelog.domain import Conflict, NotFound, Refused, StoreError
from statelog.domain.aggregate import Change, Loaded
from statelog.domain.queue.job import JOB, Job, JobStatus, Leased, keyed_id
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.testing.clock import FakeClock
from statelog.infrastructure.testing.contracts import COUNTER, add, start

SECOND = 1_000_000


@pytest.fixture(params=["memory", "file"])
def journal(request: pytest.FixtureRequest, store_path: Path) -> Iterator[Journal]:
    """An empty journal whose clock stands until it is told to go on."""
    store = None if request.param == "memory" else store_path
    with Journal(store, clock=FakeClock()) as made:
        yield made


@pytest.fixture
def queue(journal: Journal) -> Queue:
    return Queue(journal)


def wait(queue: Queue, seconds: float) -> int:
    """Let the clock go on; the moment it is."""
    clock: Any = queue.journal.clock
    clock.advance(seconds)
    return queue.journal.clock()


def publish(queue: Queue, **given: Any) -> str:
    asked = {"category": "c", "event_type": "t", "payload": {"n": 1}, **given}
    return str(queue.publish(**asked).id)


def ids(jobs: list[Loaded[Job]]) -> list[Any]:
    return [job.id for job in jobs]


def test_a_key_is_published_once(queue: Queue):
    """The first job is answered, with its payload; planning case 47."""
    first = queue.publish(category="c", event_type="t", payload={"n": 1}, key="k")
    again = queue.publish(category="d", event_type="u", payload={"n": 2}, key="k")
    assert again == first
    assert first.id == keyed_id("k")
    assert queue.get(keyed_id("k")).state.payload == {"n": 1}
    assert queue.journal.head() == 1


def test_a_publication_is_committed_with_other_changes(queue: Queue):
    """Both or none (P2), and who was second finds the job that the first published."""
    journal = queue.journal
    asked: dict[str, Any] = {"category": "c", "event_type": "t", "payload": {}, "key": "k"}
    begun = journal.load(COUNTER, "a").decide(start)
    one, two = queue.publication(**asked), Queue(journal).publication(**asked)
    journal.commit(begun, one, actor="bob")
    with pytest.raises(Conflict):
        journal.commit(journal.load(COUNTER, "b").decide(start), two, actor="alice")
    assert journal.load(COUNTER, "b").version == 0
    assert queue.publication(**asked).events == ()
    assert ids(queue.lease("alice", limit=9)) == [keyed_id("k")]


def test_jobs_without_a_key_have_ids_of_their_own(queue: Queue):
    """Random ones, or those that are given."""
    made = {publish(queue) for _ in range(3)}
    assert {len(each) for each in made} == {32}
    assert len(made) == 3
    assert publish(queue, job_id="mine") == "mine"
    with pytest.raises(Refused):
        publish(queue, job_id="mine")
    with pytest.raises(NotFound):
        queue.get("nobodys")


def test_a_clock_that_is_set_back_keeps_nobody_waiting(queue: Queue):
    """What was available stays so; a lease runs from the clock, and the future is the future."""
    now = queue.journal.clock()
    published = publish(queue)
    publish(queue, available_at=now + 60 * SECOND)
    earlier = wait(queue, -3600)
    leased = queue.lease("alice", limit=2)
    assert ids(leased) == [published]
    assert leased[0].state.lease_expires_at == earlier + 30 * SECOND
    assert queue.sweep() == []
    wait(queue, 31)
    assert ids(queue.sweep()) == [published]
    assert ids(queue.lease("bob", limit=2)) == [published]


def test_leases_go_by_priority_then_availability_then_age(queue: Queue):
    """And the future is not leased; planning case 48."""
    now = queue.journal.clock()
    low = publish(queue, priority=0)
    high = publish(queue, priority=5)
    publish(queue, priority=9, available_at=now + 60 * SECOND)
    assert ids(queue.lease("alice", limit=2)) == [high, low]
    assert queue.lease("alice", limit=2) == []
    wait(queue, 60)
    assert len(queue.lease("alice", limit=2)) == 1


def test_only_the_categories_that_are_asked_for(queue: Queue):
    """None is any."""
    other = publish(queue, category="execution", priority=9)
    mine = publish(queue, category="planning")
    assert ids(queue.lease("alice", categories=["planning"], limit=9)) == [mine]
    assert ids(queue.lease("alice", limit=9)) == [other]


def test_a_lease_is_of_one_owner(queue: Queue):
    """Also for other queues on the same store."""
    publish(queue)
    other = Queue(queue.journal)
    (leased,) = queue.lease("alice", seconds=30)
    assert other.lease("bob") == []
    state = leased.state
    assert (state.status, state.lease_owner, state.attempts) == (JobStatus.LEASED, "alice", 1)
    assert state.lease_expires_at == queue.journal.clock() + 30 * SECOND
    assert state.payload == {"n": 1}


def faster(queue: Queue, *wanted: str) -> Callable[..., Any]:
    """A commit in which another owner leases these first."""
    commit, other = queue.journal.commit, Queue(queue.journal)
    left = list(wanted)

    def committed(*changes: Change[Any], **given: Any) -> Any:
        while left:
            job, now = other.get(left.pop()), queue.journal.clock()
            lease = (Leased("bob", 1, now, now + SECOND),)
            commit(Change(job, lease, JOB.apply(job.state, lease[0])), actor="bob")
        return commit(*changes, **given)

    return committed


def test_the_loser_of_a_race_goes_on(queue: Queue, monkeypatch: pytest.MonkeyPatch):
    """With what the winner left, and without a refusal."""
    made = [publish(queue) for _ in range(4)]
    monkeypatch.setattr(queue.journal, "commit", faster(queue, made[0], made[2]))
    assert ids(queue.lease("alice", limit=3)) == [made[1], made[3]]
    assert queue.journal.refusals() == []
    monkeypatch.undo()
    assert queue.lease("alice", limit=3) == []


@pytest.mark.parametrize("act", ["complete", "fail", "give_back", "renew"])
def test_only_the_owner_may(act: str, queue: Queue):
    """The job stays leased, and the attempt is kept as evidence; planning case 49."""
    job_id = publish(queue)
    queue.lease("alice")
    more = {"fail": ("no",), "give_back": ("stopping",)}.get(act, ())
    before = queue.journal.head()
    with pytest.raises(Refused) as no:
        getattr(queue, act)(job_id, "bob", *more)
    assert no.value.rule == "job_owner"
    assert queue.get(job_id).state.lease_owner == "alice"
    assert queue.journal.head() == before
    (kept,) = queue.journal.refusals()
    assert (kept.actor, kept.stream, kept.rule) == ("bob", f"job/{job_id}", "job_owner")
    with pytest.raises(NotFound):
        getattr(queue, act)("nobodys", "bob", *more)


@pytest.mark.parametrize("act", ["complete", "fail", "give_back", "renew"])
def test_an_earlier_lease_of_the_same_owner_is_over(act: str, queue: Queue):
    """A name is not enough: the lease is what counts."""
    job_id = publish(queue)
    (first,) = queue.lease("alice", seconds=10)
    wait(queue, 10)
    queue.sweep()
    (second,) = queue.lease("alice")
    more = {"fail": ("no",), "give_back": ("stopping",)}.get(act, ())
    with pytest.raises(Refused) as no:
        getattr(queue, act)(job_id, "alice", *more, lease=first.version)
    assert no.value.rule == "job_lease"
    assert len(queue.journal.refusals()) == 1
    getattr(queue, act)(job_id, "alice", *more, lease=second.version)


@pytest.mark.parametrize("act", ["complete", "fail", "give_back"])
def test_an_end_may_be_said_again(act: str, queue: Queue):
    """Whoever does not know whether it landed says it again, and it landed once."""
    job_id = publish(queue)
    (leased,) = queue.lease("alice")
    more = {"fail": ("no",), "give_back": ("stopping",)}.get(act, ())
    first = getattr(queue, act)(job_id, "alice", *more, lease=leased.version)
    again = getattr(queue, act)(job_id, "alice", *more, lease=leased.version)
    assert again == first
    assert queue.journal.head() == 3
    assert queue.journal.refusals() == []


def test_a_late_word_about_what_has_ended_changes_nothing(queue: Queue):
    """P1."""
    job_id = publish(queue)
    queue.lease("alice")
    ended = queue.cancel(job_id)
    for act in (queue.complete, queue.renew):
        with pytest.raises(Refused) as no:
            act(job_id, "alice")
        assert no.value.rule == "job_ended"
    assert queue.get(job_id) == ended == queue.cancel(job_id)
    assert len(queue.journal.refusals()) == 2


def test_an_expired_lease_is_taken_by_another_worker(queue: Queue):
    """Attempts unchanged until it is leased; planning case 50."""
    job_id = publish(queue)
    queue.lease("alice", seconds=10)
    other = Queue(queue.journal)
    wait(queue, 9.999)
    assert other.sweep() == []
    assert other.lease("bob") == []
    wait(queue, 0.001)
    assert other.lease("bob") == []
    (swept,) = other.sweep()
    assert (swept.state.status, swept.state.attempts) == (JobStatus.PENDING, 1)
    assert queue.sweep() == []
    (again,) = other.lease("bob")
    assert (again.id, again.state.attempts) == (job_id, 2)


def test_a_renewed_lease_runs_on_without_an_event(queue: Queue):
    """For every worker that sweeps (P11), and only as long as it says."""
    job_id = publish(queue)
    (leased,) = queue.lease("alice", seconds=10)
    other = Queue(queue.journal)
    for _ in range(5):
        wait(queue, 9)
        queue.renew(job_id, "alice", lease=leased.version, seconds=10)
        assert other.sweep() == queue.sweep() == []
    assert queue.journal.head() == 2
    wait(queue, 10)
    assert ids(other.sweep()) == [job_id]
    with pytest.raises(Refused):
        queue.renew(job_id, "alice", lease=leased.version)
    assert not queue.renewed(leased, "alice", queue.journal.clock())


def test_the_last_attempt_s_lease_runs_out_and_the_job_fails(queue: Queue):
    """A job that kills its workers does not do so for ever (U5, P11)."""
    job_id = publish(queue, max_attempts=2)
    for left in (1, 0):
        queue.lease("alice", seconds=10)
        now = wait(queue, 10)
        (swept,) = queue.sweep()
        assert (swept.state.status is JobStatus.PENDING) is bool(left)
    state = queue.get(job_id).state
    assert (state.status, state.completed_at) == (JobStatus.FAILED, now)
    assert state.last_error == "the lease of alice ran out"
    assert queue.lease("bob") == []


def test_a_failed_job_comes_back_after_its_pause(queue: Queue):
    """And fails for good with its last attempt, at the moment it does (U6)."""
    job_id = publish(queue, max_attempts=3)
    for pause in (2, 4):
        queue.lease("alice")
        queue.fail(job_id, "alice", "no")
        wait(queue, pause - 0.001)
        assert queue.lease("alice") == []
        now = wait(queue, 0.001)
    assert len(queue.lease("alice")) == 1
    state = queue.fail(job_id, "alice", "no \ud800").state
    assert (state.status, state.completed_at) == (JobStatus.FAILED, now)
    assert state.last_error == "no \\ud800"


def test_what_belongs_to_a_failure_is_in_the_same_commit(journal: Journal):
    """The final one alone; by the owner and by a sweep."""

    def told(job: Loaded[Job], error: str) -> list[Change[Any]]:
        by = 1 if error == "no" else 10
        return [journal.load(COUNTER, "a").decide(add, by=by)]

    journal.execute(COUNTER, "a", start, actor="bob")
    queue = Queue(journal, on_failure={"t": told})
    one, two, other = (publish(queue, max_attempts=2) for _ in range(3))
    for job_id in (one, two, other):
        queue.lease("alice")
        queue.fail(job_id, "alice", "no")
    assert journal.load(COUNTER, "a").state.total == 0
    wait(queue, 2)
    queue.lease("alice", limit=9, seconds=10)
    queue.fail(one, "alice", "no")
    last = list(journal.read())[-2:]
    assert (last[0].name, last[1].name) == ("queue.job.failed", "contract.counter.added")
    assert last[0].command == last[1].command
    queue.complete(other, "alice")
    wait(queue, 10)
    assert ids(queue.sweep()) == [two]
    assert journal.load(COUNTER, "a").state.total == 11


def test_what_cannot_say_what_belongs_to_a_failure_keeps_nothing_alive(journal: Journal):
    """The job fails alone."""

    def broken(job: Loaded[Job], error: str) -> list[Change[Any]]:
        raise LookupError("it is not there")

    queue = Queue(journal, on_failure={"t": broken})
    job_id = publish(queue, max_attempts=1)
    queue.lease("alice")
    assert queue.fail(job_id, "alice", "no").state.status is JobStatus.FAILED


def test_a_crash_between_taking_a_lease_and_saying_so(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
):
    """Its owner cannot renew it any more, and the next sweep goes on."""
    job_id = publish(queue)
    (leased,) = queue.lease("alice", seconds=10)
    wait(queue, 10)

    def crash(*changes: object, **given: object) -> None:
        raise StoreError("busy", "crashed here")

    monkeypatch.setattr(queue.journal, "commit", crash)
    with pytest.raises(StoreError):
        queue.sweep()
    monkeypatch.undo()
    assert not queue.renewed(leased, "alice", queue.journal.clock() + 99 * SECOND)
    assert queue.get(job_id).state.status is JobStatus.LEASED
    assert ids(queue.sweep()) == [job_id]
    assert Queue(queue.journal).sweep() == []


def test_a_worker_whose_lease_is_taken_writes_nothing_more(queue: Queue):
    """With the job's guard in its commits, whatever they are about."""
    journal = queue.journal
    journal.execute(COUNTER, "a", start, actor="bob")
    publish(queue)
    (leased,) = queue.lease("alice", seconds=10)

    def more() -> Change[Any]:
        return journal.load(COUNTER, "a").decide(add)

    journal.commit(more(), leased.guard(), actor="alice")
    queue.renew(str(leased.id), "alice", seconds=10)
    journal.commit(more(), leased.guard(), actor="alice")
    wait(queue, 10)
    queue.sweep()
    with pytest.raises(Conflict):
        journal.commit(more(), leased.guard(), actor="alice")
    assert journal.load(COUNTER, "a").state.total == 2


def test_rows_of_leases_that_are_over_are_removed(queue: Queue):
    """By whoever sweeps next."""
    for _ in range(3):
        publish(queue)
    leased = queue.lease("alice", limit=3, seconds=10)
    for job in leased:
        queue.renew(str(job.id), "alice", seconds=10)
    queue.complete(str(leased[0].id), "alice")
    wait(queue, 10)
    assert len(queue.sweep()) == 2
    assert queue.journal.leases.all() == []


def test_live_jobs_are_known_without_reading_them_again(queue: Queue):
    """Pending and leased ones, without payloads."""
    one, two, three = (publish(queue) for _ in range(3))
    queue.lease("alice")
    queue.cancel(two)
    found = queue.jobs()
    assert {job_id: job.status for job_id, job in found.items()} == {
        one: JobStatus.LEASED,
        three: JobStatus.PENDING,
    }
    assert queue.versions([one, two, three]) == {one: 2, two: None, three: 1}
    assert {str(job.payload) for job in found.values()} == {"{}"}


def test_a_job_that_cannot_be_read_stops_nobody(
    store_path: Path, damaged_store: Callable[[Path], None], caplog: pytest.LogCaptureFixture
):
    """The others are leased, and it is told once."""
    damaged_store(store_path)
    with Journal(store_path) as journal:
        broken, sound = (publish(Queue(journal)) for _ in range(2))
        queue = Queue(journal)
        assert len(queue.jobs()) == 2
        with closing(sqlite3.connect(store_path)) as db:
            db.execute("UPDATE events SET data = NULL WHERE stream = ?", (f"job/{broken}",))
            db.commit()
        assert ids(queue.lease("alice", limit=2)) == [sound]
        assert queue.lease("alice", limit=2) == []
        assert caplog.text.count("is left alone") == 1
        assert ids(Queue(journal).lease("alice", limit=2)) == []
        assert list(Queue(journal).jobs()) == [sound]


def test_a_forked_child_goes_on_with_its_parent_s_queue(queue: Queue):
    """Also when another thread of the parent had the board at that moment."""
    if queue.journal.store is None:
        return
    publish(queue)
    publish(queue)
    queue.lease("alice")
    with queue._following.board():
        child = os.fork()
        if child == 0:
            found = queue.lease("bob", limit=9)
            os._exit(len(found) + 10)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 11
    assert queue.lease("alice") == []


class Counting:
    """A journal's events as they are read."""

    def __init__(self, journal: Journal) -> None:
        self.read = 0
        history = journal.history

        def counted(*args: Any, **given: Any) -> Iterator[Any]:
            for recorded in history(*args, **given):
                self.read += 1
                yield recorded

        journal.history = counted  # type: ignore[method-assign]


def test_a_poll_reads_what_is_new_and_no_more(queue: Queue):
    """With ten thousand jobs waiting, and a thousand other events beside them."""
    journal = queue.journal
    many: list[Change[Any]] = [
        queue.publication(category="c", event_type="t", payload={}, priority=n % 3, key=f"k{n}")
        for n in range(10_000)
    ]
    for at in range(0, len(many), 1000):
        journal.commit(*many[at : at + 1000], actor="bob")
    journal.execute(COUNTER, "a", start, actor="bob")
    counted = Counting(journal)
    assert len(queue.lease("alice", limit=3)) == 3
    assert counted.read == 10_000
    journal.execute(COUNTER, "a", add, by=1, times=1000, actor="bob")
    for _ in range(5):
        queue.sweep()
        assert len(queue.lease("alice", limit=1)) == 1
    assert counted.read == 10_003 + 4
