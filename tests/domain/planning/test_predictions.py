"""What plans predict, beside what their simulation observes (4.2)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.errors import Invalid
from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.runs.simulate import simulate
from statelog.domain.workflows.resources import Topology
from tests.domain.planning.graphs import SCOPE, machines, problem, random_graph, resource, workflow

EACH = pytest.mark.parametrize("name", ALGORITHMS)


def observed(given, plan):
    return simulate(plan, given.workflow, given.resources, given.topology, given.profiles)


@EACH
@settings(max_examples=30, deadline=None)
@given(st.integers(1, 25), st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 3))
def test_where_nothing_boots_a_simulation_is_never_later_than_the_plan(
    name, size, seed, places, cores
):
    """And every activity is simulated where, and after what, it was planned."""
    resources = tuple(replace(r, boot_overhead_seconds=0.0) for r in machines(places, cores))
    one = problem(random_graph(size, seed), resources)
    for plan in ALGORITHMS[name].plans(one, {"optionCount": 4}, lambda fraction: None):
        trace = observed(one, plan)
        planned = {a.activity_id: a for a in plan.assignments}
        assert {task.activity_id for task in trace.tasks} == set(planned)
        for task in trace.tasks:
            row = planned[task.activity_id]
            assert task.resource_id == row.resource_id
            assert task.finished_at <= row.predicted_finish_at + 1e-9


@EACH
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 25), st.integers(0, 10_000))
def test_without_boots_and_detours_both_say_the_same(name, size, seed):
    """Two machines, one link: the route of the plan is that of the simulation."""
    resources = tuple(replace(r, boot_overhead_seconds=0.0) for r in machines(2, 2))
    one = problem(random_graph(size, seed), resources)
    for plan in ALGORITHMS[name].plans(one, {"optionCount": 4}, lambda fraction: None):
        for task in observed(one, plan).tasks:
            (row,) = (a for a in plan.assignments if a.activity_id == task.activity_id)
            # the planners charge the container before the start, the simulator after it
            assert task.finished_at == pytest.approx(row.predicted_finish_at)


def test_a_plan_of_heft_without_a_route_cannot_be_simulated():
    """Planning case 42: the plan counts no seconds, the simulation finds no way."""
    flow = workflow({"a": 5, "b": 5}, [("a", "b")], [("a", "b", 10)])
    one, two = flow.activities
    one = replace(one, metadata={"resourceSelector": "here"})
    two = replace(two, metadata={"resourceSelector": "there"})
    apart = Topology("net-v1", execution_scope_id=SCOPE.id)
    given = problem(
        replace(flow, activities=(one, two)), (resource("here"), resource("there")), apart
    )
    (plan,) = ALGORITHMS["heft"].plans(given, {}, lambda fraction: None)
    assert plan.predicted.makespan_seconds == 10
    assert plan.assignments[1].predicted_transfer_seconds == 0
    with pytest.raises(Invalid, match="no route"):
        observed(given, plan)
