"""What is stored reads back as it was, and what cannot be is refused by its place."""

from __future__ import annotations

import importlib
import pkgutil
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, Literal, NewType

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import statelog.domain
from statelog.domain import Event, Invalid, PMap, Unreadable
from statelog.domain.event import event_types
from statelog.infrastructure.codec import decode, dump, encode, escaped, from_json, parse, to_json
from statelog.infrastructure.json_values import dump_ordered, dump_plain
from statelog.infrastructure.testing import strategies


class Colour(Enum):
    RED, GREEN = "red", "green"


Metres = NewType("Metres", float)


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0
    label: str | None = None


@dataclass(frozen=True)
class Tree:
    name: str
    below: tuple[Tree, ...] = ()


class Everything(Event, name="test.codec.everything", schema=3, upcasters={
    1: lambda payload: {"text": payload["txt"], "number": payload["number"]},
    2: lambda payload: {**payload, "number": payload["number"] + 100},
}):  # fmt: skip
    text: str
    number: int
    real: float = 0.5
    flag: bool = False
    nothing: None = None
    anything: Any = None
    maybe: str | None = None
    either: str | int | None = None
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] = "a"
    length: Metres = Metres(0.0)
    path: PurePosixPath = PurePosixPath("a")
    point: Point = Point(1)
    maybe_point: Point | None = None
    tree: Tree = Tree("root")
    names: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()
    listed: list[int] = field(default_factory=list)
    free: Mapping[str, Any] = field(default_factory=dict)
    by_name: Mapping[str, Point] = field(default_factory=dict)
    persistent: PMap[str, Point] = field(default_factory=PMap)
    one_of: frozenset[str] = frozenset()


class Small(Event, name="test.codec.small"):
    metrics: Mapping[str, Any]


def declared() -> list[type[Event]]:
    """Every event of the product, and those of this file."""
    for module in pkgutil.walk_packages(statelog.domain.__path__, "statelog.domain."):
        importlib.import_module(module.name)
    ours = ("statelog.", "tests.infrastructure.test_codec", __name__)
    return [cls for _, cls in sorted(event_types().items()) if cls.__module__.startswith(ours)]


@pytest.mark.parametrize("cls", declared(), ids=lambda cls: cls.stored_name)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_declared_event_reads_back_as_it_was(cls: type[Event], data: st.DataObject):
    """Twice the same bytes, and the same event with fields of the same types."""
    event = data.draw(strategies.events(cls))
    stored = encode(event)
    again = decode(cls.stored_name, cls.schema, stored)
    assert again == event
    assert encode(again) == stored
    assert types_of(again) == types_of(event)


def types_of(value: Any) -> Any:
    """The types of all fields and elements: `[1] != (1,)` is not seen by every `==`."""
    if isinstance(value, tuple | list):
        return type(value), [types_of(item) for item in value]
    if hasattr(value, "__dict__") and not isinstance(value, Enum | PurePosixPath):
        return type(value), {key: types_of(item) for key, item in sorted(vars(value).items())}
    return type(value)


def test_the_sample_uses_every_kind_of_field():
    """The round trip above is only as good as the events it draws from."""
    assert Everything in declared()


def test_stored_bytes_are_canonical():
    """Sorted keys at every depth and no spaces: equal events have equal bytes."""
    assert encode(Small({"b": 1, "a": {"d": (1, 2), "c": None}})) == (
        b'{"metrics":{"a":{"c":null,"d":[1,2]},"b":1}}'
    )


def test_a_nested_value_is_read_as_its_class():
    """Not as the mapping it is stored as, and lists come back as tuples."""
    tree = Tree("a", (Tree("b", (Tree("c"),)),))
    assert from_json(Tree, parse(dump(tree))) == tree


@pytest.mark.parametrize(
    ("schema", "payload", "text", "number"),
    [
        (1, b'{"txt":"old","number":1}', "old", 101),
        (2, b'{"text":"newer","number":1}', "newer", 101),
        (3, b'{"text":"now","number":1}', "now", 1),
    ],
)
def test_upcasters_run_one_after_the_other(schema: int, payload: bytes, text: str, number: int):
    """From the version that was stored to the one the code has."""
    event = decode("test.codec.everything", schema, payload)
    assert isinstance(event, Everything)
    assert (event.text, event.number) == (text, number)


