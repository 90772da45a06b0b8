"""The plainest value of a type: enough of an event to see that a fold accepts it."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence, Set
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from statelog.domain.pmap import PMap

T = TypeVar("T")

_PLAIN: dict[Any, Any] = {str: "text", int: 1, float: 1.0, bool: True, bytes: b"bytes"}
_PLAIN |= {None: None, types.NoneType: None, Any: None, object: None}


def sample(cls: type[T]) -> T:
    """An instance of a dataclass such as an event: defaults where it has them, else plain values.

    Raises `TypeError` naming the field for which it knows no value.
    """
    try:
        hints = get_type_hints(cls)
    except NameError as error:
        raise TypeError(f"{cls.__qualname__}: {error}; give a sample of your own") from None
    given = {}
    for each in fields(cls):  # type: ignore[arg-type]
        if each.init and each.default is MISSING and each.default_factory is MISSING:
            given[each.name] = _value(hints[each.name], f"{cls.__qualname__}.{each.name}")
    return cls(**given)


def _value(hint: Any, place: str) -> Any:
    """A value of a type; of several the first, so that `X | None` is an X."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _value(args[0], place)
    if origin is Literal:
        return args[0]
    if hasattr(hint, "__metadata__"):
        return _value(args[0], place)
    return _instance(origin or hint, args, place)


def _instance(cls: Any, args: tuple[Any, ...], place: str) -> Any:
    if not isinstance(cls, type):
        raise TypeError(f"no sample of {cls!r} for {place}; give one of your own")
    if issubclass(cls, Enum):
        return next(iter(cls))
    if is_dataclass(cls):
        return sample(cls)
    if issubclass(cls, tuple):
        parts = () if args[1:] == (...,) else args
        return tuple(_value(part, place) for part in parts)
    if issubclass(cls, PurePath):
        return cls("path")
    for kind, empty in ((PMap, PMap()), (Mapping, {}), (Set, frozenset())):
        if issubclass(cls, kind):
            return empty
    if issubclass(cls, Sequence):
        return []
    raise TypeError(f"no sample of {cls.__qualname__} for {place}; give one of your own")
