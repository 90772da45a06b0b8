"""What every algorithm owes: valid plans without overlaps, the same each time, and progress."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.errors import Invalid
from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.candidate import candidate
from statelog.domain.planning.problem import Problem
from statelog.domain.workflows.durations import duration, fits, profile_table
from statelog.domain.workflows.graph import bytes_between, edges, predecessors, topological_order
from statelog.domain.workflows.network import Network
from statelog.domain.workflows.resources import Profile, Topology
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.domain.workflows.validate import validate
from statelog.domain.workflows.workflow import Demand
from tests.domain.planning.graphs import (
    SHAPES,
    diamond,
    machines,
    mesh,
    problem,
    random_graph,
    resource,
    workflow,
)
from tests.house.repo import ROOT

EACH = pytest.mark.parametrize("name", ALGORITHMS)
ROUTED = sorted(set(ALGORITHMS) - {"heft"})


def plans(name: str, given: Problem, **configuration) -> list[SchedulePlan]:
    return list(ALGORITHMS[name].plans(given, configuration, lambda fraction: None))


@st.composite
def problems(draw) -> Problem:
    """Random graphs with demands, profiles and data on some edges, on a few machines."""
    flow = random_graph(draw(st.integers(1, 25)), draw(st.integers(0, 10_000)))
    wants = draw(st.lists(st.sampled_from([0, 1, 2, 3]), min_size=1, max_size=7))
    flow = replace(
        flow,
        activities=tuple(
            replace(a, resources=Demand(cpu=wants[n % len(wants)]))
            for n, a in enumerate(flow.activities)
        ),
        data_dependencies=flow.data_dependencies[:: draw(st.integers(1, 3))],
    )
    places = machines(draw(st.integers(1, 4)), 1)
    places = tuple(replace(r, cpu_capacity=3.0 + n, cpu_cores=1 + n) for n, r in enumerate(places))
    profiles = tuple(
        Profile(a.id, places[0].id, draw(st.floats(0.1, 9.0))) for a in flow.activities[::3]
    )
    limits = {"deadline_seconds": draw(st.floats(0, 60)), "budget": draw(st.floats(0, 0.2))}
    return problem(flow, places, profiles=profiles, **limits)


@EACH
@settings(max_examples=40, deadline=None)
@given(given=problems())
def test_every_plan_passes_the_validator_also_with_its_final_ids(name, given):
    for plan in plans(name, given, optionCount=5):
        made = candidate(plan, session_id="s", run_id="s-r", algorithm=name, objective="time")
        for one in (plan, made.plan):
            validate(one, given.workflow, given.resources, given.scope, given.topology)


@EACH
@settings(max_examples=40, deadline=None)
@given(given=problems())
def test_activities_wait_for_their_data_and_for_their_lane(name, given):
    network = Network(given.topology)
    sizes = bytes_between(given.workflow)
    for plan in plans(name, given, optionCount=5):
        rows = {a.activity_id: a for a in plan.assignments}
        for before, after in edges(given.workflow):
            one, two = rows[before], rows[after]
            size = sizes.get((before, after), 0)
            route = network.route(one.resource_id, two.resource_id, size)
            moved = route.seconds if route is not None and size else 0.0
            assert two.predicted_ready_at >= one.predicted_finish_at + moved - 1e-9
        for row in plan.assignments:
            assert row.predicted_start_at >= row.predicted_ready_at
        for lane in lanes_of(plan).values():
            assert [a.order_on_resource for a in lane] == list(range(len(lane)))
            for one, two in pairwise(lane):
                assert two.predicted_start_at >= one.predicted_finish_at


def lanes_of(plan: SchedulePlan) -> dict:
    lanes: dict = {}
    for a in sorted(plan.assignments, key=lambda a: a.order_on_resource):
        lanes.setdefault((a.resource_id, a.core_id, a.slot_id), []).append(a)
    return lanes


@EACH
@settings(max_examples=40, deadline=None)
@given(given=problems())
def test_times_and_costs_add_up(name, given):
    table = profile_table(given.profiles)
    by_id = {r.id: r for r in given.resources}
    kinds = {a.id: a for a in given.workflow.activities}
    bound = shortest(given, table)
    for plan in plans(name, given, optionCount=5):
        for lane in lanes_of(plan).values():
            for at, a in enumerate(lane):
                place = by_id[a.resource_id]
                seconds = duration(kinds[a.activity_id], place, table)
                assert fits(kinds[a.activity_id], place)
                assert a.predicted_runtime_seconds == seconds
                assert a.predicted_finish_at == a.predicted_start_at + seconds
                assert a.predicted_cost == seconds * place.price_per_second
                free = lane[at - 1].predicted_finish_at if at else 0.0
                boot = 0.0 if at else place.boot_overhead_seconds
                wait = max(a.predicted_ready_at, free) + boot + place.container_overhead_seconds
                assert a.predicted_start_at == pytest.approx(wait)
        makespan = max(a.predicted_finish_at for a in plan.assignments)
        cost = sum(a.predicted_cost for a in plan.assignments)
        assert plan.predicted.makespan_seconds == makespan >= bound
        assert plan.predicted.cost == pytest.approx(cost)
        late = 0 < given.deadline_seconds < makespan
        dear = 0 < given.budget < plan.predicted.cost
        assert plan.predicted.feasible is not (late or dear)


def shortest(given: Problem, table) -> float:
    """The critical path with every activity where it is fastest and nothing else taking time."""
    kinds = {a.id: a for a in given.workflow.activities}
    above = predecessors(given.workflow)
    done: dict[str, float] = {}
    for id in topological_order(given.workflow):
        fastest = min(duration(kinds[id], r, table) for r in given.resources if fits(kinds[id], r))
        done[id] = fastest + max((done[before] for before in above[id]), default=0.0)
    return max(done.values())


DIGEST = """
import json
from dataclasses import asdict
from hashlib import sha256
from tests.domain.planning.test_algorithms import digests
print(json.dumps(digests()))
"""


def digests() -> dict[str, str]:
    """A digest of all candidates of each algorithm, every byte of them."""
    given = problem(random_graph(120, 7))
    return {
        name: sha256(
            json.dumps(
                [
                    asdict(
                        candidate(
                            plan,
                            session_id="s",
                            run_id=f"s-{name}",
                            algorithm=name,
                            objective=ALGORITHMS[name].objective,
                        )
                    )
                    for plan in plans(name, given)
                ]
            ).encode()
        ).hexdigest()
        for name in ALGORITHMS
    }


def test_candidates_are_the_same_bytes_in_every_process():
    """Planning case 46: whatever order this process's sets and hashes have."""
    told = [digests(), digests()]
    for seed in ("0", "4242"):
        made = subprocess.run(
            [sys.executable, "-c", DIGEST],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(json.loads(made.stdout))
    assert told == [told[0]] * 4
    assert len(set(told[0].values())) == len(ALGORITHMS)


@EACH
def test_the_order_in_which_a_workflow_is_written_does_not_matter(name):
    """Planning case 46."""
    given = problem(random_graph(60, 3))
    flow = given.workflow
    turned = replace(
        flow,
        activities=flow.activities[::-1],
        dependencies=flow.dependencies[::-1],
        data_dependencies=flow.data_dependencies[::-1],
    )
    other = replace(given, workflow=turned, resources=given.resources[::-1])
    assert plans(name, given) == plans(name, other)


@given(st.integers(2, 40), st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_plans_that_use_the_same_time_cost_the_same(count: int, seed: int):
    """Whatever the order of placing: else one of two equal plans dominates the other by a digit."""
    flow = random_graph(count, seed)
    one = replace(resource("m"), price_per_second=0.001, compute_speedup=3.0)
    given = problem(flow, (one,))
    costs = {plan.predicted.cost for name in ALGORITHMS for plan in plans(name, given)}
    assert len(costs) == 1


@EACH
def test_progress_is_told_for_each_activity_and_ends_at_one(name):
    told: list[float] = []
    list(ALGORITHMS[name].plans(problem(random_graph(30)), {}, told.append))
    assert told == [n / 30 for n in range(1, 31)]


class Stop(Exception):
    """Called off."""


@EACH
def test_what_the_report_raises_ends_the_planning_at_once(name):
    told = []

    def report(fraction: float) -> None:
        told.append(fraction)
        if len(told) == 3:
            raise Stop

    with pytest.raises(Stop):
        list(ALGORITHMS[name].plans(problem(random_graph(30)), {}, report))
    assert len(told) == 3


def with_second(flow, activity):
    """The diamond with another activity `b`."""
    first, _, *others = flow.activities
    return replace(flow, activities=(first, activity, *others))


@EACH
def test_without_a_place_there_is_no_plan_and_the_reason_names_it(name):
    flow = diamond()
    with pytest.raises(Invalid, match="schedulable"):
        plans(name, problem(flow, (resource("off", schedulable=False),)))
    big = replace(flow.activities[1], resources=Demand(cpu=99))
    with pytest.raises(Invalid, match="'b' fits no"):
        plans(
            name, problem(replace(flow, activities=(big, *flow.activities[2:], flow.activities[0])))
        )


@EACH
def test_a_cycle_is_no_plan(name):
    """Planning case 38."""
    with pytest.raises(Invalid, match="cycle"):
        plans(name, problem(workflow({"a": 1, "b": 1}, [("a", "b"), ("b", "a")])))


@EACH
def test_an_activity_that_asks_for_a_resource_gets_it(name):
    flow = diamond()
    asks = replace(flow.activities[1], metadata={"resourceSelector": "machine-0"})
    for plan in plans(name, problem(with_second(flow, asks))):
        rows = {a.activity_id: a.resource_id for a in plan.assignments}
        assert rows["b"] == "machine-0"


@EACH
def test_an_empty_workflow_has_an_empty_plan(name):
    (plan,) = plans(name, problem(workflow({}, [])))
    assert (plan.assignments, plan.predicted.makespan_seconds) == ((), 0)


@pytest.mark.parametrize("name", ROUTED)
def test_data_goes_only_where_a_route_leads(name):
    """The fast machine cannot be reached from the slow one that the first activity asks for."""
    flow = workflow({"a": 5, "b": 50}, [("a", "b")], [("a", "b", 10)])
    asks = replace(flow.activities[0], metadata={"resourceSelector": "slow"})
    flow = replace(flow, activities=(asks, flow.activities[1]))
    places = (resource("fast", compute_speedup=9.0), resource("slow"))
    apart = Topology("net-v1", execution_scope_id="lab-scope")
    for plan in plans(name, problem(flow, places, apart)):
        assert {a.resource_id for a in plan.assignments} == {"slow"}
        assert plan.predicted.makespan_seconds == 55
    linked = problem(flow, places, mesh(["fast", "slow"]))
    best = min(plan.predicted.makespan_seconds for plan in plans(name, linked))
    assert (best < 55) is (name != "cpop"), "cpop keeps the path on the one resource that holds it"


@pytest.mark.parametrize("name", ROUTED)
def test_data_that_can_be_brought_nowhere_is_no_plan(name):
    flow = workflow({"a": 5, "b": 50}, [("a", "b")], [("a", "b", 10)])
    one, two = flow.activities
    one = replace(one, metadata={"resourceSelector": "fast"})
    two = replace(two, metadata={"resourceSelector": "slow"})
    apart = Topology("net-v1", execution_scope_id="lab-scope")
    given = problem(
        replace(flow, activities=(one, two)), (resource("fast"), resource("slow")), apart
    )
    with pytest.raises(Invalid, match="no route brings the input of 'b' anywhere"):
        plans(name, given)


@pytest.mark.parametrize("shape", SHAPES)
def test_generated_graphs_have_the_size_they_are_asked_for(shape):
    for size in (10, 100, 1000):
        flow = SHAPES[shape](size)
        assert len(topological_order(flow)) == size
        assert len(edges(flow)) < 5 * size


@EACH
def test_a_resource_of_a_billion_cores_costs_no_more_than_the_activities_can_use(name):
    huge = resource("huge", 10**18)
    (plan, *_) = plans(name, problem(random_graph(40), (huge,)))
    assert plan.predicted.makespan_seconds < 1e6


@EACH
@pytest.mark.parametrize(
    ("seconds", "place"),
    [
        (1e308, {"compute_speedup": 1e-9}),
        (1e308, {"compute_speedup": 1.0}),
        (1e300, {"price_per_second": 1e300}),
        (1.0, {"boot_overhead_seconds": float("inf")}),
        (1.0, {"container_overhead_seconds": float("inf")}),
        (1.0, {"price_per_second": float("nan")}),
    ],
)
def test_what_is_beyond_all_measure_is_no_plan(name, seconds, place):
    """Neither endless planning nor a plan that cannot be stored."""
    flow = workflow(dict.fromkeys("abc", seconds), list(pairwise("abc")))
    with pytest.raises(Invalid, match="finite"):
        plans(name, problem(flow, (resource("r", **place),)))
