"""Execution runs over HTTP, through a real server."""

from __future__ import annotations

import threading
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from statelog.infrastructure.cli.handlers import job_worker
from tests.domain.runs.bundles import diamond, golden
from tests.infrastructure.http.asking import real
from tests.infrastructure.http.live import Live, soon

_numbers = count(1)


@pytest.fixture
def id() -> str:
    """A run that nobody has asked for."""
    return f"r{next(_numbers)}"


def submit(live: Live, document: dict[str, Any]) -> dict[str, Any]:
    job: dict[str, Any] = live.post("/execution-runs/", document, status=202)
    return job


def page(live: Live, id: str) -> dict[str, Any]:
    found: dict[str, Any] = live.get(f"/execution-runs/{id}/")
    return found


def ended(live: Live, id: str) -> dict[str, Any]:
    """Poll as clients do: until the 404 is gone, then until the run has ended."""

    def look() -> Any:
        found = live("GET", f"/execution-runs/{id}/")
        if found.status == 404:
            return None
        run = found.json
        return run if run["run"]["status"] in ("completed", "failed") else None

    found: dict[str, Any] = soon(look)
    return found


def work(live: Live, tmp_path: Path) -> None:
    """Do every job there is in this process."""
    with live.journal() as journal:
        job_worker(journal, tmp_path / "work", "tester").run(threading.Event(), once=True)


def interrupt(live: Live, id: str, activity: str) -> Any:
    return live("POST", f"/execution-runs/{id}/activities/{activity}/interrupt/")


def test_a_run_waits_for_a_worker(idle: Live, id: str):
    """Planning case 52: 202 with the job, whose payload is not shown; no run, and none listed."""
    job = submit(idle, golden(run={"id": id}))
    assert (job["status"], job["attempts"], job["maxAttempts"]) == ("pending", 0, 5)
    assert (job["eventType"], job["aggregateId"]) == ("execution.run.requested", id)
    assert "payload" not in job
    assert idle("GET", f"/execution-runs/{id}/").error == "Not Found"
    assert idle("GET", f"/execution-runs/{id}/comparison/").status == 404
    assert id not in [item["run"]["id"] for item in idle.get("/execution-runs/")]


def test_a_run_is_asked_for_once(idle: Live, id: str, tmp_path: Path):
    """Planning cases 47, 53, 64: the first job, and only the first payload runs, whenever asked."""
    first, before = submit(idle, golden(run={"id": id})), idle.kept()
    other = diamond(run={"id": id}, plan={"id": "other"})
    assert submit(idle, other) == first
    assert idle.kept() == before
    work(idle, tmp_path)
    done = page(idle, id)
    assert (done["run"]["status"], done["run"]["makespanSeconds"]) == ("completed", 19.6)
    assert done["run"]["schedulePlanId"] == "p1"
    again = submit(idle, other)
    assert (again["id"], again["status"]) == (first["id"], "completed")
    assert page(idle, id) == done
    work(idle, tmp_path)
    assert page(idle, id) == done


def test_a_plan_that_does_not_fit_makes_no_run(idle: Live, id: str, tmp_path: Path):
    """Planning case 54: there is no run, and the job says why."""
    document = golden(run={"id": id}, plan={"id": f"p-{id}"})
    document["plan"]["assignments"].pop()
    submit(idle, document)
    work(idle, tmp_path)
    assert idle("GET", f"/execution-runs/{id}/").status == 404
    job = submit(idle, document)
    assert "assignments" in job["lastError"]


def test_the_golden_run(busy: Live, id: str):
    """Planning cases 55, 58: its numbers, and its events in simulated order."""
    submit(busy, golden(run={"id": id}))
    found = ended(busy, id)
    run = found["run"]
    assert (run["status"], run["mode"], run["kind"]) == ("completed", "simulation", "workflow")
    assert (run["makespanSeconds"], run["cost"]) == (19.6, 0.0157)
    assert run["breakdown"] == {
        "computeSeconds": 9,
        "transferSeconds": 9.7,
        "queueSeconds": 0,
        "interferenceSeconds": 0,
        "overheadSeconds": 0.9,
    }
    assert run["transferredBytes"] == 120_000_000
    assert [(task["status"], task["attempt"]) for task in found["activities"]] == [
        ("completed", 1)
    ] * 3
    assert len(found["dataTransfers"]) == 2
    kinds = [each["eventType"] for each in found["events"]]
    assert (kinds[0], kinds[-1]) == ("execution.run.started", "execution.run.completed")
    assert kinds[1:-1] == ["activity.started", "activity.completed"] * 3
    compared = busy.get(f"/execution-runs/{id}/comparison/")
    assert compared["makespanSeconds"]["observed"] == 19.6
    assert [step["activityId"] for step in compared["criticalPath"]] == [
        "prepare",
        "analyze",
        "summarize",
    ]


