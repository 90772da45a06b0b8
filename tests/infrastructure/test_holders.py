"""A holder lives exactly as long as its process keeps its lock; looking at it changes nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from statelog.domain import StoreError
from statelog.infrastructure import holders as module
from statelog.infrastructure.holders import Holders


@pytest.fixture
def holders(store_path: Path) -> Holders:
    return Holders.of(store_path)


def dead(holders: Holders) -> str:
    """A holder that let go as the kernel lets go for a killed process: its file stays."""
    holder = holders.take("gone", "1")
    os.close(holder._descriptor)
    return holder.id


def pid_of(holders: Holders, id: str) -> int:
    """The process that a holder is said to be."""
    who = holders.who(id)
    assert who is not None
    pid: int = who["pid"]
    return pid


def test_a_holder_lives_until_it_lets_go(holders: Holders):
    other = Holders(holders._folder)
    with holders.take("run_once") as holder:
        assert other.alive(holder.id)
        assert pid_of(other, holder.id) == os.getpid()
        assert other.living() == (holder.id,)
    assert not other.alive(holder.id)
    assert other.known() == ()


@pytest.mark.parametrize("in_memory", [False, True])
def test_one_that_is_tried_is_taken_once(holders: Holders, in_memory: bool):
    """And nobody waits for it: not in another process, not in another thread of this one."""
    ours = Holders(None) if in_memory else holders
    theirs = ours if in_memory else Holders(holders._folder)
    holder = ours.try_take("turn", "one")
    assert holder is not None
    assert theirs.alive("turn:one")
    assert theirs.try_take("turn", "one") is None
    assert theirs.try_take("turn", "two") is not None
    holder.release()
    with theirs.try_take("turn", "one") or pytest.fail("it is free again"):
        assert ours.try_take("turn", "one") is None


def test_what_a_dead_holder_left_is_taken_over(holders: Holders):
    """Its file says who has it now, also when the name of the dead one was longer."""
    holders._folder.mkdir()  # type: ignore[union-attr]
    holders._file("turn:one").write_text('{"pid": 1, "host": "a-host-with-a-long-name" ' + " " * 99)
    with holders.try_take("turn", "one") or pytest.fail("nobody has it"):
        assert pid_of(holders, "turn:one") == os.getpid()


def test_one_that_is_tried_goes_with_its_process(holders: Holders):
    """The kernel lets go of a killed one; a living one is not taken."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        holders.try_take("turn", "one")
        os.write(write, b"!")
        signal.pause()
    os.read(read, 1)
    assert holders.try_take("turn", "one") is None
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)
    with holders.try_take("turn", "one") or pytest.fail("nobody has it"):
        pass


def test_a_folder_that_cannot_be_tried_is_told(holders: Holders):
    assert holders._folder is not None
    holders._folder.write_text("")
    with pytest.raises(StoreError):
        holders.try_take("turn", "one")


def test_a_folder_that_cannot_be_used_is_told_once(holders: Holders):
    assert holders._folder is not None
    holders._folder.write_text("")
    with pytest.raises(StoreError) as raised:
        holders.take()
    assert str(raised.value) == f"cannot hold a lock in {holders._folder}: File exists"


def test_a_forked_child_that_keeps_the_lock_is_named(holders: Holders):
    """D8: the plan stays held until the child ends, so its pid is the one to look for."""
    read, write = os.pipe()
    first = os.fork()
    if not first:
        child = 0
        try:
            holder = holders.take("gone", "1")
            child = os.fork()
            if child:
                os.write(write, f"{os.getpid()} {child}".encode())
            else:
                os.close(write)
                signal.pause()
                holder.release()
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(first, 0)
    with open(read, "rb") as pipe:
        told, child = map(int, pipe.read().split())
    try:
        assert told == first
        assert holders.alive("gone:1")
        assert pid_of(holders, "gone:1") == child
    finally:
        os.kill(child, signal.SIGKILL)
    until_dead = time.monotonic() + 20
    while holders.alive("gone:1"):
        assert time.monotonic() < until_dead
        time.sleep(0.005)
    assert pid_of(holders, "gone:1") == first


def test_a_dead_holders_file_is_swept_and_a_living_one_kept(holders: Holders):
    gone = dead(holders)
    with holders.take() as holder:
        assert (holders.alive(gone), holders.alive(holder.id)) == (False, True)
        assert holders.sweep() == 1
        assert holders.known() == (holder.id,)
        assert holders.alive(holder.id)


def test_a_dead_holder_that_is_being_swept_is_not_taken_for_a_living_one(
    holders: Holders, monkeypatch: pytest.MonkeyPatch
):
    """Or a run that starts at that moment would be refused the plan of a dead one."""
    gone, seen = dead(holders), []
    unlink = Path.unlink

    def looked_at(path: Path, **given: bool) -> None:
        seen.append(Holders(holders._folder).alive(gone))
        unlink(path, **given)

    monkeypatch.setattr(Path, "unlink", looked_at)
    assert holders.sweep() == 1
    assert seen == [False]


def test_a_sweep_that_comes_late_leaves_the_new_file(
    holders: Holders, monkeypatch: pytest.MonkeyPatch
):
    """It opened a file that another sweep removed, and whose place a holder took meanwhile."""
    gone, lock_now, taken = dead(holders), module._lock_now, []

    def overtaken(*given: int) -> bool:
        if not taken:
            holders._file(gone).unlink()
            taken.append(holders.take("gone", "1"))
        return lock_now(*given)

    monkeypatch.setattr(module, "_lock_now", overtaken)
    assert holders.sweep() == 0
    assert holders.alive(gone)
    taken[0].release()


def test_sweeping_while_others_take_and_let_go(holders: Holders):
    """No holder loses its file before it lets go."""
    stop = threading.Event()
    sweeper = Holders(holders._folder)

    def sweep() -> None:
        while not stop.is_set():
            sweeper.sweep()

    thread = threading.Thread(target=sweep)
    thread.start()
    try:
        for _ in range(200):
            with holders.take() as holder:
                assert sweeper.alive(holder.id)
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("token", ["x" * 5000, "é" * 100, "%" * 119], ids=["long", "wide", "odd"])
def test_a_holder_may_have_an_id_that_is_too_long_for_the_name_of_a_file(
    holders: Holders, token: str
):
    """Ids are anybody's text: a run of such an id could not be supervised."""
    holder = holders.try_take("run", token)
    assert holder is not None
    assert holders.alive(f"run:{token}")
    assert holders.try_take("run", token) is None
    assert not holders.alive(f"run:{token}x")
    assert holders.living() == holders.known()
    assert len(holders.living()) == 1
    holder.release()
    assert holders.known() == ()
