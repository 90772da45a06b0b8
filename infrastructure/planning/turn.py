"""Whose turn it is: one session at a time in the whole store, and what ends a turn early (P11)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from statelog.domain.errors import StatelogError
from statelog.domain.planning.session import SESSION, Cancelled
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.worker import Interrupted

KIND, TOKEN = "planning", "session"
LOOK_S: Final = 0.05
"""How long a computation goes on at most after its session was cancelled, if it reports."""


class CalledOff(StatelogError):
    """The session was cancelled, or has ended otherwise, while it was worked on."""

    def __str__(self) -> str:
        return "the session has ended"


@contextmanager
def turn(journal: Journal, watch: Watch, *, poll_seconds: float = LOOK_S) -> Iterator[None]:
    """Hold the turn; waits while a living process has it. Raises `Interrupted`, `CalledOff`."""
    holders = Holders.for_journal(journal)
    while (holder := holders.try_take(KIND, TOKEN)) is None:
        watch.stop.wait(poll_seconds)
        watch.look()
    with holder:
        yield


class Watch:
    """Looks whether work on a session should end: its worker stops, or somebody cancelled it.

    Looking costs next to nothing: the log is asked for what came since the last look, and not
    more often than every `LOOK_S` seconds.
    """

    def __init__(self, journal: Journal, session_id: str, stop: threading.Event) -> None:
        self.stop = stop
        self._follower = journal.follow(
            after=journal.head(),
            prefix=SESSION.stream_of(session_id),
            names={Cancelled.stored_name},
        )
        self._cancelled = False
        self._next = 0.0

    def look(self) -> None:
        """Raises `Interrupted` or `CalledOff` when it is time to end."""
        if self.stop.is_set():
            raise Interrupted(
                "planning was interrupted; the session goes on with the next delivery"
            )
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LOOK_S
            self._cancelled = self._cancelled or bool(self._follower.ready())
        if self._cancelled:
            raise CalledOff

    def close(self) -> None:
        """Stop looking."""
        self._follower.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