def test_activities_are_interrupted(busy: Live, id: str):
    """Planning case 67: running 204, again 204, completed and not started 409; the run fails."""
    submit(busy, real(id, "true", "exec sleep 600", "true", edges=(("a", "b"), ("b", "c"))))

    def status() -> dict[str, str]:
        found = busy("GET", f"/execution-runs/{id}/")
        tasks = found.json["activities"] if found.status == 200 else ()
        return {task["activityId"]: task["status"] for task in tasks}

    soon(lambda: status().get("b") == "running")
    events, refusals = busy.kept()
    assert interrupt(busy, id, "a").status == 409
    assert interrupt(busy, id, "c").status == 409
    assert interrupt(busy, id, "none").error == "Not Found"
    assert interrupt(busy, "none", "a").error == "Not Found"
    assert busy.kept() == (events, refusals + 2)
    assert interrupt(busy, id, "b").status == 204
    found = ended(busy, id)
    assert status()["b"] == "cancelled"
    assert {each["activityId"]: each["status"] for each in found["handles"]} == {
        "a": "completed",
        "b": "stopped",
    }
    assert found["run"]["status"] == "failed"
    assert "b" in found["run"]["failureReason"]
    assert interrupt(busy, id, "b").status == 204
    assert page(busy, id) == found


def test_pages(idle: Live, tmp_path: Path):
    """Planning cases 68, 69: a bad size is 20, `all` is no filter; without paging all are there."""
    ids = [f"many-{at:02}" for at in range(23)]
    for each in ids:
        submit(idle, golden(run={"id": each}))
    work(idle, tmp_path)
    every = [item["run"]["id"] for item in idle.get("/execution-runs/")]
    assert set(ids) <= set(every)
    first = idle.get("/execution-runs/?pageSize=500")
    assert (first["page"], first["pageSize"], len(first["items"])) == (1, 20, 20)
    assert (first["total"], first["hasNext"]) == (len(every), True)
    assert [item["run"]["id"] for item in first["items"]] == every[:20]
    second = idle.get("/execution-runs/?page=2&pageSize=10&status=all&mode=all&kind=all")
    assert [item["run"]["id"] for item in second["items"]] == every[10:20]
    assert idle.get("/execution-runs/?page=1&pageSize=0")["pageSize"] == 20
    assert idle.get("/execution-runs/?page=1&status=failed")["total"] == 0
    assert idle.get("/execution-runs/?mode=real") == []
    assert len(idle.get("/execution-runs/?status=completed&mode=simulation")) == len(every)
    assert idle.get("/execution-runs/?page=99")["items"] == []


@pytest.mark.parametrize("query", ["page=x", "pageSize=1.5", "page=1&page=2", "page=%ff"])
def test_a_query_that_is_no_number(idle: Live, query: str):
    """400 that names the parameter."""
    refused = idle("GET", f"/execution-runs/?{query}")
    assert refused.status == 400
    assert refused.error.partition(":")[0] in ("page", "pageSize", "query")


@pytest.mark.parametrize(
    ("given", "status", "field"),
    [
        ({"id": ""}, 422, "run.id"),
        ({"mode": "interactive"}, 422, "run.mode"),
        ({"mode": "other"}, 422, "run.mode"),
        ({"kind": "standalone"}, 422, "run.kind"),
        ({"recoversRunId": "none"}, 422, "run.recoversRunId"),
        ({"seed": "1"}, 400, "run.seed"),
        ({"sed": 1}, 400, "run.sed"),
    ],
)
def test_what_cannot_be_run_is_refused(
    idle: Live, id: str, given: dict[str, Any], status: int, field: str
):
    """P9, P10, P19: the field is named and nothing is stored."""
    before = idle.kept()
    refused = idle("POST", "/execution-runs/", golden(run={"id": id, **given}))
    assert (refused.status, refused.error.partition(":")[0]) == (status, field)
    assert idle.kept() == before


def test_an_embedded_definition_that_differs(idle: Live, id: str):
    """P10: 422 when a size differs from the registered workflow; anything else may."""
    submit(idle, golden(run={"id": id}))
    before = idle.kept()
    other = golden(run={"id": f"{id}-x"})
    other["workflow"]["dataDependencies"][0]["sizeBytes"] += 1
    refused = idle("POST", "/execution-runs/", other)
    assert (refused.status, refused.error.partition(":")[0]) == (422, "workflow.dataDependencies")
    assert idle.kept() == before
    named = golden(run={"id": f"{id}-y"})
    named["workflow"]["activities"][0]["name"] = "Another name"
    submit(idle, named)


def test_a_failed_run_is_repeated(busy: Live, id: str):
    """Planning case 76: a completed activity is kept, the rest runs, as a new run."""
    marker = f"[ -e ../go-{id} ]"
    document = real(id, "echo once", marker, edges=(("a", "b"),))
    submit(busy, document)
    assert ended(busy, id)["run"]["status"] == "failed"
    repeated = {**document, "run": {**document["run"], "id": f"{id}-2", "recoversRunId": id}}
    repeated["recovery"] = {"reusableActivityIds": ["a"]}
    refused = {**repeated, "recovery": {"reusableActivityIds": ["b"]}}
    assert busy("POST", "/execution-runs/", refused).status == 422
    submit(busy, repeated)
    found = ended(busy, f"{id}-2")
    assert found["run"]["recoversRunId"] == id
    kept = {task["activityId"]: task for task in found["activities"]}
    assert kept["a"]["metadata"]["keptFromRunId"] == id
    assert kept["b"]["status"] == "failed"
