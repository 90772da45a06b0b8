"""The plan's graph: order, cycles and blocking (5.1, 5.5), with walks that stay linear."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.execution.graph import (
    Blockers,
    Graph,
    Scheduler,
    blockers,
    cycle,
    direct_blockers,
    failed_ancestors,
    newly_blocked,
)
from tests.domain.execution.operations import growth

Plan = list[tuple[str, list[str]]]

CASE_10: Plan = [("x", []), ("y", []), ("join", ["y", "x"]), ("after", ["join"])]
LONG = 5_000
BAD = ("failed", "blocked")


def chain(length: int) -> Plan:
    """Steps 0, 1, ... each needing the one before."""
    return [(str(at), [str(at - 1)] if at else []) for at in range(length)]


def star(points: int) -> Plan:
    """One hub, and points that need it."""
    return [("hub", []), *((str(at), ["hub"]) for at in range(points))]


def funnel(points: int) -> Plan:
    """Points, and one step that needs them all."""
    return [*((str(at), []) for at in range(points)), ("all", [str(at) for at in range(points)])]


def dense(length: int) -> Plan:
    """Steps that each need every one before."""
    return [(str(at), [str(below) for below in range(at)]) for at in range(length)]


def run(graph: Graph, fails: frozenset[str] = frozenset()) -> tuple[list[str], dict[str, str]]:
    """The order steps ran in, and their outcomes, under `continue_independent`."""
    scheduler = Scheduler(graph)
    ran: list[str] = []
    outcomes: dict[str, str] = {}
    while (step_id := scheduler.next()) is not None:
        ran.append(step_id)
        if step_id in fails:
            outcomes[step_id] = "failed"
            blocked = newly_blocked(graph, step_id, outcomes)
            outcomes.update(dict.fromkeys(blocked, "blocked"))
            scheduler.removed(blocked)
        else:
            outcomes[step_id] = "succeeded"
            scheduler.satisfied(step_id)
    return ran, outcomes


def order(*plan: tuple[str, list[str]]) -> list[str]:
    return run(Graph.of(plan))[0]


def test_a_chain_listed_in_reverse_runs_in_dependency_order():
    """Case 1."""
    assert order(("c", ["b"]), ("b", ["a"]), ("a", [])) == ["a", "b", "c"]


def test_a_consumer_listed_first_waits_for_its_producer():
    """Case 2."""
    assert order(("consumer", ["producer"]), ("producer", [])) == ["producer", "consumer"]


def test_the_runnable_step_earliest_in_the_plan_goes_next():
    """Case 3: not level by level."""
    assert order(("late", ["a"]), ("a", []), ("b", [])) == ["a", "late", "b"]


def test_a_diamond_runs_each_step_once_and_the_join_last():
    """Case 4."""
    diamond = [("top", []), ("left", ["top"]), ("right", ["top"]), ("join", ["left", "right"])]
    assert order(*diamond) == ["top", "left", "right", "join"]


def test_a_dependency_listed_twice_is_satisfied_once():
    """Case 5."""
    assert order(("a", []), ("b", ["a", "a"])) == ["a", "b"]


def test_a_graph_keeps_distinct_dependencies_and_of_equal_steps_the_first():
    graph = Graph.of([("b", ["c", "a", "c"]), ("a", []), ("b", []), ("c", ["a"])])
    assert graph.order == ("b", "a", "c")
    assert graph.deps == {"b": ("c", "a"), "a": (), "c": ("a",)}
    assert graph.dependents == {"b": (), "a": ("b", "c"), "c": ("b",)}


def test_saying_satisfied_twice_does_not_stand_for_another_dependency():
    scheduler = Scheduler(Graph.of([("a", []), ("b", []), ("c", ["a", "b"])]))
    assert [scheduler.next(), scheduler.next()] == ["a", "b"]
    scheduler.satisfied("a")
    scheduler.satisfied("a")
    assert scheduler.next() is None


def test_a_step_is_handed_out_once():
    scheduler = Scheduler(Graph.of([("a", [])]))
    assert [scheduler.next(), scheduler.next()] == ["a", None]


def test_a_removed_step_is_not_handed_out():
    scheduler = Scheduler(Graph.of([("a", []), ("b", [])]))
    scheduler.removed(["a"])
    assert [scheduler.next(), scheduler.next()] == ["b", None]


def test_a_dependency_outside_the_plan_is_never_satisfied():
    """Case 6: such a graph stalls instead of passing as done."""
    assert order(("a", []), ("b", ["nowhere"])) == ["a"]


def test_two_schedulers_over_one_graph_share_nothing():
    """Case 7."""
    graph = Graph.of([("a", []), ("b", ["a"])])
    one, other = Scheduler(graph), Scheduler(graph)
    assert (one.next(), other.next()) == ("a", "a")
    one.satisfied("a")
    assert (one.next(), other.next()) == ("b", None)


def test_a_failed_branch_blocks_its_descendants_and_no_other():
    """Case 8."""
    plan: Plan = [("1", []), ("2", []), ("2a", ["2"]), ("2b", ["2a"]), ("3", []), ("3a", ["3"])]
    ran, outcomes = run(Graph.of(plan), frozenset({"2"}))
    assert ran == ["1", "2", "3", "3a"]
    assert {step for step, outcome in outcomes.items() if outcome == "blocked"} == {"2a", "2b"}


def test_a_join_has_only_the_failed_dependency_as_direct_blocker():
    """Case 9."""
    graph = Graph.of([("good", []), ("bad", []), ("join", ["good", "bad"])])
    outcomes = {"good": "succeeded", "bad": "failed", "join": "blocked"}
    assert direct_blockers(graph, outcomes, "join") == ("bad",)


def test_a_later_failure_adds_blockers_to_what_is_blocked_already():
    """Case 10."""
    outcomes = {"x": "failed", "y": "failed", "join": "blocked", "after": "blocked"}
    graph = Graph.of(CASE_10)
    assert blockers(graph, outcomes, ["join", "after"]) == {
        "join": Blockers(("x", "y"), ("x", "y")),
        "after": Blockers(("join",), ("x", "y")),
    }
    assert direct_blockers(graph, outcomes, "join") == ("x", "y")
    assert failed_ancestors(graph, outcomes, "after") == ("x", "y")


def test_a_later_failure_blocks_nothing_a_second_time():
    """Case 11: the one block event of join names x only."""
    graph = Graph.of(CASE_10)
    outcomes = {"x": "failed"}
    assert newly_blocked(graph, "x", outcomes) == ("join", "after")
    outcomes |= {"join": "blocked", "after": "blocked"}
    assert blockers(graph, outcomes, ["join"])["join"] == Blockers(("x",), ("x",))
    assert newly_blocked(graph, "y", outcomes | {"y": "failed"}) == ()


def test_a_failed_step_reaches_only_through_blocked_ones():
    """5.5: a path over a step that succeeded is none."""
    graph = Graph.of([("bad", []), ("fine", ["bad"]), ("worse", []), ("end", ["fine", "worse"])])
    outcomes = {"bad": "failed", "fine": "succeeded", "worse": "failed", "end": "blocked"}
    assert failed_ancestors(graph, outcomes, "end") == ("worse",)


@pytest.mark.parametrize(
    ("plan", "path"),
    [
        ([("a", ["a"])], ("a", "a")),
        ([("a", ["b"]), ("b", ["a"])], ("a", "b", "a")),
        ([("c", ["a"]), ("a", ["b"]), ("b", ["c"])], ("c", "a", "b", "c")),
        ([("free", []), ("in", ["b", "free"]), ("b", ["c"]), ("c", ["b"])], ("b", "c", "b")),
        ([("c", ["b"]), ("x", []), ("b", ["x", "c"]), ("below", ["b"])], ("c", "b", "c")),
        ([("down", ["z"]), ("y", ["z"]), ("z", ["y"])], ("y", "z", "y")),
    ],
)
def test_a_cycle_is_shown_from_its_earliest_step_back_to_it(plan: Plan, path: tuple[str, ...]):
    """P8: a stable path, that of the walk in plan order."""
    assert cycle(Graph.of(plan)) == path


@pytest.mark.parametrize("plan", [[], [("a", ["nowhere"])], CASE_10, star(3), funnel(3)])
def test_a_plan_without_cycle_has_none(plan: Plan):
    assert cycle(Graph.of(plan)) is None


def test_a_deep_plan_needs_no_stack():
    graph = Graph.of(reversed(chain(LONG)))
    assert run(graph)[0] == [str(at) for at in range(LONG)]
    assert cycle(graph) is None
    ring = Graph.of([("0", [str(LONG - 1)]), *chain(LONG)[1:]])
    found = cycle(ring)
    assert found is not None
    assert (len(found), found[0], found[-1]) == (LONG + 1, "0", "0")


def test_a_failure_at_the_head_of_a_deep_plan_blocks_all_of_it():
    graph = Graph.of(chain(LONG))
    ran, outcomes = run(graph, frozenset({"0"}))
    assert ran == ["0"]
    found = blockers(graph, outcomes, graph.order[1:])
    assert {each.ancestors for each in found.values()} == {("0",)}
    assert failed_ancestors(graph, outcomes, str(LONG - 1)) == ("0",)


def whole_run(shape: Callable[[int], Plan]) -> Callable[[int], Callable[[], object]]:
    return lambda size: lambda: run(Graph.of(shape(size)))


def search_for_cycle(shape: Callable[[int], Plan]) -> Callable[[int], Callable[[], object]]:
    return lambda size: lambda: cycle(Graph.of(shape(size)))


def all_blocked(shape: Callable[[int], Plan]) -> Callable[[int], Callable[[], object]]:
    def make(size: int) -> Callable[[], object]:
        graph = Graph.of(shape(size))
        outcomes = {graph.order[0]: "failed", **dict.fromkeys(graph.order[1:], "blocked")}

        def block() -> None:
            assert newly_blocked(graph, graph.order[0], {}) == graph.order[1:]
            blockers(graph, outcomes, reversed(graph.order[1:]))

        return block

    return make


@pytest.mark.parametrize("shape", [chain, star, funnel, lambda size: chain(size)[::-1]])
@pytest.mark.parametrize("work", [whole_run, search_for_cycle])
def test_a_plan_of_twice_the_size_takes_twice_the_work(
    work: Callable[[Callable[[int], Plan]], Callable[[int], Callable[[], object]]],
    shape: Callable[[int], Plan],
):
    assert growth(work(shape), 200) < 2.2


@pytest.mark.parametrize("shape", [chain, star])
def test_blocking_twice_as_many_steps_takes_twice_the_work(shape: Callable[[int], Plan]):
    assert growth(all_blocked(shape), 200) < 2.2


def test_the_work_of_blocking_grows_with_the_edges():
    """Twice the steps of a plan where each needs all others: four times the edges."""
    assert growth(all_blocked(dense), 20) < 4.4


def test_the_cost_of_a_step_does_not_grow_with_the_runnable_ones():
    """5,000 wide: the earliest of many is found without looking at all of them."""
    comparisons = 0

    class At(int):
        def __lt__(self, other: int) -> bool:
            nonlocal comparisons
            comparisons += 1
            return int(self) < int(other)

    graph = Graph.of(star(LONG))
    counted = Graph(
        graph.order,
        {step: At(at) for step, at in graph.position.items()},
        graph.deps,
        graph.dependents,
    )
    assert run(counted)[0] == list(graph.order)
    assert comparisons < LONG * 3 * LONG.bit_length()


@st.composite
def plans(draw: st.DrawFn, most: int = 9) -> Plan:
    """A plan without cycle, its steps listed in any order, some dependencies repeated."""
    size = draw(st.integers(0, most))
    plan = [
        (str(at), draw(st.lists(st.sampled_from([str(low) for low in range(at)]), max_size=4)))
        if at
        else ("0", [])
        for at in range(size)
    ]
    return draw(st.permutations(plan))


def naive(plan: Plan, fails: frozenset[str]) -> tuple[list[str], dict[str, str]]:
    """Look at every step again after each one; block by looking for a failed or blocked need."""
    ran: list[str] = []
    outcomes: dict[str, str] = {}

    def scan() -> str | None:
        for step_id, deps in plan:
            if step_id not in outcomes and all(outcomes.get(dep) == "succeeded" for dep in deps):
                return step_id
        return None

    while (step_id := scan()) is not None:
        ran.append(step_id)
        outcomes[step_id] = "failed" if step_id in fails else "succeeded"
    while late := [
        step_id
        for step_id, deps in plan
        if step_id not in outcomes and any(outcomes.get(dep) in BAD for dep in deps)
    ]:
        outcomes[late[0]] = "blocked"
    return ran, outcomes


fail_sets = st.frozensets(st.sampled_from([str(at) for at in range(9)]))


@settings(max_examples=150)
@given(plans(), fail_sets)
def test_the_scheduler_agrees_with_a_scan_of_all_steps(plan: Plan, fails: frozenset[str]):
    assert run(Graph.of(plan), fails) == naive(plan, fails)


def paths_up(plan: Mapping[str, list[str]], outcomes: Mapping[str, str], step: str) -> set[str]:
    """Failed steps at the upper end of every path over blocked steps, one path at a time."""
    found = set()
    for dep in plan[step]:
        if outcomes[dep] == "failed":
            found.add(dep)
        elif outcomes[dep] == "blocked":
            found |= paths_up(plan, outcomes, dep)
    return found


@settings(max_examples=150)
@given(plans(), fail_sets)
def test_blockers_agree_with_their_definition(plan: Plan, fails: frozenset[str]):
    graph = Graph.of(plan)
    outcomes = naive(plan, fails)[1]
    blocked = [step_id for step_id, _ in plan if outcomes[step_id] == "blocked"]
    found = blockers(graph, outcomes, blocked)
    for step_id in blocked:
        deps = dict(plan)[step_id]
        direct = [other for other, _ in plan if other in deps and outcomes[other] in BAD]
        above = paths_up(dict(plan), outcomes, step_id)
        assert found[step_id].direct == tuple(direct)
        assert found[step_id].ancestors == tuple(other for other, _ in plan if other in above)


@given(plans(), st.data())
def test_a_plan_with_an_edge_back_has_a_cycle_that_really_is_one(plan: Plan, data: st.DataObject):
    """And without one every step runs."""
    graph = Graph.of(plan)
    assert cycle(graph) is None
    assert len(run(graph)[0]) == len(plan)
    edges = [(step_id, dep) for step_id, deps in plan for dep in deps]
    if not edges:
        return
    step_id, dep = data.draw(st.sampled_from(edges))
    found = cycle(Graph.of([(each, [*d, step_id] if each == dep else d) for each, d in plan]))
    assert found is not None
    assert found[0] == found[-1]
    needs = {each: [*d, step_id] if each == dep else d for each, d in plan}
    assert all(lower in needs[upper] for upper, lower in pairwise(found))
    assert graph.position[found[0]] == min(graph.position[each] for each in found)
