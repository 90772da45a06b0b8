"""Processes that share one store: a queue with two workers, and plans with two daemons."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.execution.plan import PLAN
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.views import Views
from statelog.projections.execution import EXECUTION_VIEWS
from tests.infrastructure.execution.lab import Lab, a_step
from tests.infrastructure.postgres.server import started
from tests.infrastructure.store.counter import child, run

pytestmark = pytest.mark.servers

WORKER = """
import threading
from statelog.infrastructure.queue.worker import JobWorker
with Journal(sys.argv[1]) as journal:
    def work(work):
        os.write(1, f"{work.job_id}\\n".encode())
        if sys.argv[3] == "stuck":
            signal.pause()
    worker = JobWorker(journal, {"t": work}, sys.argv[2], lease_seconds=float(sys.argv[4]))
    worker.run(threading.Event(), once=True)
"""

STEPS = """
    import os, time
    @step
    def slow(ctx: StepContext) -> None:
        ctx.emit("ran", step=ctx.step_id)
        with open(ctx.workdir.parent.parent / "ran", "a") as file:
            file.write(ctx.step_id + "\\n")
        time.sleep(0.2)
"""


@pytest.fixture
def journal(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    monkeypatch.setenv("STATELOG_VIEWS", str(tmp_path / "views.db"))
    with Journal(url) as journal:
        yield journal


def until(happens: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def publish(journal: Journal) -> str:
    asked = {"category": "c", "event_type": "t", "payload": {"n": 1}}
    return str(Queue(journal).publish(**asked).id)


def test_two_workers_share_the_jobs(url: str, journal: Journal):
    """In two processes; each job is done once."""
    made = [publish(journal) for _ in range(40)]
    workers = [child(WORKER, url, name, "quick", 30) for name in ("alice", "bob")]
    done: list[str] = []
    for worker in workers:
        printed, _ = worker.communicate(timeout=60)
        assert worker.returncode == 0, printed
        done += printed.split()
    assert sorted(done) == sorted(made)
    assert not Queue(journal).jobs()


def test_a_job_of_a_killed_worker_is_done_by_the_next(url: str, journal: Journal):
    """Once its lease has run out, which it renewed as long as it lived."""
    made = publish(journal)
    with started(WORKER, url, "alice", "stuck", 3) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline().strip() == made
        time.sleep(3.5)
        assert Queue(journal).lease("bob") == []
    until(lambda: made in run(WORKER, url, "bob", "quick", 3).splitlines())


class Daemons:
    """Processes of `statelog daemon` on one store."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.log = lab.folder / "log"

    @contextmanager
    def one(self) -> Iterator[subprocess.Popen[bytes]]:
        """One of them, until the end of the block."""
        url = self._lab.journal.url
        assert url is not None
        given = ["--work-root", str(self._lab.work), "--path", str(self._lab.path)]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "statelog", "daemon", *given, "--max-plans", "2"],
                env={**os.environ, "STATELOG_STORE": url},
                cwd=self._lab.folder,
                stdout=log,
                stderr=log,
            )
            try:
                yield process
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) in (0, -signal.SIGKILL), self.log.read_text()
            finally:
                process.kill()
                process.wait()


@pytest.fixture
def lab(tmp_path: Path, journal: Journal) -> Lab:
    lab = Lab(tmp_path, journal)
    lab.steps(STEPS)
    lab.work.mkdir()
    return lab


def approved(lab: Lab, plan_id: str) -> None:
    plans = Plans(lab.journal, "alice", Holders.for_journal(lab.journal))
    steps = [a_step(name, "slow") for name in ("a", "b", "c")]
    plans.save(lab.body(*steps, plan_id=plan_id), approve=True, force=True)


def finished(lab: Lab, plan_id: str) -> bool:
    journal = lab.journal
    free = journal.load(SLOT, plan_id).state.status is SlotStatus.FREE
    return free and journal.load(PLAN, plan_id).state.last is not None


def test_two_daemons_share_the_plans_and_one_is_killed(lab: Lab):
    """What the dead one had at work is closed as abandoned, and done by the other; views agree."""
    daemons = Daemons(lab)
    names = [f"p{number}" for number in range(6)]
    with ExitStack() as stack:
        first, second = (stack.enter_context(daemons.one()) for _ in range(2))
        holders = Holders.for_journal(lab.journal)

        def living() -> int:
            return sum(id.startswith("daemon:") for id in holders.living())

        until(lambda: living() == 2)
        for name in names:
            approved(lab, name)
        until(lambda: (lab.folder / "ran").exists() or _ran(lab))
        first.kill()
        until(lambda: living() == 1)
        until(lambda: all(finished(lab, name) for name in names))
        assert second.poll() is None, daemons.log.read_text()
    with Views(lab.journal, EXECUTION_VIEWS) as views:
        assert list(views.verify()) == []
    assert holders.living() == ()


def _ran(lab: Lab) -> list[str]:
    return [str(path) for path in lab.folder.rglob("ran")]


def test_a_daemon_goes_on_when_its_server_is_back(lab: Lab, server: Any):
    """It keeps its holder, and the plans that it has not finished."""
    daemons = Daemons(lab)
    with daemons.one() as daemon:
        holders = Holders.for_journal(lab.journal)
        until(lambda: any(id.startswith("daemon:") for id in holders.living()))
        approved(lab, "p0")
        until(lambda: _ran(lab))
        server.stop("immediate")
        server.start()
        approved(lab, "p1")
        until(lambda: finished(lab, "p0") and finished(lab, "p1"))
        assert daemon.poll() is None, daemons.log.read_text()


def test_the_command_line_takes_a_url(url: str, tmp_path: Path):
    """Wherever a store's file may stand; the doctor says what it is, and copies are refused."""

    def call(*given: str) -> tuple[int, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "statelog", "--store", url, *given, "--json"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "caches")},
        )
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    code, said = call("store", "doctor")
    assert (code, said["error"]["type"]) == (1, "NotFound")
    lab = Lab(tmp_path)
    body = lab.body(a_step("one", "steps:ok"), plan_id="p")
    (tmp_path / "plan.json").write_text(json.dumps(body))
    assert call("run", "plan.json", "--path", str(lab.path))[0] == 0
    code, found = call("store", "doctor", "--check")
    assert found["dense"]
    assert found["postgres_version"]
    assert {view["name"] for view in found["views"]} >= {"slots", "due"}
    assert [path.name for path in (tmp_path / "caches/statelog").glob("*.views.db")] == [
        f"{found['store_id']}.views.db"
    ]
    assert (tmp_path / "statelog.work/p").is_dir()
    code, refused = call("store", "backup", "copy.db")
    assert (code, refused["error"]["rule"]) == (1, "backup_file")
    assert call("plan", "status", "p")[0] == 0
    assert call("log", "audit")[0] == 0
