"""Min-min and max-min, compared with looking at every ready activity each time."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.algorithms.board import Board
from statelog.domain.planning.algorithms.setting import setting
from statelog.domain.planning.algorithms.transfers import Transfers
from statelog.domain.workflows.resources import Link, Topology
from statelog.domain.workflows.workflow import Demand
from tests.domain.planning.graphs import machines, problem, random_graph, resource, workflow


def schedule(name: str, given) -> list[tuple[str, str, str, float]]:
    (plan,) = ALGORITHMS[name].plans(given, {}, lambda fraction: None)
    return [
        (a.activity_id, a.resource_id, a.core_id, a.predicted_finish_at) for a in plan.assignments
    ]


def literal(given, sign: int) -> list[tuple[str, str, str, float]]:
    """Of all ready activities and all their places, anew each time."""
    numbered = setting(given)
    transfers = Transfers(numbered)
    boards = [Board(r, len(given.workflow.activities)) for r in numbered.resources]
    done: dict[int, tuple[float, int]] = {}
    rows = []
    while len(done) < len(numbered.activities):
        offers = []
        for at, above in enumerate(numbered.before):
            if at in done or any(n not in done for n, _ in above):
                continue
            places = []
            for r in numbered.places[at]:
                ready, _ = transfers.arrival([(*done[n], size) for n, size in above], r)
                finish, _, lane = boards[r].offer(ready, numbered.seconds[at][r])
                places.append((finish, numbered.cost(at, r), r, lane))
            offers.append((at, min(places)))
        at, (finish, _, r, lane) = min(offers, key=lambda one: (sign * one[1][0], one[0]))
        boards[r].take(lane, finish)
        done[at] = (finish, r)
        place = numbered.resources[r].id
        rows.append((numbered.activities[at].id, place, f"{place}-core-{lane + 1}", finish))
    return rows


@pytest.mark.parametrize(("name", "sign"), [("min-min", 1), ("max-min", -1)])
@settings(max_examples=50, deadline=None)
@given(
    size=st.integers(1, 30),
    seed=st.integers(0, 10_000),
    places=st.integers(1, 4),
    cores=st.integers(1, 4),
)
def test_each_step_takes_what_a_look_at_everything_would(name, sign, size, seed, places, cores):
    given = problem(random_graph(size, seed), machines(places, cores))
    assert schedule(name, given) == literal(given, sign)


def test_the_short_one_first_or_the_long_one_first():
    given = problem(workflow({"a": 9, "b": 1, "c": 2}, []), (resource("r"),))
    assert [row[0] for row in schedule("min-min", given)] == ["b", "c", "a"]
    assert [row[0] for row in schedule("max-min", given)] == ["a", "c", "b"]


def test_a_lane_that_has_booted_draws_what_is_ready_elsewhere():
    """`b` is offered 58 by the plain machine; when `a` has booted the other, that offers 54."""
    flow = workflow({"a": 60, "b": 8, "p": 30}, [("p", "b")], [("p", "b", 1)])
    a, b, p = flow.activities
    b = replace(b, resources=Demand(memory_bytes=1 << 30))
    p = replace(p, metadata={"resourceSelector": "far"})
    flow = replace(flow, activities=(a, b, p))
    boots = resource("boots", compute_speedup=2.0, boot_overhead_seconds=10.0)
    far = resource("far", memory_bytes=1 << 20)
    links = tuple(
        Link("far", target, bandwidth_bits_per_second=1e12, latency_seconds=20.0)
        for target in ("boots", "plain")
    )
    net = Topology("net-v1", execution_scope_id="lab-scope", links=links)
    rows = schedule("min-min", problem(flow, (boots, far, resource("plain")), net))
    assert [(row[0], row[1], round(row[3])) for row in rows] == [
        ("p", "far", 30),
        ("a", "boots", 40),
        ("b", "boots", 54),
    ]
