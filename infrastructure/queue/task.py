"""One lease that is being worked on: renewed, lost, and ended with what became of it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from statelog.domain.aggregate import Loaded
from statelog.domain.errors import Conflict, OutcomeUnknown, Refused, StoreError
from statelog.domain.queue.job import Job, JobStatus
from statelog.infrastructure.queue.queue import Queue

log = logging.getLogger("statelog.queue.worker")

_PAUSES_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class Outcome(StrEnum):
    """What became of one attempt."""

    COMPLETED, RETRIED, FAILED = "completed", "retried", "failed"
    RETURNED, LOST = "returned", "lost"


class Task:
    """A leased job in this process. Its version is its lease, so nobody else's is ever ended."""

    def __init__(self, queue: Queue, job: Loaded[Job], owner: str, seconds: float) -> None:
        self.job = job
        self.job_id = str(job.id)
        self.stop = threading.Event()
        self._queue = queue
        self._owner = owner
        self._seconds = seconds
        self._ends = job.state.lease_expires_at or 0
        self._lost = False
        self._ending = False

    def renew(self) -> None:
        """Let the lease run on; a store that cannot say so is believed in until the lease ends."""
        now = self._queue.journal.clock()
        ends = now + round(self._seconds * 1_000_000)
        try:
            if self._queue.renewed(self.job, self._owner, ends):
                self._ends = ends
            else:
                self.lose()
        except StoreError as error:
            log.error("the lease of job %s cannot be renewed: %s", self.job_id, error)
            if self._ends <= now:
                self.lose()

    def lose(self) -> None:
        """Tell the handler that the job is not its own any more; nothing once it is ending."""
        if self._ending:
            return
        if not self._lost:
            log.warning("the lease of job %s is lost", self.job_id)
        self._lost = True
        self.stop.set()

    def carry_out(self, handle: Callable[[], None]) -> tuple[Outcome, str | None]:
        """Work, and record how it ended; with the error if there was one.

        Raises `StoreError` or `OutcomeUnknown` when that cannot be recorded.
        """
        error: str | None = None
        try:
            handle()
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__
            log.debug("job %s: %s", self.job_id, error, exc_info=True)
        # From here on the job moves because this task moves it.
        self._ending = True
        if self._lost and error is not None:
            return Outcome.LOST, error
        try:
            return self._recorded(error), error
        except Refused as no:
            log.warning("job %s: its end comes too late: %s", self.job_id, no.reason)
            return Outcome.LOST, error or no.reason

    def _recorded(self, error: str | None) -> Outcome:
        """Again after a pause when the store is busy: the lease is renewed meanwhile."""
        for pause in _PAUSES_S:
            try:
                return self._record(error)
            except (Conflict, OutcomeUnknown):
                pass
            except StoreError as no:
                if not no.retryable:
                    raise
            time.sleep(pause)
        return self._record(error)

    def _record(self, error: str | None) -> Outcome:
        lease = self.job.version
        if error is None:
            self._queue.complete(self.job_id, self._owner, lease=lease)
            return Outcome.COMPLETED
        if self.stop.is_set():
            self._queue.give_back(self.job_id, self._owner, error, lease=lease)
            return Outcome.RETURNED
        ended = self._queue.fail(self.job_id, self._owner, error, lease=lease)
        final = ended.state.status is JobStatus.FAILED
        return Outcome.FAILED if final else Outcome.RETRIED
