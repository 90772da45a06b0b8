"""Events are frozen, named by hand, and stay the same event when a page defines them again."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError

import pytest

from statelog.domain.errors import Unreadable
from statelog.domain.event import Event, Recorded, event_type, event_types


class Rang(Event, name="test.bell.rang"):
    """Somebody rang."""

    times: int
    loud: bool = False


class Silenced(Event, name="test.bell.silenced", schema=2, upcasters={1: lambda old: old}):
    """Somebody had enough."""


def recorded(**changes: object) -> Recorded:
    envelope = {
        **{"position": 7, "stream": "bell/1", "version": 2, "name": "test.bell.rang"},
        **{"schema": 1, "time": 0, "actor": "bob", "command": "c", "correlation": None},
        **{"cause": None, "meta": None, "data": b"{}", "data_hash": b"", "hash": b""},
    }
    return Recorded(**{**envelope, **changes})  # type: ignore[arg-type]


def test_an_event_is_a_frozen_dataclass():
    """Built by name or by position, compared by value, never changed."""
    rang = Rang(times=2)
    assert rang == Rang(2, False)
    assert rang != Rang(3)
    assert repr(rang) == "Rang(times=2, loud=False)"
    with pytest.raises(FrozenInstanceError):
        rang.times = 3  # type: ignore[misc]


def test_events_of_two_classes_differ():
    """Even with the same fields."""

    class Chimed(Event, name="test.bell.chimed"):
        times: int
        loud: bool = False

    chimed: Event = Chimed(2)
    assert chimed != Rang(2)


def test_an_event_is_found_by_its_stored_name():
    """And only by that."""
    assert event_type("test.bell.rang") is Rang
    assert event_type("test.bell.broke") is None
    assert event_types()["test.bell.silenced"] is Silenced
    assert (Rang.schema, Silenced.schema) == (1, 2)


def test_a_stored_name_has_one_event():
    """A second class of that name would read the first one's payloads."""
    with pytest.raises(TypeError, match=r"test\.bell\.rang is taken by Rang"):

        class Other(Event, name="test.bell.rang"):
            pass

    assert event_type("test.bell.rang") is Rang


def test_a_page_may_define_its_event_again():
    """Same file and same qualified name: a doctest or a notebook cell that ran twice."""

    def define() -> type[Event]:
        class Again(Event, name="test.bell.again"):
            pass

        return Again

    first, second = define(), define()
    assert first is not second
    assert event_type("test.bell.again") is second


def test_an_event_of_no_file_is_known_by_its_module(monkeypatch: pytest.MonkeyPatch):
    """What was typed in has no source file, and still may be typed in again."""

    def no_file(_: object) -> str:
        raise TypeError

    monkeypatch.setattr(inspect, "getfile", no_file)

    def define() -> type[Event]:
        class Typed(Event, name="test.bell.typed"):
            pass

        return Typed

    define()
    assert define() is event_type("test.bell.typed")


def test_a_new_schema_brings_its_upcasters():
    """Every version below the current one, or its old events could not be read."""
    with pytest.raises(TypeError, match=r"schema 3 has no upcaster from \[2\]"):

        class Broken(Event, name="test.bell.broken", schema=3, upcasters={1: lambda old: old}):
            pass


def test_a_subclass_without_a_name_is_not_stored():
    """Neither under its parent's name nor under any other."""

    class Louder(Rang):
        pass

    class Loudest(Louder, name="test.bell.loudest"):
        pass

    assert Louder.stored_name == ""
    assert event_type("test.bell.rang") is Rang
    assert event_type("test.bell.loudest") is Loudest
    assert Loudest(times=1).loud is False


@pytest.mark.parametrize("field", ["stored_name", "schema"])
def test_a_field_does_not_hide_what_every_event_has(field: str):
    """It would silently take the class's value as its default."""
    with pytest.raises(TypeError, match=f"cannot be named .'{field}'"):
        type("Hiding", (Event,), {"__annotations__": {field: "int"}}, name="test.bell.hiding")


def test_a_payload_is_decoded_on_first_use_and_once():
    """What nobody reads passes untouched."""
    calls: list[int] = []

    def decoder(envelope: Recorded) -> Event:
        calls.append(envelope.position)
        return Rang(1)

    rang = recorded(decoder=decoder)
    assert calls == []
    assert (rang.event, rang.event) == (Rang(1), Rang(1))
    assert calls == [7]


def test_an_event_without_a_decoder_is_unreadable():
    """The error names position and name."""
    with pytest.raises(Unreadable, match=r"event 7 \(test\.bell\.rang\)"):
        _ = recorded().event


def test_envelopes_are_compared_without_their_decoder():
    """The same stored row is the same, whoever reads it; and it has the names of the library."""
    assert recorded(decoder=lambda _: Rang(1)) == recorded()
    assert recorded() != recorded(position=8)
    assert (recorded().originator_id, recorded().originator_version) == ("bell/1", 2)
