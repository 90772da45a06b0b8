"""JSON values read as the declared types, by readers that are compiled once for each class."""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import PurePath
from threading import RLock
from typing import Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from statelog.domain.errors import Invalid
from statelog.domain.pmap import PMap
from statelog.projections.plain import to_json, within

T = TypeVar("T")
Reader = Callable[[Any], Any]

_KINDS = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}
_SCALARS: dict[Any, frozenset[type]] = {
    str: frozenset({str}),
    int: frozenset({int}),
    float: frozenset({float, int}),
    bool: frozenset({bool}),
    None: frozenset({type(None)}),
    type(None): frozenset({type(None)}),
}
_LISTS: dict[Any, Callable[[Iterable[Any]], Any]] = {
    tuple: tuple,
    list: list,
    Sequence: tuple,
    Collection: tuple,
    frozenset: frozenset,
    Set: frozenset,
}
_ATOMS = frozenset({type(None), bool, int, str})
_EMPTY: dict[type, Callable[[], Any]] = {tuple: list, list: list, dict: dict}
_new = object.__new__

Kinds = tuple[tuple[str, frozenset[type]], ...]
Readers = tuple[tuple[str, Reader], ...]


def from_json(kind: type[T], value: Any) -> T:
    """A JSON value as an instance of `kind`, a dataclass or another supported type.

    Lists become tuples where the type says so. Raises `Invalid` naming the place for a wrong type,
    an unknown key, or a missing key without default; `TypeError` for a type that has no JSON form.
    """
    return cast("T", reader_of(cast("Any", kind))(value))


@cache
def reader_of(kind: Any) -> Reader:
    """The function that reads a JSON value as `kind`. Raises `TypeError`."""
    if kind is Any:
        return _as_is
    if kind in _SCALARS:
        return _scalar(_SCALARS[kind])
    if isinstance(kind, NewType):
        return reader_of(kind.__supertype__)
    origin, args = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, types.UnionType):
        return _union(args)
    if origin is Literal:
        return _member({arg: arg for arg in args})
    if origin in _LISTS:
        return _list(origin, args)
    if origin in (dict, Mapping, PMap):
        return _mapping(origin, args)
    if isinstance(kind, type):
        return _class(kind)
    raise TypeError(f"{kind!r} has no JSON form")


def _class(kind: type) -> Reader:
    if issubclass(kind, Enum):
        return _member({member.value: member for member in kind})
    if issubclass(kind, PurePath):
        return lambda value: kind(reader_of(str)(value))
    if is_dataclass(kind):
        return shape_of(kind).read
    raise TypeError(f"{kind.__name__} has no JSON form")


def _as_is(value: Any) -> Any:
    return value


def _plain(value: Any) -> Any:
    """`to_json`, which has nothing to do for an empty container."""
    empty = None if value else _EMPTY.get(type(value))
    return to_json(value) if empty is None else empty()


def _wrong(value: Any, wanted: str) -> Invalid:
    return Invalid("", f"must be {wanted}, not {_KINDS.get(type(value), type(value).__name__)}")


def _scalar(kinds: frozenset[type]) -> Reader:
    wanted = " or ".join(sorted(_KINDS[kind] for kind in kinds))

    def read(value: Any) -> Any:
        if type(value) not in kinds:
            raise _wrong(value, wanted)
        return value

    return read


def _union(args: tuple[Any, ...]) -> Reader:
    if all(arg in _SCALARS for arg in args):
        return _scalar(frozenset().union(*(_SCALARS[arg] for arg in args)))
    others = [arg for arg in args if arg is not type(None)]
    if len(others) != 1:
        raise TypeError(f"a union of {others} has no JSON form that tells which it is")
    inner = reader_of(others[0])
    return lambda value: None if value is None else inner(value)


def _member(members: Mapping[Any, Any]) -> Reader:
    known = ", ".join(repr(value) for value in members)

    def read(value: Any) -> Any:
        try:
            return members[value]
        except (KeyError, TypeError):
            raise Invalid("", f"must be one of {known}, not {value!r}") from None

    return read


