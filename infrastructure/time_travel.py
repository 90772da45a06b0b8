"""What a view was at any position: folded from the log, with nothing kept in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from statelog.domain.errors import StatelogError, Unreadable
from statelog.domain.event import Recorded
from statelog.projections.projection import Projection
from statelog.projections.replay import Documents, Fault, Fold, Made

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal

S = TypeVar("S")

EVERY = 10_000


class Past(Generic[S]):
    """A projection, or one row of it, as it was after a position; at first before all events.

    One row is folded from the streams that its projection says its events are below, which takes
    milliseconds in a log of any size; else the log is read from its beginning. `watch` is told a
    position and the last one, now and then.
    """

    def __init__(
        self,
        journal: Journal,
        projection: Projection[S],
        key: str | None = None,
        *,
        watch: Callable[[int, int], None] | None = None,
    ) -> None:
        self.journal = journal
        self.projection = projection
        self.key = key
        self.watch = watch
        self.position = 0
        self._fold = Fold(projection)
        self._made: Made = {}

    def at(self, position: int) -> Past[S]:
        """The same at another position: folded on from here, or from the beginning when before.

        Raises `Unreadable` naming the event that cannot be folded.
        """
        onwards = position >= self.position
        other = Past(self.journal, self.projection, self.key, watch=self.watch)
        after = self.position if onwards else 0
        other._made = self._made
        if onwards:
            other._fold = self._fold.copy()
        fault = other._fold.run(other._watched(other.events(after, position), position))
        if fault is not None:
            raise _unreadable(self.projection, fault)
        if key_erased := None if self.key is None else other._fold.torn(position).get(self.key):
            raise _erased(self.projection, key_erased, self.key or "")
        other.position = position
        return other

    @property
    def unknown(self) -> Mapping[str, str]:
        """Rows that nobody can tell any more as of this position, and why."""
        torn = self._fold.torn(self.position)
        return {key: _erased(self.projection, recorded, key).why for key, recorded in torn.items()}

    def events(self, after: int, upto: int) -> Iterator[Recorded]:
        """The events of the view, or of its row, with after < position <= upto."""
        view, key, names = self.projection, self.key, self.projection.names
        if key is None:
            return self.journal.read(after=after, upto=upto, names=names)
        prefix = view.below(key)
        if prefix is None:
            found = self.journal.read(after=after, upto=upto, names=names)
        else:
            found = self.journal.history(prefix, after=after, upto=upto, names=names)
        return (recorded for recorded in found if view.key(recorded) == key)

    def _watched(self, events: Iterator[Recorded], upto: int) -> Iterator[Recorded]:
        if self.watch is None:
            return events
        return _telling(events, upto, self.watch)

    @property
    def documents(self) -> Documents[S]:
        """The documents by key, at most one when it is one row."""
        return self._fold.documents(self._made, self.position)

    @property
    def document(self) -> dict[str, Any] | None:
        """The document of the one row; None when it is not there or not shown."""
        return None if self.key is None else self.documents.get(self.key)


def _telling(
    events: Iterator[Recorded], upto: int, watch: Callable[[int, int], None]
) -> Iterator[Recorded]:
    for number, recorded in enumerate(events, 1):
        if number % EVERY == 0:
            watch(recorded.position, upto)
        yield recorded


def _erased(projection: Projection[Any], recorded: Recorded, key: str) -> Unreadable:
    kept = recorded.kept(projection, key)
    why = f"its payload was erased, as event {kept.by} says; rows are known from {kept.upto} on"
    return Unreadable(recorded.position, recorded.name, why)


def _unreadable(projection: Projection[Any], fault: Fault) -> StatelogError:
    error = fault.error
    if isinstance(error, Unreadable):
        return error
    why = f"view {projection.name} raises {type(error).__name__}: {error}"
    told = Unreadable(fault.position, fault.name, why)
    told.__cause__ = error
    return told
