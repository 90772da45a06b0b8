"""`statelog session`: the whole way from a request to a chosen plan, and what is said on it."""

from __future__ import annotations

import json
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.workflows.resources import Scope
from statelog.domain.workflows.workflow import Dependency
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.workflows.definitions import Definitions
from tests.domain.planning.problems import ENVIRONMENT, TOPOLOGY, WORKFLOW, activity
from tests.infrastructure.cli.desk import Desk, ended
from tests.infrastructure.planning.lab import DEFINITIONS

ASKED = ("--id", "s", "--workflow", "chain-v1", "--scope", "lab")
BODY = {
    "id": "s",
    "workflowVersionId": "chain-v1",
    "executionScopeId": "lab",
    "networkTopologyId": "wire",
    "algorithms": [{"id": "heft"}, {"id": "moheft", "configuration": {"optionCount": 3}}],
    "budget": 0.0001,
}


@pytest.fixture
def lab(desk: Desk) -> Desk:
    """A desk whose store has something to plan."""
    with Journal(desk.store) as journal:
        Definitions(journal).register(*DEFINITIONS, actor="tester")
    return desk


def test_a_session_is_planned_here_and_a_plan_is_chosen(lab: Desk):
    """Progress on stderr, the result on stdout, and a rank is as good as an id."""
    every = [("--algorithm", name) for name in ("heft", "cpop", "min-min", "max-min", "moheft")]
    words = [word for pair in every for word in pair]
    done = lab("session", "create", *ASKED, *words, "--wait", "--json")
    assert done.code == 0
    assert done.json["session"]["status"] == "completed"
    assert [run["status"] for run in done.json["algorithmRuns"]] == ["completed"] * 5
    assert "heft  candidate emitted  makespan 5.6 s" in done.err
    assert "session  completed" in done.err
    found = lab("session", "candidates", "s", "--json").lines
    assert [each["rank"] for each in found] == list(range(1, len(found) + 1))
    plan = lab("session", "select", "s", "1", "--json").json
    assert plan["id"] == found[0]["plan"]["id"]
    assert len(plan["assignments"]) == 3
    shown = lab("session", "show", "s")
    assert ["chosen", found[0]["id"]] in [line.split() for line in shown.out.splitlines()]
    assert lab("session", "select", "s", found[1]["id"]).code == 0
    (listed,) = lab("session", "list", "--json").lines
    assert listed["selectedCandidateId"] == found[1]["id"]
    assert lab("session", "list").out.splitlines()[1].split()[:2] == ["s", "completed"]


def test_a_session_of_a_file_is_planned_by_a_worker(lab: Desk):
    """JSON and YAML alike; what waits is queued, and the topology is that of the scope."""
    for name, text in (("s.json", json.dumps(BODY)), ("t.yaml", json.dumps({**BODY, "id": "t"}))):
        done = lab("session", "create", lab.file(text, name))
        assert (done.code, done.err) == (0, "")
        assert "queued" in done.out
    assert "`statelog worker` plans it" in done.out
    waiting = lab("session", "candidates", "s")
    assert waiting.out == "no candidates\n"
    assert "`statelog worker` plans it" in waiting.err
    assert lab("worker", "--once").code == 0
    page = lab("session", "show", "t", "--json").json
    assert page["session"]["status"] == "completed"
    assert page["session"]["candidateCount"] == sum(
        run["candidateCount"] for run in page["algorithmRuns"]
    )
    assert not any(
        each["feasible"] and each["predicted"]["cost"] > 0.0001
        for each in lab("session", "candidates", "t", "--json").lines
    )


def test_the_help_names_every_algorithm(desk: Desk):
    """It is written out, so that help needs no import of them."""
    said = " ".join(desk("session", "create", "--help").out.split())
    assert all(f" {name}" in said for name in ALGORITHMS)


def test_candidates_are_drawn(lab: Desk):
    """A point each, a line for the front, and what they are for whoever points at one."""
    lab("session", "create", lab.file(json.dumps(BODY), "s.json"), "--wait")
    done = lab("session", "candidates", "s", "--plot", "s.svg", "--json")
    drawn = ElementTree.fromstring((lab.folder / "s.svg").read_text())
    circles = [each for each in drawn.iter("{http://www.w3.org/2000/svg}circle") if len(each)]
    assert len(circles) == len(done.lines)
    hollow = [each for each in circles if each.get("fill") == "none"]
    assert len(hollow) == sum(not each["feasible"] for each in done.lines)
    assert "makespan in seconds" in (lab.folder / "s.svg").read_text()
    assert "rank" in lab("session", "candidates", "s").out


