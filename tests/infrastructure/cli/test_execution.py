"""`statelog execution`: from a bundle or a plan to a run, its comparison and its picture."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from statelog.domain.workflows.environments import read_environment
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.workflows.definitions import Definitions
from tests.domain.runs.bundles import activity, bundle, diamond, golden, place, resource
from tests.house.repo import ROOT
from tests.infrastructure.cli.desk import Desk

SHARED = Path(os.environ.get("STATELOG_SHARED", ROOT.parent / "shared"))
BUNDLE = SHARED / "data" / "simulation-bundle"


def asked(desk: Desk, document: dict[str, Any], name: str = "request.json") -> Path:
    """A request in a file of the desk."""
    return desk.file(json.dumps(document), name)


def shell(text: str) -> dict[str, Any]:
    """A command that a shell runs."""
    return {"executable": "/bin/sh", "arguments": ["-c", text]}


def real(run_id: str, *, last: str = "true") -> dict[str, Any]:
    """A real run of two commands, the second after the first."""
    return bundle(
        run={"id": run_id, "mode": "real"},
        resources=[resource("m", pricePerSecond=2.0)],
        activities=[
            activity("a", 1, command=shell("echo hello > a.txt")),
            activity("b", 1, command=shell(last)),
        ],
        places=[place("a", "m"), place("b", "m", 0, 1)],
        edges=[("a", "b")],
    )


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_a_request_is_simulated_here(desk: Desk):
    """Progress on stderr, the numbers on stdout, exit code 0."""
    done = desk("execution", "submit", asked(desk, golden()), "--wait")
    assert done.code == 0
    assert ["makespan", "19.6", "s,"] in [row[:3] for row in rows(done.out)]
    assert ["cost", "0.0157"] in rows(done.out)
    assert ["transfer", "9.7", "s,", "120000000", "bytes"] in rows(done.out)
    assert "run  completed" in done.err
    again = desk("execution", "show", "r1", "--json").json
    assert again["run"]["makespanSeconds"] == 19.6
    assert desk("views", "verify").code == 0


def test_a_request_waits_for_a_worker(desk: Desk):
    """planning case 52: until then there is a job and no run."""
    done = desk("execution", "submit", asked(desk, golden()), "--json")
    assert (done.code, done.json["status"], "payload" in done.json) == (0, "pending", False)
    missing = desk("execution", "show", "r1")
    assert (missing.code, missing.out) == (1, "")
    waits = "it was asked for, and its job is pending; `statelog worker` carries it out"
    assert missing.error == f"no run 'r1'; {waits}"
    for words in (("compare", "r1"), ("interrupt", "r1", "prepare"), ("recover", "r1", "r2")):
        assert waits in desk("execution", *words).error
    assert "`statelog execution list` shows" in desk("execution", "show", "r9").error
    assert desk("execution", "list").out == "no runs\n"
    assert desk("worker", "--once").code == 0
    assert desk("execution", "list", "--json").lines[0]["status"] == "completed"
    told = desk("execution", "submit", asked(desk, diamond()))
    assert "job" in told.out
    assert "is completed" in told.out


def test_a_plan_that_is_registered_is_run_by_its_id(desk: Desk):
    """So a candidate that was selected runs in one command."""
    desk("execution", "submit", asked(desk, golden()))
    words = ("execution", "submit", "--plan", "p1", "--mode", "simulation", "--run-id", "x")
    done = desk(*words, "--seed", "7", "--wait", "--json")
    assert (done.code, done.json["run"]["id"], done.json["run"]["seed"]) == (0, "x", 7)
    other = desk("execution", "submit", "--plan", "p1", "--wait", "--json").json["run"]
    assert other["id"].startswith("run-")
    missing = desk("execution", "submit", "--plan", "p9", "--run-id", "y")
    assert (missing.code, missing.error.split(";")[0]) == (1, "no schedule plan 'p9'")


@pytest.mark.parametrize(
    "words",
    [
        *((), ("f.json", "--plan", "p"), ("--mode", "real"), ("f.json", "--mode", "real")),
        ("--plan", "p", "--session", "s"),
    ],
)
def test_a_file_or_a_plan(desk: Desk, words: tuple[str, ...]):
    done = desk("execution", "submit", *words)
    assert (done.code, done.error.split(", ")[0]) == (2, "give a FILE")


def test_what_is_wrong_with_an_option_is_named(desk: Desk):
    """An empty id is none that was left out (P10), and a seed has 64 bits."""
    desk("execution", "submit", asked(desk, golden()))
    plan = ("execution", "submit", "--plan", "p1")
    empty = desk(*plan, "--run-id", "")
    assert (empty.code, empty.error) == (2, "run.id: must not be empty")
    large = desk(*plan, "--seed", str(10**20))
    assert (large.code, large.error) == (2, "run.seed: is an integer beyond 64 bits")


def test_what_is_wrong_with_a_request_is_named(desk: Desk):
    """The file and the field; nothing is stored."""
    path = asked(desk, golden(run={"id": ""}))
    done = desk("execution", "submit", path)
    assert (done.code, done.error) == (2, "run.id: must not be empty")
    unknown = desk("execution", "submit", asked(desk, {**golden(), "speed": 1}))
    assert unknown.error == f"{path}: speed: is not a known field"
    nowhere = desk("execution", "submit", "nowhere.yaml")
    assert (nowhere.code, "nowhere.yaml: cannot be read" in nowhere.error) == (2, True)
    with Journal(desk.store, read_only=True) as journal:
        assert journal.head() == 0


def test_a_run_that_cannot_begin_says_why(desk: Desk):
    """planning case 54: its job says it, and no run is there."""
    few = asked(desk, golden(places=[place("prepare", "simulated-edge")]))
    done = desk("execution", "submit", few, "--wait")
    assert done.code == 1
    assert done.error.startswith("run 'r1' cannot begin: ")
    assert "are 1 for 3 activities" in done.error
    assert "are 1 for 3 activities" in desk("execution", "show", "r1").error
    assert desk("execution", "list").out == "no runs\n"


def test_a_failed_run_exits_with_1(desk: Desk):
    done = desk("execution", "submit", asked(desk, golden(links=[])), "--wait")
    assert (done.code, ["status", "failed"] in rows(done.out)) == (1, True)
    assert "no route" in done.out


def write_bundle(desk: Desk) -> Path:
    """The diamond as a folder of files; a small twin of the shared one."""
    document = diamond()
    folder = desk.folder / "bundle"
    folder.mkdir()
    files = {
        "environment": {
            "environment": {"id": "env"},
            "version": {"id": "env-v1", "environmentId": "env", "version": 1},
            "runtimes": document["runtimes"],
            "resources": document["resources"],
            "resourceRuntimeBindings": document["runtimeBindings"],
        },
        "scope": document["executionScope"],
        "topology": document["networkTopology"],
        "plan-request": {
            key: document[key]
            for key in ("plan", "workflow", "resources", "executionScope", "networkTopology")
        },
        "execution-request": document,
    }
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    assert read_environment(files["environment"]).id == "env-v1"
    return folder


def test_a_bundle_is_registered_and_simulated(desk: Desk):
    """File by file, and once more it is the same run."""
    folder = write_bundle(desk)
    done = desk("execution", "simulate", folder, "--json")
    run = done.json["run"]
    assert (done.code, run["makespanSeconds"], run["cost"]) == (0, 23.1, 0.0336)
    assert "scope.json: s1" in done.err
    with Journal(desk.store) as journal:
        head = journal.head()
        assert Definitions(journal).schedule_plan("p1").assignments
    again = desk("execution", "simulate", folder, "--json")
    assert again.json == done.json
    with Journal(desk.store) as journal:
        assert journal.head() == head


@pytest.mark.skipif(not BUNDLE.is_dir(), reason="needs the bundle that STATELOG_SHARED names")
def test_the_shared_bundle_gives_its_numbers(desk: Desk):
    """Reads the directory that STATELOG_SHARED names; the test above is its twin."""
    page = desk("execution", "simulate", BUNDLE, "--json").json
    expected = json.loads((BUNDLE / "expected.json").read_text(encoding="utf-8"))
    for name in ("makespanSeconds", "cost", "transferredBytes"):
        assert page["run"][name] == pytest.approx(expected[name])
    found = {task["activityId"]: task for task in page["activities"]}
    for name, wanted in expected["tasks"].items():
        assert {key: found[name][key] for key in wanted} == pytest.approx(wanted)


def test_a_bundle_without_a_request_is_none(desk: Desk):
    folder = write_bundle(desk)
    (folder / "execution-request.json").unlink()
    done = desk("execution", "simulate", folder)
    assert (done.code, done.error) == (2, f"{folder}: has no execution-request.yaml")
    (folder / "scope.json").write_text("{")
    (folder / "execution-request.json").write_text("{}")
    assert "scope.json" in desk("execution", "simulate", folder).error


def test_plan_and_run_are_compared(desk: Desk):
    """What is on the critical path is marked."""
    desk("execution", "submit", asked(desk, diamond()), "--wait")
    done = desk("execution", "compare", "r1")
    assert ["critical", "path", "ingest", "->", "left", "->", "merge"] in rows(done.out)
    assert [row[:2] for row in rows(done.out) if row[:1] == ["left"]] == [["left", "*"]]
    found = desk("execution", "compare", "r1", "--json").json
    assert [step["activityId"] for step in found["criticalPath"]] == ["ingest", "left", "merge"]


def test_a_run_is_drawn(desk: Desk):
    desk("execution", "submit", asked(desk, diamond()), "--wait")
    picture = desk.folder / "run.svg"
    done = desk("execution", "gantt", "r1", "-o", picture)
    assert (done.code, done.out) == (0, f"drawn into {picture}\n")
    assert ElementTree.fromstring(picture.read_text()).tag.endswith("svg")
    nowhere = desk("execution", "gantt", "r1", "-o", desk.folder / "no" / "run.svg")
    assert (nowhere.code, "No such file" in nowhere.error) == (1, True)
    full = desk("execution", "gantt", "r1", "-o", "/dev/full")
    assert (full.code, full.error) == (1, "/dev/full: No space left on device")


def test_runs_are_listed_by_pages(desk: Desk):
    """planning case 68: a page size of 500 is 20."""
    for number in range(3):
        desk("execution", "submit", asked(desk, golden(run={"id": f"r{number}"})), "--wait")
    assert [row[0] for row in rows(desk("execution", "list").out)] == ["run", "r2", "r1", "r0"]
    paged = desk("execution", "list", "--page", 2, "--page-size", 2, "--json").json
    assert [item["run"]["id"] for item in paged["items"]] == ["r0"]
    assert desk("execution", "list", "--page-size", 500, "--json").json["pageSize"] == 20
    assert desk("execution", "list", "--status", "failed").out == "no runs\n"
    assert len(desk("execution", "list", "--mode", "simulation", "--json").lines) == 3


def test_a_real_run_fails_and_is_repeated(desk: Desk):
    """planning case 76: what completed is kept with what it left, the rest runs."""
    flag = desk.folder / "flag"
    first = real("r1", last=f"test -e {flag}")
    done = desk("execution", "submit", asked(desk, first), "--wait")
    assert (done.code, "activity b failed" in done.out) == (1, True)
    (where,) = [each for each in done.err.splitlines() if each.startswith("what b printed is in ")]
    assert (Path(where.rpartition(" ")[2]) / "stderr.log").is_file()
    early = desk("execution", "recover", "r1", "r2", "--reuse", "b")
    assert (early.code, "'b' is failed there" in early.error) == (2, True)
    flag.touch()
    again = desk("execution", "recover", "r1", "r2", "--reuse", "a", "--wait", "--json").json
    assert (again["run"]["status"], again["run"]["recoversRunId"]) == ("completed", "r1")
    kept, ran = again["activities"]
    assert kept["metadata"]["keptFromRunId"] == "r1"
    assert ran["status"] == "completed"
    refused = desk("execution", "recover", "r2", "r3")
    assert (refused.code, refused.error.endswith("[recoverable]")) == (1, True)


def test_what_cannot_be_interrupted(desk: Desk):
    """planning case 67: a completed activity, and what is not there."""
    desk("execution", "submit", asked(desk, golden()), "--wait")
    done = desk("execution", "interrupt", "r1", "prepare")
    assert (done.code, done.error) == (1, "activity 'prepare' is completed [task_ended]")
    assert desk("execution", "interrupt", "r1", "nothing").error == "no activity 'nothing'"
    assert desk("execution", "interrupt", "r9", "prepare").code == 1
