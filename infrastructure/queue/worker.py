"""The worker: leases jobs and lets their handlers work on them, several at once (2.4)."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import Conflict, OutcomeUnknown, StoreError
from statelog.domain.queue.job import Job
from statelog.infrastructure.follow import Follower
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.ends import OnFailure
from statelog.infrastructure.queue.queue import LEASE_S, Queue
from statelog.infrastructure.queue.task import Outcome, Task
from statelog.projections.plain import escaped
from statelog.projections.queue.jobs import JOB_NAMES

log = logging.getLogger("statelog.queue.worker")

CONCURRENCY: Final = 8
POLL_S: Final = 0.5

_SHOWN: Final = 500
_LEVELS: Final = {
    Outcome.COMPLETED: logging.INFO,
    Outcome.RETURNED: logging.INFO,
    Outcome.RETRIED: logging.WARNING,
    Outcome.FAILED: logging.ERROR,
    Outcome.LOST: logging.WARNING,
}


class Interrupted(Exception):
    """A handler stopped before it was done, because its `stop` was set."""


@dataclass(frozen=True)
class Work:
    """One attempt at a job, as its handler sees it.

    `stop` is set when the worker stops or the lease is lost; the handler then ends as soon as it
    can, by any exception such as `Interrupted`, and the job comes back. `guard` is a change without
    events: a commit that includes it lands only while the lease is held.
    """

    job_id: str
    event_type: str
    aggregate_id: str
    payload: Mapping[str, Any]
    attempt: int
    stop: threading.Event
    guard: Change[Job] | None = None


Handler = Callable[[Work], None]
"""Does the work. A normal return completes the job, an exception fails the attempt."""


def registered(*pairs: tuple[str, Handler]) -> dict[str, Handler]:
    """Handlers by event type. Raises `ValueError` for two of one type."""
    handlers: dict[str, Handler] = {}
    for event_type, handler in pairs:
        if event_type in handlers:
            raise ValueError(f"{event_type} has two handlers")
        handlers[event_type] = handler
    return handlers


@dataclass(frozen=True)
class Done:
    """What became of one attempt: completed, failed, retried, returned or lost."""

    job_id: str
    event_type: str
    attempt: int
    outcome: Outcome
    error: str | None = None


@dataclass
class JobWorker:
    """One worker. Several on one store, in any number of processes, share its jobs.

    Handlers run in threads, at most `concurrency` at once, and of a category in `limits` at most as
    many as that says. `on_done` is called in those threads.
    """

    journal: Journal
    handlers: Mapping[str, Handler]
    owner: str
    concurrency: int = CONCURRENCY
    lease_seconds: float = LEASE_S
    poll_seconds: float = POLL_S
    categories: Collection[str] | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    on_failure: Mapping[str, OnFailure] = field(default_factory=dict)
    on_done: Callable[[Done], None] | None = None

    def __post_init__(self) -> None:
        self.queue = Queue(self.journal, on_failure=self.on_failure)
        self._tasks: dict[str, Task] = {}
        self._changed = threading.Condition()
        self._wanted = threading.Event()
        self._awaken: Callable[[], None] = lambda: None

    def run(self, stop: threading.Event, *, once: bool = False) -> Counter[Outcome]:
        """Work until `stop` is set, or with `once` until nothing is available; what was done.

        Then every handler is told to stop and waited for, and what it did not finish goes back to
        the queue. Raises `StoreError` when the store cannot be used any more, after the same.
        """
        self._counts: Counter[Outcome] = Counter()
        log.info("started as %s, at most %d jobs at once", self.owner, self.concurrency)
        after = self.journal.head()
        with self.journal.follow(after=after, names=JOB_NAMES) as follower, self._renewing():
            self._awaken = follower.wake
            try:
                self._work(stop, follower, once)
            finally:
                self._drain()
        log.info("stopped")
        return self._counts

    def _work(self, stop: threading.Event, follower: Follower, once: bool) -> None:
        while not stop.is_set():
            self._wanted.clear()
            # one that ends while this looks leaves room for others that were not looked for
            busy = bool(self._tasks)
            try:
                idle = self._look() == 0
            except (StoreError, OutcomeUnknown, Conflict) as error:
                if isinstance(error, StoreError) and not error.retryable:
                    raise
                log.error("the queue cannot be used: %s", error)
                idle = False
            if idle and once and not busy:
                return
            self._wait(stop, follower)

    def _wait(self, stop: threading.Event, follower: Follower) -> None:
        """Until something happens to a job or a handler ends, and no longer than a poll."""
        end = time.monotonic() + self.poll_seconds
        while not (stop.is_set() or self._wanted.is_set()):
            left = end - time.monotonic()
            if left <= 0 or follower.batch(left):
                return

    def _look(self) -> int:
        """Sweep, stop what is cancelled, and begin what is available; how many those are."""
        for swept in self.queue.sweep(actor=self.owner):
            log.warning("the lease of job %s ran out: it is %s", swept.id, swept.state.status.value)
        with self._changed:
            tasks = dict(self._tasks)
        for job_id, version in self.queue.versions(tasks).items():
            if version != tasks[job_id].job.version:
                tasks[job_id].lose()
        leased = self._leased(tasks)
        for job in leased:
            self._begin(job)
        return len(leased)

    def _leased(self, tasks: Mapping[str, Task]) -> list[Loaded[Job]]:
        """As many more jobs as there is room for, those of limited categories first."""
        busy = Counter(task.job.state.category for task in tasks.values())
        limited = [name for name in self.limits if self._takes(name)]
        leased: list[Loaded[Job]] = []
        for name in limited:
            room = self.concurrency - len(tasks) - len(leased)
            limit = min(room, self.limits[name] - busy[name])
            leased += self._lease(tasks, limit, categories=[name])
        room = self.concurrency - len(tasks) - len(leased)
        return leased + self._lease(tasks, room, categories=self.categories, without=limited)

    def _takes(self, category: str) -> bool:
        return self.categories is None or category in self.categories

    def _lease(self, tasks: Mapping[str, Task], limit: int, **which: Any) -> list[Loaded[Job]]:
        if limit <= 0:
            return []
        # A handler whose lease is lost may still run: nobody begins its job beside it here.
        return self.queue.lease(
            self.owner, limit=limit, seconds=self.lease_seconds, besides=tasks, **which
        )

    def _begin(self, job: Loaded[Job]) -> None:
        task = Task(self.queue, job, self.owner, self.lease_seconds)
        with self._changed:
            self._tasks[task.job_id] = task
        threading.Thread(
            target=self._attempt, args=(task,), name=f"job-{task.job_id}", daemon=True
        ).start()

    def _attempt(self, task: Task) -> None:
        """One attempt from its first to its last event, in a thread of its own."""
        work = _work_of(task)
        log.debug("job %s begins, attempt %d", work.job_id, work.attempt)
        try:
            outcome, error = task.carry_out(lambda: self._handle(work))
            self._tell(Done(work.job_id, work.event_type, work.attempt, outcome, error))
        except Exception as error:
            known = isinstance(error, StoreError | OutcomeUnknown)
            log.error(
                "job %s: how it ended is not recorded; its lease runs out (%s)",
                work.job_id,
                escaped(str(error))[:_SHOWN],
                exc_info=None if known else error,
            )
        finally:
            with self._changed:
                del self._tasks[task.job_id]
                self._changed.notify_all()
            self._wanted.set()
            self._awaken()

    def _handle(self, work: Work) -> None:
        handler = self.handlers.get(work.event_type)
        if handler is None:
            raise LookupError(f"there is no handler for {work.event_type}")
        handler(work)

    def _tell(self, done: Done) -> None:
        log.log(_LEVELS[done.outcome], "job %s: %s%s", done.job_id, done.outcome, _because(done))
        with self._changed:
            self._counts[done.outcome] += 1
        if self.on_done is not None:
            self.on_done(done)

    def _drain(self) -> None:
        """Tell the handlers to stop, and wait for them."""
        with self._changed:
            if self._tasks:
                log.info("stopping: %d jobs finish or go back first", len(self._tasks))
            for task in self._tasks.values():
                task.stop.set()
            self._changed.wait_for(lambda: not self._tasks)

    @contextmanager
    def _renewing(self) -> Iterator[None]:
        """Renew every lease three times in its time, whatever the handlers and the queue do."""
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(self.lease_seconds / 3):
                with self._changed:
                    tasks = list(self._tasks.values())
                for task in tasks:
                    task.renew()

        thread = threading.Thread(target=renew, name="leases", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _work_of(task: Task) -> Work:
    job = task.job.state
    return Work(
        task.job_id,
        job.event_type,
        job.aggregate_id,
        job.payload,
        job.attempts,
        task.stop,
        task.job.guard(),
    )


def _because(done: Done) -> str:
    return "" if done.error is None else f" ({escaped(done.error)[:_SHOWN]})"
