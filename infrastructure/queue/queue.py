"""The queue of one store: jobs published, leased and ended through its journal (2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import Conflict, NotFound
from statelog.domain.queue import job as jobs
from statelog.domain.queue.job import JOB, MAX_ATTEMPTS, Job, keyed_id
from statelog.infrastructure.journal import Journal

ACTOR = "queue"


class Queue:
    """Jobs of one journal. Threads may share it. Times are microseconds UTC, leases seconds."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def publication(
        self,
        *,
        category: str,
        event_type: str,
        payload: Mapping[str, Any],
        job_id: str = "",
        aggregate_type: str = "",
        aggregate_id: str = "",
        priority: int = 0,
        available_at: int | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        key: str = "",
    ) -> Change[Job]:
        """The change that publishes a job, to be committed together with others.

        It has no events when the key was published before. With a key the id follows from it;
        without one and without `job_id` it is random. Raises `Invalid`, `Refused` (`job_id`).
        """
        id = keyed_id(key or self.journal.new_id()) if key or not job_id else job_id
        return self.journal.load(JOB, id).decide(
            jobs.publish,
            category=category,
            event_type=event_type,
            aggregate_type=aggregate_type,
            aggregate_id=aggregate_id,
            payload=payload,
            priority=priority,
            available_at=available_at,
            max_attempts=max_attempts,
            key=key,
            now=self.journal.clock(),
        )

    def publish(self, *, actor: str = ACTOR, **given: Any) -> Loaded[Job]:
        """Publish a job, given as to `publication`; the first job when its key was used before."""
        try:
            return self._publish(actor, given)
        except Conflict:
            # The first version of a stream was taken: so the job is there now.
            return self._publish(actor, given)

    def _publish(self, actor: str, given: Mapping[str, Any]) -> Loaded[Job]:
        change = self.publication(**given)
        if change.events:
            self.journal.commit(change, actor=actor)
        return change.after

    def get(self, job_id: str) -> Loaded[Job]:
        """A job. Raises `NotFound`."""
        found = self.journal.load(JOB, job_id)
        if not found.version:
            raise NotFound("job", job_id)
        return found
