"""A process that folds some roots of a log into rows."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from contextlib import closing
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from statelog.domain.event import Recorded
from statelog.domain.ids import is_below
from statelog.infrastructure.view_roots import Slices
from statelog.infrastructure.view_rows import Row, RowFormat
from statelog.projections.projection import Projection
from statelog.projections.replay import Fold

Answer = tuple[int, list[Row]] | None
"""How many events some roots have, and their rows; None where one process has to do it all."""


class Scattered(Exception):
    """A row has to be folded in the order of the whole log."""


def work(link: int) -> None:
    """Answer until the other end is closed: of a size the pieces of that size, of one its rows.

    The parent never reads the file itself: it may have it open by another build of SQLite, whose
    locks would be lost when the file is closed.
    """
    with Connection(link) as parent:
        address, version, store, upto = parent.recv()
        module, _, name = address.partition(":")
        projection = getattr(import_module(module), name)
        gc.freeze()
        gc.disable()  # folding makes no cycles
        with closing(Slices(store, projection.names, upto)) as slices:
            part = Part(slices, projection, upto)
            while True:
                try:
                    asked = parent.recv()
                except EOFError:
                    return
                if isinstance(asked, int):
                    parent.send(list(slices.pieces(asked)))
                else:
                    parent.send(part.rows(asked) if projection.version == version else None)


class Part:
    """Folds roots, one after the other, of a log up to a position."""

    def __init__(self, slices: Slices, projection: Projection[Any], upto: int) -> None:
        self._slices, self._projection, self._upto = slices, projection, upto
        self._format = RowFormat(projection)

    def rows(self, roots: Iterable[str]) -> Answer:
        """All rows of these roots; None for what has to be met in the order of the log."""
        count, rows = 0, list[Row]()
        for root in roots:
            events = list(self._slices.below(root))
            try:
                rows += self._format.rows(self.fold(root, events))
            except Exception:
                return None
            count += len(events)
        return count, rows

    def fold(self, root: str, events: Sequence[Recorded]) -> Fold[Any]:
        """The rows of one root. Raises `Scattered`, and what the projection raises."""
        fold = Fold(self._projection)
        for key, own in self._by_key(events).items():
            within = self._projection.below(key)
            if within is None or not is_below(within, root):
                raise Scattered(f"{key!r} may have events elsewhere")
            self._add(fold, key, own)
        if fold.reach > self._upto:
            raise Scattered(f"{root} is known only at {fold.reach}")
        return fold

    def _by_key(self, events: Iterable[Recorded]) -> dict[str, list[Recorded]]:
        found: dict[str, list[Recorded]] = {}
        key_of, last, add = self._projection.key, None, list[Recorded]().append
        for recorded in events:
            key = key_of(recorded)
            if key != last and key is not None:
                last, add = key, found.setdefault(key, []).append
            if key is not None:
                add(recorded)
        return found

    def _add(self, fold: Fold[Any], key: str, own: Sequence[Recorded]) -> None:
        together = self._projection.together
        if together is None or any(recorded.keeper is not None for recorded in own):
            if fold.run(own):
                raise Scattered(str(fold.fault))
        else:
            fold.states[key] = together(self._projection.blank, own)
            fold.positions[key] = own[-1].position
