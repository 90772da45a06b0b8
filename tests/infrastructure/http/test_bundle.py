"""A simulation bundle, posted file by file with `curl` as YAML, until its run is completed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.domain.runs.bundles import diamond
from tests.house.repo import ROOT
from tests.infrastructure.http.live import Live, soon

SHARED = Path(os.environ.get("STATELOG_SHARED", ROOT.parent / "shared"))
BUNDLE = SHARED / "data" / "simulation-bundle"
ORDER = {
    "environments": "environment",
    "execution-scopes": "scope",
    "network-topologies": "topology",
    "workflow-definitions": "workflow",
    "schedule-plans": "plan-request",
    "execution-runs": "execution-request",
}
TWIN_RUN = "twin-run"


def post(live: Live, noun: str, file: Path) -> tuple[int, Any]:
    """What `curl` gets when it posts a file."""
    done = subprocess.run(
        [
            *("curl", "-sS", "-w", "\n%{http_code}", "-H", "Content-Type: application/yaml"),
            *("--data-binary", f"@{file}", f"{live.url}{noun}/"),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body)


def posted(live: Live, folder: Path, run_id: str) -> dict[str, Any]:
    """The page of the run of a bundle that was posted, once it has ended."""
    for noun, name in ORDER.items():
        status, answer = post(live, noun, folder / f"{name}.yaml")
        assert status == (202 if noun == "execution-runs" else 201), answer

    def look() -> Any:
        found = live("GET", f"/execution-runs/{run_id}/")
        page = found.json if found.status == 200 else {"run": {"status": ""}}
        return page if page["run"]["status"] in ("completed", "failed") else None

    page: dict[str, Any] = soon(look)
    return page


def numbers(page: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a run, as `expected.json` has them."""
    run = page["run"]
    parts = ("readyAt", "startedAt", "finishedAt")
    seconds = ("runtimeSeconds", "overheadSeconds", "queueSeconds")
    sums = ("computeSeconds", "transferSeconds", "overheadSeconds", "queueSeconds")
    return {
        "makespanSeconds": run["makespanSeconds"],
        "cost": run["cost"],
        **{name: run["breakdown"][name] for name in sums},
        "transferredBytes": run["transferredBytes"],
        "tasks": {
            task["activityId"]: {name: task[name] for name in (*parts, *seconds)}
            for task in page["activities"]
        },
        "transfers": [
            {
                "producer": each["producerActivityId"],
                "consumer": each["consumerActivityId"],
                **{name: each[name] for name in ("startedAt", "finishedAt", "bytes")},
            }
            for each in page["dataTransfers"]
        ],
    }


def twin(folder: Path) -> Path:
    """A bundle of our own: the diamond, with a portable workflow."""
    asked = diamond(run={"id": TWIN_RUN})
    before: dict[str, list[str]] = {}
    for edge in asked["workflow"]["dependencies"]:
        before.setdefault(edge["activityId"], []).append(edge["dependsOnActivityId"])
    activities = [
        {
            "name": each["id"],
            "simulation": each["simulation"],
            "dependsOn": before.get(each["id"], []),
        }
        for each in asked["workflow"]["activities"]
    ]
    data = [
        {
            "producerActivity": each["producerActivityId"],
            "consumerActivity": each["consumerActivityId"],
            "logicalName": each["logicalName"],
            "sizeBytes": each["sizeBytes"],
        }
        for each in asked["workflow"]["dataDependencies"]
    ]
    asked["workflow"]["id"] = asked["plan"]["workflowVersionId"] = "twin-v1"
    plan = ("plan", "workflow", "resources", "executionScope", "networkTopology")
    files = {
        "environment": {
            "environment": {"id": "env"},
            "version": {"id": "env-v1", "environmentId": "env"},
            "runtimes": asked["runtimes"],
            "resources": asked["resources"],
            "resourceRuntimeBindings": asked["runtimeBindings"],
        },
        "scope": asked["executionScope"],
        "topology": asked["networkTopology"],
        "workflow": {
            "name": "twin",
            "spec": {"namespace": "n", "activities": activities, "dataDependencies": data},
        },
        "plan-request": {name: asked[name] for name in plan},
        "execution-request": asked,
    }
    for name, document in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(document))
    return folder


def test_the_twin_of_the_bundle(busy: Live, tmp_path: Path):
    """Its numbers are those that 4.2 gives for a diamond of 6, 20, 9 and 3 seconds."""
    found = numbers(posted(busy, twin(tmp_path), TWIN_RUN))
    assert (found["makespanSeconds"], found["cost"]) == (23.1, 0.0336)
    assert found["transferredBytes"] == 55_000_000
    assert found["tasks"]["merge"] == {
        "readyAt": 19.9,
        "startedAt": 19.9,
        "finishedAt": 23.1,
        "runtimeSeconds": 3.0,
        "overheadSeconds": 0.2,
        "queueSeconds": 0.0,
    }


@pytest.mark.skipif(not BUNDLE.is_dir(), reason="needs the bundle that STATELOG_SHARED names")
def test_the_bundle(busy: Live):
    """Reads the directory that STATELOG_SHARED names; the test above is its twin."""
    found = numbers(posted(busy, BUNDLE, "diamond-run-v1"))
    assert found == json.loads((BUNDLE / "expected.json").read_text())
    compared = busy.get("/execution-runs/diamond-run-v1/comparison/")
    assert compared["makespanSeconds"]["observed"] == found["makespanSeconds"]
