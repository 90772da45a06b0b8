"""A plan may be stored and run only if every activity is somewhere, in an order that can be kept.

Each test changes one thing of a valid plan.
"""

from dataclasses import replace
from math import inf, nan

import pytest

from statelog.domain.errors import Invalid
from statelog.domain.workflows.schedule_plan import Assignment, SchedulePlan
from statelog.domain.workflows.validate import validate
from tests.domain.planning.graphs import SCOPE, diamond, mesh, resource, workflow

PLACES = (
    resource("lab", 4),
    resource("cluster", 16),
    resource("off", schedulable=False),
    resource("far", environment="elsewhere-v1"),
)
NET = mesh(["lab", "cluster"])


def at(name: str, order: int, where: str = "lab", core: str = "core-1", **given) -> Assignment:
    return Assignment(name, where, core_id=core, order_on_resource=order, **given)


VALID = SchedulePlan(
    id="p",
    workflow_version_id="flow-v1",
    execution_scope_id=SCOPE.id,
    network_topology_id=NET.id,
    assignments=(at("a", 1), at("b", 2), at("c", 0, "cluster"), at("d", 5)),
)


def check(plan: SchedulePlan, flow=None, topology=NET) -> None:
    validate(plan, flow or diamond(), PLACES, SCOPE, topology)


def moved(name: str, **given) -> SchedulePlan:
    """The valid plan with one assignment changed."""
    return replace(
        VALID,
        assignments=tuple(
            replace(a, **given) if a.activity_id == name else a for a in VALID.assignments
        ),
    )


def refusal(plan: SchedulePlan, flow=None, topology=NET) -> Invalid:
    with pytest.raises(Invalid) as no:
        check(plan, flow, topology)
    return no.value


def test_the_plan_the_others_change_is_valid():
    check(VALID)


def test_a_successor_must_come_later_on_its_lane():
    """Planning case 35."""
    assert "'d' must come after 'b'" in refusal(moved("d", order_on_resource=0)).why
    check(moved("d", order_on_resource=0, resource_id="cluster", core_id="core-2"))
    check(moved("d", order_on_resource=0, core_id="core-2"))
    check(moved("d", order_on_resource=0, slot_id="other"))


def test_a_consumer_must_come_later_on_its_lane_too():
    flow = workflow({"a": 1, "b": 1}, [], [("b", "a", 10)])
    plan = replace(VALID, assignments=(at("a", 0), at("b", 1)))
    assert "'a' must come after 'b'" in refusal(plan, flow).why


def test_an_order_is_given_once_on_a_lane():
    no = refusal(moved("b", order_on_resource=1))
    assert no.field == "assignments[1].orderOnResource"
    check(moved("c", order_on_resource=1))


def test_every_activity_is_assigned():
    """Planning case 36."""
    no = refusal(replace(VALID, assignments=VALID.assignments[:-1]))
    assert (no.field, no.why) == ("assignments", "activity 'd' is not assigned")


def test_an_activity_is_assigned_once_and_known():
    twice = replace(VALID, assignments=(*VALID.assignments, at("a", 9)))
    assert refusal(twice).field == "assignments[4].activityId"
    assert refusal(moved("b", activity_id="x")).field == "assignments[1].activityId"


@pytest.mark.parametrize(
    ("where", "why"),
    [("far", "not in scope"), ("off", "not schedulable"), ("nowhere", "no resource")],
)
def test_a_resource_is_known_in_scope_and_schedulable(where, why):
    """Planning case 37."""
    no = refusal(moved("b", resource_id=where))
    assert no.field == "assignments[1].resourceId"
    assert why in no.why


def test_dependencies_have_no_cycle_and_name_known_activities():
    """Planning case 38."""
    two = replace(VALID, assignments=(at("a", 0), at("b", 1, "cluster")))
    assert "cycle" in refusal(two, workflow({"a": 1, "b": 1}, [("a", "b"), ("b", "a")])).why
    assert "no activity 'x'" in refusal(two, workflow({"a": 1, "b": 1}, [("x", "b")])).why


def test_a_finish_is_not_before_its_start():
    """Planning case 39."""
    no = refusal(moved("b", predicted_start_at=2.0, predicted_finish_at=1.9))
    assert no.field == "assignments[1].predictedFinishAt"
    check(moved("b", predicted_start_at=2.0, predicted_finish_at=2.0))


@pytest.mark.parametrize("value", [nan, inf])
def test_predicted_times_are_finite(value):
    assert (
        refusal(moved("b", predicted_finish_at=value)).field == "assignments[1].predictedFinishAt"
    )


def test_the_topology_belongs_to_the_scope():
    """Planning case 40."""
    other = replace(NET, execution_scope_id="another")
    assert refusal(VALID, topology=other).field == "executionScopeId"
    assert refusal(replace(VALID, network_topology_id=""), topology=other).why.startswith("is")


def test_a_topology_that_is_named_is_the_one_given():
    assert refusal(replace(VALID, network_topology_id="x")).field == "networkTopologyId"
    assert refusal(VALID, topology=None).field == "networkTopologyId"
    check(replace(VALID, network_topology_id=""), topology=None)


def test_workflow_and_scope_are_those_given():
    assert refusal(replace(VALID, workflow_version_id="x")).field == "workflowVersionId"
    assert refusal(replace(VALID, execution_scope_id="x")).field == "executionScopeId"
    assert refusal(replace(VALID, execution_scope_id="")).why == "must not be empty"


def test_a_selected_resource_is_the_one_assigned_unless_overridden():
    flow = diamond()
    chooses = replace(flow.activities[1], metadata={"resourceSelector": "cluster"})
    flow = replace(flow, activities=(flow.activities[0], chooses, *flow.activities[2:]))
    assert "asks for resource 'cluster'" in refusal(VALID, flow).why
    check(moved("b", resource_id="cluster"), flow)
    check(moved("b", metadata={"resourceSelectorOverride": True}), flow)
    refusal(moved("b", metadata={"resourceSelectorOverride": "true"}), flow)
