"""Fingerprints see the placement alone, and a candidate's plan gets ids of its own."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelog.domain.errors import Invalid
from statelog.domain.planning.candidate import candidate, reidentified
from statelog.domain.planning.fingerprint import fingerprint, placement_hash
from statelog.domain.workflows.schedule_plan import (
    Assignment,
    LifecycleAction,
    Predicted,
    SchedulePlan,
)

PLAN = SchedulePlan(
    id="tmp",
    algorithm="heft",
    predicted=Predicted(5.0, 2.0, True),
    assignments=(
        Assignment("a", "lab", id="x", plan_id="tmp", core_id="c1", predicted_finish_at=2.0),
        Assignment("b", "lab", id="y", plan_id="tmp", core_id="c1", order_on_resource=1),
    ),
    lifecycle_actions=(
        LifecycleAction("tmp-1", "tmp", "lab", action="provision"),
        LifecycleAction("tmp-2", "tmp", "lab", action="stop", depends_on=("tmp-1", "y", "else")),
    ),
)


def emitted(plan: SchedulePlan = PLAN, run: str = "s-heft", **limits):
    return candidate(plan, session_id="s", run_id=run, algorithm="heft", objective="time", **limits)


def changed(**given) -> SchedulePlan:
    """The plan with its first assignment changed."""
    first, *rest = PLAN.assignments
    return replace(PLAN, assignments=(replace(first, **given), *rest))


@pytest.mark.parametrize(
    "same",
    [
        replace(PLAN, id="other", metadata={"n": 1}, algorithm="cpop", algorithm_version="9"),
        replace(PLAN, lifecycle_actions=()),
        replace(PLAN, assignments=PLAN.assignments[::-1]),
        changed(id="z", plan_id="z", metadata={"m": 1}, priority=7),
        changed(predicted_start_at=-0.0),
        changed(predicted_finish_at=2),
    ],
)
def test_ids_metadata_and_the_order_of_the_list_are_not_in_the_hash(same):
    assert placement_hash(same) == placement_hash(PLAN)


@pytest.mark.parametrize(
    "other",
    [
        replace(PLAN, predicted=Predicted(5.1, 2.0)),
        replace(PLAN, predicted=Predicted(5.0, 2.1)),
        replace(PLAN, assignments=PLAN.assignments[:1]),
        changed(activity_id="z"),
        changed(resource_id="z"),
        changed(core_id="z"),
        changed(slot_id="z"),
        changed(order_on_resource=7),
        changed(predicted_ready_at=1.0),
        changed(predicted_start_at=1.0),
        changed(predicted_finish_at=1.0),
        changed(predicted_runtime_seconds=1.0),
        changed(predicted_transfer_seconds=1.0),
        changed(predicted_cost=1.0),
    ],
)
def test_everything_of_the_placement_is_in_the_hash(other):
    assert placement_hash(other) != placement_hash(PLAN)


def test_a_prediction_that_is_no_number_has_no_hash():
    with pytest.raises(Invalid, match="finite"):
        placement_hash(changed(predicted_cost=float("nan")))


def test_the_same_plan_from_one_run_is_one_candidate():
    """Planning case 26."""
    assert emitted(replace(PLAN, id="again")) == emitted()


def test_the_same_placement_from_two_algorithms_is_two_candidates():
    """Planning case 27."""
    one, two = emitted(run="s-heft"), emitted(run="s-cpop")
    assert one.fingerprint != two.fingerprint
    assert one.id != two.id
    assert one.placement_hash == two.placement_hash


def test_ids_come_of_the_fingerprint():
    made = emitted()
    assert made.fingerprint == fingerprint("s-heft", placement_hash(PLAN))
    assert len(made.fingerprint) == 64
    assert made.id == f"candidate-{made.fingerprint[:20]}"
    assert made.plan.id == f"s-{made.fingerprint[:12]}"
    assert (made.rank, made.pareto_optimal, made.dominated) == (0, False, False)


def test_lifecycle_ids_and_what_they_depend_on_are_rewritten():
    """Planning case 33: an action that needs an action and an assignment."""
    plan = emitted().plan
    assert [a.id for a in plan.assignments] == [f"{plan.id}-a", f"{plan.id}-b"]
    assert {a.plan_id for a in plan.assignments} == {plan.id}
    first, second = plan.lifecycle_actions
    assert (first.id, second.id) == (f"{plan.id}-lifecycle-1", f"{plan.id}-lifecycle-2")
    assert {first.schedule_plan_id, second.schedule_plan_id} == {plan.id}
    assert second.depends_on == (first.id, f"{plan.id}-b", "else")


def test_a_new_identity_changes_no_placement():
    assert placement_hash(reidentified(PLAN, "new")) == placement_hash(PLAN)
    assert reidentified(reidentified(PLAN, "b"), "a") == reidentified(PLAN, "a")


@given(st.floats(0, 20), st.floats(0, 20), st.floats(-1, 20), st.floats(-1, 20))
def test_feasible_is_said_the_same_in_candidate_and_plan(makespan, cost, deadline, budget):
    plan = replace(PLAN, predicted=Predicted(makespan, cost, feasible=True))
    made = emitted(plan, deadline_seconds=deadline, budget=budget)
    late, dear = 0 < deadline < makespan, 0 < budget < cost
    assert made.feasible is not (late or dear)
    assert made.plan.predicted == made.predicted == Predicted(makespan, cost, made.feasible)
    assert (made.plan.deadline_seconds, made.plan.budget) == (deadline, budget)
