"""Simulated runs in a journal: numbers, order, batches, redelivery (4.2, P11, P18)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import Conflict, Invalid
from statelog.domain.runs.run import RUN, RunStatus, fail
from statelog.domain.runs.task import TaskStatus
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.worker import Interrupted, JobWorker, Work
from statelog.infrastructure.runs.runs import Runs, run_failure, run_handler
from statelog.infrastructure.runs.simulation import run_simulation
from statelog.infrastructure.runs.submit import REQUESTED
from statelog.infrastructure.views import Views
from statelog.projections.runs import RUN_VIEWS
from tests.domain.runs.bundles import activity, bundle, diamond, golden, place, request, resource


@pytest.fixture
def journal() -> Iterator[Journal]:
    with Journal() as opened:
        yield opened


def simulated(journal: Journal, document: dict[str, Any], **given: Any) -> Any:
    return run_simulation(journal, request(document), actor="w", **given)


def story(journal: Journal) -> list[str]:
    return [recorded.name.removeprefix("runs.") for recorded in journal.history("run")]


def test_the_golden_run_has_the_documented_numbers(journal: Journal):
    """planning case 55: 3 tasks of attempt 1, 2 transfers, and every total."""
    simulated(journal, golden())
    page = Runs(journal).get("r1")
    run = page["run"]
    assert (run["status"], run["makespanSeconds"], run["cost"]) == ("completed", 19.6, 0.0157)
    assert run["breakdown"] == {
        "computeSeconds": 9.0,
        "transferSeconds": 9.7,
        "queueSeconds": 0.0,
        "interferenceSeconds": 0.0,
        "overheadSeconds": 0.9,
    }
    assert (run["transferredBytes"], run["completedActivityCount"]) == (120_000_000, 3)
    assert [(each["attempt"], each["status"]) for each in page["activities"]] == [
        (1, "completed")
    ] * 3
    assert [each["id"] for each in page["dataTransfers"]] == [
        "r1:prepare:analyze",
        "r1:analyze:summarize",
    ]


def test_the_log_holds_the_run_in_simulated_time_order(journal: Journal):
    """planning case 58: started, each task's and transfer's events, completed."""
    simulated(journal, golden())
    assert story(journal) == [
        "run.started",
        *("task.queued", "task.started", "task.completed", "transfer.completed"),
        *("task.queued", "task.started", "task.completed", "transfer.completed"),
        *("task.queued", "task.started", "task.completed"),
        "run.completed",
    ]


def test_a_plan_that_cannot_be_simulated_fails_its_run(journal: Journal):
    """planning case 42: the run says no route, and is failed for good; every task is cancelled."""
    ended = simulated(journal, golden(links=[]))
    assert ended.state.status is RunStatus.FAILED
    assert "no route from 'simulated-edge'" in ended.state.end.reason
    assert {task.status for task in ended.state.tasks.values()} == {TaskStatus.CANCELLED}
    assert story(journal) == ["run.started", *["task.cancelled"] * 3, "run.failed"]
    run = Runs(journal).get("r1")["run"]
    assert (run["makespanSeconds"], run["cost"]) == (0, 0)


def test_an_invalid_plan_fails_its_run(journal: Journal):
    """4.2, step 1: what the validator refuses is not simulated."""
    document = golden()
    document["plan"]["assignments"][2]["orderOnResource"] = 0
    reason = simulated(journal, document).state.end.reason
    assert "orderOnResource" in reason
    other = golden(run={"id": "r2"})
    del other["executionScope"]
    assert "executionScope: is missing" in simulated(journal, other).state.end.reason


def test_a_request_that_cannot_begin_creates_no_run(journal: Journal):
    """2.5: no runtime; the log stays empty."""
    with pytest.raises(Invalid, match="no enabled runtime"):
        simulated(journal, golden(runtimes=[]))
    assert journal.head() == 0


def test_an_ended_run_is_left_alone(journal: Journal):
    """planning case 64, P11: a redelivery of the job changes nothing."""
    first = simulated(journal, golden())
    again = simulated(journal, diamond())
    assert (again.version, again.state) == (first.version, first.state)


@pytest.mark.parametrize("batch", [1, 2, 5, 100])
def test_batches_change_nothing_but_the_appends(journal: Journal, batch: int):
    """The same events, in so many more commits."""
    simulated(journal, diamond(), batch=batch)
    with Journal() as other:
        simulated(other, diamond())
        told = [recorded.event for recorded in journal.history("run")]
        assert told == [recorded.event for recorded in other.history("run")]
    appends = {recorded.command for recorded in journal.history("run")}
    assert (len(appends) == 1) == (batch == 100)


@pytest.mark.parametrize("after", range(1, 9))
def test_an_interrupted_simulation_goes_on_where_it_was(journal: Journal, after: int):
    """Stopped after any of its appends, and delivered again, it is the same run."""

    class StopsAfter(threading.Event):
        looks = 0

        def is_set(self) -> bool:
            StopsAfter.looks += 1
            return StopsAfter.looks > after

    StopsAfter.looks = 0
    with pytest.raises(Interrupted):
        simulated(journal, golden(), batch=1, stop=StopsAfter())
    assert journal.load(RUN, "r1").state.status is RunStatus.RUNNING or after == 1
    simulated(journal, golden())
    with Journal() as other:
        simulated(other, golden())
        told = [recorded.event for recorded in journal.history("run")]
        assert told == [recorded.event for recorded in other.history("run")]


def test_two_workers_cannot_record_one_run(journal: Journal):
    """The later one conflicts, and finds the run ended when its job comes again."""
    load, seen = journal.load, []

    def behind(*args: Any, **given: Any) -> Any:
        loaded = load(*args, **given)
        if args[0] is RUN and not seen:
            seen.append(True)
            simulated(journal, golden())
        return loaded

    journal.load = behind  # type: ignore[method-assign]
    with pytest.raises(Conflict):
        simulated(journal, golden())
    assert simulated(journal, golden()).state.status is RunStatus.COMPLETED


def test_a_failed_run_completes_its_job(journal: Journal):
    """P11, U8: a failed simulation is final and is not tried again."""
    Runs(journal).submit(request(golden(links=[])), actor="alice")
    worker = JobWorker(journal, {REQUESTED: run_handler(journal, Path("unused"))}, owner="w")
    worker.run(threading.Event(), once=True)
    assert Runs(journal).job("r1").state.status.value == "completed"
    assert Runs(journal).get("r1")["run"]["status"] == "failed"


def test_redelivery_of_a_terminal_run_is_a_success(journal: Journal):
    """P1: the handler returns and nothing is written."""
    job = Runs(journal).submit(request(golden()), actor="alice")
    handle = run_handler(journal, Path("unused"))
    work = Work(str(job.id), REQUESTED, "r1", job.state.payload, 1, threading.Event())
    handle(work)
    head = journal.head()
    handle(work)
    assert journal.head() == head


def test_a_job_that_fails_for_good_fails_the_run_that_began(journal: Journal):
    """No run stays running when nobody will carry it on; one that never began stays none."""
    job = Runs(journal).submit(request(golden()), actor="alice")
    beside = run_failure(journal)
    assert beside(job, "x") == ()

    class Stops(threading.Event):
        def is_set(self) -> bool:
            return journal.load(RUN, "r1").version > 3

    with pytest.raises(Interrupted):
        simulated(journal, golden(), batch=1, stop=Stops())
    (change,) = beside(job, "no attempts left")
    journal.commit(change, actor="w")
    run = journal.load(RUN, "r1").state
    assert (run.status, run.end.reason) == (RunStatus.FAILED, "its job failed: no attempts left")
    assert beside(job, "x") == ()


def test_a_late_write_is_kept_as_evidence(journal: Journal):
    """planning case 64: and changes no record."""
    simulated(journal, golden())
    head = journal.head()
    with pytest.raises(Exception, match="run_ended"):
        journal.execute(RUN, "r1", fail, actor="late", reason="x", at=1.0)
    (refusal,) = journal.refusals()
    assert (refusal.rule, refusal.stream, journal.head()) == ("run_ended", "run/r1", head)


def test_a_large_plan_is_simulated_in_good_time(journal: Journal):
    """2,000 activities on 8 lanes: a second or two, not minutes."""
    names = [f"a{number:04}" for number in range(2000)]
    edges = [(names[at - 8], names[at]) for at in range(8, 2000)]
    document = bundle(
        resources=[resource("m", cpuCores=8)],
        activities=[activity(name, 1) for name in names],
        places=[place(name, "m", at % 8, at) for at, name in enumerate(names)],
        edges=edges,
    )
    ended = simulated(journal, document)
    assert ended.state.end.makespan_seconds == 250


def test_every_view_equals_its_rebuild(tmp_path: Path):
    """Completed, failed and running side by side, in a file."""
    tmp_path.chmod(0o700)
    with Journal(tmp_path / "s.db") as journal, Views(journal, RUN_VIEWS) as views:
        simulated(journal, golden())
        views.catch_up()
        simulated(journal, diamond(run={"id": "r2"}))
        simulated(journal, golden(run={"id": "r3"}, links=[]))
        views.catch_up()
        assert views.verify() == []
        runs, plain = Runs(journal, views=views), Runs(journal)
        for run_id in ("r1", "r2", "r3"):
            assert runs.get(run_id) == plain.get(run_id)
            assert runs.comparison(run_id) == plain.comparison(run_id)
        assert runs.all() == plain.all()
        assert [each["run"] for each in map(runs.get, ("r3", "r2", "r1"))] == runs.all()
