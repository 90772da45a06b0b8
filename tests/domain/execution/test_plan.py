"""The plan's document: when it is a draft, when it may run, and what changes neither (1.3, 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from statelog.domain import Event
from statelog.domain.execution.plan import (
    PLAN,
    Adopted,
    Approved,
    Deleted,
    GenerationAssigned,
    Imported,
    Plan,
    PlanStatus,
    RequestFinished,
    ReturnedToDraft,
    RunRequested,
    Saved,
    Touched,
    adopt,
    approve,
    assign_generation,
    delete,
    finish,
    request,
    return_to_draft,
    save,
    touch,
)
from statelog.infrastructure.testing import scenario

ABSENT, DRAFT, APPROVED = PlanStatus
BODY = {"plan_id": "p", "realm": "r", "steps": []}
SAVED = Saved("p", "r", {}, BODY, {}, "g1", 0, -1, "daemon", None)
FINISHED = RequestFinished("x", "g1", 0, "fail_fast", "succeeded", "completed")
PASTS: dict[PlanStatus, tuple[Event, ...]] = {
    ABSENT: (),
    DRAFT: (SAVED,),
    APPROVED: (SAVED, Approved()),
}
THERE = [DRAFT, APPROVED]


def says(*events: Event) -> Any:
    """A decision that says this, whatever the plan is."""

    def decided(plan: Plan) -> Sequence[Event]:
        return events

    return decided


@pytest.mark.parametrize("status", list(PlanStatus))
def test_what_is_saved_is_a_draft(status: PlanStatus):
    """Also an approved plan that is regenerated; saved as approved is both in one append."""
    before = scenario(PLAN, *PASTS[status])
    drafted = before.when(save, body=BODY, generation="g1").then(SAVED)
    assert drafted.state.status is DRAFT
    both = before.when(save, body=BODY, generation="g1", approved=True).then(SAVED, Approved())
    assert both.state.status is APPROVED


@pytest.mark.parametrize("status", list(PlanStatus))
def test_what_is_imported_is_a_draft(status: PlanStatus):
    """A document of another store says nothing about permission here."""
    imported = scenario(PLAN, *PASTS[status]).when(says(Imported({"plan_id": "p"})))
    assert imported.state.status is DRAFT


def test_permission_is_given_and_taken_back():
    """Once; an approved plan is approved again while its request is open."""
    draft, approved = (scenario(PLAN, *PASTS[status]) for status in THERE)
    assert draft.when(approve).then(Approved()).state.status is APPROVED
    draft.when(return_to_draft).then_nothing()
    back = approved.when(return_to_draft).then(ReturnedToDraft())
    assert back.state.status is DRAFT
    again = approved.when(approve).then(Approved())
    assert again.state.status is APPROVED
    scenario(PLAN, *PASTS[APPROVED], FINISHED).when(approve).then_nothing()


@pytest.mark.parametrize("status", THERE)
def test_a_plan_that_is_there_keeps_its_permission(status: PlanStatus):
    """Whatever is asked of it, and when a result is recorded."""
    before = scenario(PLAN, *PASTS[status])
    for outcome in (
        before.when(request).then(RunRequested(1)),
        before.when(touch).then(Touched()),
        before.when(adopt, authority="run_once").then(Adopted("run_once", None)),
        before.when(finish, result=FINISHED).then(FINISHED),
        before.when(says(GenerationAssigned("g2"))),
    ):
        assert outcome.state.status is status
    before.when(assign_generation, generation="g2").then_nothing()


@pytest.mark.parametrize("status", THERE)
def test_a_deleted_plan_is_gone_and_may_be_saved_again(status: PlanStatus):
    """As if it had never been there."""
    gone = scenario(PLAN, *PASTS[status]).when(delete).then(Deleted())
    assert gone.state.status is ABSENT
    again = scenario(PLAN, *PASTS[status], Deleted())
    assert again.when(save, body=BODY, generation="g1").state.status is DRAFT


@pytest.mark.parametrize(
    ("decision", "given"),
    [
        (approve, {}),
        (return_to_draft, {}),
        (request, {}),
        (touch, {}),
        (adopt, {"authority": "run_once"}),
        (delete, {}),
        (assign_generation, {"generation": "g"}),
        (finish, {"result": FINISHED}),
    ],
)
@pytest.mark.parametrize("past", [(), (SAVED, Deleted())], ids=["never", "deleted"])
def test_a_plan_that_is_not_there_is_refused(decision: Any, given: Any, past: tuple[Event, ...]):
    """By a rule, before the table is asked."""
    scenario(PLAN, *past).when(decision, **given).then_refused("plan_exists")


ONLY_OF_WHAT_IS_THERE: Sequence[Event] = (
    *(Approved(), ReturnedToDraft(), RunRequested(1), Touched(), Adopted("run_once", None)),
    *(GenerationAssigned("g"), FINISHED, Deleted()),
)


@pytest.mark.parametrize("event", ONLY_OF_WHAT_IS_THERE, ids=lambda event: type(event).__name__)
def test_nothing_happens_to_a_plan_that_is_not_there(event: Event):
    """Even if a decision said so; and a draft has no permission to take back."""
    scenario(PLAN).when(says(event)).then_illegal(type(event))
    scenario(PLAN, SAVED).when(says(ReturnedToDraft())).then_illegal(ReturnedToDraft)
