"""JSON bytes: canonical ones for events, ordered ones for documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from math import isfinite
from typing import Any, cast

import orjson

from statelog.domain.errors import Invalid
from statelog.projections.plain import Json, escaped, field_names, to_json, within

__all__ = ["Json", "dump", "dump_ordered", "dump_plain", "escaped", "parse", "to_json", "within"]

_ATOMS = frozenset({type(None), bool, int, str})
_AS_WRITTEN = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS


def dump(value: Any) -> bytes:
    """The canonical bytes of a value: sorted keys, no spaces. Raises `Invalid` as `to_json`."""
    return dump_plain(to_json(value), orjson.OPT_SORT_KEYS)


def dump_plain(value: Json, option: int = 0) -> bytes:
    """The bytes of what `to_json` answered, by default in the order of its keys."""
    try:
        return orjson.dumps(value, option=option)
    except orjson.JSONEncodeError:
        raise Invalid("", "is nested too deeply") from None


def dump_ordered(value: Any) -> bytes:
    """The bytes of `to_json(value)` in the order of its keys. Raises `Invalid` as `to_json`.

    It walks the value only to see that nothing in it needs the care of `to_json`, and leaves the
    rest to the encoder: a tenth of the time for a large document.
    """
    return dump_seen(value)[0]


def dump_seen(value: Any) -> tuple[bytes, bool]:
    """The same, and whether the value is what these bytes are read as: plain JSON already."""
    try:
        plain = _is_plain(value)
        if plain is not None:
            return orjson.dumps(value, default=_simpler, option=_AS_WRITTEN), plain
    except orjson.JSONEncodeError:
        pass
    return dump_plain(to_json(value)), False


def _is_plain(root: Any) -> bool | None:
    """Whether a value is JSON as it is; None for what must not be left to the encoder."""
    plain = True
    containers: list[Iterable[Any]] = [(root,)]
    take, put, contents_of, atoms = containers.pop, containers.append, _CONTENTS.get, _ATOMS
    while containers:
        for item in take():
            kind = type(item)
            if kind in atoms:
                continue
            if kind is dict:
                if item:
                    put(item.values())
            elif kind is list:
                if item:
                    put(item)
            elif kind is float:
                if not isfinite(item):
                    return None
            else:
                contents = contents_of(kind) or _contents_of(kind)
                if contents is _strange:
                    return None
                plain = False
                put(contents(item))
    return plain


_Contents = Callable[[Any], Iterable[Any]]


def _strange(value: Any) -> Iterable[Any]:
    raise AssertionError("only asked for by identity")


_CONTENTS: dict[type, _Contents] = {
    tuple: lambda value: value,
}


def _contents_of(kind: type) -> _Contents:
    """How to look into values of a type seen for the first time, remembered."""
    found: _Contents = _strange
    if issubclass(kind, Enum):
        if all(type(member.value) in _ATOMS for member in kind):
            found = _nothing
    elif is_dataclass(kind) and kind.__dictoffset__:
        found = _values_of_fields
    elif issubclass(kind, Mapping) and not issubclass(kind, dict):
        found = cast("_Contents", kind.values)
    _CONTENTS[kind] = found
    return found


def _nothing(value: Any) -> Iterable[Any]:
    return ()


def _values_of_fields(value: Any) -> Iterable[Any]:
    fields: dict[str, Any] = vars(value)
    return fields.values()


def _simpler(value: Any) -> Any:
    """A dataclass or mapping as the dict that `to_json` makes of it, its values as they are."""
    kind = type(value)
    if is_dataclass(kind):
        fields, names = value.__dict__, field_names(kind)
        return fields if tuple(fields) == names else {name: fields[name] for name in names}
    if issubclass(kind, Enum):
        return value.value
    return {key: value[key] for key in sorted(value)}


def parse(data: bytes | str) -> Json:
    """The value of JSON text. Raises `Invalid` when it is none."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Invalid("", f"is not JSON: {error}") from None
