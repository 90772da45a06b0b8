"""Recorded shapes of events: a payload that changes without a new version fails a test."""

from __future__ import annotations

import json
import os
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import MISSING, fields, is_dataclass
from difflib import ndiff
from enum import Enum
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple, NewType, Union, get_args, get_origin, get_type_hints

import orjson

from statelog.domain.aggregate import Aggregate
from statelog.domain.errors import Unreadable
from statelog.domain.event import Event, event_type
from statelog.domain.lifecycle import AnyLifecycle, Lifecycle
from statelog.domain.pmap import PMap
from statelog.infrastructure import codec

Shape = Any
"""What JSON a type is stored as, itself as JSON; see `shape_of`."""

Recording = dict[str, dict[str, dict[str, Any]]]
"""By stored name and version: `shape`, and `example`, a payload of that shape."""

Source = type[Event] | Aggregate[Any] | AnyLifecycle

_NAMES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_NAMES |= {None: "null", type(None): "null", Any: "any"}
_PLAIN = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "null": None, "any": {}}
HOW = "pytest --record-shapes"


class Check(NamedTuple):
    """One claim; `run` raises `AssertionError` when it does not hold."""

    name: str
    run: Callable[[], None]


def shapes_test(path: str | os.PathLike[str], *, events: Iterable[Source]) -> Callable[..., None]:
    """A pytest test, to be given a name that begins with `test_`, with one case for each claim.

    The payload of each event is what the file at `path` says of its version; the file has all of
    them; what it says of older versions is still read, through the upcasters; and no event that it
    knows is gone. `events` are event classes, or aggregates and lifecycles, whose events are meant.
    `pytest --record-shapes` writes down versions that are new, and never changes one that is there.
    """
    import pytest

    book = Shapes(Path(path), events)
    found = list(book.checks())

    @pytest.mark.parametrize("check", found, ids=[check.name for check in found])
    def test(check: Check, request: pytest.FixtureRequest) -> None:
        __tracebackhide__ = True
        if request.config.getoption("record_shapes", default=False):
            book.record()
        check.run()

    test.__doc__ = "No payload changed without a new version and an upcaster."
    return test


class Shapes:
    """A file of recorded shapes, and the events it is about."""

    def __init__(self, path: Path, events: Iterable[Source]) -> None:
        self.path = path
        self.events = {event.stored_name: event for event in _events(events)}

    def recorded(self) -> Recording:
        """What the file says; nothing when it is not there."""
        if not self.path.exists():
            return {}
        found: Recording = json.loads(self.path.read_text(encoding="utf-8"))
        return found

    def missing(self) -> Recording:
        """What the file does not say yet of the events as they are."""
        known, found = self.recorded(), Recording()
        for name, event in sorted(self.events.items()):
            version = str(event.schema)
            if version not in known.get(name, {}):
                shape = shape_of(event)
                found[name] = {version: {"shape": shape, "example": example(shape)}}
        return found

    def record(self) -> None:
        """Write down what is missing, and leave what is there as it is."""
        if not (missing := self.missing()):
            return
        known = self.recorded()
        for name, versions in missing.items():
            known.setdefault(name, {}).update(versions)
        text = json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False)
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        draft.write_text(f"{text}\n", encoding="utf-8")
        draft.replace(self.path)

    def checks(self) -> Iterator[Check]:
        """The claims one by one, for those who do not use pytest."""
        yield Check("every shape is recorded", self._complete)
        for name, event in sorted(self.events.items()):
            yield Check(f"{name} {event.schema} is as recorded", partial(self._same, event))
        for name, versions in sorted(self.recorded().items()):
            yield Check(f"{name} is declared", partial(self._declared, name))
            for version in sorted(versions, key=int):
                yield Check(f"{name} {version} is read", partial(self._read, name, version))

    def _complete(self) -> None:
        missing = [
            f"{name} {version}" for name, known in self.missing().items() for version in known
        ]
        assert not missing, f"{self.path.name} does not know {', '.join(missing)}: run {HOW}"

    def _same(self, event: type[Event]) -> None:
        __tracebackhide__ = True
        known = self.recorded().get(event.stored_name, {}).get(str(event.schema))
        shape = shape_of(event)
        if known is not None and known["shape"] != shape:
            n = event.schema
            raise AssertionError(
                f"{event.stored_name}: the payload changed, and its version is still {n}\n"
                f"{_differ(known['shape'], shape)}\n"
                f"Logs hold payloads of the recorded shape. Give the class schema={n + 1} and\n"
                f"upcasters={{{n}: ...}}, a function from the recorded payload to the new one, or\n"
                f"declare another event; then run {HOW}."
            )

    def _declared(self, name: str) -> None:
        assert name in self.events, (
            f"{name} is recorded and no more among the events: logs that hold one could not be "
            "read. Keep the class, and retire its rows."
        )

    def _read(self, name: str, version: str) -> None:
        __tracebackhide__ = True
        if event_type(name) is None:
            return
        payload = self.recorded()[name][version]["example"]
        try:
            codec.decode(name, int(version), orjson.dumps(payload))
        except Unreadable as error:
            raise AssertionError(
                f"a payload of version {version} is no more read: {error}\n  {payload}"
            ) from None


