"""The queue of one store: jobs published, leased and ended through its journal (2.4)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import Any, Final

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import (
    Conflict,
    IllegalTransition,
    NotFound,
    Refused,
    StoreError,
    Unreadable,
)
from statelog.domain.event import Event
from statelog.domain.queue import job as jobs
from statelog.domain.queue.job import JOB, MAX_ATTEMPTS, Job, keyed_id
from statelog.infrastructure.journal import TRIES, Journal
from statelog.infrastructure.queue.ends import Ends, OnFailure
from statelog.infrastructure.queue.following import Following
from statelog.infrastructure.queue.sweeping import Sweeper
from statelog.projections.plain import escaped
from statelog.projections.queue.board import Board

log = logging.getLogger("statelog.queue")

ACTOR: Final = "queue"
LEASE_S: Final = 30.0


class Queue:
    """Jobs of one journal. Threads may share it, and a forked child may use its parent's.

    Times are microseconds UTC, leases seconds. `on_failure` says by event type what else is to be
    recorded when a job fails for good.
    """

    def __init__(
        self, journal: Journal, *, on_failure: Mapping[str, OnFailure] | None = None
    ) -> None:
        self.journal = journal
        self._following = Following(journal)
        self._ends = Ends(journal, dict(on_failure or {}))
        self._sweeper = Sweeper(journal, self._following, self._ends)

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

    def jobs(self) -> Mapping[str, Job]:
        """Every pending and leased job by id, without payloads."""
        with self._following.board() as board:
            return board.jobs()

    def versions(self, job_ids: Collection[str]) -> Mapping[str, int | None]:
        """At which versions these jobs are; None for what has ended."""
        with self._following.board() as board:
            return {job_id: board.version_of(job_id) for job_id in job_ids}

    def lease(
        self,
        owner: str,
        *,
        categories: Collection[str] | None = None,
        without: Collection[str] = (),
        limit: int = 1,
        seconds: float = LEASE_S,
        besides: Collection[str] = (),
    ) -> list[Loaded[Job]]:
        """Lease up to `limit` available jobs: by priority, then availability, then age.

        Only those of `categories`, if given, and none of the categories in `without`.

        The version of each is the lease: it is what `complete`, `fail` and `renew` compare. A job
        that another owner was faster with is left to them, and so are those of `besides`.
        A clock that was set back makes nobody wait for what the log has reached.
        """
        with self._following.board() as board:
            clock = self.journal.clock()
            now, ends = max(clock, board.reached), clock + _us(seconds)
            with closing(board.due(now, categories, without)) as due:
                wanted = (job_id for job_id in due if job_id not in besides)
                asked = (self._asked(board, job_id, owner, now, ends) for job_id in wanted)
                changes = (change for change in asked if change is not None)
                found: list[Loaded[Job]] = []
                try:
                    while more := list(islice(changes, limit - len(found))):
                        self._commit_all(more, owner, found)
                except StoreError:
                    # What is leased already has to be worked on, whatever happens to the others.
                    if not found:
                        raise
            return found

    def _asked(
        self, board: Board, job_id: str, owner: str, now: int, ends: int
    ) -> Change[Job] | None:
        try:
            loaded = self.journal.load(JOB, job_id)
            return loaded.decide(jobs.lease, owner=owner, now=now, expires_at=ends)
        except Refused:
            return None
        except (Unreadable, IllegalTransition) as error:
            log.error("job %s is left alone: %s", job_id, error)
            board.forget(job_id)
            return None

    def _commit_all(
        self, changes: Sequence[Change[Job]], owner: str, leased: list[Loaded[Job]]
    ) -> None:
        """All in one append; one by one when another owner got some of them."""
        try:
            self.journal.commit(*changes, actor=owner)
        except Conflict:
            if len(changes) > 1:
                for change in changes:
                    self._commit_all([change], owner, leased)
        else:
            leased += [change.after for change in changes]

    def renew(
        self, job_id: str, owner: str, *, lease: int | None = None, seconds: float = LEASE_S
    ) -> int:
        """Let a lease run from now on for so long; when it ends.

        `lease` is the version of the job as `lease` answered it: with it, no other lease of the
        same owner is meant. Raises `Refused` (`job_ended`, `job_owner`, `job_lease`), `NotFound`.
        """
        before = self.get(job_id)
        ends = self.journal.clock() + _us(seconds)
        with self._noting(before, owner):
            before.decide(_nothing, owner=owner)
            if not self.renewed(before, owner, ends, lease=lease):
                raise _lost()
        return ends

    def renewed(self, job: Loaded[Job], owner: str, ends: int, *, lease: int | None = None) -> bool:
        """As `renew` to a moment, of a job that was read; no, without a trace, when it is lost."""
        version = job.version if lease is None else lease
        return self.journal.leases.renew(job.stream, version, owner, ends)

    def complete(self, job_id: str, owner: str, *, lease: int | None = None) -> Loaded[Job]:
        """Say that the work is done. Raises as `renew`; with `lease` it may be said again."""
        return self._end(job_id, owner, lease, jobs.complete)

    def fail(self, job_id: str, owner: str, error: str, *, lease: int | None = None) -> Loaded[Job]:
        """Say that the attempt failed; another follows after a pause unless it was the last.

        Raises as `renew`; with `lease` it may be said again.
        """
        return self._end(job_id, owner, lease, jobs.fail, error=escaped(error))

    def give_back(
        self, job_id: str, owner: str, reason: str, *, lease: int | None = None
    ) -> Loaded[Job]:
        """Return a job unfinished, because its worker stops: the attempt does not count.

        Raises as `renew`; with `lease` it may be said again.
        """
        return self._end(job_id, owner, lease, jobs.give_back, reason=escaped(reason))

    def cancel(self, job_id: str, *, actor: str = ACTOR) -> Loaded[Job]:
        """Let nobody do the work; a worker that has it is told to stop.

        Raises `Refused` (`job_ended`), `NotFound`.
        """
        self.get(job_id)
        now = self.journal.clock()
        return self.journal.execute(JOB, job_id, jobs.cancel, actor=actor, now=now).loaded[0]

    def sweep(self, *, actor: str = ACTOR) -> list[Loaded[Job]]:
        """Take the jobs whose leases have run out from their owners (P11); what became of them."""
        return self._sweeper.sweep(actor)

    def _end(
        self,
        job_id: str,
        owner: str,
        lease: int | None,
        decision: Callable[..., Sequence[Event]],
        **given: Any,
    ) -> Loaded[Job]:
        """Decide and commit; a command of its own lets one lease be ended once, however often."""
        command = None if lease is None else f"{decision.__name__} {job_id}@{lease}"
        for left in reversed(range(TRIES)):
            before = self.get(job_id)
            if command is not None and self.journal.find(command):
                return before
            with self._noting(before, owner):
                now = self.journal.clock()
                change = before.decide(decision, owner=owner, now=now, **given)
                if lease not in (None, before.version):
                    raise _lost()
            try:
                return self._ends.commit(change, owner, command)
            except Conflict:
                if not left:
                    raise
        raise AssertionError("unreachable")

    @contextmanager
    def _noting(self, job: Loaded[Job], owner: str) -> Iterator[None]:
        """Keep a refusal as evidence (P1)."""
        try:
            yield
        except Refused as no:
            with suppress(StoreError):
                self.journal.refuse(
                    actor=owner,
                    stream=job.stream,
                    version=job.version,
                    command=None,
                    rule=no.rule,
                    reason=no.reason,
                )
            raise


def _nothing(job: Job, *, owner: str) -> list[Event]:
    jobs.held(job, owner=owner)
    return []


def _lost() -> Refused:
    return Refused("this lease of the job is over", rule="job_lease")


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
