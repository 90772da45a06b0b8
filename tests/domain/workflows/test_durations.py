"""Planned durations, where activities fit, and lanes."""

import pytest

from statelog.domain.workflows.durations import (
    MEASURED,
    duration,
    fits,
    lanes,
    profile_table,
    schedulable,
    selector,
    speedup,
)
from statelog.domain.workflows.resources import Profile
from statelog.domain.workflows.workflow import Demand
from tests.domain.planning.graphs import SCOPE, activity, resource

QUICK = resource("quick", compute_speedup=4.0)


def table(*seconds: float, source: str = "") -> dict:
    return profile_table(Profile("t", "quick", taken, source=source) for taken in seconds)


def test_a_profile_goes_before_the_simulated_duration_and_that_before_a_second():
    """Planning case 44."""
    given = activity("a", 12, type="t")
    assert duration(given, QUICK, table(7)) == 7
    assert duration(given, QUICK, {}) == 3
    assert duration(activity("a", 0, type="t"), QUICK, {}) == 0.25


def test_a_profile_of_another_type_or_resource_says_nothing():
    given = activity("a", 12, type="t")
    others = profile_table([Profile("t", "slow", 9), Profile("u", "quick", 9)])
    assert duration(given, QUICK, others) == 3


def test_a_profile_without_a_runtime_says_nothing_unless_it_was_measured():
    """P20: a measured runtime of 0 counts."""
    given = activity("a", 12, type="t")
    assert duration(given, QUICK, table(0)) == 3
    assert duration(given, QUICK, table(-1, source=MEASURED)) == 3
    assert duration(given, QUICK, table(0, source=MEASURED)) == 0


def test_of_several_profiles_the_first_usable_one_counts():
    assert table(0, 5, 6) == {("t", "quick"): 5}


@pytest.mark.parametrize("given", [0.0, -2.0])
def test_no_speedup_is_a_speedup_of_one(given):
    assert speedup(resource("r", compute_speedup=given)) == 1


def test_an_activity_fits_where_there_are_its_cores_and_its_memory():
    needs = activity("a", 1, resources=Demand(cpu=2, memory_bytes=100))
    assert fits(needs, resource("r", 2, memory_bytes=100))
    assert not fits(needs, resource("r", 1, memory_bytes=100))
    assert not fits(needs, resource("r", 2, memory_bytes=99))


def test_a_capacity_that_is_not_known_is_no_limit():
    """P20."""
    needs = activity("a", 1, resources=Demand(cpu=64, memory_bytes=1 << 40))
    assert fits(needs, resource("r", 0, memory_bytes=0))


@pytest.mark.parametrize("kind", ["batch_queue", "hpc_partition", "slurm_reservation"])
def test_an_opaque_batch_target_holds_everything_on_one_lane(kind):
    needs = activity("a", 1, resources=Demand(cpu=64, memory_bytes=1 << 40))
    queue = resource("q", 8, type=kind)
    assert fits(needs, queue)
    assert lanes(queue) == (("", "q-slot"),)
    direct = resource("q", 2, type=kind, execution_target="direct")
    assert not fits(needs, direct)
    assert len(lanes(direct)) == 2


def test_a_resource_has_a_lane_for_each_core_and_at_least_one():
    assert lanes(resource("r", 2)) == (("r-core-1", ""), ("r-core-2", ""))
    assert lanes(resource("r", 0)) == (("r-core-1", ""),)


def test_schedulable_resources_of_the_scope_are_sorted():
    given = [
        resource("z"),
        resource("off", schedulable=False),
        resource("far", environment="elsewhere-v1"),
        resource("a"),
    ]
    assert [r.id for r in schedulable(given, SCOPE)] == ["a", "z"]


def test_only_a_text_selects_a_resource():
    assert selector(activity("a", 1, metadata={"resourceSelector": "lab"})) == "lab"
    assert selector(activity("a", 1, metadata={"resourceSelector": {"zone": 1}})) == ""
    assert selector(activity("a", 1)) == ""