def _list(origin: Any, args: tuple[Any, ...]) -> Reader:
    if origin is tuple and (len(args) != 2 or args[1] is not ...):
        raise TypeError("a tuple in JSON is of one type and any length: tuple[T, ...]")
    build, inner = _LISTS[origin], reader_of(args[0] if args else Any)

    def read(value: Any) -> Any:
        if type(value) is not list:
            raise _wrong(value, "a list")
        try:
            return build(map(inner, value))
        except Invalid:
            raise _located(value, inner) from None

    return read


def _located(items: list[Any], inner: Reader) -> Invalid:
    """The error of the first item that cannot be read, with its index."""
    for at, item in enumerate(items):
        try:
            inner(item)
        except Invalid as error:
            return within(at, error)
    raise AssertionError("every item can be read")


def _mapping(origin: Any, args: tuple[Any, ...]) -> Reader:
    if args and args[0] not in (str, Any):
        raise TypeError(f"keys of a JSON object are text, not {args[0]!r}")
    inner = reader_of(args[1] if args else Any)
    build: Callable[[dict[str, Any]], Any] = PMap if origin is PMap else dict

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(value, "an object")
        entries, key = {}, ""
        try:
            for key, item in value.items():
                entries[key] = inner(item)
        except Invalid as error:
            raise within(key, error) from None
        return build(entries)

    return read


_TAKE = """
def take(payload):
    try:
        if type(payload) is dict and len(payload) == length{checks}:
            {read}
            new = make(cls)
            fill(new, payload)
            return new
    except KeyError:
        pass
    return checked(payload)
"""
"""A loop over the fields, or a function more, would take half as much time again."""


class Shape:
    """How instances of one dataclass are made of JSON objects, and JSON objects of them.

    Of a field that takes a scalar only the type of its value is looked at; the others are read one
    by one. Nothing of the class's own runs: instances are made without `__init__`.
    """

    def __init__(self, cls: type[Any]) -> None:
        self.cls = cls
        self._fill = _filler(cls)
        self.take: Reader = self._checked
        """An instance from a JSON object that nobody else has: it may become the instance's own.

        Raises `Invalid`.
        """
        self._fields: dict[str, Field[Any]] = {field.name: field for field in fields(cls)}
        self._readers: dict[str, Reader] = {}
        self._atoms: Kinds = ()
        self._others: Readers = ()

    def compile(self) -> None:
        """Find the readers of all fields. Raises `TypeError` naming class and field."""
        hints = _hints(self.cls)
        for name in self._fields:
            try:
                self._readers[name] = reader_of(hints[name])
            except TypeError as error:
                raise TypeError(f"{self.cls.__qualname__}.{name}: {error}") from None
        kinds = {name: _flat_kinds(hints[name]) for name in self._fields}
        self.take = self._taker(*self._parted(kinds))
        self._atoms, self._others = self._parted(
            {name: found for name, found in kinds.items() if found <= _ATOMS}
        )

    def _parted(self, kinds: Mapping[str, frozenset[type]]) -> tuple[Kinds, Readers]:
        """Fields for which a type is enough, and the rest with their readers."""
        enough = tuple((name, found) for name, found in kinds.items() if found)
        rest = self._fields.keys() - dict(enough).keys()
        return enough, tuple((name, self._readers[name]) for name in self._fields if name in rest)

    def read(self, payload: Any) -> Any:
        """An instance from a JSON object. Raises `Invalid`."""
        return self.take(payload.copy() if type(payload) is dict else payload)

    def _taker(self, flat: Kinds, deep: Readers) -> Reader:
        """The way for a payload that has every field: most have, and all of them pass here."""

        def read(payload: dict[str, Any]) -> None:
            name = ""
            try:
                for name, reader in deep:
                    payload[name] = reader(payload[name])
            except Invalid as error:
                raise within(name, error) from None

        checks = (
            f" and type(payload[{name!r}]) in kinds_{at}" for at, (name, _) in enumerate(flat)
        )
        scope: dict[str, Any] = {f"kinds_{at}": kinds for at, (_, kinds) in enumerate(flat)}
        scope |= {"cls": self.cls, "fill": self._fill, "make": _new, "read": read}
        scope |= {"length": len(self._fields), "checked": self._checked}
        exec(_TAKE.format(checks="".join(checks), read="read(payload)" if deep else "pass"), scope)
        return cast("Reader", scope["take"])

    def plain(self, instance: Any) -> dict[str, Any]:
        """The JSON object of an instance, proved to be read back. Raises `Invalid`.

        But what the encoder refuses by itself it may still have to refuse: text that is no UTF-8,
        integers beyond 64 bits, and what is nested too deeply.
        """
        values: dict[str, Any] = instance.__dict__.copy()
        try:
            for name, kinds in self._atoms:
                if type(values[name]) not in kinds:
                    return self._proved(instance)
            for name, reader in self._others:
                values[name] = plain = _plain(values[name])
                reader(plain)
        except (KeyError, Invalid):
            return self._proved(instance)
        return values if len(values) == len(self._fields) else self._proved(instance)

    def _proved(self, instance: Any) -> dict[str, Any]:
        plain: dict[str, Any] = to_json(instance)
        self.read(plain)
        return plain

    def _checked(self, payload: Any) -> Any:
        """The way for any payload, with all defaults, and with all that can be wrong."""
        if type(payload) is not dict:
            raise _wrong(payload, "an object")
        for key in payload:
            if key not in self._fields:
                raise within(key, Invalid("", "is not a known key"))
        new = _new(self.cls)
        values = {name: self._value(name, field, payload) for name, field in self._fields.items()}
        self._fill(new, values)
        return new

    def _value(self, name: str, field: Field[Any], payload: dict[str, Any]) -> Any:
        if name not in payload:
            return _default(name, field)
        try:
            return self._readers[name](payload[name])
        except Invalid as error:
            raise within(name, error) from None


