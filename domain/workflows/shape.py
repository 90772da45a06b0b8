"""Records as JSON documents in camelCase and back, by readers made once a class (1.13)."""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from statelog.domain.errors import Malformed

T = TypeVar("T")
Reader = Callable[[Any], Any]
Writer = Callable[[Any], Any]

DEPTH_LIMIT: Final = 100
"""Levels of nesting that a value of free form may have."""

ABSENT: Final = "is missing"
"""Why a document that lacks a field is malformed."""

_LOWEST, _HIGHEST = -(2**63), 2**64 - 1
_LONGEST = 80
_KINDS = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}
_NUMBERS: Final = frozenset({bool, int, float})
_ATOMS: Final = _NUMBERS | {str, type(None)}


def read(kind: type[T], document: Any, where: str = "") -> T:
    """A JSON document as a record, a tuple or another type with a JSON form.

    Keys are the camelCase of the field names; integers are taken where numbers are wanted, and a
    boolean is never one. Raises `Malformed` naming the field below `where`, such as
    `plan.assignments[3].resourceId`: for an unknown or missing key, a wrong JSON type, NaN and
    infinities, integers beyond 64 bits, lone surrogates, and nesting beyond `DEPTH_LIMIT`.
    """
    try:
        return cast("T", _reader_of(cast("Any", kind))(document))
    except Malformed as error:
        raise _below(where, error) from None


def show(record: Any) -> dict[str, Any]:
    """The JSON document of a record in camelCase, in the order of its fields.

    Fields that are None, empty text, an empty list or an empty object are left out.
    """
    return _shape_of(cast("Any", type(record))).show(record)


def camel(name: str) -> str:
    """The JSON name of a field: `predicted_start_at` is `predictedStartAt`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


class _Shape:
    """What is known about one record class."""

    def __init__(self, cls: type[Any]) -> None:
        self.cls = cls
        self._fields: dict[str, Field[Any]] = {camel(each.name): each for each in fields(cls)}
        hints = get_type_hints(cls)
        self._readers = {key: _reader_of(hints[each.name]) for key, each in self._fields.items()}
        self._names = [(key, each.name) for key, each in self._fields.items()]
        self._needed = [
            key
            for key, each in self._fields.items()
            if each.default is MISSING and each.default_factory is MISSING
        ]

    def read(self, document: Any) -> Any:
        """An instance from a JSON object. Raises `Malformed`."""
        if type(document) is not dict:
            raise _wrong(document, "an object")
        values, readers, known = {}, self._readers, self._fields
        for key, value in document.items():
            if key not in readers:
                raise _at_key(key, Malformed("", "is not a known field"))
            try:
                values[known[key].name] = readers[key](value)
            except Malformed as error:
                raise _at_key(key, error) from None
        for key in self._needed:
            if key not in document:
                raise Malformed(key, ABSENT)
        return self.cls(**values)

    def show(self, record: Any) -> dict[str, Any]:
        """The JSON object of an instance."""
        shown, values = {}, vars(record)
        for key, name in self._names:
            value = values[name]
            kind = type(value)
            if kind not in _ATOMS:
                value = _plain(value)
            if value or kind in _NUMBERS:
                shown[key] = value
        return shown


@cache
def _shape_of(cls: type[Any]) -> _Shape:
    return _Shape(cls)


@cache
def _reader_of(kind: Any) -> Reader:
    """The function that reads a JSON value as `kind`. Raises `TypeError`."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _optional(args)
    if origin in (tuple, Sequence, Collection):
        return _list(_reader_of(args[0]))
    if origin in (dict, Mapping):
        return _free_object if args[1] is Any else _object(_reader_of(args[1]))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _member({member.value: member for member in kind})
    if isinstance(kind, type) and is_dataclass(kind):
        return lambda value: _shape_of(kind).read(value)
    raise TypeError(f"{kind!r} has no JSON form")


def _optional(args: tuple[Any, ...]) -> Reader:
    others = [arg for arg in args if arg is not type(None)]
    if len(others) != 1:
        raise TypeError(f"a union of {others} has no JSON form that tells which it is")
    inner = _reader_of(others[0])
    return lambda value: None if value is None else inner(value)


def _member(members: Mapping[Any, Any]) -> Reader:
    known = ", ".join(repr(value) for value in members)

    def take(value: Any) -> Any:
        if type(value) is not str or value not in members:
            raise Malformed("", f"must be one of {known}")
        return members[value]

    return take


def _list(inner: Reader) -> Reader:
    def take(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _wrong(value, "a list")
        items: list[Any] = []
        try:
            for item in value:
                items.append(inner(item))
        except Malformed as error:
            raise _below(f"[{len(items)}]", error) from None
        return tuple(items)

    return take


def _object(inner: Reader) -> Reader:
    def take(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _wrong(value, "an object")
        entries: dict[str, Any] = {}
        key = ""
        try:
            for key, item in value.items():
                entries[_text(key)] = inner(item)
        except Malformed as error:
            raise _at_key(key, error) from None
        return entries

    return take


def _free_object(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise _wrong(value, "an object")
    return cast("dict[str, Any]", _free(value))


def _free(value: Any, depth: int = 0) -> Any:
    """A copy of any JSON value. Raises `Malformed`."""
    if depth > DEPTH_LIMIT:
        raise Malformed("", "is nested too deeply")
    kind = type(value)
    if kind is dict:
        return _object(lambda item: _free(item, depth + 1))(value)
    if kind is list:
        return list(_list(lambda item: _free(item, depth + 1))(value))
    return _real(value) if kind is float else _SCALARS.get(kind, _refuse)(value)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _wrong(value, "text")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise Malformed("", f"has a lone surrogate at character {error.start}") from None
    return value


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise _wrong(value, "an integer")
    if not _LOWEST <= value <= _HIGHEST:
        raise Malformed("", "is an integer beyond 64 bits")
    return value


def _real(value: Any) -> float:
    if type(value) is int:
        return float(_integer(value))
    if type(value) is not float:
        raise _wrong(value, "a number")
    if not isfinite(value):
        raise Malformed("", f"is {value}, which JSON cannot hold")
    return value


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise _wrong(value, "a boolean")
    return value


def _same(value: Any) -> Any:
    return value


def _refuse(value: Any) -> Any:
    raise Malformed("", f"is of type {type(value).__name__}, which JSON cannot hold")


_SIMPLE: dict[Any, Reader] = {
    Any: _free,
    str: _text,
    int: _integer,
    float: _real,
    bool: _boolean,
}
_SCALARS: dict[type, Reader] = {type(None): _same, bool: _same, int: _integer, str: _text}


def _wrong(value: Any, wanted: str) -> Malformed:
    return Malformed("", f"must be {wanted}, not {_KINDS.get(type(value), type(value).__name__)}")


def _at_key(key: Any, error: Malformed) -> Malformed:
    shown = str(key).encode("utf-8", "backslashreplace").decode()
    return _below(shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}...", error)


def _below(part: str, error: Malformed) -> Malformed:
    """The same error seen from one level up."""
    dot = "." if part and error.field and not error.field.startswith("[") else ""
    return Malformed(f"{part}{dot}{error.field}", error.why)


def _plain(value: Any) -> Any:
    """A value of a record as JSON."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is tuple or kind is list:
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value.value if isinstance(value, Enum) else show(value)
