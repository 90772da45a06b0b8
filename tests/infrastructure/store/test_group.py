"""Group commit: threads share one commit, each with an outcome of its own."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from statelog.domain import Conflict, OutcomeUnknown, StoreError
from statelog.infrastructure.clock import now
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import group
from statelog.infrastructure.store.connections import Connections
from tests.infrastructure.store.counter import COUNTER, add, start
from tests.infrastructure.store.test_processes import check

FOLLOWERS = 6


class Gate:
    """A clock that stops the first thread that asks, until it is opened; then it goes on."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.entered, self.opened, self.armed = threading.Event(), threading.Event(), False
        self._then = then

    def __call__(self) -> int:
        if self.armed:
            self.armed = False
            self.entered.set()
            assert self.opened.wait(30)
            self._then()
        return now()


class Desk:
    """A journal whose next writer is stopped inside its turn, while others come."""

    def __init__(self, store: Path, gate: Gate) -> None:
        self.gate = gate
        self.journal = Journal(store, clock=gate)
        self.commits = 0
        self.pool = ThreadPoolExecutor(FOLLOWERS + 2)

    def append(self, id: str, **options: Any) -> int:
        return self.journal.execute(COUNTER, id, start, actor="bob", **options).position

    def together(self, leader: Callable[[], Any], *others: Callable[[], Any]) -> list[Future[Any]]:
        """The leader enters its turn alone; the others wait for it, then it goes on."""
        self.gate.armed = True
        first = self.pool.submit(leader)
        assert self.gate.entered.wait(30)
        futures = [self.pool.submit(other) for other in others]
        waiting = self.journal._log._appending.group._waiting
        deadline = time.monotonic() + 30
        while len(waiting) < len(others):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        self.gate.opened.set()
        return [first, *futures]

    def close(self) -> None:
        self.pool.shutdown()
        self.journal.close()


@pytest.fixture
def desk(store_path: Path) -> Iterator[Desk]:
    """In a file: a log in memory is read under the same lock, so nobody gets as far as a group."""
    with closing(Desk(store_path, Gate())) as desk:
        yield desk
    check(store_path)


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each COMMIT was for."""
    seen: list[int] = []
    commit = Connections.commit

    def counted(self: Connections, db: sqlite3.Connection, size: int) -> None:
        commit(self, db, size)
        seen.append(size)

    monkeypatch.setattr(Connections, "commit", counted)
    return seen


def test_who_comes_meanwhile_shares_one_commit(store_path: Path, commits: list[int]):
    """The first is stopped before it stamps its rows; all others are in its commit."""
    with closing(Desk(store_path, Gate())) as desk:
        desk.append("first")
        del commits[:]
        futures = desk.together(
            lambda: desk.append("leader"),
            *(lambda n=n: desk.append(f"follower-{n}") for n in range(FOLLOWERS)),
        )
        positions = [future.result(30) for future in futures]
        assert sorted(positions) == list(range(2, 3 + FOLLOWERS))
        assert len(commits) == 1
    check(store_path)


def test_a_group_has_an_end(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    """Those beyond its size are led by one of their own."""
    monkeypatch.setattr(group, "MOST", 3)
    futures = desk.together(
        lambda: desk.append("leader"),
        *(lambda n=n: desk.append(f"follower-{n}") for n in range(FOLLOWERS)),
    )
    assert sorted(future.result(30) for future in futures) == list(range(1, 2 + FOLLOWERS))


def test_a_member_that_conflicts_fails_alone(desk: Desk):
    """The others land, whatever came before and after it in the group."""
    new = desk.journal.load(COUNTER, "one")
    change = new.decide(start)
    futures = desk.together(
        lambda: desk.append("leader"),
        lambda: desk.journal.commit(change, actor="alice"),
        lambda: desk.journal.commit(change, actor="bob"),
        lambda: desk.append("last"),
    )
    errors = [future.exception(30) for future in futures]
    assert [type(error) for error in (errors[0], errors[3])] == [type(None)] * 2
    assert {type(error) for error in errors[1:3]} == {Conflict, type(None)}
    assert desk.journal.head() == 3


def test_the_same_command_in_one_group_is_carried_out_once(desk: Desk):
    """The second member gets the first one's result."""
    command = [lambda: desk.journal.execute(COUNTER, "one", start, actor="bob", command="c")] * 2
    done = [future.result(30) for future in desk.together(lambda: desk.append("leader"), *command)]
    assert {each.position for each in done[1:]} == {2}
    assert sorted(each.repeated for each in done[1:]) == [False, True]


