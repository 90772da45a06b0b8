"""Python values written as JSON that reads back as it was, or refused by the place at fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from math import isfinite
from pathlib import PurePath
from typing import Any, cast

import orjson

from statelog.domain.errors import Invalid

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict of them."""

_LOWEST, _HIGHEST = -(2**63), 2**64 - 1
_WORD = re.compile(r"[\w-]+")
_TOO_DEEP = "is nested too deeply"


def to_json(value: Any) -> Json:
    """A value as JSON: dataclasses and mappings as objects, tuples, lists and sets as lists.

    Enum members become their values and paths text. Raises `Invalid` naming the place, such as
    `metrics.gc[3]`, for NaN and infinities, integers beyond 64 bits, keys that are not text, lone
    surrogates, and anything else JSON has no form for.
    """
    try:
        return _plain(value)
    except RecursionError:
        raise Invalid("", _TOO_DEEP) from None


def dump(value: Any) -> bytes:
    """The canonical bytes of a value: sorted keys, no spaces. Raises `Invalid` as `to_json`."""
    return dump_plain(to_json(value))


def dump_plain(value: Json) -> bytes:
    """The canonical bytes of what `to_json` answered."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        raise Invalid("", _TOO_DEEP) from None


def parse(data: bytes | str) -> Json:
    """The value of JSON text. Raises `Invalid` when it is none."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Invalid("", f"is not JSON: {error}") from None


def escaped(text: str) -> str:
    """Free text made storable: each lone surrogate becomes its escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def within(part: str | int, error: Invalid) -> Invalid:
    """The same error seen from one level up: `gc` and `[3]` become `gc[3]`."""
    if isinstance(part, int):
        head = f"[{part}]"
    else:
        head = part if _WORD.fullmatch(part) else f"[{escaped(part)!r}]"
    rest = error.field
    return Invalid(f"{head}{'.' if rest and not rest.startswith('[') else ''}{rest}", error.why)


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
    return sorted(_items(value), key=dump_plain)


def _entries(value: Mapping[Any, Any]) -> dict[str, Json]:
    entries: dict[str, Json] = {}
    for key in value:
        if type(key) is not str:
            raise Invalid("", f"the key {key!r} is not text")
    key = ""
    try:
        for key, item in value.items():
            entries[_text(key)] = _plain(item)
    except Invalid as error:
        raise within(key, error) from None
    return entries


def _fields(value: Any) -> dict[str, Json]:
    entries: dict[str, Json] = {}
    name = ""
    try:
        for name in _field_names(cast("Any", type(value))):
            entries[name] = _plain(getattr(value, name))
    except Invalid as error:
        raise within(name, error) from None
    return entries


@cache
def _field_names(cls: Any) -> tuple[str, ...]:
    """Names of the fields of a dataclass, in their order."""
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
    (Mapping, _entries),
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
