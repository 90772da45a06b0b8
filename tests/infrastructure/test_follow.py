"""Following the log: everything once, in order, and woken by writers anywhere."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from statelog.domain.execution import plan as plans
from statelog.domain.execution.plan import PLAN
from statelog.infrastructure.bell import SUFFIX, Bell
from statelog.infrastructure.journal import Journal

WRITER = """
import sys
from statelog.domain.execution import plan as plans
from statelog.domain.execution.plan import PLAN
from statelog.infrastructure.journal import Journal
with Journal(sys.argv[1]) as journal:
    for number in range(int(sys.argv[2])):
        journal.execute(PLAN, sys.argv[3], plans.touch, actor="bob")
"""


def saved(journal: Journal, plan_id: str = "p") -> None:
    body = {"plan_id": plan_id, "realm": "lab"}
    journal.execute(PLAN, plan_id, plans.save, actor="bob", body=body, generation="g")


@pytest.fixture(params=["file", "memory"])
def journal(request: pytest.FixtureRequest, store_path: Path):
    with Journal(store_path if request.param == "file" else None) as journal:
        yield journal


def test_what_is_there_comes_first_and_then_what_comes(journal: Journal) -> None:
    saved(journal)
    with journal.follow() as follower:
        assert [e.version for e in follower.batch(0)] == [1]
        journal.execute(PLAN, "p", plans.touch, actor="bob")
        assert [e.version for e in follower.batch(0)] == [2]
        assert follower.batch(0) == []


def test_a_follower_is_bounded_by_prefix_and_names(journal: Journal) -> None:
    saved(journal)
    saved(journal, "q")
    journal.execute(PLAN, "p", plans.touch, actor="bob")
    with journal.follow(prefix="plan/p") as follower:
        assert [e.stream for e in follower.ready()] == ["plan/p", "plan/p"]
    with journal.follow(names=[plans.Touched.stored_name]) as follower:
        assert [e.position for e in follower.ready()] == [3]
        assert follower.position == 3


def test_a_commit_of_another_thread_wakes_a_waiting_follower(journal: Journal) -> None:
    saved(journal)
    with journal.follow(after=1) as follower:
        threading.Timer(0.05, lambda: journal.execute(PLAN, "p", plans.touch, actor="bob")).start()
        started = time.monotonic()
        assert [e.version for e in follower.batch(60)] == [2]
        assert time.monotonic() - started < 30


def test_a_commit_of_another_process_wakes_a_waiting_follower(store_path: Path) -> None:
    """Not by polling: the wait would last a minute."""
    with Journal(store_path) as journal:
        saved(journal)
        with journal.follow(after=1) as follower:
            writer = subprocess.Popen([sys.executable, "-c", WRITER, store_path, "1", "p"])
            started = time.monotonic()
            assert [e.version for e in follower.batch(60)] == [2]
            assert time.monotonic() - started < 30
            assert writer.wait(30) == 0


def test_every_event_comes_once_and_in_order_while_others_write(store_path: Path) -> None:
    """Each writer has a plan of its own: on one they could lose more races than they have tries."""
    with Journal(store_path) as journal:
        saved(journal)
        saved(journal, "q")
        with journal.follow() as follower:
            writers = [
                subprocess.Popen([sys.executable, "-c", WRITER, store_path, "40", plan_id])
                for plan_id in ("p", "q")
            ]
            seen: list[int] = []
            until = time.monotonic() + 60

            def stopped() -> bool:
                return len(seen) >= 82 or time.monotonic() > until

            for recorded in follower.events(stopped):
                seen.append(recorded.position)
            assert [writer.wait(30) for writer in writers] == [0, 0]
            assert seen == list(range(1, 83))


def test_the_bell_of_a_dead_listener_is_removed_by_the_next_ring(store_path: Path) -> None:
    folder = store_path.with_name(f"{store_path.name}{SUFFIX}")
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom statelog.infrastructure.bell import Bell\n"
        "listener = Bell(Path(sys.argv[1])).listen()\nos._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code, store_path], check=True)
    assert len(list(folder.iterdir())) == 1
    Bell(store_path).ring()
    assert list(folder.iterdir()) == []


def test_a_listener_that_does_not_listen_does_not_hold_a_writer_up(store_path: Path) -> None:
    bell = Bell(store_path)
    with bell.listen() as listener:
        for _ in range(2000):
            bell.ring()
        assert listener.wait(0)
        assert not listener.wait(0)
