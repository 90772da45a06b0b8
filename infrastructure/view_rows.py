"""How the rows of one view are stored: its key and useful columns, its document, its state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from typing import Any, Generic, TypeVar, cast

from statelog.domain.event import Recorded
from statelog.infrastructure.json_types import reader_of
from statelog.infrastructure.json_values import dump_ordered, dump_seen, parse
from statelog.projections.projection import Projection
from statelog.projections.replay import Fault, Fold, shown

S = TypeVar("S")

Row = tuple[Any, ...]
"""Values in the order of `RowFormat.columns`."""

POSITIONS = "view_positions"
_NAME = re.compile(r"(?!sqlite_)[a-z][a-z0-9_]*")
_TAKEN = frozenset({"key", "document", "state", "position", "rowid"})


class Unrenderable(Exception):
    """The document of a row cannot be made; `error` says why."""

    def __init__(self, key: str, error: Exception) -> None:
        super().__init__(key, error)
        self.key = key
        self.error = error


class RowFormat(Generic[S]):
    """The table of one projection.

    Its columns are `key`, those of the projection, `document` (JSON in the order the projection
    gives; NULL when the row is not shown), `state` (only where the fold needs more than the
    document) and `position`, of the last event that touched the row. Raises `ValueError` for
    names SQL should not see, and `TypeError` for a state that has no JSON form.
    """

    def __init__(self, projection: Projection[S]) -> None:
        self.projection = projection
        self.name = projection.name
        self.keeps_state = projection.show is not None
        state = ("state",) if self.keeps_state else ()
        self.columns = ("key", *projection.columns, "document", *state, "position")
        for name in (self.name, *projection.columns):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot name a view or column: use a-z, 0-9 and _")
        if self.name == POSITIONS or _TAKEN & projection.columns.keys():
            raise ValueError(f"view {self.name}: {POSITIONS} and {sorted(_TAKEN)} are taken")
        kind = type(projection.blank)
        self._read = reader_of(cast("Any", kind)) if is_dataclass(kind) else _as_is

    @property
    def state_column(self) -> str:
        """The column a state is read from."""
        return "state" if self.keeps_state else "document"

    def state(self, stored: str) -> S:
        """The state that was stored in `state_column`. Raises `Invalid`."""
        return cast("S", self._read(parse(stored)))

    def render(self, key: str, state: S, position: int) -> Row:
        """The row of a state. Raises `Unrenderable`."""
        try:
            seen = shown(self.projection, key, state)
            data, plain = (None, True) if seen is None else dump_seen(seen)
            values = self._values(seen if plain else parse(data or b""))
            text = None if data is None else data.decode()
            kept = (dump_ordered(state).decode(),) if self.keeps_state else ()
            return (key, *values, text, *kept, position)
        except Exception as error:
            raise Unrenderable(key, error) from error

    def _values(self, document: Any) -> list[Any]:
        columns = self.projection.columns.values()
        if document is None:
            return [None] * len(columns)
        return [_scalar(column(document)) for column in columns]

    def rows(self, fold: Fold[S]) -> Iterator[Row]:
        """Rows of all states a fold left. Raises `Unrenderable`."""
        return (self.render(key, state, fold.positions[key]) for key, state in fold.rows())

    def first_fault(self, failed: Unrenderable, fold: Fold[S], events: Iterable[Recorded]) -> Fault:
        """The first event after which the row that failed cannot be rendered.

        `fold` is a new one from the state before `events`. Raises `failed` when none is found.
        """
        for recorded in events:
            if self.projection.key(recorded) != failed.key:
                continue
            fault = fold.run([recorded])
            if fault:
                return fault
            try:
                list(self.rows(fold))
            except Unrenderable as error:
                return Fault(recorded.position, recorded.name, error.error)
        raise failed


def _as_is(value: Any) -> Any:
    return value


def _scalar(value: Any) -> Any:
    """A value as SQLite keeps it: numbers and text as they are, anything else as JSON text."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    return value if isinstance(value, int | float | str | None) else dump_ordered(value).decode()
