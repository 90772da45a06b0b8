"""Blue/green: a view is folded beside the live one, and takes its place in one transaction."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Literal

from statelog.domain.event import Recorded
from statelog.infrastructure.view import Log, View, hash_at
from statelog.infrastructure.view_parts import lay_aside
from statelog.infrastructure.view_rows import Unrenderable
from statelog.infrastructure.view_store import Mark
from statelog.projections.replay import Fault, Fold

Progress = Callable[[str, int, int], None]
"""Told the view, the position that was folded, and the last one."""

BATCH = 20_000
NEAR = 2000
"""So few events may be left to fold while others cannot write views."""


def rebuild(
    view: View[Any],
    log: Log,
    progress: Progress | None = None,
    *,
    instead_of: Mark | Literal["any"] | None = "any",
) -> bool:
    """Fold the log from its beginning beside the stored view, then replace that at once.

    While it folds, others read the old rows, append to the log, and catch up; the new rows are
    never older than those they replace. False when it may not replace them: a newer release has
    the view by now, or, where a mark was given, somebody else moved it and its version is ours.
    """
    fault: Fault | None = None
    while True:
        green = _Green(view, log, fault)
        try:
            with _collector_paused():
                green.begin(progress)
                green.to(log.head(), progress)
                while green.fault is None and (head := log.head()) - green.upto > NEAR:
                    green.to(head, progress)
            return _swap(view, log, green, instead_of)
        except _Torn as torn:
            fault = torn.fault
        except Unrenderable as failed:
            events = log.read(upto=green.upto, names=view.projection.names)
            fault = view.format.first_fault(failed, Fold(view.projection), events)
        finally:
            if green.aside:
                view.store.unstage()


class _Torn(Exception):
    """A fault within what was erased; `fault` is where the view has to stop before it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


class _Green:
    """The view to be: folded up to a position, at most to the event before a known fault."""

    def __init__(self, view: View[Any], log: Log, fault: Fault | None) -> None:
        self.view = view
        self.log = log
        self.fold: Fold[Any] = Fold(view.projection)
        self.upto = 0
        self.fault = fault
        self.aside = False

    def begin(self, progress: Progress | None) -> None:
        """Have the log as it is now folded by several processes, where that can be done."""
        view, head = self.view, self.log.head()
        if self.fault is not None or not lay_aside(view, self.log, head, progress):
            return

        def before(key: str) -> Any:
            stored = view.store.staged_state(view.format, key)
            return None if stored is None else view.format.state(stored)

        self.fold, self.upto, self.aside = Fold(view.projection, before), head, True

    def put(self) -> None:
        """Put its rows in place of the stored ones, within `writing`."""
        view, fold = self.view, self.fold
        if not self.aside:
            view.store.replace(view.format, view.format.rows(fold), self.mark)
            return
        view.store.replace_by_stage(view.format, self.mark)
        gone = [key for key, state in fold.states.items() if state is None]
        view.store.save(view.format, view.format.rows(fold), gone, self.mark)

    def to(self, position: int, progress: Progress | None = None) -> None:
        """Fold on to a position, or to the event before one that cannot be folded."""
        if self.fault is not None:
            position = min(position, self.fault.position - 1)
        self._fold(position, progress)
        while self.fault is None and self.fold.reach > self.upto:
            self._fold(self.fold.reach, progress)
        if self.fault is not None and (torn := self.fold.torn(self.upto)):
            first = min(torn.values(), key=lambda each: each.position)
            raise _Torn(self.fault.before(first))

    def _fold(self, position: int, progress: Progress | None) -> None:
        events = self.log.read(after=self.upto, upto=position, names=self.view.projection.names)
        for batch in _batches(events):
            found = self.fold.run(batch)
            if progress:
                progress(self.view.name, batch[-1].position, position)
            if found:
                self.fault, position = found, found.position - 1
                break
        self.upto = max(self.upto, position)

    @property
    def mark(self) -> Mark:
        """Where it is."""
        error = str(self.fault) if self.fault else None
        return Mark(self.view.version, self.upto, hash_at(self.log, self.upto), error)


def _swap(
    view: View[Any], log: Log, green: _Green, instead_of: Mark | Literal["any"] | None
) -> bool:
    with view.store.writing():
        live = view.store.mark(view.name)
        if not _may_replace(view, live, instead_of):
            return False
        if live is not None:
            green.to(min(live.position, log.head()))
        green.put()
    return True


def _may_replace(
    view: View[Any], live: Mark | None, instead_of: Mark | Literal["any"] | None
) -> bool:
    """Workers of an older version may move its rows as they like; those of a newer one stay."""
    if live is not None and live.version != view.version:
        return live.version < view.version
    return instead_of in ("any", live)


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