@pytest.mark.parametrize(
    ("name", "schema", "payload", "why"),
    [
        ("test.codec.nowhere", 1, b"{}", "no event of this name"),
        ("test.codec.small", 1, None, "erased or archived"),
        ("test.codec.small", 1, b"{", "is not JSON"),
        ("test.codec.small", 1, b"[]", "must be an object, not a list"),
        ("test.codec.small", 1, b"{}", "metrics: is missing"),
        ("test.codec.small", 1, b'{"metrics":{},"more":1}', "more: is not a known key"),
        ("test.codec.small", 1, b'{"metrics":[]}', "metrics: must be an object, not a list"),
        ("test.codec.small", 2, b'{"metrics":{}}', "schema: 2 is unknown"),
        ("test.codec.small", 0, b'{"metrics":{}}', "schema: 0 is unknown"),
        ("test.codec.everything", 1, b"{}", "upcasting from 1 failed: KeyError('txt')"),
        ("test.codec.everything", 3, b'{"text":1,"number":1}', "text: must be text, not an int"),
        ("test.codec.everything", 3, b'{"text":"","number":true}', "number: must be an integer"),
        (
            "test.codec.everything",
            3,
            b'{"text":"","number":1,"points":[{"x":1},{"x":"1"}]}',
            "points[1].x: must be an integer, not text",
        ),
        (
            "test.codec.everything",
            3,
            b'{"text":"","number":1,"by_name":{"a b":{"z":1}}}',
            "by_name['a b'].z: is not a known key",
        ),
        (
            "test.codec.everything",
            3,
            b'{"text":"","number":1,"colour":"blue"}',
            "colour: must be one of 'red', 'green', not 'blue'",
        ),
    ],
)
def test_what_cannot_be_read_says_where_and_why(name, schema, payload, why):
    """Position and name in the error, and the place within the payload."""
    with pytest.raises(Unreadable) as caught:
        decode(name, schema, payload, position=17)
    assert (caught.value.position, caught.value.name) == (17, name)
    assert why in str(caught.value)


@dataclass(frozen=True)
class Part:
    key: str
    digest: str


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    made: int = 0


def test_the_first_of_a_kind_is_like_all_that_follow():
    """A view that shows `vars` of an event would else be another in each process."""
    payload = {"made": 1, "parts": [{"digest": "d", "key": "k"}] * 2}
    for _ in range(2):
        whole = from_json(Whole, payload)
        assert list(vars(whole)) == ["made", "parts"]
        assert [list(vars(part)) for part in whole.parts] == [["digest", "key"]] * 2


def test_a_payload_like_one_seen_before_is_still_checked():
    """The short cut for a known set of keys and types does not swallow a fault inside."""
    good = encode(Everything("", 1, points=(Point(1),), names=("a",)))
    assert decode("test.codec.everything", 3, good) == decode("test.codec.everything", 3, good)
    bad = good.replace(b'"names":["a"]', b'"names":[1]')
    with pytest.raises(Unreadable, match=r"names\[0\]: must be text"):
        decode("test.codec.everything", 3, bad)
    bad = good.replace(b'"number":1', b'"number":"1"')
    with pytest.raises(Unreadable, match="number: must be an integer"):
        decode("test.codec.everything", 3, bad)


