"""The whole way of a measured workflow: imported, planned, chosen, simulated, compared (P20)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statelog.domain.planning.algorithms import ALGORITHMS
from tests.domain.workflows.wffile import TWIN, files
from tests.infrastructure.cli.desk import Desk

SUBMIT = ("execution", "submit", "--session", "s", "--run-id", "x", "--wait", "--json")


@pytest.mark.parametrize("source", ["twin", *(path.stem for path in files())])
def test_predicted_simulated_and_measured_makespans_stand_together(desk: Desk, source: str):
    """All algorithms in one session; the plan of rank 1 is run, every activity of it.

    Beside the twin these are the files of `data/wfinstances` of STATELOG_SHARED, if it is there.
    """
    known = {path.stem: path for path in files()}
    file = known.get(source) or desk.file(json.dumps(TWIN), "twin.json")
    ids = desk("workflow", "import", file, "--json").json
    asked = ("--workflow", ids["workflowVersionId"], "--scope", ids["executionScopeId"])
    every = [word for name in ALGORITHMS for word in ("--algorithm", name)]
    done = desk("session", "create", "--id", "s", *asked, *every, "--wait", "--json")
    assert {run["algorithm"]: run["status"] for run in done.json["algorithmRuns"]} == dict.fromkeys(
        ALGORITHMS, "completed"
    )
    early = desk(*SUBMIT)
    assert (early.code, "no plan was chosen in session 's'" in early.error) == (1, True)
    assert "execution submit --session s --wait" in desk("session", "select", "s", "1").out
    page = desk(*SUBMIT).json
    assert page["run"]["completedActivityCount"] == ids["activityCount"]
    best = desk("session", "candidates", "s", "--json").lines[0]["predicted"]["makespanSeconds"]
    found = desk("execution", "compare", "x", "--json").json
    assert found["makespanSeconds"]["planned"] == best
    assert found["makespanSeconds"]["observed"] == page["run"]["makespanSeconds"]
    assert found["measuredMakespanSeconds"] == measured(Path(file))
    (shown,) = [
        line.split()
        for line in desk("execution", "compare", "x").out.splitlines()
        if line.startswith("measured")
    ]
    assert shown[1] == f"{measured(Path(file)):.6g},"


def test_a_session_that_is_not_there_has_no_plan(desk: Desk):
    """The session is named, not a plan of it."""
    desk("workflow", "import", desk.file(json.dumps(TWIN), "twin.json"))
    missing = desk("execution", "submit", "--session", "t")
    assert (missing.code, "no session 't'" in missing.error) == (1, True)


def measured(file: Path) -> float:
    """The makespan that a file tells."""
    return float(json.loads(file.read_text())["workflow"]["execution"]["makespanInSeconds"])
