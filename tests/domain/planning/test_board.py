"""Lanes of one resource: an offer is what a look at every lane would choose."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from statelog.domain.planning.algorithms.board import Board
from tests.domain.planning.graphs import resource


def look(free, count, boot, container, ready, seconds, within):
    """(finish, start, lane) by the rules, lane by lane."""
    options = []
    for lane in range(count):
        start = max(ready, free.get(lane, 0.0))
        start = start + (0.0 if lane in free else boot) + container
        options.append((max(within, start + seconds), lane, start))
    _, lane, start = min(options, key=lambda option: option[:2])
    return start + seconds, start, lane


TIMES = st.integers(0, 12).map(lambda n: n / 4)


@given(
    st.integers(1, 9),
    TIMES,
    TIMES,
    st.lists(st.tuples(TIMES, TIMES, st.booleans()), max_size=30),
)
def test_an_offer_is_the_first_of_the_best_lanes(count, boot, container, work):
    board = Board(
        resource("r", count, boot_overhead_seconds=boot, container_overhead_seconds=container),
        99,
    )
    free: dict[int, float] = {}
    makespan = 0.0
    for ready, seconds, fill in work:
        within = makespan if fill else -inf
        offer = board.offer(ready, seconds, within)
        assert offer == look(free, count, boot, container, ready, seconds, within)
        finish, _, lane = offer
        board.take(lane, finish)
        free[lane] = finish
        makespan = max(makespan, finish)


def test_a_copy_goes_its_own_way():
    board = Board(resource("r", 2), 9)
    board.take(0, 5.0)
    twin = board.copy()
    twin.take(0, 9.0)
    twin.take(1, 9.0)
    assert board.offer(0, 1) == (1, 0, 1)
    assert twin.offer(0, 1) == (10, 9, 0)
