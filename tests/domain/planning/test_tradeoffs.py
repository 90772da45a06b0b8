"""Fronts and crowding, compared with their definitions read out."""

from math import inf
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from statelog.domain.planning.algorithms.tradeoffs import best, crowding, fronts


class Point(NamedTuple):
    makespan: float
    cost: float


FEW = st.integers(0, 5).map(float)
POINTS = st.lists(st.builds(Point, FEW, FEW), max_size=25)


def beats(left: Point, right: Point) -> bool:
    return left != right and left.makespan <= right.makespan and left.cost <= right.cost


@given(POINTS)
def test_each_front_is_what_remains_undominated_without_those_before(points):
    left = set(points)
    for front in fronts(points):
        assert front == sorted(one for one in left if not any(beats(o, one) for o in left))
        left -= set(front)
    assert not left


@given(POINTS, st.integers(1, 30))
def test_the_best_fill_up_front_after_front(points, keep):
    chosen = best(points, keep)
    assert len(chosen) == len(set(chosen)) == min(keep, len(set(points)))
    taken = set(chosen)
    for front in fronts(points):
        if not taken.issuperset(front):
            assert len(taken.intersection(front)) == keep - sum(
                len(full) for full in fronts(points) if taken.issuperset(full)
            )
            break


def test_of_a_crowded_front_the_ends_and_the_widest_stay():
    front = [Point(0, 10), Point(1, 9), Point(2, 8), Point(6, 3), Point(10, 0)]
    assert crowding(front) == [inf, 0.4, 1.1, 1.6, inf]
    assert best(front, 3) == [front[0], front[3], front[4]]
    assert best(front, 2) == [front[0], front[4]]
    assert best(front, 1) == [front[0]]


def test_of_equal_points_the_first_given_is_kept():
    class Named(NamedTuple):
        makespan: float
        cost: float
        name: str

    assert fronts([Named(1, 1, "a"), Named(1, 1, "b")]) == [[Named(1, 1, "a")]]
