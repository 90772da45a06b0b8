"""What a commit left is believed without asking, and never against what others wrote meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from statelog.domain import Conflict
from statelog.infrastructure.journal import Journal
from tests.infrastructure.store.counter import COUNTER, add, start
from tests.infrastructure.store.test_processes import check


@pytest.fixture
def pair(store_path: Path) -> Iterator[tuple[Journal, Journal]]:
    """Two journals on one store, as two processes have them; both know where it ends."""
    with Journal(store_path) as ours, Journal(store_path) as theirs:
        ours.execute(COUNTER, "ours", start, actor="bob")
        theirs.execute(COUNTER, "theirs", start, actor="alice")
        yield ours, theirs
    check(store_path)


def grow(journal: Journal, name: str) -> int:
    """Commit from what was committed last; the position."""
    return journal.commit(journal.load(COUNTER, name).decide(add), actor="bob").position


def test_writers_that_take_turns_follow_each_other(pair: tuple[Journal, Journal]):
    """Each time the other one was there meanwhile."""
    ours, theirs = pair
    for position in range(3, 11, 2):
        assert grow(ours, "ours") == position
        assert grow(theirs, "theirs") == position + 1


def test_one_writer_alone_goes_on_from_its_own_commit(pair: tuple[Journal, Journal]):
    ours, _theirs = pair
    assert [grow(ours, "ours") for _ in range(3)] == [3, 4, 5]


def test_a_stream_that_another_moved_is_a_conflict(pair: tuple[Journal, Journal]):
    """Although this process wrote to it last, as far as it knows."""
    ours, theirs = pair
    loaded = ours.commit(ours.load(COUNTER, "ours").decide(add), actor="bob").loaded[0]
    grow(theirs, "ours")
    with pytest.raises(Conflict, match="ours"):
        ours.commit(loaded.decide(add), actor="bob")
    assert grow(ours, "ours") == 5


@pytest.mark.parametrize("guard_first", [True, False])
def test_a_guard_that_another_moved_is_a_conflict(pair: tuple[Journal, Journal], guard_first: bool):
    """With an append to a stream nobody else has, known or not, before it or after."""
    ours, theirs = pair
    loaded = ours.commit(ours.load(COUNTER, "ours").decide(add), actor="bob").loaded[0]
    grow(theirs, "ours")
    mine = ours.load(COUNTER, "mine").decide(start)
    changes = [loaded.guard(), mine] if guard_first else [mine, loaded.guard()]
    with pytest.raises(Conflict, match="ours"):
        ours.commit(*changes, actor="bob")
    assert ours.head() == 4


def test_a_guard_alone_is_asked_for(pair: tuple[Journal, Journal]):
    """No insert follows that would prove what is believed."""
    ours, theirs = pair
    loaded = ours.commit(ours.load(COUNTER, "ours").decide(add), actor="bob").loaded[0]
    assert ours.commit(loaded.guard(), actor="bob").position == 3
    grow(theirs, "ours")
    with pytest.raises(Conflict, match="ours"):
        ours.commit(loaded.guard(), actor="bob")


def test_a_version_nobody_wrote_is_a_conflict(pair: tuple[Journal, Journal]):
    """Also one ahead of the stream, which no index would refuse."""
    ours, _theirs = pair
    loaded = ours.load(COUNTER, "ours")
    ours.commit(loaded.decide(add), actor="bob")
    ahead = type(loaded)(COUNTER, "ours", loaded.state, 7)
    with pytest.raises(Conflict, match="ours"):
        ours.commit(ahead.decide(add), actor="bob")


def test_who_has_read_what_others_wrote_is_no_conflict(pair: tuple[Journal, Journal]):
    """What this process left is behind what it has read since."""
    ours, theirs = pair
    grow(theirs, "ours")
    assert grow(ours, "ours") == 4
    grow(theirs, "ours")
    loaded = ours.load(COUNTER, "ours")
    mine = ours.load(COUNTER, "mine").decide(start)
    assert ours.commit(mine, loaded.guard(), actor="bob").position == 6
