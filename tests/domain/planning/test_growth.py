"""HEFT's work grows no worse than n log n, on every kind of graph, and no worse with lanes."""

import sys
import time
from math import log

import pytest

from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.problem import Problem
from tests.domain.planning.graphs import SHAPES, machines, problem, random_graph

SLACK = 1.25
"""How much more work than n log n is still called n log n."""


def heft(given: Problem) -> None:
    list(ALGORITHMS["heft"].plans(given, {}, lambda fraction: None))


def calls(given: Problem) -> int:
    """How many functions are called, Python's own too; the same on every machine."""
    count = 0

    def counted(frame, event, arg):
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        heft(given)
    finally:
        sys.setprofile(before)
    return count


def seconds(given: Problem, times: int) -> float:
    taken = []
    for _ in range(times):
        start = time.process_time()
        heft(given)
        taken.append(time.process_time() - start)
    return min(taken)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_grows_no_worse_than_n_log_n(shape):
    """Counted at 100, 1,000 and 10,000 activities."""
    sizes = (100, 1_000, 10_000)
    done = [calls(problem(SHAPES[shape](size))) for size in sizes]
    for (small, few), (large, many) in zip(
        zip(sizes, done, strict=True), list(zip(sizes, done, strict=True))[1:], strict=False
    ):
        allowed = large * log(large) / (small * log(small))
        assert many / few <= allowed * SLACK


@pytest.mark.parametrize("shape", SHAPES)
def test_the_time_does_not_grow_as_the_square(shape):
    """What is not counted as a call shows here: ten times the graph, 100 times if quadratic."""
    small, large = (problem(SHAPES[shape](size)) for size in (1_000, 10_000))
    assert seconds(large, 1) / seconds(small, 3) < 40


def test_many_lanes_cost_their_logarithm():
    flow = random_graph(1_000)
    few = calls(problem(flow, machines(2, 4)))
    many = calls(problem(flow, machines(2, 4096)))
    assert many / few <= 3
