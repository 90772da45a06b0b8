"""Workers: what handlers are given, what becomes of the job, and how a worker ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statelog.domain import Conflict, OutcomeUnknown, StoreError
from statelog.domain.queue.job import JobStatus
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.queue.task import Outcome, Task
from statelog.infrastructure.queue.worker import Done, Interrupted, JobWorker, Work, registered
from statelog.infrastructure.testing.clock import FakeClock
from statelog.infrastructure.testing.contracts import COUNTER, add, start
from tests.infrastructure.queue.workers import PATIENCE_S, Running, once, publish, running, until

SHORT = {"lease_seconds": 0.3, "poll_seconds": 0.05}


@pytest.fixture(params=["memory", "file"])
def journal(request: pytest.FixtureRequest, store_path: Path) -> Iterator[Journal]:
    with Journal(None if request.param == "memory" else store_path) as made:
        yield made


def job(journal: Journal, job_id: str) -> Any:
    return Queue(journal).get(job_id).state


def nothing(work: Work) -> None:
    """A handler with nothing to do."""


def test_a_handler_is_given_its_work(journal: Journal):
    """And the job is completed when it returns."""
    seen: list[Work] = []
    done: list[Done] = []
    job_id = publish(journal, aggregate_id="s1")
    assert once(journal, {"t": seen.append}, on_done=done.append) == {Outcome.COMPLETED: 1}
    (work,) = seen
    assert (work.job_id, work.event_type, work.aggregate_id) == (job_id, "t", "s1")
    assert (work.payload, work.attempt, work.stop.is_set()) == ({"n": 1}, 1, False)
    assert done == [Done(job_id, "t", 1, Outcome.COMPLETED)]
    state = job(journal, job_id)
    assert (state.status, state.lease_owner, state.last_error) == (JobStatus.COMPLETED, None, None)


def test_a_type_without_a_handler_is_an_error_and_tried_again(journal: Journal):
    """Planning case 51."""
    job_id = publish(journal, "unheard")
    assert once(journal, {"t": nothing}) == {Outcome.RETRIED: 1}
    state = job(journal, job_id)
    assert (state.status, state.attempts) == (JobStatus.PENDING, 1)
    assert state.last_error == "LookupError: there is no handler for unheard"
    assert state.available_at > journal.clock()


def test_a_type_has_one_handler():
    """Two of them are refused where they are put together."""
    assert registered(("a", nothing), ("b", nothing)) == {"a": nothing, "b": nothing}
    with pytest.raises(ValueError, match="a has two handlers"):
        registered(("a", nothing), ("b", nothing), ("a", nothing))


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_whatever_a_handler_raises_fails_the_attempt(error: BaseException, journal: Journal):
    """And nobody but the job."""

    def raising(work: Work) -> None:
        raise error

    job_id = publish(journal, max_attempts=1)
    other = publish(journal, "fine")
    counts = once(journal, {"t": raising, "fine": nothing})
    assert counts == {Outcome.FAILED: 1, Outcome.COMPLETED: 1}
    assert job(journal, job_id).status is JobStatus.FAILED
    assert job(journal, job_id).last_error.startswith(type(error).__name__)
    assert job(journal, other).status is JobStatus.COMPLETED


def test_as_many_at_once_as_it_may(journal: Journal):
    """Not one more, and not one less while there is work."""
    guard, now, most = threading.Lock(), 0, 0
    full = threading.Event()

    def working(work: Work) -> None:
        nonlocal now, most
        with guard:
            now += 1
            most = max(most, now)
            if now == 3:
                full.set()
        until(full)
        with guard:
            now -= 1

    for _ in range(9):
        publish(journal)
    assert once(journal, {"t": working}, concurrency=3) == {Outcome.COMPLETED: 9}
    assert most == 3


def test_one_at_a_time_goes_by_priority(journal: Journal):
    """A job that comes late and is urgent is next."""
    seen: list[int] = []

    def working(work: Work) -> None:
        seen.append(work.payload["n"])
        if len(seen) == 1:
            publish(journal, payload={"n": 9}, priority=9)

    for n in (0, 2, 1):
        publish(journal, payload={"n": n}, priority=n)
    once(journal, {"t": working}, concurrency=1)
    assert seen == [2, 9, 1, 0]


def test_a_new_job_wakes_a_worker(journal: Journal):
    """At once, as the worker would not look by itself for an hour."""
    done = threading.Event()
    with running(journal, {"t": lambda work: done.set()}, poll_seconds=3600) as worker:
        worker.worker.poll_seconds = 3600
        for _ in range(3):
            publish(journal)
            until(done)
            done.clear()
        worker.stop.set()
        publish(journal)


def test_two_workers_share_the_jobs(store_path: Path):
    """In two journals, as two processes would; each job is done once."""
    seen: list[str] = []
    with Journal(store_path) as one, Journal(store_path) as two:
        made = [publish(one) for _ in range(60)]
        handlers = {"t": lambda work: seen.append(work.job_id)}
        with running(one, handlers, "alice"), running(two, handlers, "bob"):
            end = time.monotonic() + PATIENCE_S
            while Queue(one).jobs() and time.monotonic() < end:
                time.sleep(0.01)
        assert sorted(seen) == sorted(made)
        assert one.refusals() == []


def test_a_lease_is_renewed_while_its_handler_works(journal: Journal):
    """Many times its length, and nobody else gets the job."""
    seen: list[str] = []

    def long(work: Work) -> None:
        seen.append(work.job_id)
        assert not work.stop.wait(1.5)

    publish(journal)
    with (
        running(journal, {"t": long}, **SHORT) as one,
        running(journal, {"t": long}, "bob", **SHORT) as two,
    ):
        end = time.monotonic() + PATIENCE_S
        while Queue(journal).jobs() and time.monotonic() < end:
            time.sleep(0.02)
    assert len(seen) == 1
    assert one.counts + two.counts == {Outcome.COMPLETED: 1}
    names = [recorded.name.rpartition(".")[2] for recorded in journal.read()]
    assert names == ["published", "leased", "completed"]


def test_a_lost_lease_stops_its_handler(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    """A renewal that fails tells it so, and what it says then counts for nothing."""
    began, stopped = threading.Event(), threading.Event()

    def long(work: Work) -> None:
        began.set()
        until(work.stop)
        stopped.set()

    job_id = publish(journal)
    with running(journal, {"t": long}, "alice", **SHORT) as alice:
        until(began)
        held = Queue(journal).get(job_id)
        assert journal.leases.take(held.stream, held.version, journal.clock() + 60_000_000)
        until(stopped)
        assert alice.end() == {Outcome.COMPLETED: 1}


def test_a_job_that_was_taken_over_is_lost(store_path: Path):
    """Its late end is refused and kept, and the guard keeps out what it would still write."""
    began, go = threading.Event(), threading.Event()
    results: list[str] = []
    clock = FakeClock()

    def slow(work: Work) -> None:
        began.set()
        until(go)
        change = journal.load(COUNTER, "a").decide(add)
        assert work.guard is not None
        try:
            journal.commit(change, work.guard, actor="alice")
        except Conflict:
            results.append("fenced")

    with Journal(store_path, clock=clock) as journal, Journal(store_path, clock=clock) as other:
        journal.execute(COUNTER, "a", start, actor="bob")
        job_id = publish(journal)
        with running(journal, {"t": slow}, "alice") as alice:
            until(began)
            clock.advance(31)
            assert once(other, {"t": nothing}, "bob") == {Outcome.COMPLETED: 1}
            go.set()
            end = time.monotonic() + PATIENCE_S
            while alice.worker._tasks and time.monotonic() < end:
                time.sleep(0.01)
        assert alice.counts == {Outcome.LOST: 1}
        assert results == ["fenced"]
        assert job(journal, job_id).attempts == 2
        (kept,) = journal.refusals()
        assert (kept.actor, kept.rule) == ("alice", "job_ended")


def test_a_worker_does_not_begin_a_job_beside_itself(store_path: Path):
    """When its own lease ran out: it waits for the handler that is still there."""
    began, go, overlaps = threading.Event(), threading.Event(), threading.Semaphore(1)
    attempts: list[int] = []
    clock = FakeClock()

    def slow(work: Work) -> None:
        assert overlaps.acquire(blocking=False), "two at once"
        attempts.append(work.attempt)
        began.set()
        until(go)
        overlaps.release()

    with Journal(store_path, clock=clock) as journal:
        job_id = publish(journal)
        with running(journal, {"t": slow}, poll_seconds=0.01) as worker:
            until(began)
            clock.advance(31)
            end = time.monotonic() + PATIENCE_S
            while job(journal, job_id).status is JobStatus.LEASED and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(0.1)
            go.set()
            while Queue(journal).jobs() and time.monotonic() < end:
                time.sleep(0.01)
        assert attempts == [1, 2]
        assert worker.counts == {Outcome.LOST: 1, Outcome.COMPLETED: 1}


def test_a_cancelled_job_stops_its_handler_at_once(journal: Journal):
    """Not only when its lease is renewed next."""
    began = threading.Event()

    def long(work: Work) -> None:
        began.set()
        until(work.stop)
        raise Interrupted

    job_id = publish(journal)
    with running(journal, {"t": long}, lease_seconds=3600) as worker:
        until(began)
        Queue(journal).cancel(job_id)
        end = time.monotonic() + PATIENCE_S
        while worker.worker._tasks and time.monotonic() < end:
            time.sleep(0.01)
    assert worker.counts == {Outcome.LOST: 1}
    assert job(journal, job_id).status is JobStatus.CANCELLED
    assert journal.refusals() == []


def test_a_worker_that_stops_gives_its_jobs_back(journal: Journal):
    """Available at once, with no attempt used, and the next worker begins them anew."""
    began = threading.Barrier(3)

    def long(work: Work) -> None:
        began.wait(PATIENCE_S)
        until(work.stop)
        raise Interrupted("the worker stops")

    made = [publish(journal, max_attempts=1) for _ in range(2)]
    with running(journal, {"t": long}) as worker:
        began.wait(PATIENCE_S)
        assert worker.end() == {Outcome.RETURNED: 2}
    for job_id in made:
        state = job(journal, job_id)
        assert (state.status, state.attempts, state.lease_owner) == (JobStatus.PENDING, 0, None)
    assert once(journal, {"t": nothing}, "bob") == {Outcome.COMPLETED: 2}


def test_a_worker_that_stops_waits_for_what_finishes(journal: Journal):
    """A handler that does not stop early completes its job; nothing new begins."""
    began = threading.Event()

    def stubborn(work: Work) -> None:
        began.set()
        until(work.stop)

    first, second = publish(journal), publish(journal)
    with running(journal, {"t": stubborn}, concurrency=1) as worker:
        until(began)
        assert worker.end() == {Outcome.COMPLETED: 1}
    assert job(journal, first).status is JobStatus.COMPLETED
    assert job(journal, second).status is JobStatus.PENDING


def test_leases_are_renewed_while_a_worker_ends(journal: Journal):
    """A handler that takes long to stop keeps its job meanwhile."""
    began = threading.Event()

    def slow(work: Work) -> None:
        began.set()
        until(work.stop)
        time.sleep(1.0)

    publish(journal)
    with running(journal, {"t": slow}, **SHORT) as worker:
        until(began)
        worker.stop.set()
        time.sleep(0.5)
        assert Queue(journal).sweep() == []
    assert worker.counts == {Outcome.COMPLETED: 1}


def test_once_looks_again_when_a_job_ends_while_it_looks(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    """There was no room for the others then: with many jobs it ended long before they were done."""
    for _ in range(3):
        publish(journal, category="orchestration")
    ends, look = threading.Semaphore(0), JobWorker._look

    def slow_look(worker: JobWorker) -> int:
        found = look(worker)
        if not found and worker._tasks:
            ends.release()
            with worker._changed:
                assert worker._changed.wait_for(lambda: not worker._tasks, PATIENCE_S)
        return found

    def working(work: Work) -> None:
        assert ends.acquire(timeout=PATIENCE_S)

    monkeypatch.setattr(JobWorker, "_look", slow_look)
    counts = once(journal, {"t": working}, limits={"orchestration": 1}, poll_seconds=0.05)
    assert counts == {Outcome.COMPLETED: 3}


def test_once_ends_when_nothing_is_available(journal: Journal):
    """Not before a job that another one published is done; what waits for a moment may wait."""
    later = publish(journal, available_at=journal.clock() + 3_600_000_000)

    def publishing(work: Work) -> None:
        if work.payload["n"]:
            time.sleep(0.05)
            publish(journal, payload={"n": work.payload["n"] - 1})

    publish(journal, payload={"n": 3})
    assert once(journal, {"t": publishing}) == {Outcome.COMPLETED: 4}
    assert job(journal, later).status is JobStatus.PENDING
    assert once(journal, {"t": publishing}) == {}


def test_only_its_categories(journal: Journal):
    """A worker may be for some of them."""
    other = publish(journal, category="execution")
    publish(journal, category="planning")
    assert once(journal, {"t": nothing}, categories=("planning",)) == {Outcome.COMPLETED: 1}
    assert job(journal, other).status is JobStatus.PENDING


def test_a_category_with_a_limit_leaves_room_for_others(journal: Journal):
    """The second of it waits for the first, and whatever else there is does not."""
    done, first, waits = [], threading.Event(), threading.Event()

    def limited(work: Work) -> None:
        assert not first.is_set() or waits.is_set()
        first.set()
        until(waits)

    def free(work: Work) -> None:
        until(first)
        done.append(work.payload["n"])
        if len(done) == 3:
            waits.set()

    for n in range(3):
        publish(journal, "limited", category="orchestration", priority=5)
        publish(journal, "free", category="execution", payload={"n": n})
    handlers = {"limited": limited, "free": free}
    counts = once(journal, handlers, concurrency=2, limits={"orchestration": 1})
    assert (counts, sorted(done)) == ({Outcome.COMPLETED: 6}, [0, 1, 2])


def failing(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, error: Exception, names: str, times: int
) -> list[str]:
    """Let commits of events with this name fail so often; what was tried."""
    commit = journal.commit
    tried: list[str] = []

    def committed(*changes: Any, **given: Any) -> Any:
        for change in changes:
            for event in change.events:
                if event.stored_name == names and tried.count(names) < times:
                    tried.append(names)
                    if isinstance(error, OutcomeUnknown):
                        commit(*changes, **given)
                    raise error
        return commit(*changes, **given)

    monkeypatch.setattr(journal, "commit", committed)
    return tried


@pytest.mark.parametrize(
    "error", [StoreError("busy", "busy"), OutcomeUnknown("c"), Conflict("job/1", 1, 2)], ids=repr
)
def test_an_end_is_recorded_although_the_store_is_busy(
    error: Exception, journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    """Also when nobody knows whether it was."""
    job_id = publish(journal)
    tried = failing(journal, monkeypatch, error, "queue.job.completed", 2)
    assert once(journal, {"t": nothing}) == {Outcome.COMPLETED: 1}
    assert tried
    assert job(journal, job_id).status is JobStatus.COMPLETED
    assert journal.head() == 3


def test_leasing_goes_on_after_the_store_was_busy(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    """A worker is not ended by what passes."""
    publish(journal)
    error = StoreError("busy", "busy")
    failing(journal, monkeypatch, error, "queue.job.leased", 2)
    assert once(journal, {"t": nothing}, poll_seconds=0.01) == {Outcome.COMPLETED: 1}


def test_a_store_that_cannot_be_used_ends_the_worker(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    """After its handlers were told to stop."""
    began, stopped = threading.Event(), threading.Event()

    def long(work: Work) -> None:
        began.set()
        until(work.stop)
        stopped.set()

    publish(journal)
    worker = Running(JobWorker(journal, {"t": long}, "alice", concurrency=2, poll_seconds=0.01))
    until(began)
    failing(journal, monkeypatch, StoreError("full", "full"), "queue.job.leased", 1)
    publish(journal)
    until(stopped)
    with pytest.raises(StoreError, match="full"):
        worker.join()


def test_an_end_that_cannot_be_recorded_leaves_the_lease_to_run_out(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """The worker says so and goes on with others."""
    job_id = publish(journal)
    error = StoreError("full", "full")
    failing(journal, monkeypatch, error, "queue.job.completed", 1)
    with caplog.at_level(logging.ERROR):
        assert once(journal, {"t": nothing}) == {}
    assert "its lease runs out" in caplog.text
    assert "Traceback" not in caplog.text
    assert job(journal, job_id).status is JobStatus.LEASED
    publish(journal)
    assert once(journal, {"t": nothing}) == {Outcome.COMPLETED: 1}


def test_what_is_ending_is_not_lost(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    """The job moves because its own worker moves it, which is no reason to stop or to warn."""
    publish(journal)
    queue = Queue(journal)
    (leased,) = queue.lease("alice")
    task = Task(queue, leased, "alice", 30)
    complete = queue.complete

    def completed(*args: Any, **given: Any) -> Any:
        done = complete(*args, **given)
        task.renew()
        task.lose()
        return done

    monkeypatch.setattr(queue, "complete", completed)
    assert task.carry_out(lambda: None) == (Outcome.COMPLETED, None)
    assert not task.stop.is_set()


def test_who_is_told_may_fail(journal: Journal):
    """A listener that raises loses nothing but its own news."""

    def telling(done: Done) -> None:
        raise RuntimeError("deaf")

    publish(journal)
    publish(journal)
    assert once(journal, {"t": nothing}, on_done=telling) == {Outcome.COMPLETED: 2}


def test_a_busy_interpreter_keeps_its_leases(journal: Journal):
    """Planning is pure Python that never waits: renewals come through all the same."""

    def busy(work: Work) -> None:
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            sum(range(2000))

    for _ in range(4):
        publish(journal)
    with running(journal, {"t": busy}, lease_seconds=0.6, poll_seconds=0.05) as worker:
        end = time.monotonic() + PATIENCE_S
        while Queue(journal).jobs() and time.monotonic() < end:
            time.sleep(0.05)
    assert worker.counts == {Outcome.COMPLETED: 4}


def test_a_worker_may_run_again(journal: Journal):
    """As `serve` may."""
    worker = JobWorker(journal, {"t": nothing}, "alice")
    for _ in range(2):
        publish(journal)
        assert worker.run(threading.Event(), once=True) == {Outcome.COMPLETED: 1}
