"""`shapes_test` notices a payload that changed, and lets one with a version of its own pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest

from statelog.domain import Event
from statelog.domain.event import event_types
from statelog.infrastructure import codec
from statelog.infrastructure.testing.shapes import Shapes, example, shape_of
from tests.domain.desk import TICKET

pytest_plugins = ["pytester"]


class Sent(Event, name="test.shapes.sent"):
    """A parcel left."""

    to: str


class Grown(
    Event,
    name="test.shapes.grown",
    schema=2,
    upcasters={1: lambda old: {"to": old["address"], "grams": 0}},
):
    """An event that was another one once."""

    to: str
    grams: int


class Kind(Enum):
    """Of parcels."""

    BIG, SMALL = "big", "small"


@dataclass(frozen=True)
class Box:
    """What is in it, boxes too."""

    kind: Kind
    lid: Literal["open", "shut"] = "shut"
    boxes: tuple[Box, ...] = ()
    tags: Mapping[str, int] | None = None


def failures(shapes: Shapes) -> list[str]:
    """What the checks say."""
    said = []
    for check in shapes.checks():
        try:
            check.run()
        except AssertionError as error:
            said.append(f"{check.name}: {error}")
    return said


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A file with the shapes of both events."""
    path = tmp_path / "shapes.json"
    shapes = Shapes(path, [Sent, Grown])
    shapes.record()
    assert failures(shapes) == []
    return path


def changed(path: Path, name: str, versions: Any) -> Path:
    """The file, saying something else of one event."""
    known = json.loads(path.read_text())
    known[name] = versions
    path.write_text(json.dumps(known))
    return path


def test_a_shape_says_what_is_stored():
    """Scalars, values, lists, objects, what may be missing, and what holds itself."""
    assert shape_of(Box) == {
        "kind": {"one of": ["big", "small"]},
        "lid?": {"one of": ["open", "shut"]},
        "boxes?": [{"same as": "Box"}],
        "tags?": {"any of": [{"*": "integer"}, "null"]},
    }
    assert example(shape_of(Box)) == {
        "kind": "big",
        "lid": "open",
        "boxes": [],
        "tags": {"key": 1},
    }
    with pytest.raises(TypeError, match="no JSON form"):
        shape_of(complex)


def test_an_example_of_every_event_is_read():
    """Of whatever is declared by now: an example that nothing reads would test nothing."""
    for name, event in event_types().items():
        if name.startswith(("execution.", "test.desk.")):
            data = codec.dump(example(shape_of(event)))
            assert type(codec.decode(name, event.schema, data)) is event


@pytest.mark.parametrize(
    ("shape", "lines"),
    [
        ({}, ['  + {\n  +  "to": "string"']),
        ({"to": "integer"}, ['  -  "to": "integer"\n', '  +  "to": "string"\n']),
        ({"to": "string", "cc?": "string"}, ['  -  "to": "string",', '  -  "cc?": "string"']),
    ],
    ids=["added", "another type", "removed"],
)
def test_a_payload_that_changed_is_told(book: Path, shape: Any, lines: list[str]):
    """Line by line, with what to do about it."""
    changed(book, "test.shapes.sent", {"1": {"shape": shape, "example": {"to": "bob"}}})
    (said,) = failures(Shapes(book, [Sent, Grown]))
    assert said.startswith(
        "test.shapes.sent 1 is as recorded: test.shapes.sent: the payload changed, "
        "and its version is still 1\n"
    )
    assert all(line in said for line in lines), said
    assert "Give the class schema=2 and\nupcasters={1: ...}" in said


def test_recording_never_covers_a_change(book: Path):
    """It writes what is new, and leaves what is there."""
    changed(book, "test.shapes.sent", {"1": {"shape": {}, "example": {"to": "bob"}}})
    before = book.read_text()
    Shapes(book, [Sent, Grown]).record()
    assert book.read_text() == before


def test_a_version_that_is_not_recorded_is_told(book: Path):
    """Nobody forgets to write down a new one."""
    changed(book, "test.shapes.grown", {"1": {"shape": {}, "example": {"address": "bob"}}})
    (said,) = failures(Shapes(book, [Sent, Grown]))
    assert said == (
        "every shape is recorded: shapes.json does not know test.shapes.grown 2: "
        "run pytest --record-shapes"
    )
    Shapes(book, [Sent, Grown]).record()
    assert failures(Shapes(book, [Sent, Grown])) == []
    assert sorted(json.loads(book.read_text())["test.shapes.grown"]) == ["1", "2"]


def test_an_old_payload_that_is_no_more_read_is_told(book: Path):
    """The upcaster is tried on the recorded example of its version."""
    known = json.loads(book.read_text())["test.shapes.grown"]
    old = {"shape": {"name": "string"}, "example": {"name": "bob"}}
    changed(book, "test.shapes.grown", {"1": old, **known})
    (said,) = failures(Shapes(book, [Sent, Grown]))
    assert said.startswith("test.shapes.grown 1 is read: a payload of version 1 is no more read: ")
    assert "upcasting from 1 failed: KeyError('address')" in said
    assert "{'name': 'bob'}" in said


def test_an_event_that_is_gone_is_told(book: Path):
    """A log may hold it."""
    (said,) = failures(Shapes(book, [Sent]))
    assert said.startswith("test.shapes.grown is declared: test.shapes.grown is recorded and no")


def test_the_events_of_an_aggregate_are_meant(tmp_path: Path):
    """And of a lifecycle: nobody forgets one."""
    names = {event.stored_name for event in TICKET.lifecycle.events}
    assert set(Shapes(tmp_path / "x", [TICKET]).events) == names
    assert set(Shapes(tmp_path / "x", [TICKET.lifecycle]).events) == names


def test_the_plug_in_records(pytester: pytest.Pytester):
    """A test fails until `--record-shapes` was given once."""
    pytester.makepyfile(
        """
        from statelog.infrastructure.testing import shapes_test
        from tests.domain.desk import TICKET
        test_shapes = shapes_test("shapes.json", events=[TICKET])
        """
    )
    pytester.syspathinsert(Path(__file__).parents[2])
    pytester.runpytest().assert_outcomes(passed=4, failed=1)
    pytester.runpytest("--record-shapes").assert_outcomes(passed=5)
    pytester.runpytest().assert_outcomes(passed=13)
