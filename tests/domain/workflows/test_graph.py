"""A workflow's graph: both kinds of edges order activities, and the order is always the same."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelog.domain.errors import Invalid
from statelog.domain.workflows.graph import (
    bytes_between,
    edges,
    levels,
    predecessors,
    successors,
    topological_order,
)
from statelog.domain.workflows.workflow import Activity, WorkflowVersion
from tests.domain.planning.graphs import diamond, random_graph, workflow


def flow(names: str, *pairs: str, data=()) -> WorkflowVersion:
    """Activities named by a letter each, control edges as "ab", data as (from, to, bytes)."""
    return workflow(dict.fromkeys(names, 1.0), [tuple(pair) for pair in pairs], data)


def test_neighbours_are_sorted_and_each_pair_counts_once():
    given = flow("dcba", "ad", "ca", "ba", "ba", data=[("b", "a", 1), ("b", "a", 2)])
    assert predecessors(given) == {"d": ("a",), "c": (), "b": (), "a": ("b", "c")}
    assert successors(given) == {"a": ("d",), "b": ("a",), "c": ("a",), "d": ()}
    assert edges(given) == (("a", "d"), ("c", "a"), ("b", "a"))


def test_a_data_dependency_without_a_control_edge_orders_too():
    """Planning case 62."""
    given = flow("ab", data=[("b", "a", 5)])
    assert predecessors(given)["a"] == ("b",)
    assert topological_order(given) == ("b", "a")
    assert levels(given) == (("b",), ("a",))


def test_bytes_of_one_pair_are_summed():
    given = flow("abc", data=[("a", "b", 3), ("a", "c", 1), ("a", "b", 4)])
    assert bytes_between(given) == {("a", "b"): 7, ("a", "c"): 1}


def test_of_ready_activities_the_smallest_id_comes_first():
    assert topological_order(flow("zyxa", "za")) == ("x", "y", "z", "a")


def test_levels_are_the_longest_paths():
    assert levels(flow("abcde", "ab", "bc", "ac", "de")) == (("a", "d"), ("b", "e"), ("c",))
    assert levels(diamond()) == (("a",), ("b", "c"), ("d",))
    assert levels(WorkflowVersion(id="none")) == ()


def test_a_cycle_is_refused_by_its_name():
    """Planning case 38."""
    with pytest.raises(Invalid) as no:
        topological_order(flow("abcd", "ab", "bc", "cb", "cd"))
    assert (no.value.field, no.value.why) == ("dependencies", "cycle: b -> c -> b")


def test_a_cycle_through_data_is_refused():
    with pytest.raises(Invalid, match="a -> b -> a"):
        topological_order(flow("ab", "ab", data=[("b", "a", 1)]))


def test_an_activity_that_needs_itself_is_a_cycle():
    with pytest.raises(Invalid, match="a -> a"):
        topological_order(flow("a", "aa"))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (flow("a", "xa"), "dependencies[0].dependsOnActivityId"),
        (flow("a", "ax"), "dependencies[0].activityId"),
        (flow("ab", "ab", data=[("x", "a", 1)]), "dataDependencies[0].producerActivityId"),
        (flow("ab", "ab", data=[("a", "x", 1)]), "dataDependencies[0].consumerActivityId"),
        (WorkflowVersion(id="w", activities=(Activity("a"), Activity("a"))), "activities[1].id"),
    ],
)
def test_edges_to_nowhere_and_double_activities_name_their_field(given, field):
    with pytest.raises(Invalid) as no:
        topological_order(given)
    assert no.value.field == field


@given(st.integers(1, 60), st.integers(0, 1000))
def test_every_activity_comes_after_all_it_waits_for(size, seed):
    flow = random_graph(size, seed)
    order = topological_order(flow)
    place = {id: at for at, id in enumerate(order)}
    assert sorted(place) == sorted(a.id for a in flow.activities)
    assert all(place[before] < place[after] for before, after in edges(flow))
    depth = {id: at for at, level in enumerate(levels(flow)) for id in level}
    for id, above in predecessors(flow).items():
        assert depth[id] == 1 + max((depth[before] for before in above), default=-1)


def test_a_chain_deeper_than_the_stack_is_ordered():
    names = [f"n{n:05}" for n in range(5000)]
    flow = workflow(dict.fromkeys(names, 1.0), list(pairwise(names)))
    assert topological_order(flow) == tuple(names)
    assert len(levels(flow)) == 5000
