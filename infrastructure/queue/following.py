"""The board of one process: follows the events of jobs, and nothing else of the log."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from statelog.domain.errors import Unreadable
from statelog.infrastructure.journal import Journal
from statelog.projections.queue.board import Board
from statelog.projections.queue.jobs import JOB_NAMES, job_of

log = logging.getLogger("statelog.queue")


class Following:
    """A board that is up to date whenever it is lent; to one thread at a time."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._board = Board()
        self._position = 0

    @contextmanager
    def board(self) -> Iterator[Board]:
        """The board as the log is now. Raises `StoreError`."""
        if self._pid != os.getpid():
            # Another thread of the parent may have had it at the moment of the fork.
            self._begin()
        with self._lock:
            self._catch_up()
            yield self._board

    def _catch_up(self) -> None:
        head = self._journal.head()
        if head <= self._position:
            return
        after = self._position
        for recorded in self._journal.history("job", after=after, upto=head, names=JOB_NAMES):
            try:
                if recorded.data is None:  # only an ended job is erased
                    self._board.forget(job_of(recorded.stream) or "")
                else:
                    self._board.note(recorded)
            except Unreadable as error:
                log.error("job %s is left alone: %s", job_of(recorded.stream), error)
            self._position = recorded.position
        self._position = head
