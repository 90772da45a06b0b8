"""`explore` sees every world, finds each seeded bug by name, and tells it by the shortest story."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from statelog.infrastructure.testing import (
    Action,
    Violation,
    World,
    always,
    each_move,
    explore,
    never_stuck,
    sometimes,
)
from tests.testing.lock import (
    LOCK,
    REVOKE,
    Taken,
    frees,
    holder,
    is_free,
    leaves,
    only_good_badges_open,
    reads,
    take,
    takes,
)

BADGES = each_move("opens for good badges", only_good_badges_open)


def violation(*args: Any, **options: Any) -> Violation:
    """What an exploration of a broken model finds."""
    with pytest.raises(Violation) as caught:
        explore(*args, **options)
    return caught.value


def set_bit(name: str) -> Action:
    return Action(name, lambda world: None if world.memory(name) else world.remember(name, 1))


def count_to(number: int, step: int = 1) -> Callable[[World], World | None]:
    def function(world: World) -> World | None:
        at = (world.memory("n") or 0) + step
        return world.remember("n", at) if at <= number else None

    return function


def test_every_world_and_every_move_is_seen_once():
    """Three bits: a cube has 8 corners, 12 edges and diameter 3."""
    found = explore(World(), [set_bit(name) for name in "abc"])
    assert (found.states, found.transitions, found.depth, found.complete) == (8, 12, 3, True)
    assert found.fired == {"a": 4, "b": 4, "c": 4}


def test_an_action_may_lead_to_several_worlds():
    """As an iterable, or as a generator that also says no."""

    def spread(world: World) -> Iterator[World]:
        yield world.remember("n", 1)
        yield world.remember("n", 2)
        yield world.commit(world.load(LOCK, "1").decide(take, by="bob"))

    found = explore(World(), [Action("spread", spread)])
    assert found.states == 6
    assert found.refused == {"free": 3 * 1}


def test_refusals_and_conflicts_are_counted_and_lead_nowhere():
    """A rule that never said no was not tested."""
    found = explore(World(), [reads("alice"), reads("bob"), takes("alice"), takes("bob")])
    assert found.complete
    assert found.refused["free"] > 0
    assert found.refused["conflict"] > 0
    assert "badge" not in found.refused


def test_a_sound_model_has_no_violation():
    """With two people, a badge that is revoked, crashes and somebody who cleans up."""
    people = ("alice", "bob")
    actions = [act(who) for who in people for act in (reads, takes)]
    found = explore(
        World(),
        [*actions, frees("bob", "alice"), leaves("alice"), leaves("bob"), REVOKE],
        [
            BADGES,
            always("the holder is one of them", lambda world: holder(world) in (None, *people)),
            sometimes("bob has it", lambda world: holder(world) == "bob"),
            never_stuck("free again", is_free),
        ],
        crashes=["alice"],
        max_depth=9,
    )
    assert found.states > 300


def test_a_race_without_its_guard_is_found():
    """The badge is revoked between the read and the write; the story is as short as can be."""
    broken = [reads("alice"), reads("bob"), takes("bob", guarded=False), takes("alice"), REVOKE]
    found = violation(World(), broken, [BADGES])
    assert str(found) == (
        "each move opens for good badges: does not hold after 3 moves\n"
        "  1. bob reads\n"
        "  2. the badge is revoked\n"
        "       badge/1  Revoked()\n"
        "  3. bob takes\n"
        "       lock/1  Taken(by='bob')\n"
        "  => lock/1 v1 Lock(status=<LockStatus.HELD: 'held'>, by='bob')\n"
        "  => badge/1 v1 Badge(status=<BadgeStatus.REVOKED: 'revoked'>)"
    )
    assert found.story[2] == ("bob takes", (("lock/1", Taken("bob")),))
    assert explore(World(), [*broken[:2], takes("bob"), takes("alice"), REVOKE], [BADGES]).complete


def test_a_forgotten_crash_is_found():
    """Nobody frees the lock of the dead."""
    actions = [reads("alice"), takes("alice"), leaves("alice")]
    invariants = [never_stuck("free again", is_free)]
    assert explore(World(), actions, invariants, max_depth=6).depth == 6
    found = violation(World(), actions, invariants, crashes=["alice"], max_depth=6)
    assert str(found) == (
        "never stuck free again: no moves lead on after 3 moves\n"
        "  1. alice reads\n"
        "  2. alice takes\n"
        "       lock/1  Taken(by='alice')\n"
        "  3. alice crashes\n"
        "  => lock/1 v1 Lock(status=<LockStatus.HELD: 'held'>, by='alice')\n"
        "  => alice is dead"
    )
    mended = [*actions, frees("bob", "alice")]
    assert explore(World(), mended, invariants, crashes=["alice"], max_depth=6).depth == 6


def test_going_round_for_ever_is_stuck_too():
    """Moves that never lead to the end are no way on."""
    lamp = Action("blinks", lambda world: world.remember("lamp", not world.memory("lamp")))
    found = violation(World(), [lamp], [never_stuck("done", lambda world: False)])
    assert found.invariant == "never stuck done"
    assert found.story == ()


def test_what_lies_beyond_the_limit_is_no_dead_end():
    """An unfinished walk does not know what comes after."""
    done = never_stuck("at nine", lambda world: world.memory("n") == 9)
    assert not explore(World(), [Action("counts", count_to(9))], [done], max_depth=5).complete
    assert explore(World(), [Action("counts", count_to(9))], [done]).complete
    assert violation(World(), [Action("counts", count_to(8))], [done]).story == ()


def test_the_first_world_counts():
    """A rule may be broken before anything happens."""
    found = violation(World(), [], [always("somebody has it", lambda w: not is_free(w))])
    assert str(found) == "always somebody has it: does not hold after 0 moves"


def test_the_shortest_story_is_told():
    """Not the first one in the order of actions."""
    actions = [Action("one", count_to(9)), Action("three", count_to(9, 3))]
    found = violation(World(), actions, [always("below 7", lambda w: (w.memory("n") or 0) < 7)])
    assert [move.action for move in found.story] == ["one", "three", "three"]
    assert str(found) == (
        "always below 7: does not hold after 3 moves\n"
        "  1. one\n"
        "  2. three\n"
        "  3. three\n"
        "  => n remembers 7"
    )


def test_a_goal_that_is_not_reached_is_found():
    """Or a model in which nothing happens would pass everything."""
    never = sometimes("bob has it", lambda world: holder(world) == "bob")
    found = violation(World(), [reads("bob")], [never])
    assert str(found) == "sometimes bob has it: not reached in 2 worlds after 0 moves"


def test_an_error_in_an_action_is_a_violation():
    """A bug, such as an event the lifecycle does not allow, with the story that leads to it."""

    def again(world: World) -> World | None:
        if is_free(world):
            return None
        return world.commit(world.load(LOCK, "1").decide(lambda lock: [Taken("bob")]))

    found = violation(World(), [reads("bob"), takes("bob"), Action("bob takes again", again)])
    assert (
        "no error: bob takes again raised IllegalTransition: "
        "LockStatus: no transition from HELD on Taken after 2 moves\n"
        "  1. bob reads\n"
        "  2. bob takes\n"
    ) in str(found)


@pytest.mark.parametrize(
    ("make", "before"),
    [(always, True), (each_move, True), (sometimes, False), (never_stuck, False)],
)
def test_an_error_in_an_invariant_is_a_violation(make: Any, before: bool):
    """It says nothing about the world, but the story helps to mend it."""
    broken = make("sound", lambda *worlds: 1 / 0 if worlds[-1].memory("n") else before)
    found = violation(World(), [Action("counts", count_to(1))], [broken])
    assert found.why == "raised ZeroDivisionError: division by zero"
    assert [move.action for move in found.story] == ["counts"]


def test_an_exploration_may_stop_early_and_says_so():
    """At a number of worlds, or of moves."""
    count = [Action("counts", count_to(100))]
    assert explore(World(), count).complete
    assert not explore(World(), count, limit=10).complete
    found = explore(World(), count, max_depth=10)
    assert (found.states, found.depth, found.complete) == (11, 10, False)
    assert explore(World(), count, max_depth=101).complete


def test_worlds_may_be_the_same_in_part():
    """A counter that only grows need not make the model infinite."""
    forever = Action("counts", lambda world: world.remember("n", (world.memory("n") or 0) + 1))
    found = explore(World(), [forever], same=lambda world: (world.memory("n") or 0) % 3)
    assert (found.states, found.transitions, found.complete) == (3, 3, True)


def test_only_the_living_act():
    """An action by a process that crashed does not happen."""
    found = explore(World(), [reads("alice")], crashes=["alice"])
    assert (found.states, found.fired) == (3, {"alice reads": 2, "alice crashes": 2})


def test_what_happened_before_is_not_part_of_the_story():
    """A start that was made by commits has no moves."""
    start = World().commit(World().load(LOCK, "1").decide(take, by="bob"))
    found = violation(start, [leaves("bob")], [always("held", lambda world: not is_free(world))])
    assert [len(move.appended) for move in found.story] == [1]


STORY = """
from tests.testing.test_explore import *
people = [act(who) for who in ("alice", "bob") for act in (reads, takes)]
broken = [*people, takes("bob", guarded=False), REVOKE]
print(violation(World(), broken, [BADGES]))
print(explore(World(), [*people, REVOKE], crashes=["alice", "bob"]))
"""


def test_an_exploration_is_deterministic():
    """The same numbers and the same story, whatever the hashes of texts."""
    root = Path(__file__).resolve().parents[2]
    told = [
        subprocess.run(
            [sys.executable, "-c", STORY],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert "does not hold after 3 moves" in told[0]
    assert "complete=True" in told[0]
    assert told[0] == told[1]


def test_a_world_costs_the_same_whatever_their_number():
    """Eleven bits, then fifteen: a walk of another order would cost sixteen times as much each."""

    def cost_of_a_move(names: str) -> float:
        began = time.process_time()
        found = explore(World(), [set_bit(name) for name in names])
        assert (found.states, found.transitions) == (
            2 ** len(names),
            len(names) * 2 ** len(names) // 2,
        )
        return (time.process_time() - began) / found.transitions

    few = min(cost_of_a_move("abcdefghijk") for _ in range(3))
    assert cost_of_a_move("abcdefghijklmno") < 6 * few
