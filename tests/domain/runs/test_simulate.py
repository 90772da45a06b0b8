"""The deterministic simulation: the numbers of the specification, and what holds for any plan."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.errors import Invalid
from statelog.domain.runs.events import TaskCompleted, TaskQueued, TaskStarted, TransferCompleted
from statelog.domain.runs.simulate import simulate
from statelog.domain.runs.trace import Simulated, Trace, events_of
from statelog.domain.workflows.graph import bytes_between, predecessors
from statelog.infrastructure.documents import read_document
from tests.domain.runs.bundles import (
    activity,
    bundle,
    diamond,
    golden,
    link,
    place,
    request,
    resource,
)

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("STATELOG_SHARED", ROOT.parent / "shared"))
BUNDLE = SHARED / "data" / "simulation-bundle"

near = pytest.approx


def traced(document: dict[str, Any]) -> Trace:
    """The simulation of a request."""
    asked = request(document)
    return simulate(
        asked.plan,
        asked.workflow,
        asked.resources,
        asked.network_topology,
        asked.activity_profiles,
    )


def tasks(trace: Trace) -> dict[str, Simulated]:
    return {task.activity_id: task for task in trace.tasks}


def total(trace: Trace, name: str) -> float:
    return float(sum(getattr(task, name) for task in trace.tasks))


def test_the_golden_example_gives_the_documented_numbers():
    """planning case 55: 19.6 s, 0.0157, compute 9, transfer 9.7, overhead 0.9, 120 MB."""
    trace = traced(golden())
    assert (trace.makespan_seconds, trace.cost) == (near(19.6), near(0.0157))
    assert total(trace, "runtime_seconds") == near(9)
    assert sum(each.duration_seconds for each in trace.transfers) == near(9.7)
    assert total(trace, "overhead_seconds") == near(0.9)
    assert total(trace, "queue_seconds") == near(0)
    assert [each.bytes for each in trace.transfers] == [100_000_000, 20_000_000]
    times = {name: (task.started_at, task.finished_at) for name, task in tasks(trace).items()}
    assert times["prepare"] == near((0, 4.1))
    assert times["analyze"] == near((12.15, 15.85))
    assert times["summarize"] == near((17.5, 19.6))


def test_a_transfer_of_100_mb_takes_8_05_seconds():
    """planning case 43: 100 000 000 bytes at 100 Mbit/s and 0.05 s; within a resource nothing."""
    first, _ = traced(golden()).transfers
    assert first.duration_seconds == near(8.05)
    here = traced(golden(places=[place(name, "simulated-edge", order=at) for at, name in ORDERED]))
    assert here.transfers == ()


ORDERED = list(enumerate(("prepare", "analyze", "summarize")))


def expected_of(trace: Trace, expected: dict[str, Any]) -> None:
    """Fails unless a trace has every number of an `expected.json`."""
    assert trace.makespan_seconds == near(expected["makespanSeconds"])
    assert trace.cost == near(expected["cost"])
    assert total(trace, "runtime_seconds") == near(expected["computeSeconds"])
    moved = sum(each.duration_seconds for each in trace.transfers)
    assert moved == near(expected["transferSeconds"])
    assert total(trace, "overhead_seconds") == near(expected["overheadSeconds"])
    assert total(trace, "queue_seconds") == near(expected["queueSeconds"])
    assert sum(each.bytes for each in trace.transfers) == expected["transferredBytes"]
    for name, wanted in expected["tasks"].items():
        task = tasks(trace)[name]
        assert task.ready_at == near(wanted["readyAt"])
        assert task.started_at == near(wanted["startedAt"])
        assert task.finished_at == near(wanted["finishedAt"])
        assert task.runtime_seconds == near(wanted["runtimeSeconds"])
        assert task.overhead_seconds == near(wanted["overheadSeconds"])
        assert task.queue_seconds == near(wanted["queueSeconds"])


DIAMOND: dict[str, Any] = {
    "makespanSeconds": 23.1,
    "cost": 0.0336,
    "computeSeconds": 28.0,
    "transferSeconds": 2.4,
    "overheadSeconds": 1.9,
    "queueSeconds": 0,
    "transferredBytes": 55_000_000,
    "tasks": {
        "left": {
            "readyAt": 8.3,
            "startedAt": 8.3,
            "finishedAt": 19.6,
            "runtimeSeconds": 10.0,
            "overheadSeconds": 1.3,
            "queueSeconds": 0,
        }
    },
}


def test_the_diamond_gives_its_numbers():
    expected_of(traced(diamond()), DIAMOND)


@pytest.mark.skipif(not BUNDLE.is_dir(), reason="needs the bundle that STATELOG_SHARED names")
def test_the_shared_bundle_gives_the_numbers_beside_it():
    """Reads the directory that STATELOG_SHARED names; the test above is its twin."""
    document = read_document(BUNDLE / "execution-request.yaml", "request")
    trace = traced(document)
    expected = json.loads((BUNDLE / "expected.json").read_text(encoding="utf-8"))
    expected_of(trace, expected)
    assert [
        (each.producer_activity_id, each.consumer_activity_id, each.bytes)
        for each in trace.transfers
    ] == [(each["producer"], each["consumer"], each["bytes"]) for each in expected["transfers"]]


def two(cores: tuple[int, int], **given: Any) -> dict[str, Any]:
    """Two activities of 10 s on two cores of one machine, or on one."""
    orders = (0, 1) if cores[0] == cores[1] else (0, 0)
    made = {
        "resources": [resource("m")],
        "activities": [activity("a", 10), activity("b", 10)],
        "places": [
            place("a", "m", cores[0], orders[0]),
            place("b", "m", cores[1], orders[1]),
        ],
        **given,
    }
    return bundle(**made)


def test_two_tasks_on_two_lanes_run_side_by_side():
    """planning case 56: makespan 10, 20 seconds of compute."""
    trace = traced(two((0, 1)))
    assert (trace.makespan_seconds, total(trace, "runtime_seconds")) == (10, 20)


def test_lane_order_is_a_hard_constraint():
    """planning case 57: the second of one lane waits 10 s, although it depends on nothing."""
    found = tasks(traced(two((0, 0))))
    assert (found["a"].queue_seconds, found["b"].queue_seconds) == (0, 10)


def test_flows_do_not_contend():
    """planning case 74: two flows of 100 MB at one moment, each 8.05 s."""
    trace = traced(
        bundle(
            resources=[resource("x"), resource("y")],
            activities=[activity("a", 1), activity("b", 1), activity("c", 1)],
            places=[place("a", "x"), place("b", "y"), place("c", "y", 1)],
            edges=[("a", "b"), ("a", "c")],
            data=[("a", "b", 100_000_000), ("a", "c", 100_000_000)],
            links=[link("x", "y")],
        )
    )
    assert [(each.started_at, each.duration_seconds) for each in trace.transfers] == [
        near((1, 8.05)),
        near((1, 8.05)),
    ]


def test_a_data_dependency_orders_without_a_control_edge():
    """planning case 62: the consumer waits for its producer, and the transfer is counted."""
    trace = traced(golden(edges=[]))
    assert (trace.makespan_seconds, len(trace.transfers)) == (near(19.6), 2)


def test_bytes_without_a_route_cannot_move():
    """planning case 42: the error says no route, and between which resources."""
    with pytest.raises(Invalid, match="no route from 'simulated-edge' to 'simulated-cloud'"):
        traced(golden(links=[]))
    with pytest.raises(Invalid, match="no route"):
        traced(golden(links=None))


def test_without_bytes_no_route_is_needed():
    assert traced(golden(links=[], data=[])).makespan_seconds == near(4.1 + 3.7 + 2.1)


def test_a_route_may_have_several_links():
    """The soonest for the payload: a detour of fast links beats a slow direct one."""
    trace = traced(
        bundle(
            resources=[resource("x"), resource("y"), resource("z")],
            activities=[activity("a", 1), activity("b", 1)],
            places=[place("a", "x"), place("b", "y")],
            data=[("a", "b", 1_000_000)],
            links=[
                link("x", "y", bandwidthBitsPerSecond=8e4, pricePerByte=1),
                link("x", "z", bandwidthBitsPerSecond=8e7, pricePerByte=2e-6),
                link("z", "y", bandwidthBitsPerSecond=8e7, pricePerByte=3e-6),
            ],
        )
    )
    (moved,) = trace.transfers
    assert moved.route == ("x-z", "z-y")
    assert (moved.duration_seconds, moved.cost) == (near(0.3), near(5))


def test_lane_orders_against_dependencies_are_an_error():
    """4.2, step 9: nothing could ever start."""
    with pytest.raises(Invalid, match="wait for each other: a, b"):
        traced(two((0, 0), edges=[("b", "a")]))


RUNTIMES = [
    ({"metadata": {"baseRuntimeSeconds": 12}}, {}, 3, "base by speedup"),
    ({"metadata": {}}, {"profile": 5}, 5, "a profile as it is"),
    ({"metadata": {}}, {"profile": 0, "source": "measured"}, 0, "a measured 0"),
    ({"metadata": {}}, {"meta": {"executionBaseRuntimeSeconds": 6}}, 6, "of the assignment"),
    ({"metadata": {}}, {"predicted": 7}, 7, "predicted"),
    ({"metadata": {}}, {}, 2, "simulated by speedup"),
    ({"metadata": {}, "simulation": None}, {}, 0, "nothing is known"),
]


@pytest.mark.parametrize(
    ("shape", "given", "seconds", "what"), RUNTIMES, ids=[each[-1] for each in RUNTIMES]
)
def test_the_first_known_runtime_counts(
    shape: dict[str, Any], given: dict[str, Any], seconds: float, what: str
):
    """4.2, step 4, each source alone: what comes before it is not given."""
    profiles = []
    if "profile" in given:
        profiles = [
            {
                "activityTypeId": "a-type",
                "resourceId": "m",
                "runtimeSeconds": given["profile"],
                "source": given.get("source", ""),
            }
        ]
    assignment = place(
        "a",
        "m",
        metadata=given.get("meta", {}),
        predictedRuntimeSeconds=given.get("predicted", 0),
    )
    document = bundle(
        resources=[resource("m", computeSpeedup=4)],
        activities=[activity("a", 8, **shape)],
        places=[assignment],
        profiles=profiles,
    )
    assert traced(document).makespan_seconds == seconds, what


def test_the_assignment_may_say_other_overheads():
    """Machine and container each by themselves, also 0."""
    machine = resource("m", bootOverheadSeconds=5, containerOverheadSeconds=3)
    document = bundle(
        resources=[machine],
        activities=[activity("a", 1)],
        places=[place("a", "m", metadata={"bootOverheadSeconds": 0})],
    )
    (task,) = traced(document).tasks
    assert (task.overhead_seconds, task.finished_at) == (3, 4)


def test_a_resource_costs_its_window_shared_by_runtime():
    """4.2, step 7: from the first start to the last finish, idle time included."""
    machine = resource("m", pricePerSecond=2)
    document = two((0, 0), resources=[machine], activities=[activity("a", 30), activity("b", 10)])
    found = tasks(traced(document))
    assert (found["a"].cost, found["b"].cost) == (60, 20)
    idle = two((0, 1), resources=[machine], activities=[activity("a", 0), activity("b", 0)])
    assert traced(idle).cost == 0


def test_figures_beyond_all_measure_are_an_error():
    document = two((0, 0), activities=[activity("a", 1.7e308), activity("b", 1.7e308)])
    with pytest.raises(Invalid, match="not finite"):
        traced(document)


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Any small workflow on any lanes in an order that can be kept."""
    count = draw(st.integers(1, 7))
    names = [f"a{at}" for at in range(count)]
    seconds = st.floats(0, 50, allow_nan=False).map(lambda value: round(value, 3))
    pairs = [(before, after) for at, after in enumerate(names) for before in names[:at]]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8)) if pairs else []
    data = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=5)) if pairs else []
    machines = draw(st.integers(1, 3))
    return bundle(
        resources=[
            resource(
                f"m{at}",
                computeSpeedup=draw(st.sampled_from([0, 0.5, 1, 4])),
                pricePerSecond=draw(st.sampled_from([0, 0.01])),
                bootOverheadSeconds=draw(st.sampled_from([0, 0.5])),
            )
            for at in range(machines)
        ],
        activities=[activity(name, draw(seconds)) for name in names],
        places=[
            place(name, f"m{draw(st.integers(0, machines - 1))}", draw(st.integers(0, 1)), at)
            for at, name in enumerate(names)
        ],
        edges=edges,
        data=[(*pair, draw(st.integers(1, 10**9))) for pair in data],
        links=[link("m0", f"m{at}") for at in range(1, machines)],
    )