@pytest.mark.parametrize(
    ("metrics", "place", "why"),
    [
        ({"gc": [0.1, 0.2, 0.3, float("nan")]}, "metrics.gc[3]", "nan"),
        ({"gc": float("inf")}, "metrics.gc", "inf"),
        ({"n": 2**64}, "metrics.n", "beyond 64 bits"),
        ({"n": -(2**63) - 1}, "metrics.n", "beyond 64 bits"),
        ({"a": {1: 2}}, "metrics.a", "the key 1 is not text"),
        ({"a": {None: 2}}, "metrics.a", "the key None is not text"),
        ({"name": "x\udc80"}, "metrics.name", "lone surrogate at character 1"),
        ({"a": {"\udc80": 1}}, "metrics.a['\\\\udc80']", "lone surrogate"),
        ({"a b": [{"c": object()}]}, "metrics['a b'][0].c", "of type object"),
        ({"raw": b"bytes"}, "metrics.raw", "of type bytes"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_its_place(metrics, place, why):
    """Never stored as null, never cut, never a traceback from the encoder."""
    with pytest.raises(Invalid) as caught:
        encode(Small(metrics))
    assert (caught.value.field, why in caught.value.why) == (place, True)


def test_nesting_without_end_is_refused():
    """A list within itself, and one deeper than the encoder goes."""
    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    for value in (endless, deep):
        with pytest.raises(Invalid, match="nested too deeply"):
            encode(Small({"a": value}))


def test_an_event_that_would_not_read_back_is_not_stored():
    """A value of the wrong type is refused when written, not found when the log is read."""
    with pytest.raises(Invalid, match="text: must be text, not an integer"):
        encode(Everything(1, 1))  # type: ignore[arg-type]


def test_the_limits_of_64_bits_are_stored_exactly():
    """The largest and the smallest integers that JSON in the store can hold."""
    for number in (2**64 - 1, -(2**63)):
        assert decode("test.codec.small", 1, encode(Small({"n": number}))) == Small({"n": number})


def test_a_type_without_a_json_form_is_named_with_its_field():
    """The programmer sees class and field when the event is first used."""

    @dataclass(frozen=True)
    class Wrong:
        at: complex

    @dataclass(frozen=True)
    class Ambiguous:
        at: Point | Tree

    for cls in (Wrong, Ambiguous):
        with pytest.raises(TypeError, match=rf"{cls.__name__}\.at: .* has no JSON form"):
            from_json(cls, {"at": 1})


def test_free_text_is_made_storable_by_escaping():
    """What a program printed may not be text; it is kept readable."""
    assert escaped("ok \u00e9 \udc80") == "ok \u00e9 \\udc80"
    assert parse(dump(escaped("\udcff"))) == "\\udcff"


@given(strategies.json_values())
def test_json_is_its_own_form(value):
    """Plain JSON passes unchanged, in the same bytes whatever the order of its keys."""
    assert to_json(value) == value
    assert orjson.loads(dump(value)) == value


@given(st.data())
def test_the_fast_way_to_write_a_document_says_the_same(data: st.DataObject):
    """Byte for byte what the careful one says, of every kind of field and of free JSON."""
    value = data.draw(strategies.events(Everything) | strategies.json_values())
    assert dump_ordered(value) == dump_plain(to_json(value))


class Loud(str):
    __slots__ = ()


class Odd(Enum):
    PAIR, NOTHING = (1, 2), float("nan")


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": PMap({"z": (1, 2.5), "y": Point(1)})},
        {"a": Loud("x")},
        {"a": Odd.PAIR, "b": Colour.RED},
        {"a": {"x", "y"}, "b": PurePosixPath("p")},
        Tree("t", (Tree("u"),)),
        {"a": [Metres(1.0), True, None]},
        {"a": [from_json(Point, {"label": "their own order", "x": 1, "y": 2}) for _ in "12"]},
    ],
)
def test_the_fast_way_leaves_strange_values_to_the_careful_one(value):
    """Subclasses, sets, paths, members that are no atoms."""
    assert dump_ordered(value) == dump_plain(to_json(value))


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1.0, {"b": float("nan")}]},
        {"a": Point(2**64)},
        {"a": "\udc80"},
        {1: 2},
        {"a": PMap({"b": float("inf")})},
        {"a": uuid.UUID(int=1)},
        {"a": Odd.NOTHING},
        {"a": datetime(2026, 1, 1, tzinfo=UTC)},
        {"a": b"bytes"},
        Point(1, label=b"x"),  # type: ignore[arg-type]
    ],
)
def test_the_fast_way_refuses_what_the_careful_one_refuses(value):
    """By the same place and for the same reason."""
    with pytest.raises(Invalid) as careful:
        to_json(value)
    with pytest.raises(Invalid, match=re.escape(str(careful.value))):
        dump_ordered(value)
