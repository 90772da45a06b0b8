"""Workers are killed at random moments: no session is stuck, and nothing is found twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from statelog.domain.errors import Refused
from statelog.domain.planning.session import SessionStatus
from statelog.infrastructure.audit.conformance import audit
from statelog.infrastructure.cli.all_rules import RULEBOOKS
from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.views import Views
from tests.infrastructure.planning import slow_worker
from tests.infrastructure.planning.lab import Lab

KILLS = 20
ALGORITHMS = tuple(slow_worker.SLOW)
SEED = 7


def start(store: Path, owner: str) -> subprocess.Popen[str]:
    """A worker that has begun to work."""
    words = (sys.executable, "-m", slow_worker.__name__, str(store), owner)
    process = subprocess.Popen(words, cwd=slow_worker.ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def finish(journal: Journal) -> None:
    """Work until no job is left, also those whose pause or lease is not over yet."""
    stop = threading.Event()
    thread = threading.Thread(target=slow_worker.worker(journal, "last").run, args=(stop,))
    thread.start()
    try:
        queue = Queue(journal)
        for _ in range(3000):
            if not queue.jobs():
                return
            time.sleep(0.02)
        raise AssertionError("a job does not end")
    finally:
        stop.set()
        thread.join(30)


def test_workers_are_killed_and_every_session_ends(store_path: Path):
    """Twenty kills of two workers, with cancellations meanwhile; then what is left is done.

    Every session has ended and so has its job, none is running besides another, the log breaks no
    declared rule, every view equals its rebuild, and what completed found what it always finds.
    """
    chance = random.Random(SEED)
    with Journal(store_path) as journal:
        lab = Lab(journal)
        ids = [f"s{at}" for at in range(12)]
        for id in ids:
            lab.create(id, *ALGORITHMS)
        lab.create("calm", *ALGORITHMS)
        lab.sessions.cancel(ids[0], actor="tester")
        workers = [start(store_path, f"worker-{at}") for at in range(2)]
        for at in range(KILLS):
            time.sleep(chance.uniform(0.02, 0.25))
            kill(workers[at % 2])
            workers[at % 2] = start(store_path, f"worker-{at + 2}")
            if at % 6 == 5:
                try:
                    lab.sessions.cancel(chance.choice(ids[6:]), actor="tester")
                except Refused:
                    assert journal.refusals()
        for worker in workers:
            kill(worker)
        finish(journal)

        pages = {id: lab.sessions.show(id) for id in [*ids, "calm"]}
        assert {page["session"]["status"] for page in pages.values()} <= {
            "completed",
            "cancelled",
            "failed",
        }
        given_up = [
            page["session"] for page in pages.values() if page["session"]["status"] == "failed"
        ]
        assert all("given up" in each["failureReason"] for each in given_up)
        assert _most_running(journal) == 1
        assert audit(journal, RULEBOOKS).violations == ()
        with Views(journal, all_views()) as views:
            assert views.verify() == []
        with Journal() as quiet:
            undisturbed = Lab(quiet)
            undisturbed.create("calm", *ALGORITHMS)
            undisturbed.deliver("calm")
            expected = _placements(undisturbed, "calm")
        done = [id for id, page in pages.items() if page["session"]["status"] == "completed"]
        assert done
        for id in done:
            assert _placements(lab, id) == expected


def _placements(lab: Lab, id: str) -> list[tuple[str, int, str]]:
    """What a session found, without the ids that are its own."""
    found = lab.sessions.candidates(id)
    return [(each["algorithm"], each["rank"], each["placementHash"]) for each in found]


def _most_running(journal: Journal) -> int:
    """How many sessions were running at once at most."""
    running: set[str] = set()
    most = 0
    for recorded in journal.history("session"):
        word = recorded.name.removeprefix("planning.session.")
        if word == "started":
            running.add(recorded.stream)
        elif word in ("requeued", "completed", "failed", "cancelled"):
            running.discard(recorded.stream)
        most = max(most, len(running))
    return most


def test_the_kills_are_no_coincidence(store_path: Path):
    """A kill does leave a session running, and the next worker goes on with it."""
    with Journal(store_path) as journal:
        lab = Lab(journal)
        lab.create("s", *ALGORITHMS)
        worker = start(store_path, "first")
        for _ in range(2000):
            if lab.session("s").status is SessionStatus.RUNNING:
                break
            time.sleep(0.005)
        kill(worker)
        assert lab.session("s").status is SessionStatus.RUNNING
        finish(journal)
        assert lab.session("s").status is SessionStatus.COMPLETED
        assert lab.names("session/s").count("requeued") == 1
