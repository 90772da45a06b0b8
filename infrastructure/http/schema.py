"""JSON schemas of records, from their fields: what `shape` reads and shows (1)."""

from __future__ import annotations

import inspect
import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from statelog.domain.workflows.shape import camel

Schema = dict[str, Any]

_ATOMS: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    int: {"type": "integer", "minimum": -(2**63), "maximum": 2**64 - 1},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Any: {},
    type(None): {"type": "null"},
}


@dataclass(frozen=True, eq=False)
class Derived:
    """A record without some of its keys and with more, or with keys that may be left out.

    An `open` one may have keys that nobody knows.
    """

    name: str
    base: Any
    without: frozenset[str] = frozenset()
    more: Mapping[str, Any] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    open: bool = False


@dataclass(frozen=True, eq=False, init=False)
class OneOf:
    """One of several types."""

    kinds: tuple[Any, ...]

    def __init__(self, *kinds: Any) -> None:
        object.__setattr__(self, "kinds", kinds)


@dataclass(frozen=True, eq=False)
class ListOf:
    """A list of one type, which may be derived."""

    kind: Any


class Schemas:
    """Schemas by reference; `components` are those that were referred to, by name."""

    def __init__(self, names: Mapping[type[Any], str], instead: Mapping[type[Any], Any]) -> None:
        self.components: dict[str, Schema] = {}
        self._names, self._instead = names, instead

    def of(self, kind: Any) -> Schema:
        """The schema of a type with a JSON form. Raises `TypeError` for others."""
        if kind in _ATOMS:
            return dict(_ATOMS[kind])
        if isinstance(kind, OneOf):
            return {"anyOf": [self.of(each) for each in kind.kinds]}
        if isinstance(kind, ListOf):
            return {"type": "array", "items": self.of(kind.kind)}
        if isinstance(kind, Derived):
            return self._named(kind.name, kind)
        origin, args = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(each) for each in args]}
        if origin is Annotated:
            return self.of(args[1])
        if origin in (tuple, Sequence, Collection):
            return {"type": "array", "items": self.of(args[0])}
        if origin in (dict, Mapping):
            more = {} if args[1] is Any else {"additionalProperties": self.of(args[1])}
            return {"type": "object", **more}
        return self._of_class(kind)

    def _of_class(self, kind: Any) -> Schema:
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"type": "string", "enum": [member.value for member in kind]}
        if isinstance(kind, type) and is_dataclass(kind):
            if kind in self._instead:
                return self.of(self._instead[kind])
            return self._named(self._names.get(kind, kind.__name__), kind)
        raise TypeError(f"{kind!r} has no JSON form")

    def _named(self, name: str, kind: Any) -> Schema:
        if name not in self.components:
            self.components[name] = {}
            self.components[name] = self._object(kind)
        return {"$ref": f"#/components/schemas/{name}"}

    def _object(self, kind: Any) -> Schema:
        if isinstance(kind, Derived):
            return self._derived(kind)
        hints = get_type_hints(kind, include_extras=True)
        keys = {camel(each.name): each for each in fields(kind)}
        needed = [
            key
            for key, each in keys.items()
            if each.default is MISSING and each.default_factory is MISSING
        ]
        return {
            "type": "object",
            "description": (inspect.getdoc(kind) or "").partition("\n")[0],
            "properties": {key: self.of(hints[each.name]) for key, each in keys.items()},
            **({"required": needed} if needed else {}),
            "additionalProperties": False,
        }

    def _derived(self, kind: Derived) -> Schema:
        made = self._object(kind.base)
        given = made["properties"]
        properties = {key: value for key, value in given.items() if key not in kind.without}
        properties |= {key: self.of(value) for key, value in kind.more.items()}
        properties |= {key: {"description": "Ignored."} for key in sorted(kind.ignored)}
        needed = [each for each in made.get("required", ()) if each in properties]
        needed += [key for key in kind.more if key not in needed]
        needed = [each for each in needed if each not in kind.optional]
        return {
            "type": "object",
            "description": made["description"],
            "properties": properties,
            **({"required": needed} if needed else {}),
            "additionalProperties": kind.open,
        }
