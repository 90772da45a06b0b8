"""Ranks, Pareto flags and domination, also compared with their definitions read out."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelog.domain.planning.ranking import dominates, feasible, rank
from statelog.domain.workflows.schedule_plan import Predicted


@dataclass(frozen=True)
class Sample:
    id: str
    predicted: Predicted
    feasible: bool = True


def sample(id: str, makespan: float, cost: float, able: bool = True) -> Sample:
    return Sample(id, Predicted(makespan, cost, able), able)


def test_feasible_then_pareto_then_makespan_then_cost():
    """Planning case 24."""
    ranked = rank(
        [
            sample("A", 10, 5),
            sample("B", 8, 9),
            sample("C", 12, 4),
            sample("D", 11, 6),
            sample("E", 7, 3, able=False),
        ]
    )
    assert [one.id for one in ranked] == ["B", "A", "C", "D", "E"]
    assert [one.rank for one in ranked] == [1, 2, 3, 4, 5]
    assert {one.id for one in ranked if one.pareto_optimal} == {"A", "B", "C"}
    assert {one.id for one in ranked if one.dominated} == {"D", "E"}


def test_equal_candidates_do_not_dominate_each_other_and_keep_their_order():
    """Planning case 25."""
    ranked = rank([sample("Y", 10, 5), sample("X", 10, 5)])
    assert [one.id for one in ranked] == ["Y", "X"]
    assert all(one.pareto_optimal and not one.dominated for one in ranked)


def test_without_a_feasible_candidate_none_is_dominated_or_optimal():
    """Planning case 12."""
    ranked = rank([sample("A", 9, 1, False), sample("B", 8, 2, False), sample("C", 8, 1, False)])
    assert [one.id for one in ranked] == ["C", "B", "A"]
    assert not any(one.pareto_optimal or one.dominated for one in ranked)


def test_no_candidates_have_no_ranks():
    assert rank([]) == ()


@pytest.mark.parametrize(
    ("makespan", "deadline", "within"),
    [(10, 10, True), (10.0001, 10, False), (1e9, 0, True), (1e9, -1, True)],
)
def test_a_limit_holds_what_meets_it_and_zero_is_none(makespan, deadline, within):
    """Planning case 28."""
    assert feasible(makespan, 0, deadline, 0) is within
    assert feasible(0, makespan, 0, deadline) is within


def test_both_limits_must_be_met():
    assert not feasible(11, 1, 10, 10)
    assert not feasible(1, 11, 10, 10)
    assert feasible(10, 10, 10, 10)


FEW = st.integers(0, 4).map(float)
SAMPLES = st.lists(st.tuples(FEW, FEW, st.booleans()), max_size=12).map(
    lambda rows: [sample(f"c{n}", *row) for n, row in enumerate(rows)]
)


@given(SAMPLES)
def test_flags_are_what_comparing_every_pair_says(samples):
    beaten = {right.id for left in samples for right in samples if dominates(left, right)}
    ranked = {one.id: one for one in rank(samples)}
    for one in samples:
        assert ranked[one.id].dominated is (one.id in beaten)
        assert ranked[one.id].pareto_optimal is (one.feasible and one.id not in beaten)


@given(SAMPLES)
def test_ranks_are_a_permutation_in_the_stated_order(samples):
    """Planning case 14."""
    ranked = rank(samples)
    by_id = {one.id: (at, one) for at, one in enumerate(samples)}
    assert [one.rank for one in ranked] == list(range(1, 1 + len(samples)))

    def key(one):
        at, given = by_id[one.id]
        predicted = given.predicted
        first = (not given.feasible, not one.pareto_optimal)
        return (*first, predicted.makespan_seconds, predicted.cost, at)

    assert [key(one) for one in ranked] == sorted(key(one) for one in ranked)
    assert {one.id for one in ranked} == set(by_id)


@given(SAMPLES)
def test_nothing_infeasible_dominates_and_nothing_dominates_itself(samples):
    for left in samples:
        assert not dominates(left, left)
        assert left.feasible or not any(dominates(left, right) for right in samples)