def test_a_guard_in_a_group_is_asked_for(desk: Desk):
    """It does not rest on what this process believes; a moved one conflicts."""
    desk.append("one")
    moved = desk.journal.load(COUNTER, "one")
    desk.journal.execute(COUNTER, "one", add, actor="bob")
    current = desk.journal.load(COUNTER, "one")
    futures = desk.together(
        lambda: desk.append("leader"),
        lambda: desk.journal.commit(moved.guard(), actor="bob"),
        lambda: desk.journal.commit(current.guard(), actor="bob"),
    )
    assert [type(future.exception(30)) for future in futures] == [type(None), Conflict, type(None)]


def test_nobody_goes_on_before_the_commit(store_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A result that was told is on the disk."""
    commit = Connections.commit
    before: list[bool] = []
    futures: list[Future[Any]] = []

    def slow(self: Connections, db: sqlite3.Connection, size: int) -> None:
        time.sleep(0.05)
        before.extend(future.done() for future in futures)
        commit(self, db, size)

    with closing(Desk(store_path, Gate())) as desk:
        monkeypatch.setattr(Connections, "commit", slow)
        futures += desk.together(
            lambda: desk.append("leader"), *(lambda n=n: desk.append(f"{n}") for n in range(3))
        )
        assert [future.exception(30) for future in futures] == [None] * 4
    assert not any(before)


def test_a_leader_that_is_interrupted_takes_nobody_with_it(store_path: Path):
    """Those it carried are carried again, each once."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with closing(Desk(store_path, Gate(interrupt))) as desk:
        futures = desk.together(
            lambda: desk.append("leader"), *(lambda n=n: desk.append(f"{n}") for n in range(4))
        )
        assert isinstance(futures[0].exception(30), KeyboardInterrupt)
        assert sorted(future.result(30) for future in futures[1:]) == [1, 2, 3, 4]


def test_a_leader_that_is_interrupted_after_the_commit_takes_nobody_with_it(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What it carried is found, and not appended twice or called a conflict."""
    commit = Connections.commit

    def interrupted(self: Connections, db: sqlite3.Connection, size: int) -> None:
        commit(self, db, size)
        monkeypatch.undo()
        raise KeyboardInterrupt

    with closing(Desk(store_path, Gate())) as desk:
        monkeypatch.setattr(Connections, "commit", interrupted)
        futures = desk.together(
            lambda: desk.append("leader"), *(lambda n=n: desk.append(f"{n}") for n in range(4))
        )
        assert isinstance(futures[0].exception(30), KeyboardInterrupt)
        assert sorted(future.result(30) for future in futures[1:]) == [2, 3, 4, 5]
        assert desk.journal.head() == 5
    check(store_path)


@pytest.mark.parametrize("landed", [True, False])
def test_a_commit_that_fails_has_an_outcome_for_each(
    store_path: Path, monkeypatch: pytest.MonkeyPatch, landed: bool
):
    """All landed, or none did and each is told why; nobody is told what is not so."""
    commit = Connections.commit

    def failing(self: Connections, db: sqlite3.Connection, size: int) -> None:
        if landed:
            commit(self, db, size)
        monkeypatch.undo()
        raise sqlite3.OperationalError("disk I/O error")

    with closing(Desk(store_path, Gate())) as desk:
        monkeypatch.setattr(Connections, "commit", failing)
        futures = desk.together(
            lambda: desk.append("leader"), *(lambda n=n: desk.append(f"{n}") for n in range(3))
        )
        errors = [future.exception(30) for future in futures]
        if landed:
            assert errors == [None] * 4
        else:
            assert all(isinstance(error, StoreError) for error in errors)
            assert not any(isinstance(error, OutcomeUnknown) for error in errors)
        assert desk.journal.head() == (4 if landed else 0)
    check(store_path)


def test_a_fork_in_the_middle_of_a_group_leaves_the_child_free(store_path: Path):
    """The child has neither the leader nor those who wait for it."""
    with Journal(store_path) as journal:
        gone = journal._log._appending.group
        gone._led = True
        child = os.fork()
        if not child:
            try:
                journal.execute(COUNTER, "child", start, actor="bob")
            finally:
                os._exit(0 if journal.head() == 1 else 1)
        gone._led = False
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_many_threads_lose_nothing(store_path: Path):
    """Every append is there once, in a stream of its own."""
    with Journal(store_path) as journal:

        def work(name: str) -> None:
            journal.execute(COUNTER, name, start, actor="bob")
            for _ in range(20):
                journal.execute(COUNTER, name, add, actor="bob")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, map(str, range(8))))
        assert journal.head() == 8 * 21
        assert {journal.load(COUNTER, str(name)).version for name in range(8)} == {21}
    check(store_path)
