"""Catching up one view with the log, a chunk a transaction."""

from __future__ import annotations

from typing import Any, TypeVar

from statelog.domain.errors import Invalid
from statelog.infrastructure.view import Log, View, hash_at
from statelog.infrastructure.view_rebuild import rebuild
from statelog.infrastructure.view_rows import Unrenderable
from statelog.infrastructure.view_store import Mark
from statelog.projections.replay import Fault, Fold

S = TypeVar("S")

CHUNK = 2000


def catch_up(view: View[Any], log: Log) -> bool:
    """Bring a stored view to the end of the log; False when a newer release keeps it.

    It is made anew when it is missing, of an older version or other columns, or was made from
    another log than this one. Where it is parked it stays. Raises `StoreError`.
    """
    goal = log.head()
    while True:
        mark = view.store.mark(view.name)
        if mark is not None and mark.version > view.version:
            return False
        if mark is None or not _continues(view, log, mark):
            rebuild(view, log, instead_of=mark)
        elif mark.position >= goal or mark == view.parked:
            return True
        else:
            try:
                reached = _advance(view, log, mark, goal)
            except Invalid:
                # A stored state that is none of this projection's, whose version says it is.
                rebuild(view, log, instead_of=mark)
                reached = view.store.mark(view.name)
            if reached is not None and reached.error:
                view.parked = reached
                return True


def _continues(view: View[Any], log: Log, mark: Mark) -> bool:
    """Whether the rest of the log can be folded into what is stored.

    Asked of the log by position: others may have moved the mark past any head read before it.
    """
    return (
        mark.version == view.version
        and hash_at(log, mark.position) == mark.hash
        and view.store.fits(view.format)
    )


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
            limit = None if fault else CHUNK
            events = list(
                log.read(after=mark.position, upto=upto, names=view.projection.names, limit=limit)
            )
            fold = Fold(view.projection, before)
            fault = fold.run(events) or fault
            end = events[-1].position if len(events) == limit else upto
            while fault is None and fold.reach > end:
                more = list(log.read(after=end, upto=fold.reach, names=view.projection.names))
                events, end = events + more, fold.reach
                fault = fold.run(more)
        if fault is not None:
            end = fault.position - 1
            if torn := fold.torn(end):
                fault = fault.before(min(torn.values(), key=lambda each: each.position))
                upto = fault.position - 1
                continue
        reached = Mark(view.version, end, hash_at(log, end), str(fault) if fault else None)
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
