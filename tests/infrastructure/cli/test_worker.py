"""`statelog worker`: the queue from the command line, and what its killed processes leave."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.queue.job import JOB, JobStatus
from statelog.infrastructure.cli import handlers
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.views import Views
from statelog.projections.queue import QUEUE_VIEWS
from tests.amounts import amount
from tests.infrastructure.cli import trivial_worker
from tests.infrastructure.cli.desk import Desk, Done, ended

PROGRAM = Path(trivial_worker.__file__)


@pytest.fixture
def trivial(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk whose workers know trivial jobs."""
    monkeypatch.setattr(handlers, "handlers", trivial_worker.trivial)
    monkeypatch.setenv(trivial_worker.FOLDER, str(desk.folder))
    return desk


def publish(desk: Desk, count: int = 1, **given: Any) -> list[str]:
    """Publish trivial jobs; their ids."""
    asked = {"category": "test", "event_type": "trivial", "payload": {}, **given}
    with Journal(desk.store) as journal:
        return [str(Queue(journal).publish(**asked).id) for _ in range(count)]


def states(desk: Desk, ids: list[str]) -> list[Any]:
    with Journal(desk.store) as journal:
        return [Queue(journal).get(job_id).state for job_id in ids]


def start(desk: Desk, *words: str) -> subprocess.Popen[str]:
    """A worker in a process of its own."""
    command = [sys.executable, str(PROGRAM), "--store", str(desk.store), "worker", *words]
    root = str(Path(__file__).resolve().parents[3])
    more = {trivial_worker.FOLDER: str(desk.folder), "PYTHONWARNINGS": "error", "PYTHONPATH": root}
    return subprocess.Popen(
        command,
        env={**os.environ, **more},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for something that has to happen."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def test_it_does_what_there_is_to_do(trivial: Desk):
    """With `--once`; a JSON line for each attempt, logs on stderr."""
    ids = publish(trivial, 3)
    done = trivial("worker", "--once", "--json", "--log-format", "json")
    assert done.code == 0
    assert {line["jobId"] for line in done.lines} == set(ids)
    assert [line for line in done.lines if line["jobId"] == ids[0]] == [
        {
            "jobId": ids[0],
            "eventType": "trivial",
            "attempt": 1,
            "outcome": "completed",
            "error": None,
        }
    ]
    logged = [json.loads(line) for line in done.err.splitlines()]
    assert logged[-1]["message"] == "stopped"
    assert trivial("worker", "--once").out == ""


def test_an_attempt_that_failed_is_told(trivial: Desk):
    """Exit code 1 with `--once`, and the error in the line and in the log."""
    publish(trivial, event_type="failing")
    publish(trivial)
    done = trivial("worker", "--once", "--json")
    assert done.code == 1
    assert {(line["outcome"], line["error"]) for line in done.lines} == {
        ("retried", "ValueError: it cannot be done"),
        ("completed", None),
    }
    assert "retried (ValueError: it cannot be done)" in done.err


@pytest.mark.parametrize(
    "words",
    [
        *(("--concurrency", "0"), ("--concurrency", "many")),
        *(("--lease", "0"), ("--lease", "nan"), ("--lease", "inf")),
    ],
    ids=" ".join,
)
def test_wrong_usage(words: tuple[str, str], desk: Desk):
    """Exit code 2, and a line that names the option."""
    done = desk("worker", "--once", *words)
    assert done.code == 2
    assert words[0] in done.error
    assert not desk.store.exists()


def test_a_store_that_cannot_be_written(trivial: Desk):
    """Exit code 1 and one line."""
    publish(trivial)
    trivial.store.chmod(0o400)
    try:
        assert "cannot be written" in trivial("worker", "--once").error
    finally:
        trivial.store.chmod(0o600)


def test_the_real_handlers_are_there(desk: Desk, tmp_path: Path):
    """Of planning and of runs, each with what belongs to a failure."""
    with Journal(desk.store) as journal:
        worker = handlers.job_worker(journal, tmp_path, "bob")
        assert set(worker.handlers) == {"planning.session.requested", "execution.run.requested"}
        assert set(worker.on_failure) == set(worker.handlers)
        assert worker.owner.startswith("bob@")
        assert worker.owner != handlers.job_worker(journal, tmp_path, "bob").owner


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_gives_the_jobs_back(number: int, trivial: Desk):
    """Exit code 0; no attempt is used, and nothing waits for a lease to run out."""
    ids = publish(trivial, 2, payload={"seconds": 60})
    process = start(trivial, "--json")
    until(lambda: all((trivial.folder / f"{job_id}.began").exists() for job_id in ids))
    process.send_signal(number)
    done = ended(process)
    assert (done.code, {line["outcome"] for line in done.lines}) == (0, {"returned"})
    assert [(each.status, each.attempts) for each in states(trivial, ids)] == [
        (JobStatus.PENDING, 0)
    ] * 2


def test_a_killed_worker_leaves_its_jobs_leased(trivial: Desk):
    """Until their leases run out: nobody can know sooner what it did."""
    ids = publish(trivial, payload={"seconds": 60})
    process = start(trivial)
    until((trivial.folder / f"{ids[0]}.began").exists)
    process.send_signal(signal.SIGKILL)
    assert ended(process).code == -signal.SIGKILL
    assert states(trivial, ids)[0].status is JobStatus.LEASED


def test_payloads_are_left_out_unless_asked_for(desk: Desk):
    """P22; in both forms of the history and in the tail."""
    (job_id,) = publish(desk, payload={"password": "sesame"})
    for words in (("log", "history", f"job/{job_id}"), ("log", "tail")):
        for form in ([], ["--json"]):
            shown = desk(*words, *form)
            assert shown.code == 0
            assert "sesame" not in shown.out
            assert "planning" in shown.out or "trivial" in shown.out
            assert "sesame" in desk(*words, *form, "--payloads").out
    (line,) = desk("log", "history", f"job/{job_id}", "--json").lines
    assert "payload" not in line["data"]
    assert line["data"]["event_type"] == "trivial"
    (full,) = desk("log", "history", f"job/{job_id}", "--json", "--payloads").lines
    assert full["data"] == {**line["data"], "payload": {"password": "sesame"}}


def killing(desk: Desk, jobs: int, seconds: float, seed: int) -> int:
    """Workers that are killed at random moments until all jobs are done; how many were killed."""
    chance = random.Random(seed)
    ids = publish(desk, jobs, payload={"seconds": 0.01}, max_attempts=1000)
    words = ("--concurrency", "4", "--lease", "2")
    workers = [start(desk, *words) for _ in range(3)]
    killed = 0
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.05, 0.6))
            at = chance.randrange(len(workers))
            workers[at].kill()
            killed += workers[at].wait() == -signal.SIGKILL
            workers[at].communicate()
            workers[at] = start(desk, *words)
        with Journal(desk.store) as journal:
            queue = Queue(journal)
            until(lambda: not queue.jobs(), 120)
    finally:
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        ends: list[Done] = [ended(worker) for worker in workers]
    for done in ends:
        # one that was asked to end before it had begun knows nothing of it yet
        asked = 0 if "started as" in done.err else -signal.SIGTERM
        assert (done.code, "Traceback" in done.err) == (asked, False), done.err
    check(desk, ids)
    return killed


