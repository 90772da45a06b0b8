"""A lifecycle is its table: what is declared may happen, and a table that lies is not built."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from statelog.domain import SAME, Event, IllegalTransition, Lifecycle
from tests.domain.desk import LIFECYCLE, Closed, Merged, Noted, Opened, Status

NEW, OPEN, CLOSED, LOST = Status
ROWS: list[Any] = [(Opened, NEW, OPEN), (Closed, OPEN, CLOSED)]


def test_a_row_leads_where_it_says():
    """Also a row that keeps the status."""
    assert LIFECYCLE.after(NEW, Opened) is OPEN
    assert LIFECYCLE.after(OPEN, Noted) is OPEN
    assert LIFECYCLE.after_new(OPEN, Closed) is CLOSED


def test_what_has_no_row_is_illegal():
    """The error names lifecycle, status and event."""
    assert not LIFECYCLE.allows(CLOSED, Opened)
    for ask in (LIFECYCLE.after, LIFECYCLE.after_new):
        with pytest.raises(IllegalTransition) as caught:
            ask(CLOSED, Opened)
        assert str(caught.value) == "ticket: no transition from CLOSED on Opened"


def test_a_retired_row_is_for_replay_only():
    """Old logs stay readable; nobody appends it any more."""
    assert LIFECYCLE.after(OPEN, Merged) is CLOSED
    assert not LIFECYCLE.allows(OPEN, Merged)
    with pytest.raises(IllegalTransition, match=r"Merged \(retired\)"):
        LIFECYCLE.after_new(OPEN, Merged)


def test_dictionary_and_machine_agree_everywhere():
    """The compiled table is the one that `transitions` holds, for every status and event."""
    for status in Status:
        for event in LIFECYCLE.events:
            found = LIFECYCLE.machine.get_transitions(event.__name__, status)
            targets = [Status[str(transition.dest)] for transition in found]
            try:
                assert targets == [LIFECYCLE.after(status, event)]
            except IllegalTransition:
                assert targets == []


def test_the_table_can_be_read():
    """Rows with resolved targets, and the events in order of appearance."""
    assert [tuple(row) for row in LIFECYCLE.rows][1] == (Noted, OPEN, OPEN, False)
    assert LIFECYCLE.rows[-1].retired
    assert LIFECYCLE.events == (Opened, Noted, Closed, Merged)
    assert repr(SAME) == "SAME"


def test_a_lifecycle_is_called_as_its_statuses():
    """Unless it is given a name."""
    assert Lifecycle(NEW, ROWS, reserved=[LOST]).name == "Status"


class Twice(Enum):
    A, B, C = "a", "b", "a"


def test_two_members_of_one_value_are_refused():
    """The second would silently be the first."""
    with pytest.raises(ValueError, match=r"Twice: \['C'\] repeat"):
        Lifecycle(Twice.A, [(Opened, Twice.A, Twice.B)])


def twin() -> type[Event]:
    """Another event whose class is called Closed."""

    class Closed(Event, name="test.desk.closed_elsewhere"):
        pass

    return Closed


@pytest.mark.parametrize(
    ("rows", "options", "why"),
    [
        ([*ROWS, (Opened, NEW, CLOSED)], {}, "two rows for Opened in NEW"),
        ([*ROWS, (Opened, NEW, OPEN)], {}, "two rows for Opened in NEW"),
        (ROWS, {"retired": [(Closed, OPEN, OPEN)]}, "two rows for Closed in OPEN"),
        ([*ROWS, (twin(), OPEN, CLOSED)], {}, r"two events are called \['Closed'\]"),
        (ROWS, {"final": [OPEN]}, "final OPEN is left"),
        (ROWS[:1], {}, r"unreachable and not reserved: \['CLOSED'\]"),
        ([*ROWS, (Noted, CLOSED, LOST)], {}, r"reserved but reached: \['LOST'\]"),
    ],
)
def test_a_table_that_lies_is_not_built(rows: Any, options: dict[str, Any], why: str):
    """Each defect by its own message."""
    with pytest.raises(ValueError, match=why):
        Lifecycle(NEW, rows, reserved=[LOST], **options)


def test_a_final_status_may_keep_itself():
    """Noting something on a closed ticket does not reopen it."""
    rows: list[Any] = [*ROWS, (Noted, CLOSED, SAME)]
    assert Lifecycle(NEW, rows, final=[CLOSED], reserved=[LOST]).final == {CLOSED}


def test_a_retired_row_reaches_too():
    """A status that only old logs have is no reserved one."""
    rows: list[Any] = [*ROWS, (Noted, LOST, SAME)]
    lifecycle = Lifecycle(NEW, rows, retired=[(Merged, OPEN, LOST)])
    assert lifecycle.after(OPEN, Merged) is LOST
