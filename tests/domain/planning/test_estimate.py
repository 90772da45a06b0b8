"""Estimates are computed from counts alone; HEFT's table comes out."""

from dataclasses import replace
from itertools import pairwise

import pytest

from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.estimate import Estimate, estimate, option_count, rounded
from statelog.domain.workflows.workflow import Demand
from tests.domain.planning.graphs import activity, diamond, problem, resource, workflow


def montage():
    """6,448 activities and 18,924 edges, as counts are all that matters."""
    names = [f"n{n}" for n in range(6448)]
    edges = [(names[n % 6400], names[n % 6400 + 1 + n // 6400]) for n in range(18_924)]
    return workflow(dict.fromkeys(names, 1.0), edges)


def test_the_diamond_on_two_resources():
    """Planning case 45."""
    made = estimate("heft", problem(diamond(), (resource("a"), resource("b"))))
    assert made == Estimate(
        duration_seconds=0.1,
        expanded_states=8,
        activity_count=4,
        dependency_count=4,
        compatible_resources=2,
        confidence="calibrated",
    )


def test_montage_on_380_cores():
    places = tuple(resource(f"r{n}", 95) for n in range(4))
    made = estimate("heft", problem(montage(), places))
    assert (made.activity_count, made.dependency_count) == (6448, 18_924)
    assert (made.expanded_states, made.duration_seconds) == (2_450_240, 1.4)


def test_a_resource_counts_a_lane_at_least_and_an_opaque_queue_one():
    def states(*places):
        return estimate("heft", problem(diamond(), places)).expanded_states

    assert states(resource("a", 0)) == 4
    assert states(resource("a", 0), resource("q", 64, type="batch_queue")) == 8
    assert states(resource("a", 3), resource("off", 8, schedulable=False)) == 12
    assert states() == 4


def test_a_resource_that_is_no_batch_target_must_hold_every_activity():
    flow = diamond()
    big = replace(flow.activities[0], resources=Demand(cpu=4))
    flow = replace(flow, activities=(big, *flow.activities[1:]))
    small = resource("a", 2)
    assert estimate("heft", problem(flow, (small,))).compatible_resources == 1
    direct = replace(small, execution_target="direct")
    assert estimate("heft", problem(flow, (direct,))).compatible_resources == 0


def test_control_and_data_on_one_pair_are_one_dependency():
    flow = workflow({"a": 1, "b": 1, "c": 1}, [("a", "b")], [("a", "b", 5), ("b", "c", 5)])
    assert estimate("heft", problem(flow)).dependency_count == 2


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_an_estimate_that_grows_with_the_work(name):
    small = estimate(name, problem(diamond()))
    large = estimate(name, problem(montage()))
    assert 0 < small.duration_seconds < large.duration_seconds
    assert 0 < small.expanded_states < large.expanded_states


def test_moheft_is_estimated_by_its_options():
    few = estimate("moheft", problem(diamond()), {"optionCount": 1})
    many = estimate("moheft", problem(diamond()), {"optionCount": 100})
    assert many.expanded_states == 100 * few.expanded_states
    assert estimate("moheft", problem(diamond())).expanded_states == 25 * few.expanded_states


def test_list_schedulers_are_estimated_by_the_widest_level():
    wide = problem(workflow(dict.fromkeys("abcdef", 1.0), []))
    deep = problem(workflow(dict.fromkeys("abcdef", 1.0), list(pairwise("abcdef"))))
    for name in ("min-min", "max-min"):
        assert estimate(name, wide).expanded_states == 36
        assert estimate(name, deep).expanded_states == 6


@pytest.mark.parametrize(
    ("given", "kept"),
    [(7, 7), (7.9, 7), (0, 1), (-5, 1), (1001, 1000), (float("inf"), 1000), (10**400, 1000)]
    + [(other, 25) for other in ("7", None, True, float("nan"), [7])],
)
def test_the_option_count_is_clamped_and_what_is_no_number_ignored(given, kept):
    assert option_count({"optionCount": given}) == kept
    assert option_count({}) == 25


@pytest.mark.parametrize(("seconds", "told"), [(0.25, 0.3), (0.24, 0.2), (1.416556, 1.4), (0, 0)])
def test_seconds_are_rounded_to_a_tenth_half_away_from_zero(seconds, told):
    assert rounded(seconds) == told


def test_an_activity_more_is_a_lane_count_more():
    flow = diamond()
    more = replace(flow, activities=(*flow.activities, activity("e", 1)))
    one, two = estimate("heft", problem(flow)), estimate("heft", problem(more))
    assert two.expanded_states - one.expanded_states == 32


def test_states_beyond_an_int64_are_that_many():
    made = estimate("heft", problem(diamond(), (resource("huge", 2**63 - 1),)))
    assert made.expanded_states == 2**63 - 1
