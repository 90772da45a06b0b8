"""Projections: pure folds of recorded events into rows, one row a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from statelog.domain.event import Event, Recorded

S = TypeVar("S")

Document = Mapping[str, Any]
Column = Callable[[Document], Any]


@dataclass(frozen=True)
class Projection(Generic[S]):
    """A view: which row an event belongs to, and the row after it.

    `evolve(state, recorded)` returns the row's next state, or None to remove the row. A state is a
    frozen dataclass or a mapping of JSON values. `key` sees only the envelope and answers None for
    events that belong to no row. Events whose class is not in `events` are never decoded.
    `show(key, state)` is the document people see (default: the state's fields); `columns` are
    values of the document kept beside it as SQL columns. Raise `version` whenever the meaning
    changes: the view is then rebuilt. `below(key)` names the streams that hold every event of a
    row by their prefix, so that one row of the past is folded from them alone; without it, or
    where it answers None, the whole log is looked through. `together(state, events)` answers what
    `evolve` would after all these events of one row, for states that are costly to copy for each.
    """

    name: str
    blank: S
    evolve: Callable[[S, Recorded], S | None]
    key: Callable[[Recorded], str | None] = field(kw_only=True)
    events: tuple[type[Event], ...] = field(kw_only=True)
    version: int = field(default=1, kw_only=True)
    show: Callable[[str, S], Document | None] | None = field(default=None, kw_only=True)
    columns: Mapping[str, Column] = field(default_factory=dict, kw_only=True)
    below: Callable[[str], str | None] = field(default=lambda key: None, kw_only=True)
    together: Callable[[S, Sequence[Recorded]], S | None] | None = field(default=None, kw_only=True)

    @cached_property
    def names(self) -> frozenset[str]:
        """Stored names of the events it reads."""
        return frozenset(event.stored_name for event in self.events)

    def reads(self, recorded: Recorded) -> bool:
        """Whether the event concerns this view, judged by its stored name."""
        return recorded.name in self.names


def apply(projection: Projection[S], rows: dict[str, S], recorded: Recorded) -> str | None:
    """Fold one event into `rows` in place; answers the key it touched, if any."""
    if not projection.reads(recorded):
        return None
    key = projection.key(recorded)
    if key is None:
        return None
    return _apply(projection, rows, recorded, key)


def _apply(projection: Projection[S], rows: dict[str, S], recorded: Recorded, key: str) -> str:
    state = projection.evolve(rows.get(key, projection.blank), recorded)
    if state is None:
        rows.pop(key, None)
    else:
        rows[key] = state
    return key


def fold(projection: Projection[S], events: Iterable[Recorded]) -> dict[str, S]:
    """Row states by key after these events, in their order.

    From the first event whose payload was erased a row is what was kept of it.
    """
    rows: dict[str, S] = {}
    known: dict[str, int] = {}
    for recorded in events:
        if recorded.keeper is None and not known:
            apply(projection, rows, recorded)
        elif projection.reads(recorded):
            _take(projection, rows, recorded, known)
    return rows


def _take(
    projection: Projection[S],
    rows: dict[str, S],
    recorded: Recorded,
    known: dict[str, int],
) -> None:
    key = projection.key(recorded)
    if key is None or recorded.position <= known.get(key, 0):
        return
    if recorded.keeper is None:
        _apply(projection, rows, recorded, key)
        return
    kept = recorded.kept(projection, key)
    known[key] = kept.upto
    rows.pop(key, None)
    if kept.state is not None:
        rows[key] = kept.state
