"""Hypothesis strategies for values of declared types: any value, any event, any id."""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from statelog.domain.event import Event
from statelog.domain.pmap import PMap

T = TypeVar("T")
E = TypeVar("E", bound=Event)

_FEW = 4


def text() -> st.SearchStrategy[str]:
    """Short text of any characters that can be stored (no surrogates)."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def integers() -> st.SearchStrategy[int]:
    """Integers of 64 bits, signed or not."""
    return st.integers(-(2**63), 2**64 - 1)


def floats() -> st.SearchStrategy[float]:
    """Finite numbers."""
    return st.floats(allow_nan=False, allow_infinity=False)


def json_values() -> st.SearchStrategy[Any]:
    """JSON values: scalars, lists and objects a few levels deep."""
    scalars = st.none() | st.booleans() | integers() | floats() | text()
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text(), inner, max_size=3),
        max_leaves=6,
    )


_SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: text(),
    int: integers(),
    float: floats(),
    bool: st.booleans(),
    None: st.none(),
    type(None): st.none(),
    Any: json_values(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type the codec can store. Raises `TypeError` for one it cannot."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if isinstance(kind, NewType):
        return values(kind.__supertype__)
    origin, args = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values, args))
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (tuple, list, Sequence, Collection, set, frozenset, Set):
        return _collections(origin, values(args[0] if args else Any))
    if origin in (dict, Mapping, PMap):
        entries = st.dictionaries(text(), values(args[1] if args else Any), max_size=_FEW)
        return entries.map(PMap) if origin is PMap else entries
    return _instances(kind)


def events(cls: type[E]) -> st.SearchStrategy[E]:
    """Events of one class, every field drawn from its declared type."""
    return cast("st.SearchStrategy[E]", _records(cls))


def ids(parts: int = 1) -> st.SearchStrategy[Any]:
    """Identities of aggregates, with slashes, spaces and other scripts; several parts as a tuple.

    Any text that is not empty, encodable and without NUL names a stream.
    """
    part = st.text(
        st.sampled_from("ab/ %.~é猫") | st.characters(exclude_categories=["Cs", "Cc"]),
        min_size=1,
        max_size=8,
    )
    return part if parts == 1 else st.tuples(*[part] * parts)


def _collections(origin: Any, items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    if origin in (set, frozenset, Set):
        return st.frozensets(items, max_size=_FEW)
    lists = st.lists(items, max_size=_FEW)
    return lists if origin is list else lists.map(tuple)


def _instances(kind: Any) -> st.SearchStrategy[Any]:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    if isinstance(kind, type) and issubclass(kind, PurePath):
        return st.text("abc.", min_size=1, max_size=5).map(kind)
    if is_dataclass(kind):
        return st.deferred(lambda: _records(cast("type[Any]", kind)))
    raise TypeError(f"{kind!r} has no JSON form")


def _records(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Fields with a default keep it now and then, so that both ways are seen."""
    hints = get_type_hints(cls)
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for field in fields(cls):
        plain = field.default is MISSING and field.default_factory is MISSING
        (required if plain else optional)[field.name] = values(hints[field.name])
    return st.fixed_dictionaries(required, optional=optional).map(lambda given: cls(**given))
