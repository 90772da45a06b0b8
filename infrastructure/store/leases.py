"""Leases: rows beside the log that say until when somebody may go on with a stream.

A lease is of one version of a stream and means nothing once the stream has moved on. Whoever wants
to end an expired one takes it first, so that no renewal can come between that and the event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from statelog.infrastructure.store.turn import told

if TYPE_CHECKING:
    from statelog.infrastructure.store.recorder import LogRecorder

TAKEN: Final = ""
"""The owner of a lease that was taken away."""


class Lease(NamedTuple):
    """One row of `leases`; `expires_at` in microseconds, UTC."""

    stream: str
    version: int
    owner: str
    expires_at: int


class Leases:
    """The leases of one log. A row is there once a lease was renewed or taken for the first time.

    Every method raises `StoreError`.
    """

    def __init__(self, log: LogRecorder) -> None:
        self._log = log

    def renew(self, stream: str, version: int, owner: str, expires_at: int) -> bool:
        """Let a lease end later; no when it was taken or its stream has moved on.

        One that is to end earlier than it does ends when it does.
        """
        with told(self._log.turn(durable=False)) as turn:
            if turn.version(stream) != version:
                return False
            found = turn.lease(stream)
            if found and found.version == version:
                if found.owner != owner:
                    return False
                expires_at = max(expires_at, found.expires_at)
            turn.put_lease(Lease(stream, version, owner, expires_at))
            return True

    def take(self, stream: str, version: int, now: int) -> bool:
        """Take a lease away for ever; no when it runs by its row, or its stream has moved on.

        A lease without a row has never been renewed: the caller knows when it ends.
        """
        with told(self._log.turn(durable=False)) as turn:
            if turn.version(stream) != version:
                return False
            found = turn.lease(stream)
            if found and found.version == version and found.expires_at > now:
                return False
            turn.put_lease(Lease(stream, version, TAKEN, now))
            return True

    def all(self) -> Sequence[Lease]:
        """Every row, also those of leases that are over."""
        return self._log.leases()

    def forget(self, now: int) -> None:
        """Remove the rows of leases that are over: expired, and their streams have moved on."""
        self._log.forget_leases(now)
