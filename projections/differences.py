"""Where documents differ: by place, by row, and which event gave a place its value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from statelog.domain.event import Recorded
from statelog.projections.plain import Json
from statelog.projections.projection import Projection
from statelog.projections.replay import document

S = TypeVar("S")

Path = tuple[str | int, ...]

ABSENT: Final = object()
"""The value at a place a document does not have."""


def differing(one: Json, other: Json, path: Path = ()) -> Iterator[Path]:
    """The places where two JSON values differ, each as deep as it can be named.

    Objects with the same entries in another order differ as a whole; so do lists whose lengths
    differ, and 1 and 1.0 and true.
    """
    if type(one) is not type(other):
        yield path
    elif isinstance(one, dict):
        yield from _entries(one, other, path)
    elif isinstance(one, list) and len(one) == len(other):
        for at, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differing(left, right, (*path, at))
    elif one != other:
        yield path


def _entries(one: dict[str, Json], other: dict[str, Json], path: Path) -> Iterator[Path]:
    if one.keys() == other.keys() and list(one) != list(other):
        yield path
    for key in {**one, **other}:
        if key in one and key in other:
            yield from differing(one[key], other[key], (*path, key))
        else:
            yield (*path, key)


@dataclass(frozen=True)
class Changed:
    """A place whose value differs between two sets of documents.

    `path` is empty for a row that only one of them has; a value that is not there is `ABSENT`.
    """

    key: str
    path: Path
    before: Any
    after: Any


def changes(
    before: Mapping[str, dict[str, Json]], after: Mapping[str, dict[str, Json]]
) -> Iterator[Changed]:
    """Every place that differs, by key in their order; the order of an object's entries is none."""
    for key in sorted({*before, *after}):
        one, other = (_in_order(side.get(key, ABSENT)) for side in (before, after))
        if one is ABSENT or other is ABSENT:
            yield Changed(key, (), one, other)
            continue
        for path in differing(one, other):
            yield Changed(key, path, value_at(one, path), value_at(other, path))


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def value_at(value: Json, path: Path) -> Any:
    """The value at a place, or `ABSENT`."""
    for part in path:
        if not isinstance(value, dict | list):
            return ABSENT
        try:
            value = value[part]  # type: ignore[index]
        except (LookupError, TypeError):
            return ABSENT
    return value


def last_changes(
    projection: Projection[S], key: str, events: Sequence[Recorded], paths: Iterable[Path]
) -> dict[Path, Recorded]:
    """For each place of a row's document, the last of the row's events that changed its value.

    A place no event changed is not in the answer. States are folded once and shown from the last
    one backwards, until every place is accounted for.
    """
    states: list[S | None] = [None]
    for recorded in events:
        before = states[-1]
        states.append(projection.evolve(projection.blank if before is None else before, recorded))
    found: dict[Path, Recorded] = {}
    left = set(paths)
    now = _shown(projection, key, states[-1])
    for at in range(len(events) - 1, -1, -1):
        if not left:
            break
        before_it = _shown(projection, key, states[at])
        for path in [path for path in left if _changed(before_it, now, path)]:
            found[path] = events[at]
            left.remove(path)
    return found


def _shown(projection: Projection[S], key: str, state: S | None) -> Json:
    if state is None:
        return ABSENT
    try:
        return document(projection, key, state)
    except Exception:
        return ABSENT


def _changed(before: Json, after: Json, path: Path) -> bool:
    old, new = value_at(before, path), value_at(after, path)
    if old is ABSENT or new is ABSENT:
        return old is not new
    return next(differing(old, new), None) is not None
