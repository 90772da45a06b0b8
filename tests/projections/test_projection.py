"""A projection is a pure fold: rows, documents, and where two documents differ."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelog.domain import Event, Invalid, PMap, Recorded, Unreadable
from statelog.projections import Projection, replay
from statelog.projections.differences import ABSENT, differing, last_changes, value_at
from statelog.projections.plain import place, to_json
from statelog.projections.projection import fold
from statelog.projections.replay import Fold, document


class Planted(Event, name="test.garden.planted"):
    kind: str


class Grew(Event, name="test.garden.grew"):
    by: int


class Dug(Event, name="test.garden.dug"):
    pass


class Rained(Event, name="test.garden.rained"):
    pass


class Season(Enum):
    SPRING, AUTUMN = "spring", "autumn"


@dataclass(frozen=True)
class Plant:
    kind: str = ""
    height: int = 0
    season: Season = Season.SPRING
    notes: Mapping[str, int] = field(default_factory=dict)


def told(event: Event) -> Callable[[Recorded], Event]:
    return lambda _: event


def log(*events: tuple[str, Event]) -> list[Recorded]:
    """Envelopes without a store, positions from 1."""
    return [
        Recorded(
            position, stream, position, event.stored_name, 1, position * 10, "bob", "c", None, None,
            None, b"", b"", b"", decoder=told(event),
        )
        for position, (stream, event) in enumerate(events, 1)
    ]  # fmt: skip


def evolve(plant: Plant, recorded: Recorded) -> Plant | None:
    match recorded.event:
        case Planted(kind=kind):
            return Plant(kind)
        case Grew(by=by):
            return Plant(plant.kind, plant.height + by, Season.AUTUMN)
    return None


GARDEN = Projection(
    "garden",
    Plant(),
    evolve,
    key=lambda recorded: recorded.stream if recorded.stream != "elsewhere" else None,
    events=(Planted, Grew, Dug),
)

EVENTS = (
    ("a", Planted("rose")),
    ("b", Planted("fern")),
    ("a", Grew(2)),
    ("elsewhere", Planted("weed")),
    ("b", Dug()),
    ("a", Grew(3)),
    ("a", Rained()),
)


def test_replay_gives_the_documents_by_key():
    """Plain JSON of the states that are left; no row for events without a key."""
    assert replay(GARDEN, log(*EVENTS)) == {
        "a": {"kind": "rose", "height": 5, "season": "autumn", "notes": {}}
    }


def test_what_is_not_read_is_never_decoded():
    """An event of a name the projection does not list may be anything."""
    events = log(*EVENTS)
    assert "event" not in events[-1].__dict__
    strange = Recorded(
        8, "a", 8, "nobody.knows.this", 1, 0, "bob", "c", None, None, None, b"", b"", b""
    )
    assert replay(GARDEN, [*events, strange]).keys() == {"a"}
    assert "event" not in events[-1].__dict__


def test_what_is_read_and_cannot_be_decoded_is_unreadable():
    """Replay says so and does not guess."""
    event = Recorded(
        8, "a", 8, Planted.stored_name, 1, 0, "bob", "c", None, None, None, b"", b"", b""
    )
    with pytest.raises(Unreadable, match="event 8"):
        replay(GARDEN, [event])


def test_a_row_that_was_removed_may_come_again_from_blank():
    """Nothing of the old row is left in the new one."""
    again = (*EVENTS[:3], ("a", Dug()), ("a", Grew(1)))
    assert replay(GARDEN, log(*again))["a"]["height"] == 1


def test_a_row_is_shown_as_the_projection_says_or_not_at_all():
    """`show` makes the document; None hides the row and keeps its state."""
    shown = Projection(
        "tall",
        Plant(),
        evolve,
        key=GARDEN.key,
        events=GARDEN.events,
        show=lambda key, plant: {"at": key, "h": plant.height} if plant.height else None,
    )
    assert replay(shown, log(*EVENTS[:3])) == {"a": {"at": "a", "h": 2}}
    assert fold(shown, log(*EVENTS[:3])).keys() == {"a", "b"}


def test_fold_and_replay_agree():
    """The plain fold and the one that stops at faults are one definition."""
    states = fold(GARDEN, log(*EVENTS))
    assert {key: document(GARDEN, key, plant) for key, plant in states.items()} == replay(
        GARDEN, log(*EVENTS)
    )


def test_a_fold_stops_before_the_event_that_it_cannot_fold():
    """All before it is folded; the fault says position, name and why."""

    def broken(plant: Plant, recorded: Recorded) -> Plant | None:
        if recorded.position == 3:
            raise KeyError("x")
        return evolve(plant, recorded)

    folding = Fold(Projection("garden", Plant(), broken, key=GARDEN.key, events=GARDEN.events))
    fault = folding.run(log(*EVENTS))
    assert fault is folding.fault
    assert str(fault) == "event 3 (test.garden.grew): KeyError: 'x'"
    assert (folding.positions, dict(folding.rows())["a"]) == ({"a": 1, "b": 2}, Plant("rose"))


def test_a_key_that_fails_is_a_fault_too():
    """Not a reason to fall over."""
    folding = Fold(
        Projection("garden", Plant(), evolve, key=lambda _: 1 // 0, events=GARDEN.events)  # type: ignore[return-value]
    )
    assert "ZeroDivisionError" in str(folding.run(log(*EVENTS)))


@given(st.lists(st.sampled_from(EVENTS), max_size=12), st.integers(0, 12))
def test_a_fold_goes_on_from_where_another_stopped(events, cut):
    """Given the states of the rows it touches, and only those."""
    recorded = log(*(event for event in events if not isinstance(event[1], Rained)))
    first = Fold(GARDEN)
    first.run(recorded[:cut])
    second = Fold(GARDEN, first.states.get)
    second.run(recorded[cut:])
    merged = {**first.states, **second.states}
    assert {key: state for key, state in merged.items() if state} == fold(GARDEN, recorded)


def test_documents_are_plain_json_in_a_given_order():
    """A dict keeps its order; what has none is sorted, so that every process says the same."""
    keys = [f"k{number}" for number in range(50)]
    shown = to_json(
        {
            "z": PurePosixPath("a/b"),
            "a": (1, Season.AUTUMN),
            "p": PMap({key: 1 for key in keys}),
            "s": frozenset(keys),
        }
    )
    assert list(shown) == ["z", "a", "p", "s"]
    assert shown["z"] == "a/b"
    assert shown["a"] == [1, "autumn"]
    assert list(shown["p"]) == shown["s"] == sorted(keys)


def test_the_order_does_not_depend_on_the_process():
    """Hashes of texts differ from process to process; documents do not."""
    code = (
        "from statelog.domain import PMap; from statelog.projections.plain import to_json;"
        "print(to_json([PMap({str(n): n for n in range(99)}), {str(n) for n in range(99)}]))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_a_document_is_a_mapping():
    """A table of rows has columns to find them by."""
    with pytest.raises(Invalid, match="a document is a mapping, not a tuple"):
        document(
            Projection(
                "x", Plant(), evolve, key=GARDEN.key, events=(), show=lambda key, state: (1,)  # type: ignore[arg-type, return-value]
            ),
            "a",
            Plant(),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a"]),
        ({"a": 1}, {"a": 1.0}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": None}, {}, ["a"]),
        ({}, {"a": None}, ["a"]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, ["a.b.c"]),
        ({"steps": {"qc 1": {"state": "a"}}}, {"steps": {"qc 1": {"state": "b"}}},
         ["steps['qc 1'].state"]),
        ({"a": [1, 2, 3]}, {"a": [1, 9, 3]}, ["a[1]"]),
        ({"a": [1, 2, 3]}, {"a": [1, 2]}, ["a"]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ["a[0].b"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, [""]),
        ({"a": 1, "b": 2, "c": 3}, {"a": 2, "b": 2, "c": 4}, ["a", "c"]),
        ([], {}, [""]),
    ],
)  # fmt: skip
def test_where_two_values_differ(one: Any, other: Any, paths: list[str]):
    """Each place as deep as it can be named."""
    assert [place(path) for path in differing(one, other)] == paths


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=6,
)


@given(JSON, JSON)
def test_a_difference_is_found_exactly_when_there_is_one(one, other):
    """And the values at its place do differ."""
    import json

    paths = list(differing(one, other))
    assert bool(paths) is (json.dumps(one) != json.dumps(other))
    for path in paths:
        left, right = value_at(one, path), value_at(other, path)
        assert left is ABSENT or right is ABSENT or json.dumps(left) != json.dumps(right)


def changes(paths: Iterable[tuple[str | int, ...]]) -> dict[str, int]:
    events = [event for event in log(*EVENTS) if event.stream == "a" and GARDEN.reads(event)]
    found = last_changes(GARDEN, "a", events, paths)
    return {place(path): recorded.position for path, recorded in found.items()}


def test_the_last_event_that_changed_a_place():
    """Not the last one that touched the row; the first one for what never changed again."""
    assert changes([("height",), ("season",), ("kind",), ("nothing",)]) == {
        "height": 6,
        "season": 3,
        "kind": 1,
    }
