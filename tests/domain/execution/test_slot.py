"""The slot: one attempt of a plan at a time, from its reservation to its release (D6, D7, D10)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from statelog.domain import Event
from statelog.domain.execution.slot import (
    NOT_STARTED,
    RECORDED,
    SLOT,
    SUPERSEDED,
    UNFINISHED,
    VOIDED,
    FloorRaised,
    GaveUp,
    Held,
    Released,
    Reporting,
    Slot,
    SlotStatus,
    admit,
    file_report,
    give_up,
    raise_floor,
    release,
)
from statelog.infrastructure.testing import scenario

ONE, TWO, LATER = (f"20260101T00000{at}000000Z_0000" for at in (1, 2, 9))
FREE, HELD, REPORTING = SlotStatus
RESERVED = {
    "holder": "h1",
    "plan_version": 3,
    "plan_generation": "g1",
    "run_token": 1,
    "execution_authority": "daemon",
    "execution_owner": None,
}
PASTS: dict[SlotStatus, tuple[Event, ...]] = {
    FREE: (),
    HELD: (Held(ONE, **RESERVED),),
    REPORTING: (Held(ONE, **RESERVED), Reporting(ONE)),
}


def test_a_plan_is_admitted_reported_and_free_again():
    """Each step leads where the next one begins."""
    held = scenario(SLOT).when(admit, execution_id=ONE, **RESERVED).then(Held(ONE, **RESERVED))
    assert held.state.status is HELD
    filed = scenario(SLOT, *PASTS[HELD]).when(file_report, execution_id=ONE).then(Reporting(ONE))
    assert filed.state.status is REPORTING
    released = scenario(SLOT, *PASTS[REPORTING]).when(release, execution_id=ONE, how=RECORDED)
    assert released.then(Released(ONE, RECORDED)).state.status is FREE
    again = scenario(SLOT, *PASTS[REPORTING], Released(ONE, RECORDED))
    again.when(admit, execution_id=TWO, **RESERVED).then(Held(TWO, **RESERVED))


@pytest.mark.parametrize("status", [HELD, REPORTING])
def test_a_plan_is_admitted_once_at_a_time(status: SlotStatus):
    """Whoever holds it, and until its result is recorded."""
    taken = scenario(SLOT, *PASTS[status])
    taken.when(admit, execution_id=TWO, **RESERVED).then_refused("slot_free")


def test_an_execution_orders_after_the_last_one():
    """Also after one that was voided."""
    past = (*PASTS[HELD], Released(ONE, VOIDED))
    scenario(SLOT, *past).when(admit, execution_id=ONE, **RESERVED).then_refused("execution_order")


@pytest.mark.parametrize("how", [UNFINISHED, VOIDED, NOT_STARTED])
def test_an_attempt_that_finishes_nothing_frees_the_plan(how: str):
    """And only while there is no report: that must be recorded first."""
    freed = scenario(SLOT, *PASTS[HELD]).when(release, execution_id=ONE, how=how)
    assert freed.then(Released(ONE, how)).state.status is FREE
    reporting = scenario(SLOT, *PASTS[REPORTING])
    reporting.when(release, execution_id=ONE, how=how).then_refused("slot_owner")


@pytest.mark.parametrize("how", [RECORDED, SUPERSEDED])
def test_a_result_is_recorded_after_its_report(how: str):
    """Never before."""
    held = scenario(SLOT, *PASTS[HELD])
    held.when(release, execution_id=ONE, how=how).then_refused("slot_owner")
    freed = scenario(SLOT, *PASTS[REPORTING]).when(release, execution_id=ONE, how=how, reason="r")
    assert freed.then(Released(ONE, how, "r")).state.status is FREE


def test_a_holder_gives_up_as_often_as_it_tried():
    """The slot stays with the report; then anybody records it."""
    once = (*PASTS[REPORTING], GaveUp(ONE, "no disk"))
    again = scenario(SLOT, *once).when(give_up, execution_id=ONE, reason="still none")
    assert again.then(GaveUp(ONE, "still none")).state.status is REPORTING
    recorded = scenario(SLOT, *once).when(release, execution_id=ONE, how=RECORDED)
    assert recorded.state.status is FREE


def test_another_execution_has_no_say():
    """In nothing that the slot's holder does."""
    held, reporting = (scenario(SLOT, *PASTS[status]) for status in (HELD, REPORTING))
    held.when(file_report, execution_id=TWO).then_refused("slot_owner")
    held.when(release, execution_id=TWO, how=UNFINISHED).then_refused("slot_owner")
    reporting.when(give_up, execution_id=TWO, reason="x").then_refused("slot_owner")
    reporting.when(release, execution_id=TWO, how=RECORDED).then_refused("slot_owner")


@pytest.mark.parametrize("status", list(SlotStatus))
def test_the_floor_is_raised_whatever_the_slot_does(status: SlotStatus):
    """It keeps its status and its holder; a lower floor says nothing new."""
    before = scenario(SLOT, *PASTS[status])
    raised = before.when(raise_floor, execution_id=LATER).then(FloorRaised(LATER))
    assert (raised.state.status, raised.state.floor) == (status, LATER)
    assert raised.state.execution_id == before.state.execution_id
    scenario(SLOT, *PASTS[status], FloorRaised(LATER)).when(
        raise_floor, execution_id=TWO
    ).then_nothing()


NEVER: Sequence[tuple[SlotStatus, Event]] = [
    (HELD, Held(TWO, **RESERVED)),
    (REPORTING, Held(TWO, **RESERVED)),
    (FREE, Reporting(ONE)),
    (REPORTING, Reporting(ONE)),
    (FREE, GaveUp(ONE, "x")),
    (HELD, GaveUp(ONE, "x")),
    (FREE, Released(ONE, RECORDED)),
]


@pytest.mark.parametrize(("status", "event"), NEVER, ids=lambda part: type(part).__name__)
def test_what_never_happens_is_refused(status: SlotStatus, event: Event):
    """Even if a decision said it."""

    def says(slot: Slot) -> list[Event]:
        return [event]

    scenario(SLOT, *PASTS[status]).when(says).then_illegal(type(event))