def test_a_session_is_called_off(lab: Desk):
    """planning case 20, 21, 22 at the command line: again is nothing, an end is refused."""
    lab("session", "create", *ASKED, "--algorithm", "heft")
    assert lab("session", "cancel", "s", "--json").json["session"]["status"] == "cancelled"
    assert lab("session", "cancel", "s").code == 0
    lab("session", "create", *ASKED[2:], "--id", "t", "--algorithm", "heft", "--wait")
    refused = lab("session", "cancel", "t")
    assert (refused.code, refused.error) == (1, "the session is completed: not cancelled [ended]")
    unknown = lab("session", "cancel", "nothing")
    assert unknown.code == 1
    assert "no session 'nothing'; `statelog session list` shows" in unknown.error


def test_a_session_that_fails_says_why(lab: Desk):
    """And the exit code of --wait is that of a failure."""
    big = {**BODY, "algorithms": [{"id": "heft"}]}
    with Journal(lab.store) as journal:
        definitions = Definitions(journal)
        closed = [
            replace(each, schedulable=False, environment_version_id="closed-v1")
            for each in ENVIRONMENT.resources
        ]
        definitions.register(
            replace(ENVIRONMENT, id="closed-v1", resources=tuple(closed)),
            Scope("closed", "Closed", "none", ("closed-v1",)),
            replace(TOPOLOGY, id="none", execution_scope_id="closed", links=()),
            actor="tester",
        )
    body = {**big, "executionScopeId": "closed", "networkTopologyId": "none"}
    done = lab("session", "create", lab.file(json.dumps(body), "s.json"), "--wait")
    assert done.code == 1
    assert "no algorithm produced a valid candidate" in done.out
    assert "schedulable" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give a FILE"),
        (
            ("--workflow", "x", "--scope", "lab"),
            "--algorithm: must name at least one of cpop, heft",
        ),
        ((*ASKED, "--algorithm", "prism"), "'prism' is not registered"),
        ((*ASKED, "--algorithm", "heft", "--budget", "nan"), "--budget: must be a number"),
        ((*ASKED, "--algorithm", "heft", "--id", ""), "--id: must not be empty"),
        ((*ASKED, "--algorithm", "heft", "--topology", ""), "--topology: must not be empty"),
        (("--scope", "lab", "--algorithm", "heft"), "--workflow: must not be empty"),
        (("--workflow", "chain-v1", "--scope", "x", "--algorithm", "heft"), "--scope: there is no"),
        (
            ("--workflow", "chain-v1", "--algorithm", "heft"),
            "--scope: must not be empty; there are lab",
        ),
        (("nothing.json",), "error: nothing.json: cannot be read"),
    ],
)
def test_a_bad_request_is_one_line(lab: Desk, words: tuple[str, ...], said: str):
    """It names the field and the fix, and nothing is stored."""
    with Journal(lab.store) as journal:
        before = journal.head()
    done = lab("session", "create", *words)
    assert done.code == 2
    assert said in done.err
    with Journal(lab.store) as journal:
        assert journal.head() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "must be an object"),
        ('{"id": "s", "algorithmz": []}', "algorithmz: is not a known field"),
        ('{"id": "s", "algorithms": [{"id": 7}]}', "algorithms[0].id: must be text"),
        ('{"id": "s", "budget": NaN}', "budget"),
    ],
)
def test_a_bad_file_names_the_place(lab: Desk, text: str, said: str):
    """planning case 5 at the command line."""
    done = lab("session", "create", lab.file(text, "s.json"))
    assert done.code == 2
    assert said in done.error
    assert "s.json" in done.error


def test_what_cannot_be_chosen_is_one_line(lab: Desk):
    """planning case 29, 30 at the command line."""
    lab("session", "create", lab.file(json.dumps(BODY), "s.json"), "--wait")
    dear = [
        each for each in lab("session", "candidates", "s", "--json").lines if not each["feasible"]
    ]
    for candidate in (dear[0]["id"], "candidate-nothing", "99", "0"):
        done = lab("session", "select", "s", candidate)
        assert (done.code, "candidateId" in done.error) == (2, True)


