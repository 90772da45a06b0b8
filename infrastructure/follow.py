"""Following the log: what is there, then what comes, without busy waiting."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Final, Self

from statelog.domain.event import Recorded
from statelog.domain.ids import is_below
from statelog.infrastructure.bell import Bell

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal

POLL_S: Final = 1.0
"""How long a lost ring can delay an event."""

_BATCH: Final = 5000


class Follower:
    """Reads a journal from a position on, in batches. Close it, or use it as a context manager.

    `prefix` and `names` bound what is answered; `position` is the last one that was looked at.
    """

    def __init__(
        self,
        journal: Journal,
        bell: Bell,
        *,
        after: int = 0,
        prefix: str | None = None,
        names: Collection[str] | None = None,
    ) -> None:
        self._journal = journal
        self._prefix = prefix
        self._names = names
        self.position = after
        self._bell = bell
        self._listener = bell.listen()

    def ready(self) -> list[Recorded]:
        """What was committed since the last look, at most 5,000 events; none when nothing was."""
        head = self._journal.head()
        if head <= self.position:
            return []
        upto = min(head, self.position + _BATCH)
        found = list(self._journal.read(after=self.position, upto=upto, names=self._names))
        self.position = upto
        if self._prefix is None:
            return found
        return [each for each in found if is_below(each.stream, self._prefix)]

    def batch(self, timeout_s: float = POLL_S) -> list[Recorded]:
        """As `ready`, but waits for a commit once there is nothing."""
        events = self.ready()
        if not events and self._journal.head() <= self.position:
            self._listener.wait(timeout_s)
            events = self.ready()
        return events

    def wait(self, timeout_s: float = POLL_S) -> bool:
        """Wait for a commit after `position`; whether there is one. Nothing is read or passed."""
        if self._journal.head() <= self.position:
            self._listener.wait(timeout_s)
        return self._journal.head() > self.position

    def events(self, stopped: Callable[[], bool]) -> Iterator[Recorded]:
        """Every event as it comes, until `stopped` says so; it is asked at least once a second."""
        while not stopped():
            yield from self.batch()

    def wake(self) -> None:
        """Let a waiting `batch` return, from any thread."""
        self._bell.ring()

    def close(self) -> None:
        """Stop listening. Safe to call twice."""
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