@settings(max_examples=60, deadline=None)
@given(plans())
def test_every_plan_keeps_its_edges_and_lanes(document: dict[str, Any]):
    """Nothing begins before what it waits for, its transfers and its lane; nothing is negative."""
    asked, found = request(document), tasks(traced(document))
    arrived = {
        (each.producer_activity_id, each.consumer_activity_id): each
        for each in traced(document).transfers
    }
    for name, before in predecessors(asked.workflow).items():
        for each in before:
            moved = arrived.get((each, name))
            ready = found[each].finished_at if moved is None else moved.finished_at
            assert found[name].ready_at >= ready >= found[each].finished_at
    lanes: dict[Any, list[Simulated]] = {}
    for placed in asked.plan.assignments:
        lane_id = placed.resource_id, placed.core_id
        lanes.setdefault(lane_id, []).append(found[placed.activity_id])
    for lane in lanes.values():
        assert all(a.finished_at <= b.started_at for a, b in pairwise(lane))
    for task in found.values():
        assert 0 <= task.ready_at <= task.started_at <= task.finished_at
        assert min(task.runtime_seconds, task.cost, task.queue_seconds) >= 0
    between = {pair for pair, size in bytes_between(asked.workflow).items() if size}
    places = {each.activity_id: each.resource_id for each in asked.plan.assignments}
    assert arrived.keys() == {(a, b) for a, b in between if places[a] != places[b]}


