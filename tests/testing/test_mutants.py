"""`mutants` makes each mistake once, and applies it wherever the lifecycle is held."""

from __future__ import annotations

from collections import Counter
from enum import Enum

import pytest

from statelog.domain import SAME, IllegalTransition, Lifecycle
from statelog.infrastructure.testing import mutants
from statelog.infrastructure.testing.lifecycle_test import checks
from tests.domain.desk import LIFECYCLE, TICKET, Closed, Noted, Opened, Status

ROWS, STATUSES, EVENTS = 5, 4, 4


def test_each_mistake_is_made_once():
    """Rows removed, led elsewhere and added, final statuses made live; those built and the rest."""
    found = list(mutants(TICKET))
    assert Counter(mutant.kind for mutant in found) == {
        "removed": ROWS,
        "retargeted": ROWS * (STATUSES - 1),
        "added": (STATUSES * EVENTS - ROWS) * STATUSES,
        "live": 1,
    }
    assert len({mutant.name for mutant in found}) == len(found)
    assert [mutant.name for mutant in found][:2] == [
        "ticket: no Opened from NEW to OPEN",
        "ticket: no Noted from OPEN to OPEN",
    ]
    assert [mutant.name for mutant in mutants(LIFECYCLE)] == [mutant.name for mutant in found]


def test_a_mutant_differs_in_one_thing():
    """In one row, in where one row leads, or in one final status."""
    for mutant in mutants(TICKET):
        if mutant.changed is None:
            continue
        before, after = set(LIFECYCLE.rows), set(mutant.changed.rows)
        gone, new = before - after, after - before
        sizes = {"removed": (1, 0), "retargeted": (1, 1), "added": (0, 1), "live": (0, 0)}
        assert (len(gone), len(new)) == sizes[mutant.kind], mutant.name
        if mutant.kind == "retargeted":
            assert [row[:2] for row in gone] == [row[:2] for row in new]
        assert (mutant.changed.final != LIFECYCLE.final) == (mutant.kind == "live")
        assert mutant.changed.reserved == LIFECYCLE.reserved


def test_what_cannot_be_declared_is_said():
    """Without it, `OPEN` is never reached; a final status cannot be left."""
    (lost,) = [
        each for each in mutants(TICKET) if each.name == "ticket: no Opened from NEW to OPEN"
    ]
    assert lost.changed is None
    with pytest.raises(ValueError, match="cannot be built"), lost.applied():
        pass
    left = "ticket: also Opened from CLOSED to OPEN"
    assert next(each for each in mutants(TICKET) if each.name == left).changed is None


def test_everybody_sees_an_applied_mutant():
    """Also who got the lifecycle long before; and nobody does afterwards, whatever happens."""
    (mutant,) = [
        each for each in mutants(TICKET) if each.name == "ticket: no Noted from OPEN to OPEN"
    ]
    state = TICKET.apply(TICKET.blank, Opened("x"))
    with pytest.raises(IllegalTransition), mutant.applied() as lifecycle:  # noqa: PT012
        assert lifecycle is LIFECYCLE
        assert not LIFECYCLE.allows(Status.OPEN, Noted)
        assert LIFECYCLE.machine.get_transitions("Noted", Status.OPEN) == []
        TICKET.apply(state, Noted("y"))
    assert LIFECYCLE.allows(Status.OPEN, Noted)
    assert LIFECYCLE.machine.get_transitions("Noted", Status.OPEN) != []
    assert TICKET.apply(state, Noted("y")).notes == ("y",)


def test_retired_rows_stay_retired():
    """A mutant does not revive what is history."""
    for mutant in mutants(TICKET):
        if mutant.changed is not None and mutant.kind in ("added", "live"):
            retired = [row for row in mutant.changed.rows if row.retired]
            assert retired == [row for row in LIFECYCLE.rows if row.retired]


def test_a_test_that_follows_the_table_kills_no_mutant():
    """It takes each mistake for what was meant: so a table is also written by hand."""
    for mutant in mutants(TICKET):
        if mutant.changed is not None and mutant.kind != "live":
            with mutant.applied():
                for check in checks(LIFECYCLE):
                    check.run()


class Light(Enum):
    """On for ever."""

    ON = "on"


def test_a_table_of_one_row_has_few():
    """It can be removed, and no more."""
    lamp = Lifecycle(Light.ON, [(Closed, Light.ON, SAME)], name="lamp")
    assert [(mutant.kind, mutant.changed is None) for mutant in mutants(lamp)] == [
        ("removed", False)
    ]
