"""MOHEFT's plans are trade-offs: none is dominated, none is found twice, no more than asked for."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.fingerprint import placement_hash
from tests.domain.planning.graphs import machines, problem, random_graph, resource, workflow


def points(given, **configuration) -> list[tuple[float, float]]:
    made = list(ALGORITHMS["moheft"].plans(given, configuration, lambda fraction: None))
    assert len({placement_hash(plan) for plan in made}) == len(made)
    assert len({plan.id for plan in made}) == len(made)
    return [(plan.predicted.makespan_seconds, plan.predicted.cost) for plan in made]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(0, 10_000), st.integers(1, 12))
def test_no_plan_dominates_another_and_they_are_as_many_as_asked_for(size, seed, keep):
    found = points(problem(random_graph(size, seed), machines(3, 2)), optionCount=keep)
    assert 1 <= len(found) <= keep
    assert found == sorted(found)
    assert [cost for _, cost in found] == sorted({cost for _, cost in found}, reverse=True)


def test_a_chain_has_every_trade_off_there_is():
    """Four activities one after another, a slow free and a fast dear machine, no transfers."""
    names = ["a", "b", "c", "d"]
    taken = {"a": 8.0, "b": 4.0, "c": 2.0, "d": 1.0}
    flow = workflow(taken, [("a", "b"), ("b", "c"), ("c", "d")])
    fast = resource("fast", compute_speedup=2.0, price_per_second=1.0)
    found = points(problem(flow, (fast, resource("slow"))), optionCount=100)
    every = set()
    for choice in product([True, False], repeat=4):
        quick = [taken[name] / 2 for name, chosen in zip(names, choice, strict=True) if chosen]
        slow = [taken[name] for name, chosen in zip(names, choice, strict=True) if not chosen]
        every.add((sum(quick) + sum(slow), float(sum(quick))))
    assert found == sorted(every)
    assert len(found) == 16


def test_the_ends_are_kept_when_there_is_room_for_few():
    taken = {name: 4.0 for name in "abcdef"}
    chain = [(one, two) for one, two in zip("abcdef", "bcdef", strict=False)]
    fast = resource("fast", compute_speedup=2.0, price_per_second=1.0)
    given = problem(workflow(taken, chain), (fast, resource("slow")))
    assert points(given, optionCount=2) == [(12.0, 12.0), (24.0, 0.0)]
    assert points(given, optionCount=1) == [(12.0, 12.0)]


def test_where_nothing_costs_there_is_one_plan():
    given = problem(random_graph(20), (resource("a", 2), resource("b", 2)))
    assert len(points(given)) == 1


@pytest.mark.parametrize("given", ["7", None, True, [3]])
def test_an_option_count_that_is_no_number_is_the_default(given):
    one = problem(random_graph(20), machines(3, 2))
    assert points(one, optionCount=given) == points(one)
