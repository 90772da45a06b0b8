"""Workers that are killed while they record a simulation: the next one goes on where it was."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from statelog.domain.runs.run import RUN
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.runs.runs import Runs
from statelog.infrastructure.runs.simulation import run_simulation
from statelog.infrastructure.views import Views
from statelog.projections.runs import RUN_VIEWS
from tests.domain.runs.bundles import activity, bundle, place, request, resource
from tests.house.repo import ROOT

WORKER = """
import sys, threading
from pathlib import Path
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.worker import JobWorker
from statelog.infrastructure.runs import simulation
from statelog.infrastructure.runs.runs import run_failure, run_handler
from statelog.infrastructure.runs.submit import REQUESTED

simulation.run_simulation.__kwdefaults__["batch"] = 3
with Journal(Path(sys.argv[1])) as journal:
    JobWorker(
        journal,
        {REQUESTED: run_handler(journal, Path("unused"))},
        sys.argv[2],
        lease_seconds=0.3,
        poll_seconds=0.1,
    ).run(threading.Event())
"""
COUNT, KILLS = 90, 3
PATIENCE_S = 60


def document() -> dict[str, object]:
    """A chain on each of four lanes."""
    names = [f"a{at:03}" for at in range(COUNT)]
    return bundle(
        resources=[resource("m", cpuCores=4)],
        activities=[activity(name, 1) for name in names],
        places=[place(name, "m", at % 4, at) for at, name in enumerate(names)],
        edges=[(names[at - 4], names[at]) for at in range(4, COUNT)],
    )


def test_a_simulation_is_recorded_once_whoever_is_killed(tmp_path: Path):
    """P1, P11: event for event what an undisturbed worker records, and every view its rebuild."""
    tmp_path.chmod(0o700)
    store, chance, seen = tmp_path / "s.db", Random(4), 0
    with Journal(store) as journal:
        Runs(journal).submit(request(document()), actor="alice")
        for number in range(KILLS):
            words = [sys.executable, "-c", WORKER, str(store), f"w{number}"]
            with subprocess.Popen(words, cwd=ROOT) as worker:
                more = seen + chance.randrange(3, 80)
                wait_until(journal, lambda version, more=more: version >= more)
                worker.kill()
            seen = journal.load(RUN, "r1").version
        words = [sys.executable, "-c", WORKER, str(store), "last"]
        with subprocess.Popen(words, cwd=ROOT) as worker:
            wait_until(journal, lambda version: False)
            worker.kill()
        told = [recorded.event for recorded in journal.history("run")]
        with Views(journal, RUN_VIEWS) as views:
            views.catch_up()
            assert views.verify() == []
    with Journal() as other:
        run_simulation(other, request(document()), actor="w")
        assert told == [recorded.event for recorded in other.history("run")]


def wait_until(journal: Journal, far: Callable[[int], bool]) -> None:
    """Wait for a version of the run, or its end."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        run = journal.load(RUN, "r1")
        if run.state.ended or far(run.version):
            return
        time.sleep(0.002)
    raise AssertionError("nobody goes on with the run")
