"""Asking for a run: one commit, the first request counts, registered definitions win (P2, P10)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import Conflict, Invalid, NotFound, Refused
from statelog.domain.queue.job import JobStatus
from statelog.domain.runs.request import RunRequest
from statelog.domain.workflows.shape import read
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.worker import JobWorker
from statelog.infrastructure.runs.runs import Runs, run_handler
from statelog.infrastructure.runs.submit import REQUESTED
from statelog.infrastructure.views import Views
from statelog.infrastructure.workflows.definitions import Definitions
from statelog.projections.runs import RUN_VIEWS
from tests.domain.runs.bundles import diamond, golden, place, request


@pytest.fixture
def journal() -> Iterator[Journal]:
    with Journal() as opened:
        yield opened


def asked(journal: Journal, document: dict[str, Any]) -> Any:
    """Ask for the run of a document; its job."""
    return Runs(journal).submit(request(document), actor="alice")


def work(journal: Journal) -> None:
    """Do what there is to do, once."""
    handlers = {REQUESTED: run_handler(journal, Path("unused"))}
    JobWorker(journal, handlers, owner="w").run(threading.Event(), once=True)


def names(journal: Journal, *, after: int = 0) -> list[str]:
    return [recorded.name for recorded in journal.read(after=after)]


def test_a_request_is_a_job_and_no_run(journal: Journal):
    """planning case 52: no worker runs; there is a job, and neither a run nor a line of it."""
    job = asked(journal, golden())
    assert (job.state.status, job.state.category) == (JobStatus.PENDING, "execution")
    assert job.state.aggregate_id == "r1"
    runs = Runs(journal)
    assert (runs.all(), runs.page()["items"]) == ([], [])
    for read_it in (runs.get, runs.comparison, runs.load):
        with pytest.raises(NotFound):
            read_it("r1")


def test_everything_is_accepted_in_one_commit(journal: Journal):
    """P2: the job, the plan and every definition that was not registered."""
    asked(journal, golden())
    assert len({recorded.command for recorded in journal.read()}) == 1
    assert set(names(journal)) == {
        "queue.job.published",
        "workflows.environment.registered",
        "workflows.scope.registered",
        "workflows.scope.used",
        "workflows.topology.registered",
        "workflows.workflow.registered",
        "workflows.schedule_plan.registered",
    }


def test_the_same_run_id_is_the_first_request(journal: Journal):
    """planning case 53: twice with different plans, one job; only the first payload runs."""
    first = asked(journal, golden())
    head = journal.head()
    other = asked(journal, diamond())
    assert (other.id, other.version) == (first.id, first.version)
    assert journal.head() == head
    work(journal)
    assert [each["activityId"] for each in Runs(journal).get("r1")["activities"]] == [
        "prepare",
        "analyze",
        "summarize",
    ]
    assert asked(journal, diamond()).id == first.id


def test_a_refused_request_leaves_nothing(journal: Journal):
    """P9, P10: a run id that is empty or too long, an unknown mode, an unknown resource."""
    for wrong in (
        golden(run={"id": ""}),
        golden(run={"id": "r" * 256}),
        golden(run={"mode": "fast"}),
        golden(places=[place(name, "nowhere") for name in ("prepare", "analyze", "summarize")]),
    ):
        with pytest.raises(Invalid):
            asked(journal, wrong)
    assert journal.head() == 0


def test_what_must_be_there_is_not_empty(journal: Journal):
    """An empty id would be left out of the job's payload, which nobody could read then."""
    document = golden()
    document["runtimeBindings"][0]["resourceId"] = ""
    with pytest.raises(Invalid) as caught:
        asked(journal, document)
    assert caught.value.why == "must not be empty"
    assert caught.value.field.startswith("runtimeBindings[")
    assert journal.head() == 0


