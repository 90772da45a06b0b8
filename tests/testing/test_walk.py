"""`walk` passes on a sound aggregate, and finds what only a history can show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import pytest
from hypothesis import strategies as st

from statelog.domain import SAME, Aggregate, Event, Lifecycle, changed
from statelog.infrastructure.testing import walk
from tests.domain.desk import (
    TICKET,
    Closed,
    Noted,
    Opened,
    Ticket,
    TicketEvent,
    close,
    evolve,
    merge,
    note,
    open_ticket,
)

TEXT = st.text(max_size=3)
DECISIONS: dict[Any, Any] = {
    open_ticket: {"title": TEXT},
    note: {"text": TEXT},
    close: {"answer": TEXT},
    merge: {"into": TEXT},
}

TestTicket = walk(
    TICKET,
    DECISIONS,
    invariants={"a note is there once": lambda ticket: len(set(ticket.notes)) == len(ticket.notes)},
    examples=30,
)


def found(aggregate: Aggregate[Any], decisions: Any, **options: Any) -> str:
    """What a walk of a broken aggregate says, with the program that it prints."""
    case = walk(aggregate, decisions, examples=200, steps=10, **options)
    with pytest.raises(AssertionError) as caught:
        case("runTest").debug()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def test_an_invariant_that_does_not_hold_is_found():
    """By name, and with a short program that breaks it."""
    said = found(TICKET, DECISIONS, invariants={"few notes": lambda t: len(t.notes) < 2})
    assert "few notes does not hold for Ticket(" in said
    program = re.findall(r"^ *(state\b.*)$", said[said.index("state = ") :], re.M)
    assert program[0] == "state = WalkTicket()"
    calls = [re.sub(r"'.*'", "", line) for line in program[1:] if "always" not in line]
    assert calls[0] == "state.open_ticket(title=)", said
    assert calls.count("state.note(text=)") >= 2, said
    assert calls[-1] == "state.teardown()", said
    assert len(calls) <= 8, said


def program(said: str) -> str:
    """The program in what Hypothesis says, as somebody would copy it."""
    lines = said[said.index("state = ") :].splitlines()
    taken = [line.strip() for line in lines if line.strip().startswith("state")]
    return "\n".join(taken) + "\n"


def test_a_printed_program_can_be_pasted():
    """It fails the same way on its own, and passes once the aggregate is mended."""
    few = {"few notes": lambda ticket: len(ticket.notes) < 2}
    source = program(found(TICKET, DECISIONS, invariants=few))
    with pytest.raises(AssertionError, match="few notes does not hold for Ticket") as caught:
        exec(source, {"WalkTicket": walk(TICKET, DECISIONS, invariants=few).machine})
    assert "notes=(" in str(caught.value)
    many = {"few notes": lambda ticket: len(ticket.notes) < 99}
    exec(source, {"WalkTicket": walk(TICKET, DECISIONS, invariants=many).machine})


def test_a_pasted_program_may_be_refused():
    """A refusal is no failure, and nobody counts it outside of a walk."""
    state = TestTicket.machine()
    state.open_ticket(title="x")
    state.close(answer="")
    state.merge(into="7")
    state.close(answer="y")
    state.always_a_note_is_there_once()
    state.teardown()
    assert state._recorded == [Opened("x"), Closed("y")]


def test_a_fold_that_depends_on_more_than_events_is_found():
    """It gives another state each time."""
    seen: list[Event] = []

    def forgetful(ticket: Ticket, event: TicketEvent) -> Ticket:
        seen.append(event)
        return changed(evolve(ticket, event), title=str(len(seen)))

    assert "the states differ" in found(replace(TICKET, evolve=forgetful), DECISIONS)


class Packed(Event, name="test.walk.packed"):
    """Something was packed."""

    items: Mapping[str, Any]


class Box(Enum):
    """A box is a box."""

    BOX = "box"


@dataclass(frozen=True)
class Content:
    """What is in it."""

    status: Box = Box.BOX
    items: Mapping[str, Any] = field(default_factory=dict)


def pack(box: Content, *, item: str) -> list[Packed]:
    """Pack something into a tuple, which JSON does not have."""
    return [Packed({"item": (item,)})]


def test_what_the_log_gives_back_differently_is_found():
    """A tuple comes back as a list: the state decided is not the state that is loaded."""
    box = Aggregate(
        "box",
        Content(),
        lambda box, packed: changed(box, items=packed.items),
        Lifecycle(Box.BOX, [(Packed, Box.BOX, SAME)]),
    )
    said = found(box, {pack: {"item": TEXT}})
    assert "replay of pack: the states differ" in said
    assert "replayed Content(status=<Box.BOX: 'box'>, items={'item': ['']})" in said


def test_a_history_is_replayed_from_its_first_event():
    """A snapshot that is kept beside the events would be found at the end."""

    class Cached(Aggregate[Ticket]):
        def fold(self, events: Any, state: Ticket | None = None) -> Ticket:
            return super().fold(list(events)[:1] if state is None else events, state)

    cached = Cached("ticket", Ticket(), evolve, TICKET.lifecycle)
    assert "replay from the first event: the states differ" in found(cached, DECISIONS)


def test_a_bug_in_a_decision_is_found():
    """It is no refusal."""

    def crash(ticket: Ticket) -> list[Closed]:
        raise AssertionError("oops") if ticket.title else KeyError

    with pytest.raises(KeyError):
        walk(TICKET, {crash: {}}, examples=5)("runTest").debug()


def test_a_decision_may_be_called_anything():
    """Also as something that a state machine has."""

    def teardown(ticket: Ticket) -> list[Noted]:
        return []

    walk(TICKET, {teardown: {}}, examples=5)("runTest").debug()
