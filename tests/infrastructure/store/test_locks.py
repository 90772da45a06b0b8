"""The lock of writers: private, exclusive, bounded, and never a way to another file."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from statelog.domain import StoreError
from statelog.infrastructure.store import locks
from statelog.infrastructure.store.locks import FileLock


def test_one_at_a_time(tmp_path: Path):
    """Two holders in one process exclude each other as two processes do."""
    path = tmp_path / "lock"
    with closing(FileLock(path, 0.02)) as first, closing(FileLock(path, 0.02)) as second:
        with first, pytest.raises(StoreError) as caught, second:
            pass
        assert caught.value.kind == "busy"
        with second:
            pass
        with first:
            pass


def test_a_waiter_gets_its_turn(tmp_path: Path):
    """Soon after it is free, and not only at the end of its patience."""
    path = tmp_path / "lock"
    held, entered = threading.Event(), []

    def wait() -> None:
        with closing(FileLock(path, 30)) as lock:
            held.wait()
            with lock:
                entered.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    with closing(FileLock(path, 1)) as lock, lock:
        held.set()
        time.sleep(0.02)
        assert entered == []
    thread.join(timeout=20)
    assert len(entered) == 1


def test_closing_gives_it_up(tmp_path: Path):
    """As the end of a process does."""
    path = tmp_path / "lock"
    first = FileLock(path, 0)
    first.__enter__()
    first.close()
    first.close()
    with closing(FileLock(path, 0)) as second, second:
        pass


def test_it_is_private_and_follows_no_link(tmp_path: Path):
    """Mode 0600 under any umask; a link planted in its place is refused."""
    before = os.umask(0)
    try:
        FileLock(tmp_path / "lock", 0).close()
    finally:
        os.umask(before)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError) as caught:
        FileLock(tmp_path / "link", 0)
    assert caught.value.kind == "foreign"
    assert not (tmp_path / "victim").exists()


class Waiters:
    """Threads that wait for one lock, each with descriptors of its own, as processes have."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.came: list[str] = []
        self.threads: list[threading.Thread] = []

    def join_line(self, name: str, patience: float = 30) -> None:
        """Start one, and see it standing in line."""
        ready = threading.Event()

        def wait() -> None:
            with closing(FileLock(self.path, patience)) as lock:
                ready.set()
                try:
                    with lock:
                        self.came.append(name)
                except StoreError:
                    self.came.append(f"{name} left")

        before = blocked(self.path)
        self.threads.append(threading.Thread(target=wait))
        self.threads[-1].start()
        ready.wait()
        deadline = time.monotonic() + 20
        while blocked(self.path) <= before:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def join(self) -> list[str]:
        for thread in self.threads:
            thread.join(20)
        return self.came


def blocked(path: Path) -> int:
    """How many wait for the lock or to be the next, as the kernel tells."""
    files = {str(each.stat().st_ino) for each in path.parent.glob(f"{path.name}*")}
    lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return sum(1 for line in lines if " -> " in line and line.split()[-3].split(":")[-1] in files)


def test_they_come_in_the_order_in_which_they_asked(tmp_path: Path):
    """And whoever lets go and asks again is behind all of them."""
    waiters = Waiters(tmp_path / "lock")
    with closing(FileLock(waiters.path, 30)) as lock:
        with lock:
            for name in "abcd":
                waiters.join_line(name)
        with lock:
            waiters.came.append("again")
    assert waiters.join() == ["a", "b", "c", "d", "again"]


def test_who_loses_patience_lets_the_next_one_come(tmp_path: Path):
    """A place in the kernel's queue cannot be given back, but it is passed on at once."""
    waiters = Waiters(tmp_path / "lock")
    with closing(FileLock(waiters.path, 30)) as lock, lock:
        waiters.join_line("short", patience=0.05)
        waiters.join_line("long")
        waiters.threads[0].join(20)
        assert waiters.came == ["short left"]
    assert waiters.join() == ["short left", "long"]
    with closing(FileLock(waiters.path, 5)) as lock, lock:
        pass


def test_one_that_lost_patience_can_wait_again(tmp_path: Path):
    """With the same object, which stands in line anew."""
    path = tmp_path / "lock"
    with closing(FileLock(path, 0.05)) as second:
        with closing(FileLock(path, 5)) as first, first, pytest.raises(StoreError):
            second.__enter__()
        second.patience = 20
        with second:
            pass


@pytest.mark.parametrize("waiting", [False, True])
def test_a_killed_process_is_no_obstacle(tmp_path: Path, waiting: bool):
    """Neither the one that holds the lock nor the one that is next."""
    path = tmp_path / "lock"
    holder = FileLock(path, 20)
    if waiting:
        holder.__enter__()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with closing(FileLock(path, 60)) as lock:
            os.write(writing, b"x")
            with lock:
                time.sleep(60)
        os._exit(1)
    os.read(reading, 1)
    os.close(reading)
    os.close(writing)
    time.sleep(0.05)
    os.kill(child, 9)
    os.waitpid(child, 0)
    if waiting:
        holder.__exit__(None, None, None)
    with closing(FileLock(path, 20)) as lock, lock:
        pass
    holder.close()


def test_its_queue_is_private_too(tmp_path: Path):
    """Made as the lock is, and never through a link."""
    FileLock(tmp_path / "lock", 0).close()
    assert (tmp_path / f"lock{locks.QUEUE}").stat().st_mode & 0o777 == 0o600
    (tmp_path / f"other{locks.QUEUE}").symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError):
        FileLock(tmp_path / "other", 0)
    assert not (tmp_path / "victim").exists()