def check(desk: Desk, ids: list[str]) -> None:
    """Every job is completed, once; nobody worked on one that another one worked on."""
    assert list(desk.folder.glob("*.overlap")) == []
    with Journal(desk.store) as journal:
        for job_id in ids:
            loaded = journal.load(JOB, job_id)
            assert loaded.state.status is JobStatus.COMPLETED, job_id
            names = Counter(recorded.name for recorded in journal.history(f"job/{job_id}"))
            assert names["queue.job.completed"] == names["queue.job.published"] == 1
            leased, returned = names["queue.job.leased"], names["queue.job.returned"]
            assert leased == returned + 1 == loaded.state.attempts
            attempts = (desk.folder / f"{job_id}.done").read_text().split()
            assert str(loaded.state.attempts) == attempts[-1]
            assert len(attempts) == len(set(attempts)) <= leased
        with Views(journal, QUEUE_VIEWS) as views:
            assert views.verify() == []


def test_killed_workers_lose_nothing_and_do_nothing_twice_at_once(desk: Desk):
    """Three workers, killed with -9 at random moments over a few hundred jobs."""
    assert killing(desk, 300, 3.0, seed=1) > 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(amount(5, 1)))
def test_more_workers_are_killed(seed: int, desk: Desk):
    """The same for a minute."""
    assert killing(desk, 3000, amount(60.0, 15.0), seed) > amount(50, 8)
