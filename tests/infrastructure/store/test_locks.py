"""The lock of writers: private, exclusive, bounded, and never a way to another file."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from statelog.domain import StoreError
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
