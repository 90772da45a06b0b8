"""A scenario passes when the decision says what was expected, and shows both sides when not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from statelog.domain import Event
from statelog.infrastructure.testing import scenario
from statelog.infrastructure.testing.scenario import side_by_side
from tests.domain.desk import (
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

OPEN = scenario(TICKET, Opened("No heat"))


def message(check: Callable[[], object]) -> str:
    """What a scenario that fails says."""
    with pytest.raises(AssertionError) as caught:
        check()
    return str(caught.value)


def test_what_was_expected_passes():
    """Each way of saying yes and each way of saying no."""
    assert scenario(TICKET).state == Ticket()
    assert OPEN.when(close, answer="Bled it").then(Closed("Bled it")).state.status is Status.CLOSED
    noted = scenario(TICKET, Opened("x"), Noted("a"))
    assert noted.when(note, text="a").then_nothing().state == noted.state
    OPEN.when(close, answer=" ").then_refused("answer")
    scenario(TICKET).when(open_ticket, title="").then_invalid("title")
    OPEN.when(open_ticket, title="again").then_illegal(Opened)
    OPEN.when(merge, into="7").then_illegal(Merged)


def test_retired_events_may_be_given():
    """They are history."""
    assert scenario(TICKET, Opened("x"), Merged("7")).state.answer == "see 7"


def test_a_past_that_cannot_be_is_reported():
    """With the event that does not fit, and those before it."""
    assert message(lambda: scenario(TICKET, Opened("x"), Noted("a"), Opened("y"))) == (
        "given event 3, Opened(title='y'): ticket: no transition from OPEN on Opened\n"
        "  1. Opened(title='x')\n"
        "  2. Noted(text='a')"
    )


def test_other_events_are_shown_side_by_side():
    """A mark where the two differ."""
    assert message(lambda: OPEN.when(close, answer="Bled it").then(Closed("Bled the pump"))) == (
        "ticket: close(answer='Bled it') after 1 event gave other events\n"
        "  expected                 | actual\n"
        "  Closed                   | Closed\n"
        "!   answer='Bled the pump' |   answer='Bled it'"
    )


def test_equal_events_stay_level():
    """One event too many does not shift the rest."""

    def busy(ticket: Ticket) -> list[Event]:
        return [Noted("a"), Noted("b"), Closed("c")]

    assert message(lambda: OPEN.when(busy).then(Noted("b"), Closed("c"), Noted("d"))) == (
        "ticket: busy() after 1 event gave other events\n"
        "  expected     | actual\n"
        "!              | Noted\n"
        "!              |   text='a'\n"
        "  Noted        | Noted\n"
        "    text='b'   |   text='b'\n"
        "  Closed       | Closed\n"
        "    answer='c' |   answer='c'\n"
        "! Noted        |\n"
        "!   text='d'   |"
    )


def test_a_no_is_shown_where_events_were_expected():
    """With its rule."""
    assert message(lambda: OPEN.when(close, answer="").then(Closed(""))) == (
        "ticket: close(answer='') after 1 event gave other events\n"
        "  expected    | actual\n"
        "! Closed      | Refused\n"
        "!   answer='' |   a ticket is closed with an answer [answer]"
    )


def test_events_are_shown_where_a_no_was_expected():
    """And the other way round."""
    assert message(lambda: OPEN.when(close, answer="x").then_refused("answer")) == (
        "ticket: close(answer='x') after 1 event was not refused by rule 'answer'\n"
        "  expected         | actual\n"
        "! Refused [answer] | Closed\n"
        "!                  |   answer='x'"
    )


@pytest.mark.parametrize(
    ("check", "why"),
    [
        (lambda: OPEN.when(close, answer="").then_refused("title"), "by rule 'title'"),
        (lambda: OPEN.when(close, answer="").then_invalid("answer"), "find 'answer' invalid"),
        (lambda: scenario(TICKET).when(open_ticket, title="").then_invalid("x"), "find 'x'"),
        (lambda: OPEN.when(close, answer="").then_illegal(Closed), "run into the lifecycle"),
        (lambda: OPEN.when(open_ticket, title="x").then_illegal(Closed), "by Closed"),
        (lambda: OPEN.when(open_ticket, title="x").then_refused("Opened"), "by rule 'Opened'"),
        (lambda: OPEN.when(note, text="a").then_nothing(), "expected to change nothing"),
        (lambda: OPEN.when(close, answer="").then_nothing(), "expected to change nothing"),
        (lambda: OPEN.when(note, text="a").then(), "(no events)"),
        (lambda: OPEN.when(note, text="a").then(Noted("a"), Noted("a")), "gave other events"),
        (lambda: OPEN.when(close, answer="").state, "said no: Refused: a ticket is closed"),
        (lambda: OPEN.when(close, answer="").then(), "gave other events"),
    ],
)
def test_what_was_not_expected_fails(check: Callable[[], object], why: str):
    """No check can be passed by another kind of answer."""
    assert why in message(check)


def test_a_bug_in_a_decision_is_no_answer():
    """It is raised as it is, whatever was expected."""

    def broken(ticket: Ticket) -> list[Event]:
        raise KeyError("oops")

    with pytest.raises(KeyError, match="oops"):
        OPEN.when(broken)


def test_long_values_are_wrapped():
    """Two columns fit a terminal."""
    long = "word " * 60
    shown = message(lambda: OPEN.when(note, text=long).then(Noted(long + "!")))
    assert max(map(len, shown.splitlines()[1:])) <= 100
    assert side_by_side([], []) == "  expected | actual"