def test_a_plan_with_too_few_assignments_creates_no_run(journal: Journal):
    """planning case 54: it is accepted, no run is created, and the job says why."""
    few = golden(places=[place("prepare", "simulated-edge")])
    job = asked(journal, few)
    work(journal)
    assert Runs(journal).all() == []
    job = Runs(journal).job("r1")
    assert "are 1 for 3 activities" in (job.state.last_error or "")


def test_the_registered_definition_counts(journal: Journal):
    """P10: what comes along under its id gives way, where it may differ at all."""
    asked(journal, golden())
    dearer = golden(run={"id": "r2"})
    dearer["resources"][1]["pricePerSecond"] = 1000
    dearer["networkTopology"]["links"][0]["latencySeconds"] = 1000
    dearer["workflow"]["activities"][0]["name"] = "Another name"
    head = journal.head()
    asked(journal, dearer)
    assert names(journal, after=head) == ["queue.job.published"]
    work(journal)
    run = Runs(journal).get("r2")["run"]
    assert (run["makespanSeconds"], run["cost"]) == (19.6, 0.0157)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"edges": [("prepare", "analyze")], "data": []}, "workflow.dependencies"),
        ({"data": [("prepare", "analyze", 7), ("analyze", "summarize", 7)]}, "workflow.data"),
    ],
)
def test_a_definition_that_differs_is_refused(journal: Journal, given: dict[str, Any], field: str):
    """P10: other edges or sizes under a registered id; nothing is stored."""
    asked(journal, golden())
    head = journal.head()
    with pytest.raises(Invalid) as caught:
        asked(journal, golden(run={"id": "r2"}, **given))
    assert caught.value.field.startswith(field)
    assert journal.head() == head


def test_a_registered_plan_runs_by_its_id(journal: Journal):
    """With what is registered beside it: so a selected candidate is run in one command."""
    asked(journal, golden())
    Runs(journal).submit_plan("p1", run_id="r2", mode="simulation", actor="alice")
    work(journal)
    assert Runs(journal).get("r2")["run"]["makespanSeconds"] == 19.6
    with pytest.raises(NotFound, match="schedule plan"):
        Runs(journal).submit_plan("p9", run_id="r3", mode="simulation", actor="alice")


def test_the_job_keeps_the_resolved_request(journal: Journal):
    """So what is registered later does not change a run that waits."""
    asked(journal, golden())
    payload = Runs(journal).job("r1").state.payload
    frozen = read(RunRequest, dict(payload))
    assert frozen.plan == Definitions(journal).schedule_plan("p1")
    assert frozen.run.schedule_plan_id == "p1"
    assert json.dumps(dict(payload))


def test_what_is_registered_is_in_the_frozen_request_once(journal: Journal):
    """However often it is resolved: each repetition had one copy of all bindings and profiles more.

    A binding that differs from the registered one counts as little as any other definition (P10).
    """
    profile = {"activityTypeId": "t", "resourceId": "simulated-edge", "runtimeSeconds": 3.0}
    asked(journal, golden(profiles=[profile]))
    first = request(golden(profiles=[profile]))
    Runs(journal).submit_plan("p1", run_id="r2", mode="simulation", actor="alice")
    for run_id in ("r1", "r2"):
        frozen = read(RunRequest, dict(Runs(journal).job(run_id).state.payload))
        assert len(frozen.activity_profiles) == 1
        assert len(frozen.runtime_bindings) == len(first.runtime_bindings)
    again = golden(run={"id": "r3"}, profiles=[{**profile, "runtimeSeconds": 9.0}])
    payload = asked(journal, again).state.payload
    assert read(RunRequest, dict(payload)).activity_profiles == first.activity_profiles