@settings(max_examples=40, deadline=None)
@given(plans(), st.integers(0, 6), st.floats(0.1, 20))
def test_a_longer_activity_makes_nothing_earlier(document: dict[str, Any], at: int, more: float):
    """Simulated times are monotone: each finish, and so the makespan."""
    longer = json.loads(json.dumps(document))
    given_activities = longer["workflow"]["activities"]
    changed = given_activities[at % len(given_activities)]
    changed["metadata"]["baseRuntimeSeconds"] += more
    changed["simulation"]["durationSeconds"] += more
    before, after = tasks(traced(document)), tasks(traced(longer))
    assert all(before[name].finished_at <= after[name].finished_at + 1e-9 for name in before)


@settings(max_examples=40, deadline=None)
@given(plans())
def test_events_are_told_in_simulated_time_order(document: dict[str, Any]):
    """planning case 58: each task is queued, started and completed, after what it waited for."""
    asked, trace = request(document), traced(document)
    events = events_of(trace, "r1", {})
    assert len(events) == 3 * len(trace.tasks) + len(trace.transfers)
    times = [when(event) for event in events]
    assert times == sorted(times)
    done: set[str] = set()
    steps: dict[str, list[type]] = {}
    for event in events:
        if isinstance(event, TransferCompleted):
            assert event.producer_activity_id in done
            continue
        assert isinstance(event, TaskQueued | TaskStarted | TaskCompleted)
        steps.setdefault(event.activity_id, []).append(type(event))
        if isinstance(event, TaskQueued):
            assert set(predecessors(asked.workflow)[event.activity_id]) <= done
        if isinstance(event, TaskCompleted):
            done.add(event.activity_id)
    assert all(each == [TaskQueued, TaskStarted, TaskCompleted] for each in steps.values())


def when(event: Any) -> float:
    """The moment of an event."""
    if isinstance(event, TaskQueued):
        return event.queued_at
    return float(event.started_at if isinstance(event, TaskStarted) else event.finished_at)