def shape_of(kind: Any) -> Shape:
    """What JSON a type is stored as.

    A word for a scalar, `[shape]` for a list, `{"*": shape}` for an object of any keys, `{field:
    shape}` for a dataclass (`field?` where it has a default), `{"one of": [...]}` for values, and
    `{"any of": [...]}`. Raises `TypeError` for a type without a JSON form.
    """
    return _shape(kind, ())


def _shape(kind: Any, within: tuple[Any, ...]) -> Shape:
    if kind in _NAMES:
        return _NAMES[kind]
    if isinstance(kind, NewType):
        return _shape(kind.__supertype__, within)
    origin, args = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, types.UnionType):
        return {"any of": [_shape(each, within) for each in args]}
    if origin is Literal:
        return {"one of": list(args)}
    if origin in (tuple, list, Sequence, Collection, set, frozenset, Set):
        return [_shape(args[0] if args else Any, within)]
    if origin in (dict, Mapping, PMap):
        return {"*": _shape(args[1] if args else Any, within)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"one of": [member.value for member in kind]}
    if isinstance(kind, type) and issubclass(kind, PurePath):
        return "string"
    if is_dataclass(kind):
        return (
            {"same as": getattr(kind, "__qualname__", "")}
            if kind in within
            else _record(kind, within)
        )
    raise TypeError(f"{kind!r} has no JSON form")


def _record(cls: Any, within: tuple[Any, ...]) -> Shape:
    hints = get_type_hints(cls)
    found = {}
    for field in fields(cls):
        given = field.default is MISSING and field.default_factory is MISSING
        name = field.name if given else f"{field.name}?"
        found[name] = _shape(hints[field.name], (*within, cls))
    return found


def example(shape: Shape) -> Any:
    """A plain payload of a shape, every field given. A shape that holds itself ends in None."""
    if isinstance(shape, str):
        return _PLAIN[shape]
    if isinstance(shape, list):
        return [] if _endless(shape[0]) else [example(shape[0])]
    if "one of" in shape:
        return shape["one of"][0]
    if "any of" in shape:
        return example(next((each for each in shape["any of"] if not _endless(each)), "null"))
    if "*" in shape:
        return {} if _endless(shape["*"]) else {"key": example(shape["*"])}
    return {name.removesuffix("?"): example(each) for name, each in shape.items()}


def _endless(shape: Shape) -> bool:
    return isinstance(shape, dict) and "same as" in shape


def _events(sources: Iterable[Source]) -> Iterator[type[Event]]:
    for source in sources:
        if isinstance(source, Aggregate):
            yield from source.lifecycle.events
        elif isinstance(source, Lifecycle):
            yield from source.events
        else:
            yield source


def _differ(before: Shape, after: Shape) -> str:
    left, right = (json.dumps(each, indent=1).splitlines() for each in (before, after))
    return "\n".join(f"  {line}" for line in ndiff(left, right) if line[0] in "-+")