def test_a_lost_race_is_run_again(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    """Another process registers the plan between reading and committing."""
    commit, lost = journal.commit, []

    def first_loses(*changes: Any, **given: Any) -> Any:
        if not lost:
            lost.append(True)
            raise Conflict("schedule-plan/p1", 0, 1)
        return commit(*changes, **given)

    monkeypatch.setattr(journal, "commit", first_loses)
    assert asked(journal, golden()).state.status is JobStatus.PENDING


def test_only_a_failed_run_is_recovered(journal: Journal):
    """2.8: by name, and under an id of its own."""
    runs = Runs(journal)
    with pytest.raises(NotFound):
        runs.recover("r1", "r2", actor="alice")
    asked(journal, golden())
    work(journal)
    with pytest.raises(Refused) as caught:
        runs.recover("r1", "r2", actor="alice")
    assert caught.value.rule == "recoverable"


def failed_run(journal: Journal) -> Runs:
    """A simulated run that failed, since bytes have no way."""
    asked(journal, golden(links=[]))
    work(journal)
    runs = Runs(journal)
    assert runs.get("r1")["run"]["status"] == "failed"
    return runs


def test_a_failed_run_is_repeated_as_a_new_one(journal: Journal):
    """planning case 76: it names the one it repeats, which stays as it is."""
    runs = failed_run(journal)
    before = runs.get("r1")
    job = runs.recover("r1", "r2", actor="alice")
    assert runs.recover("r1", "r2", actor="alice").id == job.id
    work(journal)
    assert runs.get("r2")["run"]["recoversRunId"] == "r1"
    assert runs.get("r1") == before


def test_a_recovery_that_cannot_be_is_refused(journal: Journal):
    """Nothing was completed there, the new id is another run's, or the old run is not known."""
    runs = failed_run(journal)
    with pytest.raises(Invalid, match="'prepare' is cancelled there"):
        runs.recover("r1", "r2", ["prepare"], actor="alice")
    asked(journal, golden(run={"id": "other"}))
    with pytest.raises(Refused) as caught:
        runs.recover("r1", "other", actor="alice")
    assert caught.value.rule == "run_id"
    for wrong in ({"recoversRunId": "nobody"}, {"recoversRunId": "other"}):
        with pytest.raises(Invalid) as unknown:
            asked(journal, golden(run={"id": "r9", **wrong}))
        assert unknown.value.field == "run.recoversRunId"


def test_interrupting_what_is_not_there(journal: Journal):
    """404: no run, or no such activity."""
    runs = Runs(journal)
    with pytest.raises(NotFound, match="run"):
        runs.interrupt("r1", "prepare", actor="alice")
    with pytest.raises(NotFound, match="run"):
        runs.interrupt("", "prepare", actor="alice")
    asked(journal, golden())
    work(journal)
    with pytest.raises(NotFound, match="activity"):
        runs.interrupt("r1", "nothing", actor="alice")
    with pytest.raises(Refused):
        runs.interrupt("r1", "prepare", actor="alice")
    assert [each.rule for each in journal.refusals()] == ["task_ended"]


def test_runs_are_listed_newest_first_and_filtered(journal: Journal):
    """planning case 68, 69: a page size of 500 is 20, and `all` filters nothing."""
    for number in range(25):
        asked(journal, golden(run={"id": f"r{number:02}"}))
    work(journal)
    with Views(journal, RUN_VIEWS) as views:
        for runs in (Runs(journal), Runs(journal, views=views)):
            first, last = runs.page(1, 500), runs.page(2, 20, status="all", mode="")
            assert (len(first["items"]), first["pageSize"], first["total"]) == (20, 20, 25)
            assert (first["hasNext"], last["hasNext"], len(last["items"])) == (True, False, 5)
            found = [each["run"]["startedAt"] for each in first["items"] + last["items"]]
            assert found == sorted(found, reverse=True)
            assert len(runs.all()) == 25
            assert runs.page(1, 20, status="failed")["total"] == 0
            assert runs.page(0, 0, mode="simulation", kind="workflow")["page"] == 1
            assert runs.page(9)["items"] == []


def test_only_a_run_is_evidence_of_a_plan(journal: Journal):
    """planning case 72: a plan that was never run has none."""
    asked(journal, golden())
    runs = Runs(journal)
    assert runs.evidence("p1") == []
    work(journal)
    assert [each["id"] for each in runs.evidence("p1")] == ["r1"]
    assert runs.evidence("p2") == []
