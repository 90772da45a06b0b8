"""A turn to write: alone with the log, from the lock to the commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from statelog.infrastructure.store.row import Row

if TYPE_CHECKING:
    from statelog.infrastructure.store.leases import Lease


class CommitFailed(Exception):
    """COMMIT raised; its cause is the `StoreError`, and the rows may be there or not."""


class OutOfDate(Exception):
    """What a turn believed of the end of the log was not so; the next one asks."""


class Turn(Protocol):
    """A write transaction, alone with the log: committed at the end of its `with` block."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def head(self) -> tuple[int, int]:
        """Last position and its time, zeros for an empty log."""

    def version(self, stream: str, expected: int | None = None) -> int:
        """Last version of a stream, 0 when it has none; it is asked because of the `expected`."""

    def by_command(self, command: str) -> Sequence[Row]:
        """Rows of a command in log order."""

    def insert(self, rows: Sequence[Row]) -> None:
        """Add rows. Raises eventsourcing's `IntegrityError` for a version that is taken."""

    def erase(self, positions: Sequence[int]) -> None:
        """Let the payloads of these events go; their headers and hashes stay."""

    def put_back(self, payloads: Mapping[int, bytes]) -> None:
        """Put payloads back where none is."""

    def lease(self, stream: str) -> Lease | None:
        """The row of a stream's lease."""

    def put_lease(self, lease: Lease) -> None:
        """Add or replace the row of a stream's lease."""


T = TypeVar("T", bound=Turn)


@contextmanager
def told(turn: T) -> Iterator[T]:
    """A turn whose failed commit raises its cause, as when it does not matter whether it landed."""
    try:
        with turn as entered:
            yield entered
    except CommitFailed as failed:
        assert failed.__cause__ is not None
        raise failed.__cause__ from None
