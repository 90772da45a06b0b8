"""Stored rows compared with those that the log gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from statelog.domain.errors import Invalid
from statelog.domain.event import Recorded
from statelog.infrastructure.json_values import dump_plain, parse
from statelog.infrastructure.view import Log
from statelog.infrastructure.view_rows import Row, RowFormat
from statelog.projections.differences import ABSENT, differing, last_changes, value_at
from statelog.projections.plain import place
from statelog.projections.replay import Fold

S = TypeVar("S")

_LONG = 120


@dataclass(frozen=True)
class Difference:
    """A place where a stored view is not what the log gives.

    `field` is the place in the document, such as `steps.qc.state`; empty for the whole row;
    `column <name>` for a column beside the document. `position` and `event` are the last event
    that gave the place its right value (0 and empty when no event did). `stored` and `rebuilt`
    are the two values as JSON text, None where there is none.
    """

    view: str
    key: str
    field: str
    position: int
    event: str
    stored: str | None
    rebuilt: str | None

    def __str__(self) -> str:
        place = f" {self.field}" if self.field else ""
        cause = f" (event {self.position}, {self.event})" if self.position else ""
        return (
            f"{self.view} {self.key!r}{place}: stored {_short(self.stored)}, "
            f"rebuilt {_short(self.rebuilt)}{cause}"
        )


def differences(
    view: RowFormat[S], log: Log, upto: int, stored: Iterable[Row]
) -> Iterator[Difference]:
    """Every difference between stored rows and those folded from the log up to a position."""
    names = view.projection.names
    fold = Fold(view.projection)
    fault = fold.run(log.read(upto=upto, names=names))
    if fault is not None:
        yield Difference(view.name, "", "", fault.position, fault.name, None, str(fault))
        return
    unknown = fold.torn(upto)
    wrong = {key: pair for key, pair in _wrong(view, fold, stored) if key not in unknown}
    if not wrong:
        return
    causes: dict[str, list[Recorded]] = {key: [] for key in wrong}
    for recorded in log.read(upto=upto, names=names):
        causes.get(view.projection.key(recorded) or "", []).append(recorded)
    for key, (row, rebuilt) in wrong.items():
        erased = any(recorded.keeper is not None for recorded in causes[key])
        yield from _explained(view, key, row, rebuilt, [] if erased else causes[key])


_Pair = tuple[Row | None, Row | None]


def _wrong(view: RowFormat[S], fold: Fold[S], stored: Iterable[Row]) -> Iterator[tuple[str, _Pair]]:
    left = dict(fold.rows())
    for row in stored:
        key = row[0]
        rebuilt = None
        if key in left:
            rebuilt = view.render(key, left.pop(key), fold.positions[key])
        if row != rebuilt or list(map(type, row)) != list(map(type, rebuilt)):
            yield key, (row, rebuilt)
    for key, state in left.items():
        yield key, (None, view.render(key, state, fold.positions[key]))


def _explained(
    view: RowFormat[S], key: str, row: Row | None, rebuilt: Row | None, events: list[Recorded]
) -> Iterator[Difference]:
    if row is None or rebuilt is None:
        yield _difference(
            view, key, "", _last(events), (_document(view, row), _document(view, rebuilt))
        )
        return
    one, other = (dict(zip(view.columns, values, strict=True)) for values in (row, rebuilt))
    if one["document"] != other["document"]:
        yield from _in_document(view, key, one["document"], other["document"], events)
    for column in view.columns:
        if column != "document" and (type(one[column]), one[column]) != (
            type(other[column]),
            other[column],
        ):
            texts = (_json(one[column]), _json(other[column]))
            yield _difference(view, key, f"column {column}", _last(events), texts)


def _in_document(
    view: RowFormat[S], key: str, one: Any, other: Any, events: list[Recorded]
) -> Iterator[Difference]:
    try:
        left, right = (ABSENT if text is None else parse(text) for text in (one, other))
    except (Invalid, TypeError):
        yield _difference(view, key, "", _last(events), (str(one), other))
        return
    paths = list(differing(left, right)) or [()]
    changes = last_changes(view.projection, key, events, paths)
    for path in paths:
        texts = (_json(value_at(left, path)), _json(value_at(right, path)))
        yield _difference(view, key, place(path), changes.get(path), texts)


def _difference(
    view: RowFormat[S],
    key: str,
    field: str,
    cause: Recorded | None,
    texts: tuple[str | None, str | None],
) -> Difference:
    position, event = (cause.position, cause.name) if cause else (0, "")
    return Difference(view.name, key, field, position, event, *texts)


def _last(events: list[Recorded]) -> Recorded | None:
    return events[-1] if events else None


def _document(view: RowFormat[S], row: Row | None) -> str | None:
    """The document of a row, `null` when it is not shown; None when there is no row."""
    if row is None:
        return None
    text = row[view.columns.index("document")]
    return "null" if text is None else str(text)


def _json(value: Any) -> str | None:
    if isinstance(value, bytes):
        return repr(value)
    return None if value is ABSENT else dump_plain(value).decode()


def _short(text: str | None) -> str:
    if text is None:
        return "nothing"
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."
