"""Catching up one view with the log, a chunk a transaction; and making it anew."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from statelog.domain.errors import Invalid
from statelog.domain.event import Recorded
from statelog.infrastructure.view_rows import RowFormat, Unrenderable
from statelog.infrastructure.view_store import Mark, ViewStore
from statelog.projections.projection import Projection
from statelog.projections.replay import Fault, Fold

S = TypeVar("S")

CHUNK = 2000
BATCH = 20_000
KEPT = 32


class Log(Protocol):
    """What views need of a journal."""

    @property
    def store(self) -> Path | None:
        """The file of the log, None in memory."""

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


class View(Generic[S]):
    """One projection and where its rows are kept.

    The states of the rows folded last are remembered, so that a growing one is not decoded again
    for each event; they count only while the stored view is where this process left it.
    """

    def __init__(self, projection: Projection[S], store: ViewStore) -> None:
        self.projection = projection
        self.name = projection.name
        self.version = projection.version
        self.format = RowFormat(projection)
        self.store = store
        self._kept: dict[str, S | None] = {}
        self._kept_at: tuple[int, int, bytes] | None = None

    def taken(self, mark: Mark) -> dict[str, S | None]:
        """The remembered states at a mark; they are forgotten until `keep` is told better."""
        kept = self._kept if self._kept_at == mark.place else {}
        self._kept, self._kept_at = {}, None
        return kept

    def keep(self, mark: Mark, states: dict[str, S | None]) -> None:
        """Remember the newest of these states, those of the view at a mark."""
        newest = list(states.items())[-KEPT:]
        self._kept, self._kept_at = dict(newest), mark.place


def catch_up(view: View[Any], log: Log) -> bool:
    """Bring a stored view to the end of the log; False when a newer release keeps it.

    It is made anew when it is missing, of an older version or other columns, or was made from
    another log than this one. Raises `StoreError`.
    """
    goal = log.head()
    while True:
        mark = view.store.mark(view.name)
        if mark is not None and mark.version > view.version:
            return False
        if mark is None or not _continues(view, log, mark):
            rebuild(view, log, instead_of=mark)
        elif mark.position >= goal:
            return True
        else:
            try:
                reached = _advance(view, log, mark, goal)
            except Invalid:
                # A stored state that is none of this projection's, whose version says it is.
                rebuild(view, log, instead_of=mark)
                reached = view.store.mark(view.name)
            if reached is not None and reached.error:
                return True


def _continues(view: View[Any], log: Log, mark: Mark) -> bool:
    """Whether the rest of the log can be folded into what is stored.

    Asked of the log by position: others may have moved the mark past any head read before it.
    """
    return (
        mark.version == view.version
        and _hash(log, mark.position) == mark.hash
        and view.store.fits(view.format)
    )


def _hash(log: Log, position: int) -> bytes:
    """The hash of the event at a position; empty at 0 and beyond the end."""
    at = log.read(after=position - 1, upto=position) if position else iter(())
    return next((recorded.hash for recorded in at), b"")


def _advance(view: View[S], log: Log, mark: Mark, goal: int) -> Mark | None:
    """Fold one chunk; None when another process moved the view meanwhile."""
    store, states = view.store, view.taken(mark)

    def before(key: str) -> S | None:
        if key in states:
            return states[key]
        stored = store.state(view.format, key)
        return None if stored is None else view.format.state(stored)

    fault: Fault | None = None
    upto = goal
    while True:
        with store.reading():
            if store.mark(view.name) != mark:
                return None
            events = list(
                log.read(after=mark.position, upto=upto, names=view.projection.names, limit=CHUNK)
            )
            fold = Fold(view.projection, before)
            fault = fold.run(events) or fault
        end = fault.position - 1 if fault else events[-1].position if len(events) == CHUNK else upto
        reached = Mark(view.version, end, _hash(log, end), str(fault) if fault else None)
        if reached == mark:
            return reached
        try:
            with store.writing():
                if store.mark(view.name) != mark:
                    return None
                gone = [key for key, state in fold.states.items() if state is None]
                store.save(view.format, view.format.rows(fold), gone, reached)
        except Unrenderable as failed:
            with store.reading():
                fault = view.format.first_fault(failed, Fold(view.projection, before), events)
            upto = fault.position - 1
            continue
        for key, state in fold.states.items():
            states.pop(key, None)
            states[key] = state
        view.keep(reached, states)
        return reached


def rebuild(
    view: View[Any],
    log: Log,
    progress: Callable[[str, int, int], None] | None = None,
    *,
    instead_of: Mark | Literal["any"] | None = "any",
) -> None:
    """Fold the log from its beginning, then replace the stored view in one transaction.

    While it folds, others read the old rows, append to the log, and catch up. With a mark it
    replaces nothing when somebody else moved the view meanwhile.
    """
    names = view.projection.names
    upto, fault = log.head(), None
    while True:
        fold: Fold[Any] = Fold(view.projection)
        with _collector_paused():
            for batch in _batches(log.read(upto=upto, names=names)):
                fault = fold.run(batch) or fault
                if progress:
                    progress(view.name, batch[-1].position, upto)
                if fold.fault:
                    upto = fold.fault.position - 1
                    break
        mark = Mark(view.version, upto, _hash(log, upto), str(fault) if fault else None)
        try:
            with view.store.writing():
                if instead_of not in ("any", view.store.mark(view.name)):
                    return
                view.store.replace(view.format, view.format.rows(fold), mark)
            return
        except Unrenderable as failed:
            events = log.read(upto=upto, names=names)
            fault = view.format.first_fault(failed, Fold(view.projection), events)
            upto = fault.position - 1


def _batches(events: Iterator[Recorded]) -> Iterable[list[Recorded]]:
    return iter(lambda: list(islice(events, BATCH)), [])


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Folding makes many objects and no cycles; looking for some would take a third longer."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
