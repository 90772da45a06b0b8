"""An aggregate decides, then folds; the lifecycle alone moves the status."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelog.domain import Aggregate, IllegalTransition, Refused, changed
from tests.domain.desk import (
    LIFECYCLE,
    TICKET,
    Closed,
    Merged,
    Noted,
    Opened,
    Status,
    Ticket,
    close,
    merge,
    note,
    open_ticket,
)

OPEN = TICKET.fold([Opened("No heat")])


@given(st.text(), st.sampled_from(Status))
def test_changed_is_replace(title: str, status: Status):
    """The same copy, made faster."""
    assert changed(OPEN, title=title, status=status) == replace(OPEN, title=title, status=status)
    assert Ticket(Status.OPEN, "No heat") == OPEN


def test_changed_knows_the_fields():
    """A slip of the pen is no new attribute."""
    with pytest.raises(AttributeError, match=r"Ticket has no \['titel'\]"):
        changed(OPEN, titel="x")


def test_events_are_folded_in_order():
    """From blank, or from a state that was read."""
    assert OPEN.status is Status.OPEN
    again = TICKET.fold([Noted("a"), Noted("b"), Closed("Bled it")], OPEN)
    assert again == Ticket(Status.CLOSED, "No heat", ("a", "b"), "Bled it")


def test_the_lifecycle_alone_moves_the_status():
    """Whatever evolve makes of it."""
    lying = Aggregate("lying", Ticket(), lambda t, e: changed(t, status=Status.LOST), LIFECYCLE)
    assert lying.apply(Ticket(), Opened("x")).status is Status.OPEN


def test_an_event_out_of_place_is_not_folded():
    """A damaged log is found where it is read."""
    with pytest.raises(IllegalTransition, match="ticket: no transition from NEW on Closed"):
        TICKET.fold([Closed("x")])


def test_a_retired_event_is_read_and_not_written():
    """Replay folds it; a decision that still returns it fails."""
    assert TICKET.fold([Merged("7")], OPEN).answer == "see 7"
    with pytest.raises(IllegalTransition, match="retired"):
        TICKET.decide(OPEN, merge, into="7")
    with pytest.raises(IllegalTransition, match="retired"):
        TICKET.apply_new(OPEN, Merged("7"))


def test_a_decision_gives_events_and_the_state_after_them():
    """Nothing else happens."""
    assert TICKET.decide(OPEN, note, text="a") == (
        (Noted("a"),),
        Ticket(Status.OPEN, "No heat", ("a",)),
    )


def test_there_are_three_ways_to_say_no():
    """Said already, forbidden by a rule, no row."""
    noted = TICKET.fold([Noted("a")], OPEN)
    assert TICKET.decide(noted, note, text="a") == ((), noted)
    with pytest.raises(Refused, match="answer"):
        TICKET.decide(noted, close, answer=" ")
    with pytest.raises(IllegalTransition):
        TICKET.decide(noted, open_ticket, title="again")


def test_every_event_of_a_decision_is_checked():
    """Also the second one, against the status the first leads to."""
    with pytest.raises(IllegalTransition, match="CLOSED on Closed"):
        TICKET.decide(OPEN, lambda ticket: [Closed("a"), Closed("b")])


def test_a_stream_is_named_after_the_aggregate():
    """Or by a pattern, when one thing lies below another."""
    assert TICKET.stream_of("4 2") == "ticket/4%202"
    nested = replace(TICKET, stream="desk/{}/ticket/{}")
    assert nested.stream_of(("north", "42")) == "desk/north/ticket/42"


def test_a_change_knows_what_it_was_decided_against():
    """The version read is the version expected, and the one after counts its events."""
    blank = TICKET.blank_of("42")
    change = blank.decide(open_ticket, title="No heat")
    assert (blank.version, change.stream, change.expect) == (0, "ticket/42", 0)
    assert (change.events, change.after.version) == ((Opened("No heat"),), 1)
    assert change.after.state == change.state == OPEN
    closing = change.after.decide(lambda ticket: [Noted("a"), Closed("b")])
    assert (closing.expect, closing.after.version) == (1, 3)


def test_a_guard_changes_nothing():
    """It only says which version must still be there."""
    loaded = TICKET.blank_of("42").decide(open_ticket, title="x").after
    guard = loaded.guard()
    assert (guard.events, guard.expect, guard.after) == ((), 1, loaded)