def test_a_plan_that_counts_on_a_missing_link_is_chosen_with_a_warning(lab: Desk):
    """Of `heft`, which counts a transfer without a link as 0 seconds (P15)."""
    here = [replace(each, workflow_version_id="apart-v1") for each in WORKFLOW.activities]
    places = {"prepare": "edge", "analyze": "cloud", "summarize": "edge"}
    apart = [replace(each, metadata={"resourceSelector": places[each.id]}) for each in here]
    with Journal(lab.store) as journal:
        Definitions(journal).register(
            replace(WORKFLOW, id="apart-v1", activities=tuple(apart)),
            replace(TOPOLOGY, id="nowhere", links=()),
            actor="tester",
        )
    asked = ("--id", "s", "--workflow", "apart-v1", "--scope", "lab", "--topology", "nowhere")
    assert lab("session", "create", *asked, "--algorithm", "heft", "--wait").code == 0
    done = lab("session", "select", "s", "1")
    assert (done.code, "warning: no route from edge to cloud" in done.err) == (0, True)


@pytest.fixture
def long_one(lab: Desk) -> tuple[str, ...]:
    """The words that ask for a session which takes many seconds, and wait for it."""
    few = {f"a{at}": 1.0 + at % 7 for at in range(1500)}
    long = replace(
        WORKFLOW,
        id="long-v1",
        activities=tuple(
            replace(activity(name, seconds), workflow_version_id="long-v1")
            for name, seconds in few.items()
        ),
        dependencies=tuple(Dependency(f"a{at}", f"a{at // 2}") for at in range(1, 1500)),
        data_dependencies=(),
    )
    with Journal(lab.store) as journal:
        Definitions(journal).register(long, actor="tester")
    more = {"optionCount": 1000}
    body = {**BODY, "workflowVersionId": "long-v1"}
    body["algorithms"] = [{"id": "moheft", "configuration": more}]
    return ("session", "create", str(lab.file(json.dumps(body), "s.json")), "--wait")


def begun(process: subprocess.Popen[str]) -> None:
    """Wait until the algorithm of a started command is at work."""
    assert process.stderr is not None
    while "moheft  started" not in process.stderr.readline():
        assert process.poll() is None


def test_ctrl_c_leaves_the_session_to_the_next_worker(lab: Desk, long_one: tuple[str, ...]):
    """Exit code 130; the job goes back unused, and the session can still be called off."""
    process = lab.start(*long_one)
    begun(process)
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert done.code == 130
    assert "goes on with the next `statelog worker`" in done.err
    assert lab("session", "show", "s", "--json").json["session"]["status"] == "running"
    assert lab.names("job")[-1] == "returned"
    assert lab("session", "cancel", "s").code == 0


def test_a_session_that_is_waited_for_can_be_called_off(lab: Desk, long_one: tuple[str, ...]):
    """By somebody else, while it is computed: it ends within a moment, with exit code 1."""
    process = lab.start(*long_one, "--json")
    begun(process)
    assert lab("session", "cancel", "s").code == 0
    done = ended(process)
    assert done.code == 1
    assert done.json["session"]["status"] == "cancelled"
    assert lab("worker", "--once").code == 0
    assert lab("session", "list", "--json").json["status"] == "cancelled"


def test_two_processes_find_the_same_candidates(lab: Desk, tmp_path: Path):
    """Byte by byte, but for when (P14, P22): hashes of text differ between them."""
    body = lab.file(
        json.dumps(
            {
                **BODY,
                "algorithms": [
                    {"id": each} for each in ("heft", "cpop", "min-min", "max-min", "moheft")
                ],
            }
        ),
        "s.json",
    )
    found = []
    for seed in ("1", "2"):
        lab.store = tmp_path / f"{seed}.db"
        with Journal(lab.store) as journal:
            Definitions(journal).register(*DEFINITIONS, actor="tester")
        words = ("session", "create", body, "--wait", "--json")
        done = ended(lab.start(*words, env={"PYTHONHASHSEED": seed}))
        assert done.code == 0, done.err
        with Journal(lab.store) as journal:
            events = journal.history("session/s")
            found.append([e.data for e in events if e.name.endswith("candidate_emitted")])
    assert len(found[0]) >= 5
    assert found[0] == found[1]