def _filler(cls: type) -> Callable[[Any, dict[str, Any]], None]:
    """What gives a new instance of a class its `__dict__`, frozen or not.

    It is what `object.__setattr__` looks up each time. Raises `TypeError` for a class with slots,
    whose instances have none.
    """
    for base in cls.__mro__:
        if "__dict__" in vars(base):
            return cast("Callable[[Any, dict[str, Any]], None]", vars(base)["__dict__"].__set__)
    raise TypeError(f"{cls.__qualname__} has slots: instances are made from a __dict__")


def _default(name: str, field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    raise Invalid(name, "is missing")


def _hints(cls: type[Any]) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except NameError as error:
        raise TypeError(f"{cls.__qualname__}: {error} where the class was defined") from None


def _flat_kinds(hint: Any) -> frozenset[type]:
    """The JSON types of a field's values, if knowing one is enough to take a value as it is."""
    if hint is Any:
        return frozenset(_KINDS)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if isinstance(hint, NewType):
        return _flat_kinds(hint.__supertype__)
    if get_origin(hint) in (Union, types.UnionType):
        options = list(map(_flat_kinds, get_args(hint)))
        return frozenset().union(*options) if all(options) else frozenset()
    anything = get_origin(hint) in (dict, Mapping) and get_args(hint)[1] is Any
    return frozenset({dict}) if anything else frozenset()


_shapes: dict[type[Any], Shape] = {}
_unfinished: dict[type[Any], Shape] = {}
_lock = RLock()


def shape_of(cls: type[Any]) -> Shape:
    """The compiled shape of a dataclass, made at its first use. Raises `TypeError`."""
    return _shapes.get(cls) or _compiled(cls)


def _compiled(cls: type[Any]) -> Shape:
    """Other threads see a shape only once it and all it refers to are complete."""
    with _lock:
        if cls in _unfinished:
            return _unfinished[cls]
        outermost = not _unfinished
        shape = _unfinished[cls] = Shape(cls)
        try:
            shape.compile()
            if outermost:
                _shapes.update(_unfinished)
        finally:
            if outermost:
                _unfinished.clear()
        return shape
