"""Python values as plain JSON, or refused by the place at fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from math import isfinite
from pathlib import PurePath
from typing import Any, cast

from statelog.domain.errors import Invalid

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict of them."""

_LOWEST, _HIGHEST = -(2**63), 2**64 - 1
_WORD = re.compile(r"[\w-]+")


def to_json(value: Any) -> Json:
    """A value as JSON: dataclasses and mappings as objects, tuples, lists and sets as lists.

    Enum members become their values and paths text. A dict keeps its order; mappings and sets
    that have none are sorted. Raises `Invalid` naming the place, such as `metrics.gc[3]`, for NaN
    and infinities, integers beyond 64 bits, keys that are not text, lone surrogates, and anything
    else JSON has no form for.
    """
    try:
        return _plain(value)
    except RecursionError:
        raise Invalid("", "is nested too deeply") from None


def escaped(text: str) -> str:
    """Free text made storable: each lone surrogate becomes its escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def place(parts: Iterable[str | int]) -> str:
    """A place in a JSON value, read from the outside in: `metrics`, `gc`, 3 is `metrics.gc[3]`."""
    text = ""
    for part in parts:
        if isinstance(part, str) and _WORD.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{escaped(part)!r}]" if isinstance(part, str) else f"[{part}]"
    return text


def within(part: str | int, error: Invalid) -> Invalid:
    """The same error seen from one level up: `gc` and `[3]` become `gc[3]`."""
    rest = error.field
    return Invalid(
        f"{place([part])}{'.' if rest and not rest.startswith('[') else ''}{rest}", error.why
    )


def _plain(value: Any) -> Json:
    kind = type(value)
    return (_WRITERS.get(kind) or _writer_of(kind))(value)


def _same(value: Any) -> Json:
    return value


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise Invalid("", f"has a lone surrogate at character {error.start}") from None
    return value


def _integer(value: int) -> int:
    if not _LOWEST <= value <= _HIGHEST:
        raise Invalid("", "is an integer beyond 64 bits")
    return value


def _real(value: float) -> float:
    if not isfinite(value):
        raise Invalid("", f"is {value}, which JSON cannot hold")
    return value


def _items(value: Iterable[Any]) -> list[Json]:
    items: list[Json] = []
    try:
        for item in value:
            items.append(_plain(item))
    except Invalid as error:
        raise within(len(items), error) from None
    return items


def _members(value: Iterable[Any]) -> list[Json]:
    return sorted(_items(value), key=repr)


def _entries(value: Mapping[Any, Any]) -> dict[str, Json]:
    entries: dict[str, Json] = {}
    writers = _WRITERS
    for key in value:
        if type(key) is not str:
            raise Invalid("", f"the key {key!r} is not text")
    key = ""
    try:
        for key, item in value.items():
            kind = type(item)
            entries[key if key.isascii() else _text(key)] = (writers.get(kind) or _writer_of(kind))(
                item
            )
    except Invalid as error:
        raise within(key, error) from None
    return entries


def _sorted_entries(value: Mapping[Any, Any]) -> dict[str, Json]:
    entries = _entries(value)
    return {key: entries[key] for key in sorted(entries)}


def _fields(value: Any) -> dict[str, Json]:
    return _entries({name: getattr(value, name) for name in field_names(cast("Any", type(value)))})


@cache
def field_names(cls: Any) -> tuple[str, ...]:
    """Names of a dataclass's fields, in their order."""
    return tuple(field.name for field in fields(cls))


def _refuse(value: Any) -> Json:
    raise Invalid("", f"is of type {type(value).__name__}, which JSON cannot hold")


_Writer = Callable[[Any], Json]

_WRITERS: dict[type, _Writer] = {
    type(None): _same,
    bool: _same,
    str: _text,
    int: _integer,
    float: _real,
    list: _items,
    tuple: _items,
    dict: _entries,
}

_KINDS: tuple[tuple[type, _Writer], ...] = (
    (Enum, lambda value: _plain(value.value)),
    (str, lambda value: _text(str.__str__(value))),
    (int, lambda value: _integer(int(value))),
    (float, lambda value: _real(float(value))),
    (PurePath, lambda value: _text(str(value))),
    (dict, _entries),
    (Mapping, _sorted_entries),
    (tuple, _items),
    (list, _items),
    (frozenset, _members),
    (set, _members),
)


def _writer_of(kind: type) -> _Writer:
    """The writer of a type seen for the first time, remembered."""
    fitting = (writer for base, writer in _KINDS if issubclass(kind, base))
    writer = _WRITERS[kind] = _fields if is_dataclass(kind) else next(fitting, _refuse)
    return writer
