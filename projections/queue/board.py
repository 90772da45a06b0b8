"""The board: the jobs that are not over, in the order in which they are to be leased (2.4)."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from statelog.domain.event import Recorded
from statelog.domain.queue.job import Job, JobStatus
from statelog.projections.queue.jobs import after, job_of


class Waiting(NamedTuple):
    """A pending job's place in the order: priority, then availability, then age."""

    rank: int
    available_at: int
    created_at: int
    position: int
    job_id: str
    version: int


class Ending(NamedTuple):
    """When a job has to be looked at again: its pause or its lease is over then."""

    at: int
    position: int
    job_id: str
    version: int


@dataclass(frozen=True)
class Entry:
    """A live job without its payload, the version it is of, and its last event's position."""

    job: Job
    version: int
    position: int


class Board:
    """Live jobs, folded from the log as it grows; one owner at a time may use it.

    Times are arguments, so it sees no clock. What is out of date in its heaps is left there until
    it comes up, as the version tells.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.reached = 0
        """The time that the log has reached: it never goes back, as a clock may that is set."""
        self._ready: dict[str, list[Waiting]] = {}
        self._later: list[Ending] = []
        self._leases: list[Ending] = []

    def note(self, recorded: Recorded) -> None:
        """Fold an event of a job in. Raises `Unreadable`; the job is then unknown."""
        self.reached = max(self.reached, recorded.time)
        job_id = job_of(recorded.stream)
        if job_id is None:
            return
        before = self.entries.pop(job_id, None)
        if before is None and recorded.version > 1:
            return
        job = after(before.job if before else Job(), recorded.event)
        if job.ended:
            return
        self.entries[job_id] = Entry(job, recorded.version, recorded.position)
        if job.status is JobStatus.PENDING:
            at = job.available_at
            heappush(self._later, Ending(at, recorded.position, job_id, recorded.version))
        elif job.lease_expires_at is not None:
            self.runs_until(job_id, recorded.version, job.lease_expires_at)

    def runs_until(self, job_id: str, version: int, expires_at: int) -> None:
        """Look at a lease again when it ends."""
        entry = self.entries.get(job_id)
        if entry is not None:
            heappush(self._leases, Ending(expires_at, entry.position, job_id, version))

    def forget(self, job_id: str) -> None:
        """Let nobody lease a job that cannot be read."""
        self.entries.pop(job_id, None)

    def due(
        self, now: int, categories: Collection[str] | None = None, without: Collection[str] = ()
    ) -> Generator[str, None, None]:
        """Available jobs in order, of some categories (default: all) `without` others.

        What is not leased stays where it is, also when the caller has enough; so close it.
        """
        self._ripen(now)
        heaps = [
            heap
            for category, heap in self._ready.items()
            if (categories is None or category in categories) and category not in without
        ]
        offered: list[tuple[list[Waiting], Waiting]] = []
        try:
            while filled := [heap for heap in heaps if heap]:
                heap = min(filled, key=lambda each: each[0])
                first = heappop(heap)
                if self._is(first.job_id, first.version):
                    offered.append((heap, first))
                    yield first.job_id
        finally:
            for heap, each in offered:
                heappush(heap, each)

    def overdue(self, now: int) -> list[tuple[str, int]]:
        """Jobs and versions whose leases are over, unless renewed since; each is told once.

        Whoever finds that one still runs says so to `runs_until`.
        """
        found = []
        while self._leases and self._leases[0].at <= now:
            ending = heappop(self._leases)
            if self._is(ending.job_id, ending.version):
                found.append((ending.job_id, ending.version))
        return found

    def version_of(self, job_id: str) -> int | None:
        """The version of a live job."""
        entry = self.entries.get(job_id)
        return None if entry is None else entry.version

    def jobs(self) -> Mapping[str, Job]:
        """Every live job."""
        return {job_id: entry.job for job_id, entry in self.entries.items()}

    def _is(self, job_id: str, version: int) -> bool:
        entry = self.entries.get(job_id)
        return entry is not None and entry.version == version

    def _ripen(self, now: int) -> None:
        while self._later and self._later[0].at <= now:
            ending = heappop(self._later)
            if self._is(ending.job_id, ending.version):
                job = self.entries[ending.job_id].job
                heap = self._ready.setdefault(job.category, [])
                place = (-job.priority, job.available_at, job.created_at, ending.position)
                heappush(heap, Waiting(*place, ending.job_id, ending.version))
