"""Real runs through the queue: submitted, worked on by workers, killed with them, recovered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from statelog.domain.errors import Refused
from statelog.domain.queue.job import JOB, JobStatus
from statelog.domain.runs.request import Recovery
from statelog.domain.runs.run import RUN, RunStatus
from statelog.domain.runs.task import TaskStatus
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.queue.worker import JobWorker
from statelog.infrastructure.runs.handler import run_failure, run_handler
from statelog.infrastructure.runs.runs import Runs
from statelog.infrastructure.runs.submit import REQUESTED, job_id_of
from tests.house.repo import ROOT
from tests.infrastructure.runs.lab import FOREVER, LOCAL, Lab, activity
from tests.infrastructure.runs.place import soon

WAITS = "echo x >> times; while [ ! -e go ]; do sleep 0.02; done; exit {}"


@pytest.fixture
def lab(store_path: Path, tmp_path: Path) -> Iterator[Lab]:
    here = Lab(store_path, tmp_path / "work")
    yield here
    here.close()
    assert here.alive() == []


def submit(lab: Lab, activities, **given) -> str:
    asked = lab.request(activities, **given)
    lab.ids.add(asked.run.id)
    return str(Runs(lab.journal).submit(asked, actor="alice").id)


def worker(lab: Lab, owner: str = "w", lease_seconds: float = 30.0) -> JobWorker:
    handlers = {REQUESTED: run_handler(lab.journal, lab.work_root)}
    failures = {REQUESTED: run_failure(lab.journal)}
    return JobWorker(lab.journal, handlers, owner, lease_seconds=lease_seconds, on_failure=failures)


def work(lab: Lab) -> None:
    """Do what there is to do."""
    worker(lab).run(threading.Event(), once=True)


def test_a_submitted_run_is_run_once(lab: Lab):
    """The job is done when the run has ended; the same id again is the same job."""
    job = submit(lab, [activity("a", "echo x >> times")])
    work(lab)
    assert submit(lab, [activity("a", "echo y >> times")]) == job
    work(lab)
    assert lab.state().status is RunStatus.COMPLETED
    assert lab.journal.load(JOB, job).state.status is JobStatus.COMPLETED
    assert lab.file("a", "times").read_text() == "x\n"


def test_a_run_that_failed_is_no_failed_job(lab: Lab):
    """It has been carried out, so it is not tried again."""
    job = submit(lab, [activity("a", "exit 3")])
    work(lab)
    assert lab.state().end.reason == "activity a failed: exit code 3"
    assert lab.journal.load(JOB, job).state.status is JobStatus.COMPLETED


def test_a_runtime_that_is_not_built_starts_no_run(lab: Lab):
    """The driver is what counts, whatever the runtime is called; the job says so."""
    asked = lab.request([activity("a", "true")])
    asked = replace(asked, runtimes=(replace(LOCAL, driver="slurm"),))
    job = Runs(lab.journal).submit(asked, actor="alice").id
    work(lab)
    assert lab.state().status is RunStatus.NEW
    error = lab.journal.load(JOB, job).state.last_error or ""
    assert "driver slurm of 'local': not built" in error


WORKER = """
import sys, threading
from pathlib import Path
from tests.infrastructure.runs.lab import Lab
from tests.infrastructure.runs.test_real_jobs import worker
lab = Lab(Path(sys.argv[1]), Path(sys.argv[2]))
worker(lab, sys.argv[3], lease_seconds=0.5).run(threading.Event())
"""


def worker_process(lab: Lab, owner: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", WORKER, str(lab.journal.store), str(lab.work_root), owner]
    return subprocess.Popen(words, cwd=ROOT)


def test_a_killed_worker_is_followed_by_another(lab: Lab):
    """Planning case 75: the job is delivered again, the command is not started again, and its own
    exit status is what the task records.
    """
    submit(lab, [activity("a", WAITS.format(0)), activity("b", "true")], data=[("a", "b")])
    with worker_process(lab, "first") as first:
        soon(lab.file("a", "times").exists)
        soon(lambda: lab.state().tasks["a"].status is TaskStatus.RUNNING)
        first.kill()
    with worker_process(lab, "second") as second:
        lab.file("a", "go").touch()
        soon(lambda: lab.state().ended)
        second.send_signal(signal.SIGKILL)
    run = lab.state()
    assert run.status is RunStatus.COMPLETED
    assert run.handle("a").exit_code == 0
    assert lab.file("a", "times").read_text() == "x\n"
    assert lab.names().count("runs.handle.starting") == 2


def test_a_command_that_failed_while_nobody_looked_failed(lab: Lab):
    """Planning case 75, with an exit status that is not 0."""
    submit(lab, [activity("a", WAITS.format(9))])
    with worker_process(lab, "first") as first:
        soon(lambda: lab.state().tasks.get("a") and lab.file("a", "times").exists())
        first.kill()
    lab.file("a", "go").touch()
    soon(lambda: lab.control("a", "ended.json").exists())
    with worker_process(lab, "second") as second:
        soon(lambda: lab.state().ended)
        second.kill()
    assert lab.state().end.reason == "activity a failed: exit code 9"
    assert lab.file("a", "times").read_text() == "x\n"


def test_a_job_that_fails_for_good_leaves_no_run_behind(lab: Lab):
    """What still runs is stopped by a further job, which ends the run with the reason."""
    job = submit(lab, [activity("a", FOREVER), activity("b", "true")], control=[("a", "b")])
    broken = worker(lab)
    stop = threading.Event()
    thread = threading.Thread(target=broken.run, args=(stop,))
    thread.start()
    soon(lambda: lab.state().tasks.get("a") and lab.state().live)
    stop.set()
    thread.join()
    assert lab.state().live == ("a",)

    ahead, queue = later(lab), Queue(lab.journal, on_failure={REQUESTED: run_failure(lab.journal)})
    while lab.journal.load(JOB, job).state.status is not JobStatus.FAILED:
        ahead[0] += 600_000_000
        for leased in queue.lease("unlucky"):
            queue.fail(str(leased.id), "unlucky", "no luck")
    work(lab)
    run = lab.state()
    assert run.status is RunStatus.FAILED
    assert run.end.reason == "its job failed: no luck"
    assert run.tasks["a"].reason == "stopped because its job failed: no luck"
    assert run.tasks["b"].status is TaskStatus.CANCELLED
    assert lab.alive() == []


def later(lab: Lab) -> list[int]:
    """Put the journal's clock ahead by so many microseconds."""
    ahead, clock = [0], lab.journal.clock
    lab.journal.clock = lambda: clock() + ahead[0]
    return ahead


