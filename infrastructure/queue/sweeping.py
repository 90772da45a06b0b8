"""Taking back the jobs whose leases have run out (2.4, P11)."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import NamedTuple

from statelog.domain.aggregate import Loaded
from statelog.domain.errors import Conflict, IllegalTransition, StoreError, Unreadable
from statelog.domain.queue import job as jobs
from statelog.domain.queue.job import JOB, Job
from statelog.infrastructure.journal import TRIES, Journal
from statelog.infrastructure.queue.ends import Ends
from statelog.infrastructure.queue.following import Following
from statelog.projections.queue.board import Board

log = logging.getLogger("statelog.queue")


class _Overdue(NamedTuple):
    """A lease that has run out by its event; `renewed` is when it ends by its row, if any."""

    job_id: str
    version: int
    renewed: int | None


class Sweeper:
    """Takes each expired lease away, so that it cannot be renewed, and then says so in the log.

    Whoever ends in between leaves a lease that is taken and a job that is leased: the next sweep
    goes on with it.
    """

    def __init__(self, journal: Journal, following: Following, ends: Ends) -> None:
        self._journal = journal
        self._following = following
        self._ends = ends

    def sweep(self, actor: str) -> list[Loaded[Job]]:
        """What became of the jobs. Raises `StoreError`; the next sweep looks again."""
        with self._following.board() as board:
            now = self._journal.clock()
            overdue = board.overdue(now)
            if not overdue:
                return []
            try:
                return self._swept(board, overdue, now, actor)
            except StoreError:
                for job_id, version in overdue:
                    board.runs_until(job_id, version, now)
                raise

    def _swept(
        self, board: Board, overdue: list[tuple[str, int]], now: int, actor: str
    ) -> list[Loaded[Job]]:
        rows = {lease.stream: lease for lease in self._journal.leases.all()}
        swept: list[Loaded[Job]] = []
        for job_id, version in overdue:
            row = rows.get(JOB.stream_of(job_id))
            renewed = row.expires_at if row and row.version == version else None
            try:
                swept += self._expired(board, _Overdue(job_id, version, renewed), now, actor)
            except (Unreadable, IllegalTransition) as error:
                log.error("job %s is left alone: %s", job_id, error)
                board.forget(job_id)
        if any(row.expires_at <= now for row in rows.values()):
            self._journal.leases.forget(now)
        return swept

    def _expired(self, board: Board, lease: _Overdue, now: int, actor: str) -> list[Loaded[Job]]:
        """The job without its owner; nothing when the lease runs on or is no more."""
        job_id, version, renewed = lease
        if renewed is not None and renewed > now:
            board.runs_until(job_id, version, renewed)
            return []
        for _ in range(TRIES):
            loaded = self._journal.load(JOB, job_id)
            if not self._journal.leases.take(loaded.stream, version, now):
                break
            change = loaded.decide(jobs.expire, now=now, expires_at=renewed)
            with suppress(Conflict):
                return [self._ends.commit(change, actor)]
        board.runs_until(job_id, version, now)
        return []
