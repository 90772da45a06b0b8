"""A world is a value: acting makes another one, and equal ones are one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain import SAME, Aggregate, Conflict, Event, Invalid, Lifecycle, Refused, changed
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing import World
from tests.testing.lock import BADGE, LOCK, Left, Lock, LockStatus, Revoked, Taken, leave, take


def taken(world: World, who: str = "alice") -> World:
    return world.commit(world.load(LOCK, "1").decide(take, by=who))


def test_a_world_begins_blank():
    """No streams, everybody alive, nobody remembers anything."""
    world = World()
    assert (world.load(LOCK, "1").version, world.state(LOCK, "1")) == (0, Lock())
    assert (world.alive("bob"), world.memory("bob"), list(world.describe())) == (True, None, [])


def test_a_commit_makes_another_world():
    """The old one stays as it was."""
    world = World()
    after = taken(world)
    assert world.load(LOCK, "1").version == 0
    assert after.load(LOCK, "1") == replace(
        world.load(LOCK, "1"), state=Lock(LockStatus.HELD, "alice"), version=1
    )
    assert after.appended == (("lock/1", Taken("alice")),)


def test_a_lost_race_is_a_conflict():
    """It names the stream, as a journal does."""
    world = World()
    late = world.load(LOCK, "1").decide(take, by="bob")
    with pytest.raises(Conflict, match="lock/1: expected version 0, found 1"):
        taken(world).commit(late)


def test_a_commit_is_all_or_nothing():
    """A guard that fails keeps out the change beside it."""
    world = World()
    stale = world.load(BADGE, "1").guard()
    moved = world.commit(world.load(BADGE, "1").decide(lambda badge: [Revoked()]))
    with pytest.raises(Conflict, match="badge/1"):
        moved.commit(moved.load(LOCK, "1").decide(take, by="bob"), stale)
    assert moved.load(LOCK, "1").version == 0


def test_changes_of_one_stream_follow_each_other():
    """As in a journal: the second is decided on what the first leads to."""
    world = World()
    first = world.load(LOCK, "1").decide(take, by="bob")
    both = world.commit(first, first.after.decide(leave, by="bob"))
    assert (both.load(LOCK, "1").version, len(both.appended)) == (2, 2)
    with pytest.raises(Invalid, match="lock/1 do not follow"):
        world.commit(first, first)


Step = tuple[int, tuple[tuple[str, bool], ...]]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.lists(st.tuples(st.sampled_from("12"), st.booleans()), min_size=1, max_size=3),
        ),
        max_size=8,
    )
)
def test_a_world_commits_as_a_journal_does(script: list[Step]):
    """The same appends, conflicts and errors, for changes decided now or some commits ago."""
    kept = [World()]
    with Journal() as journal:
        for ago, parts in script:
            seen = kept[max(0, len(kept) - 1 - ago)]
            changes = [
                seen.load(LOCK, id).decide(lambda lock: [Left() if lock.by else Taken("bob")])
                if moves
                else seen.load(LOCK, id).guard()
                for id, moves in parts
            ]
            answers: list[Any] = []
            for commit in (kept[-1].commit, partial(journal.commit, actor="bob")):
                try:
                    answers.append(commit(*changes))
                except (Conflict, Invalid) as no:
                    answers.append((type(no), str(no)))
            if isinstance(answers[0], World):
                kept.append(answers[0])
                assert not isinstance(answers[1], tuple)
            else:
                assert answers[0] == answers[1]
            for id in "12":
                assert kept[-1].load(LOCK, id) == journal.load(LOCK, id)


def test_a_guard_appends_nothing():
    """And moves no version."""
    world = taken(World())
    assert world.commit(world.load(LOCK, "1").guard()) == world


def test_a_crash_loses_the_memory():
    """Until the process is started again."""
    world = World().remember("alice", ("a", 1))
    dead = world.crash("alice")
    assert (world.alive("alice"), world.memory("alice")) == (True, ("a", 1))
    assert (dead.alive("alice"), dead.memory("alice")) == (False, None)
    assert dead.remember("alice", None) == World()
    assert dead.alive("bob")


def test_equal_worlds_are_equal():
    """By content and whatever way led there, also when nothing else connects them."""
    one, other = World().remember("a", 1).remember("b", 2), World().remember("b", 2)
    assert one == other.remember("a", 1)
    assert hash(one) == hash(other.remember("a", 1))
    assert one != other
    assert one.remember("a", None) == other
    assert one.remember("b", 3) != one
    assert taken(World()) == taken(World())
    assert World() != 1


def test_orders_that_commute_meet():
    """Within one exploration two ways to the same content have one key."""
    start = World()
    one = start.remember("a", 1).remember("b", 2)
    other = start.remember("b", 2).remember("a", 1)
    assert one.key == other.key
    assert one.remember("b", None).remember("a", None).key == start.key == ()


def test_the_version_is_part_of_the_world():
    """A stream that is back in an old state is not back in time."""
    world = World()
    back = taken(world)
    back = back.commit(back.load(LOCK, "1").decide(leave, by="alice"))
    assert back.state(LOCK, "1") == world.state(LOCK, "1")
    assert back != world


def test_what_two_processes_remember_is_told_apart():
    """Also when they read two streams that are in the same state."""
    world = World().remember("a", World().load(LOCK, "1"))
    assert world.remember("a", World().load(LOCK, "2")) != world


def test_a_stream_has_one_aggregate():
    """Another one under its name would read foreign states."""
    world = taken(World())
    with pytest.raises(ValueError, match="lock/1 belongs to another aggregate"):
        world.load(replace(LOCK, blank=Lock(by="bob")), "1")


class Put(Event, name="test.world.put"):
    """Something was put into a box."""

    key: str
    value: Any


class Box(Enum):
    """A box is a box."""

    BOX = "box"


@dataclass(frozen=True)
class Content:
    """A state that cannot be hashed."""

    status: Box = Box.BOX
    items: Mapping[str, Any] = field(default_factory=dict)


BOX = Aggregate(
    "box",
    Content(),
    lambda box, put: changed(box, items={**box.items, put.key: put.value}),
    Lifecycle(Box.BOX, [(Put, Box.BOX, SAME)]),
)


def test_states_that_hold_mappings_are_compared_by_content():
    """Mappings, lists, sets and dataclasses inside each other."""

    def put(world: World, value: Any) -> World:
        return world.commit(world.load(BOX, "1").decide(lambda box: [Put("k", value)]))

    start = World()
    values: list[Any] = [{"a": [1]}, {"a": [2]}, {"b": [1]}, [1], {1}, Content(), ([1],), 1]
    worlds = [put(start, value) for value in values]
    assert len({world.key for world in worlds}) == len(values)
    assert put(start, {"a": [1]}).key == worlds[0].key
    read = start.remember("a", (worlds[0].load(BOX, "1"), []))
    assert start.remember("a", (put(start, {"a": [1]}).load(BOX, "1"), [])).key == read.key
    assert start.remember("a", (worlds[1].load(BOX, "1"), [])).key != read.key
    blanks = {start.remember("a", (start.load(BOX, id), [])).key for id in "12"}
    assert len(blanks) == 2, "two streams in one state are not one"


def test_a_refusal_leaves_no_trace():
    """It is raised to whoever asked."""
    world = taken(World())
    with pytest.raises(Refused, match="alice has it"):
        taken(world, "bob")


def test_a_world_can_be_read():
    """Streams first, then processes."""
    world = World().remember("bob", 1).crash("alice")
    assert repr(taken(world)) == (
        "World(lock/1 v1 Lock(status=<LockStatus.HELD: 'held'>, by='alice'); "
        "bob remembers 1; alice is dead)"
    )