def test_a_failed_run_is_recovered_with_what_completed(lab: Lab):
    """Planning case 76, as somebody asks for it."""
    flag = lab.work_root / "flag"
    steps = [activity("a", "echo x >> times"), activity("b", f"cat times && test -e {flag}")]
    submit(lab, steps, data=[("a", "b")])
    work(lab)
    assert lab.state().status is RunStatus.FAILED
    flag.touch()
    second = f"{lab.run_id}-2"
    lab.ids.add(second)
    Runs(lab.journal).recover(lab.run_id, second, ["a"], actor="alice")
    work(lab)
    run = lab.journal.load(RUN, second).state
    assert run.status is RunStatus.COMPLETED
    assert run.tasks["a"].kept_from == lab.run_id
    assert lab.file("a", "times").read_text() == "x\n"
    with pytest.raises(Refused, match="only a failed run"):
        Runs(lab.journal).recover(second, f"{lab.run_id}-3", actor="alice")


def test_an_activity_whose_workspace_is_gone_runs_again(lab: Lab):
    """It was to be kept, but something that runs again needs what it made (2.8)."""
    import shutil

    flag = lab.work_root / "flag"
    steps = [activity("a", "echo x >> times"), activity("b", f"cat times && test -e {flag}")]
    submit(lab, steps, data=[("a", "b")])
    work(lab)
    flag.touch()
    shutil.rmtree(lab.file("a", "times").parent)
    asked = lab.request(
        steps, data=[("a", "b")], run_id=f"{lab.run_id}-2", recovers_run_id=lab.run_id
    )
    lab.ids.add(asked.run.id)
    Runs(lab.journal).submit(replace(asked, recovery=Recovery(("a",))), actor="alice")
    work(lab)
    run = lab.journal.load(RUN, asked.run.id).state
    assert run.status is RunStatus.COMPLETED
    assert run.tasks["a"].kept_from == ""


def test_an_interruption_reaches_a_worker(lab: Lab):
    """Planning case 67 through the store: another process asks, the worker stops."""
    submit(lab, [activity("long", FOREVER), activity("other", "true")])
    with worker_process(lab, "first") as process:
        soon(lambda: lab.state().tasks.get("long") and lab.state().handle("long").external_id)
        with Journal(lab.journal.store) as journal:
            Runs(journal).interrupt(lab.run_id, "long", actor="alice")
        soon(lambda: lab.state().ended)
        os.kill(process.pid, signal.SIGKILL)
    run = lab.state()
    assert run.end.reason == "activity long was cancelled: interrupted by a user"
    assert run.tasks["other"].status is TaskStatus.COMPLETED
    assert job_id_of(lab.run_id)
