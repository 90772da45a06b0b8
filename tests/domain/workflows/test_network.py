"""Seconds and prices of transfers: one link, and the soonest of all routes."""

from itertools import pairwise, permutations
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statelog.domain.workflows.network import HERE, Network, link_seconds
from statelog.domain.workflows.resources import Link, Topology


def link(a: str, b: str, seconds: float = 0.0, megabits: float = 8.0, **given) -> Link:
    return Link(a, b, latency_seconds=seconds, bandwidth_bits_per_second=megabits * 1e6, **given)


def network(*links: Link) -> Network:
    return Network(Topology("t", links=links))


def test_a_link_takes_its_latency_and_the_bytes_at_its_bandwidth():
    """Planning case 43."""
    assert link_seconds(link("a", "b", 0.05, 100), 100_000_000) == pytest.approx(8.05)
    assert network(link("a", "b", 0.05, 100)).route("a", "a", 100_000_000) == HERE
    assert HERE.seconds == 0


def test_a_link_without_bytes_takes_its_latency_and_without_bandwidth_nothing():
    assert link_seconds(link("a", "b", 0.5), 0) == 0.5
    assert link_seconds(link("a", "b", 0.5), -1) == 0.5
    assert link_seconds(link("a", "b", 0.5, megabits=0), 10) == 0
    assert link_seconds(link("a", "b", 0.5, megabits=0), 0) == 0.5


def test_the_smallest_bandwidth_there_is_takes_for_ever():
    assert link_seconds(Link("a", "b", bandwidth_bits_per_second=5e-324), 1) == inf


def test_only_a_bidirectional_link_serves_the_way_back():
    both = network(link("a", "b", bidirectional=True))
    one = network(link("a", "b"))
    assert both.direct("b", "a") is both.direct("a", "b") is not None
    assert one.direct("b", "a") is None
    assert one.route("b", "a", 1) is None
    assert both.route("b", "a", 1) is not None


def test_the_first_direct_link_counts():
    first, second = link("a", "b", 5, bidirectional=True), link("b", "a", 1)
    assert network(first, second).direct("b", "a") is first
    assert network(second, first).direct("b", "a") is second


def test_a_route_may_take_several_links_and_costs_every_hop():
    ways = network(
        link("a", "c", 9.0, price_per_byte=1e-9),
        link("a", "b", 1.0, price_per_byte=1e-6),
        link("b", "c", 1.0, price_per_byte=2e-6),
    )
    route = ways.route("a", "c", 1_000_000)
    assert route is not None
    assert [hop.target_resource_id for hop in route.links] == ["b", "c"]
    assert route.seconds == pytest.approx(4.0)
    assert route.price == pytest.approx(3.0)


def test_the_payload_chooses_the_route():
    """Few bytes go where latency is low, many where bandwidth is high."""
    ways = network(
        link("a", "b", 0.1, megabits=8),
        link("a", "x", 0.2, megabits=8000),
        link("x", "b", 0.2, megabits=8000),
    )
    assert len(ways.route("a", "b", 1).links) == 1
    assert len(ways.route("a", "b", 10_000_000).links) == 2


def test_of_equally_fast_routes_the_one_with_fewer_links_is_taken():
    ways = network(link("a", "x", 1), link("x", "b", 1), link("a", "b", 2))
    assert len(ways.route("a", "b", 0).links) == 1


def test_what_cannot_be_reached_has_no_route():
    assert network(link("a", "b")).route("a", "z", 1) is None
    assert network().route("a", "b", 1) is None


NAMES = "abcde"
LINKS = st.lists(
    st.builds(
        link,
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.floats(0, 5),
        st.floats(0, 100),
        bidirectional=st.booleans(),
    ).filter(lambda made: made.source_resource_id != made.target_resource_id),
    max_size=8,
)


@given(LINKS, st.sampled_from([0, 1, 10_000_000]))
def test_no_path_is_faster_than_the_route(links, size):
    """Compared with every path without a loop."""
    ways = network(*links)
    for source, target in permutations(NAMES, 2):
        paths = [
            walk
            for count in range(len(NAMES) - 1)
            for between in permutations(set(NAMES) - {source, target}, count)
            if (walk := seconds(links, [source, *between, target], size)) is not None
        ]
        route = ways.route(source, target, size)
        assert (route is None) == (not paths)
        if route is not None:
            assert route.seconds == pytest.approx(min(paths))
            assert ways.routes(source, size)[target] == route


def seconds(links, stops, size) -> float | None:
    total = 0.0
    for here, there in pairwise(stops):
        hops = [
            link_seconds(one, size)
            for one in links
            if (one.source_resource_id, one.target_resource_id) == (here, there)
            or (
                one.bidirectional
                and (one.target_resource_id, one.source_resource_id) == (here, there)
            )
        ]
        if not hops:
            return None
        total += min(hops)
    return total
