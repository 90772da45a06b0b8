"""One view: its projection, where its rows are, and what it needs of a log."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from statelog.domain.event import Recorded
from statelog.infrastructure.follow import Follower
from statelog.infrastructure.view_rows import RowFormat
from statelog.infrastructure.view_store import Mark, ViewStore
from statelog.projections.projection import Projection

S = TypeVar("S")

KEPT = 32


class Log(Protocol):
    """What views need of a journal."""

    @property
    def store(self) -> Path | None:
        """The file of the log, None in memory and in PostgreSQL."""

    @property
    def views_path(self) -> Path | None:
        """The file of its views, None for a log in memory."""

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written beside it."""

    def head(self) -> int:
        """The last position."""

    def read(
        self,
        *,
        after: int = 0,
        upto: int | None = None,
        names: Collection[str] | None = None,
        limit: int | None = None,
    ) -> Iterator[Recorded]:
        """Events with after < position <= upto and one of these names, in order."""

    def follow(self, *, after: int = 0) -> Follower:
        """Tells when there are events after a position."""


class View(Generic[S]):
    """One projection and where its rows are kept.

    The states of the rows folded last are remembered, so that a growing one is not decoded again
    for each event; they count only while the stored view is where this process left it. It is
    `parked` where an event stopped it: the same code would fail there again.
    """

    def __init__(self, projection: Projection[S], store: ViewStore) -> None:
        self.projection = projection
        self.name = projection.name
        self.version = projection.version
        self.format = RowFormat(projection)
        self.store = store
        self._kept: dict[str, S | None] = {}
        self._kept_at: tuple[int, int, bytes] | None = None
        self.parked: Mark | None = None

    def taken(self, mark: Mark) -> dict[str, S | None]:
        """The remembered states at a mark; they are forgotten until `keep` is told better."""
        kept = self._kept if self._kept_at == mark.place else {}
        self._kept, self._kept_at = {}, None
        return kept

    def keep(self, mark: Mark, states: dict[str, S | None]) -> None:
        """Remember the newest of these states, those of the view at a mark."""
        newest = list(states.items())[-KEPT:]
        self._kept, self._kept_at = dict(newest), mark.place


def hash_at(log: Log, position: int) -> bytes:
    """The hash of the event at a position; empty at 0 and beyond the end."""
    at = log.read(after=position - 1, upto=position) if position else iter(())
    return next((recorded.hash for recorded in at), b"")
