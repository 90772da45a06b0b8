"""HEFT as it is documented, number by number, and against a plain reading of its rules."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.workflows.durations import lanes
from statelog.domain.workflows.network import Network, link_seconds
from statelog.domain.workflows.resources import Link, Profile, Topology
from statelog.domain.workflows.workflow import Demand
from tests.domain.planning.graphs import (
    SCOPE,
    activity,
    machines,
    mesh,
    problem,
    random_graph,
    resource,
    workflow,
)

EDGE = resource(
    "simulated-edge",
    2,
    type="fog_device",
    memory_bytes=2 << 30,
    compute_speedup=1.0,
    container_overhead_seconds=0.1,
)
CLOUD = resource(
    "simulated-cloud",
    8,
    type="cloud_vm",
    memory_bytes=16 << 30,
    compute_speedup=4.0,
    price_per_second=0.001,
    boot_overhead_seconds=0.5,
    container_overhead_seconds=0.2,
)
LINK = Link(
    "simulated-edge",
    "simulated-cloud",
    bandwidth_bits_per_second=100e6,
    latency_seconds=0.05,
    price_per_byte=1e-10,
    bidirectional=True,
)
NET = Topology("net-v1", execution_scope_id=SCOPE.id, links=(LINK,))
NO_LINKS = Topology("net-v1", execution_scope_id=SCOPE.id)


def example():
    """Prepare, analyze, summarize: 4, 12 and 2 seconds, 100 MB and 20 MB between them."""
    edges = [("prepare", "analyze"), ("analyze", "summarize")]
    data = [("prepare", "analyze", 100_000_000), ("analyze", "summarize", 20_000_000)]
    return workflow({"prepare": 4, "analyze": 12, "summarize": 2}, edges, data)


def heft(given):
    (plan,) = ALGORITHMS["heft"].plans(given, {}, lambda fraction: None)
    return plan


def test_the_documented_example_goes_to_the_first_cloud_lane():
    """Planning case 41."""
    plan = heft(problem(example(), (EDGE, CLOUD), NET))
    rows = plan.assignments
    assert [a.activity_id for a in rows] == ["prepare", "analyze", "summarize"]
    assert {(a.resource_id, a.core_id) for a in rows} == {
        ("simulated-cloud", "simulated-cloud-core-1")
    }
    assert [a.predicted_start_at for a in rows] == pytest.approx([0.7, 1.9, 5.1])
    assert [a.predicted_finish_at for a in rows] == pytest.approx([1.7, 4.9, 5.6])
    assert [a.order_on_resource for a in rows] == [0, 1, 2]
    assert [a.predicted_transfer_seconds for a in rows] == [0, 0, 0]
    assert plan.predicted.makespan_seconds == pytest.approx(5.6)
    assert plan.predicted.cost == pytest.approx(0.0045)
    assert (plan.algorithm, plan.algorithm_version, plan.source) == ("heft", "1", "plugin")


def split(topology):
    """Two activities that fit on different resources only."""
    flow = workflow({"a": 2, "b": 2}, [("a", "b")], [("a", "b", 100_000_000)])
    first, second = flow.activities
    first = replace(first, metadata={"resourceSelector": "simulated-edge"})
    second = replace(second, resources=Demand(memory_bytes=3 << 30))
    return problem(replace(flow, activities=(first, second)), (EDGE, CLOUD), topology)


def test_without_a_link_a_transfer_takes_no_time_and_the_pair_is_named():
    """Planning case 42, P15."""
    plan = heft(split(NO_LINKS))
    first, second = plan.assignments
    assert (first.resource_id, second.resource_id) == ("simulated-edge", "simulated-cloud")
    assert second.predicted_transfer_seconds == 0
    assert second.predicted_ready_at == first.predicted_finish_at
    assert plan.metadata["warnings"] == [
        "no route from simulated-edge to simulated-cloud: transfers counted as 0 s"
    ]


def test_order_alone_needs_no_link():
    given = split(NO_LINKS)
    plan = heft(replace(given, workflow=replace(given.workflow, data_dependencies=())))
    assert len({a.resource_id for a in plan.assignments}) == 2
    assert not plan.metadata


def test_with_a_link_the_transfer_is_counted_and_nothing_is_warned_of():
    plan = heft(split(NET))
    first, second = plan.assignments
    assert second.predicted_transfer_seconds == pytest.approx(8.05)
    assert second.predicted_ready_at == pytest.approx(first.predicted_finish_at + 8.05)
    assert not plan.metadata


def test_a_detour_is_no_direct_link():
    """HEFT does not look for routes; the warning says that there is one."""
    detour = Topology(
        "net-v1",
        execution_scope_id=SCOPE.id,
        links=(
            Link("simulated-edge", "switch", bandwidth_bits_per_second=1e6),
            Link("switch", "simulated-cloud", bandwidth_bits_per_second=1e6),
        ),
    )
    plan = heft(split(detour))
    assert plan.assignments[1].predicted_transfer_seconds == 0
    assert plan.metadata["warnings"] == [
        "no direct link from simulated-edge to simulated-cloud: transfers counted as 0 s"
    ]


def test_a_profile_is_planned_as_it_is():
    """Planning case 44."""
    flow = workflow({"a": 12}, [])
    quick = (resource("quick", compute_speedup=4.0),)
    assert heft(problem(flow, quick)).predicted.makespan_seconds == 3
    profiles = (Profile("a", "quick", 7),)
    assert heft(problem(flow, quick, profiles=profiles)).predicted.makespan_seconds == 7
    assert heft(problem(workflow({"a": 0}, []), quick)).predicted.makespan_seconds == 0.25


def test_a_data_dependency_alone_makes_the_consumer_wait():
    """Planning case 62."""
    flow = workflow({"a": 5, "b": 5}, [], [("a", "b", 10)])
    assert heft(problem(flow, (resource("r", 2),))).predicted.makespan_seconds == 10


def test_a_place_that_does_not_lengthen_the_plan_is_chosen_by_its_cost():
    """The smallest partial makespan wins, not the earliest finish: the free machine is slower."""
    flow = workflow({"a-long": 20, "b-short": 2}, [])
    quick = resource("a-quick", compute_speedup=2.0, price_per_second=1.0)
    slow = resource("b-slow", 2, compute_speedup=1.0)
    plan = heft(problem(flow, (quick, slow)))
    where = {a.activity_id: a.resource_id for a in plan.assignments}
    assert where == {"a-long": "a-quick", "b-short": "b-slow"}


def literal(given):
    """The rules of 3.5 with nothing made fast: (activity, resource, lane, start, finish)."""
    flow, places = given.workflow, given.schedulable
    network = Network(given.topology)
    sizes: dict = {}
    for data in flow.data_dependencies:
        pair = (data.producer_activity_id, data.consumer_activity_id)
        sizes[pair] = sizes.get(pair, 0) + data.size_bytes
    pairs = {(d.depends_on_activity_id, d.activity_id) for d in flow.dependencies} | set(sizes)
    seconds = {
        (a.id, r.id): a.simulation.duration_seconds / r.compute_speedup
        for a in flow.activities
        for r in places
    }
    waiting = {a.id for a in flow.activities}
    order: list = []
    while waiting:
        ready = [id for id in waiting if not any(b == id and a in waiting for a, b in pairs)]
        order.append(min(ready))
        waiting.remove(min(ready))
    rank: dict = {}
    for id in reversed(order):
        whole = 0.0
        for r in places:
            whole += seconds[id, r.id]
        rank[id] = whole / len(places) + max((rank[b] for a, b in pairs if a == id), default=0)
    free: dict = {}
    done: dict = {}
    rows, makespan, cost = [], 0.0, 0.0
    for id in sorted(order, key=lambda one: -rank[one]):
        options = []
        for r in places:
            arrival = 0.0
            for before in (a for a, b in pairs if b == id):
                where, finish = done[before]
                link = network.direct(where, r.id) if where != r.id else None
                moved = link_seconds(link, sizes.get((before, id), 0)) if link else 0.0
                arrival = max(arrival, finish + moved)
            for lane in lanes(r):
                start = max(arrival, free.get((r.id, lane), 0.0))
                if (r.id, lane) not in free:
                    start += r.boot_overhead_seconds
                start += r.container_overhead_seconds
                finish = start + seconds[id, r.id]
                price = cost + seconds[id, r.id] * r.price_per_second
                options.append(((max(makespan, finish), price), r, lane, start, finish))
        (makespan, cost), r, lane, start, finish = min(options, key=lambda option: option[0])
        free[r.id, lane] = finish
        done[id] = (r.id, finish)
        rows.append((id, r.id, lane, start, finish))
    return rows


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from([3.0, 50.0, 1000.0]),
)
def test_it_places_as_the_rules_read_out_do(size, seed, places, cores, megabits):
    resources = machines(places, cores)
    topology = mesh([r.id for r in resources[:3]], megabits=megabits)
    flow = random_graph(size, seed)
    flow = replace(flow, data_dependencies=flow.data_dependencies[::2])
    given = problem(flow, resources, topology)
    rows = [
        (a.activity_id, a.resource_id, (a.core_id, a.slot_id), *times(a))
        for a in heft(given).assignments
    ]
    assert rows == literal(given)


def times(a) -> tuple[float, float]:
    return a.predicted_start_at, a.predicted_finish_at


def test_an_activity_that_asks_for_a_resource_goes_there():
    chooses = activity("a", 4, metadata={"resourceSelector": "simulated-edge"})
    flow = replace(workflow({}, []), activities=(chooses,))
    assert heft(problem(flow, (EDGE, CLOUD), NET)).assignments[0].resource_id == "simulated-edge"
