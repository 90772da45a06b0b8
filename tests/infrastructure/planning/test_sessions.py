"""Asking for a session, and what is stored then (2.1, 3.12, P2 to P4, P9)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from statelog.domain.errors import Invalid, Malformed, NotFound, Refused
from statelog.domain.planning.session import SESSION, Selection, SessionStatus
from statelog.domain.queue.job import JobStatus
from statelog.domain.workflows.resources import EnvironmentVersion, Scope
from statelog.infrastructure.planning.requests import SessionRequest
from statelog.infrastructure.planning.sessions import Sessions
from statelog.infrastructure.views import Views
from statelog.infrastructure.workflows.definitions import Definitions
from statelog.projections.planning import PLANNING_VIEWS
from tests.domain.planning.problems import TOPOLOGY, placed, promising
from tests.infrastructure.planning.lab import Lab, ids, making

BODY = {
    "id": "s",
    "workflowVersionId": "chain-v1",
    "executionScopeId": "lab",
    "networkTopologyId": "wire",
    "algorithms": [{"id": "heft"}],
}


def test_a_session_its_runs_and_its_job_are_one_append(lab: Lab):
    """P2: a crash leaves all of it or nothing."""
    before = lab.journal.head()
    lab.create("s", "heft", "cpop")
    written = list(lab.journal.read(after=before))
    assert [each.stream.split("/")[0] for each in written] == ["session"] * 3 + ["job"]
    assert len({each.command for each in written}) == 1
    assert lab.session("s").status is SessionStatus.QUEUED
    assert lab.job("s").status is JobStatus.PENDING
    assert lab.job("s").payload == {"sessionId": "s"}


def test_the_input_is_in_the_event(lab: Lab):
    """P3: what is registered later changes no session that is there."""
    lab.create("s", "heft", deadline_seconds=9.0, configuration={"any": ["thing", 1]})
    frozen = lab.session("s").problem
    assert frozen is not None
    added = replace(frozen.resources[0], id="late")
    Definitions(lab.journal).register(added, actor="tester")
    assert lab.session("s").problem == frozen
    assert "late" not in [each.id for each in frozen.resources]
    assert (frozen.deadline_seconds, frozen.configuration) == (9.0, {"any": ["thing", 1]})
    lab.create("t", "heft")
    later = lab.session("t").problem
    assert later is not None
    assert "late" in [each.id for each in later.resources]


def test_what_is_ours_to_say_is_ignored_in_a_body():
    """P4: status, progress, counts, reasons and times of a client."""
    ours = {
        "status": "completed",
        "progress": 1,
        "candidateCount": 7,
        "failureReason": "none",
        "selectedPlanId": None,
        "createdAt": "yesterday",
    }
    assert SessionRequest.read({**BODY, **ours}) == SessionRequest.read(BODY)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"algorithmz": []}, "algorithmz"),
        ({"algorithms": "heft"}, "algorithms"),
        ({"algorithms": [{"id": "heft", "beam": 1}]}, "algorithms[0].beam"),
        ({"deadlineSeconds": "9"}, "deadlineSeconds"),
        ({"budget": float("nan")}, "budget"),
        ({"configuration": []}, "configuration"),
        ({"id": 7}, "id"),
    ],
)
def test_a_body_that_does_not_decode_names_the_place(change: dict[str, Any], field: str):
    """planning case 5, without HTTP: an unknown field or a wrong JSON type."""
    with pytest.raises(Malformed) as raised:
        SessionRequest.read({**BODY, **change})
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": ""}, "id"),
        ({"id": "\ud800"}, "id"),
        ({"id": "s" * 243}, "id"),
        ({"workflow_version_id": ""}, "workflowVersionId"),
        ({"workflow_version_id": "nothing"}, "workflowVersionId"),
        ({"execution_scope_id": "nothing"}, "executionScopeId"),
        ({"network_topology_id": "nothing"}, "networkTopologyId"),
        ({"network_topology_id": "other"}, "networkTopologyId"),
        ({"algorithms": ()}, "algorithms"),
        ({"algorithms": (Selection("heft"), Selection("heft"))}, "algorithms[1].id"),
        ({"algorithms": (Selection("prism"),)}, "algorithms[0].id"),
    ],
)
def test_a_request_that_breaks_a_rule_names_the_field(lab: Lab, change: dict[str, Any], field: str):
    """planning case 1, 2, 3: and nothing is stored, not even a refusal (P9)."""
    other = replace(TOPOLOGY, id="other", execution_scope_id="elsewhere", links=())
    definitions = Definitions(lab.journal)
    scope = Scope("elsewhere", "Elsewhere", "", ("empty-v1",))
    definitions.register(EnvironmentVersion("empty-v1"), scope, other, actor="tester")
    before = lab.journal.head()
    with pytest.raises(Invalid) as raised:
        lab.sessions.create(replace(lab.request("s", "heft"), **change), actor="tester")
    assert raised.value.field == field
    assert not isinstance(raised.value, Malformed)
    assert lab.journal.head() == before
    assert lab.journal.refusals() == []


def test_the_longest_id_can_be_chosen_from(lab: Lab):
    """The id of the plan begins with it, and has its own limit."""
    id = "s" * 242
    lab.create(id, "heft")
    lab.work()
    candidate = lab.sessions.candidates(id)[0]["id"]
    assert len(lab.sessions.select(id, candidate, actor="tester").id) == 255


def test_an_id_is_taken_once(lab: Lab):
    """planning case 4: the first session stays as it was."""
    lab.create("s", "heft")
    before = lab.journal.load(SESSION, "s")
    with pytest.raises(Invalid) as raised:
        lab.create("s", "cpop")
    assert raised.value.field == "id"
    assert lab.journal.load(SESSION, "s") == before


def test_a_race_for_an_id_is_lost_like_any_other(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    """Both found the id free: the second commit conflicts, and says what the check would say."""
    late = lab.sessions
    load = lab.journal.load
    seen: list[object] = []

    def first(aggregate: Any, id: Any, **given: Any) -> Any:
        loaded = load(aggregate, id, **given)
        if aggregate is SESSION and not seen:
            seen.append(id)
            lab.create("s", "cpop")
        return loaded

    monkeypatch.setattr(lab.journal, "load", first)
    with pytest.raises(Invalid) as raised:
        late.create(lab.request("s", "heft"), actor="tester")
    assert raised.value.field == "id"
    assert [each.id for each in lab.session("s").algorithms] == ["cpop"]


def test_every_run_has_an_estimate(lab: Lab):
    """3.10: computed at creation and shown with the run."""
    lab.create("s", "heft", "moheft")
    runs = lab.sessions.show("s")["algorithmRuns"]
    assert [each["id"] for each in runs] == ["s-heft", "s-moheft"]
    assert runs[0]["estimate"]["activityCount"] == 3
    assert all(each["estimate"]["durationSeconds"] > 0 for each in runs)


# cancellation


def test_a_queued_session_is_cancelled_with_its_runs(lab: Lab):
    """planning case 19."""
    lab.create("s", "heft", "cpop")
    lab.sessions.cancel("s", actor="tester")
    page = lab.sessions.show("s")
    assert page["session"]["status"] == "cancelled"
    assert page["session"]["completedAt"]
    assert [each["status"] for each in page["algorithmRuns"]] == ["cancelled"] * 2


def test_a_cancelled_session_is_cancelled_again_without_a_trace(lab: Lab):
    """planning case 20."""
    lab.create("s", "heft")
    lab.sessions.cancel("s", actor="tester")
    before = lab.log()
    lab.sessions.cancel("s", actor="tester")
    assert lab.log() == before
    assert lab.journal.refusals() == []


def test_an_ended_session_is_not_cancelled(lab: Lab):
    """planning case 21: a conflict, which leaves one row of evidence and changes nothing (P9)."""
    lab.planned("done", making("one", placed()))
    lab.planned("lost", making("none"))
    before = lab.log()
    for id in ("done", "lost"):
        with pytest.raises(Refused):
            lab.sessions.cancel(id, actor="tester")
    assert lab.log() == before
    assert [each.stream for each in lab.journal.refusals()] == ["session/done", "session/lost"]


def test_an_unknown_session_is_not_found(lab: Lab):
    """planning case 22: for whatever is asked of it."""
    for asked in (
        lambda: lab.sessions.cancel("nothing", actor="tester"),
        lambda: lab.sessions.select("nothing", "candidate-1", actor="tester"),
        lambda: lab.sessions.show("nothing"),
        lambda: lab.sessions.candidates("nothing"),
        lambda: lab.sessions.candidate("nothing", "candidate-1"),
        lambda: lab.sessions.show(""),
        lambda: lab.sessions.show("\ud800"),
        lambda: lab.sessions.cancel("\ud800", actor="tester"),
    ):
        with pytest.raises(NotFound):
            asked()
    assert lab.journal.refusals() == []


# selection


def test_a_selection_registers_the_plan_in_the_same_append(lab: Lab):
    """3.12: the plan can be read and run from then on."""
    lab.planned("s", making("one", placed()))
    (summary,) = lab.sessions.candidates("s")
    before = lab.journal.head()
    plan = lab.sessions.select("s", summary["id"], actor="tester")
    assert len({each.command for each in lab.journal.read(after=before)}) == 1
    assert plan.id == summary["plan"]["id"]
    stored = Definitions(lab.journal).schedule_plan(plan.id)
    assert stored.assignments == plan.assignments
    session = lab.sessions.show("s")["session"]
    assert session["selectedCandidateId"] == summary["id"]
    assert session["selectedPlanId"] == plan.id
    assert session["status"] == "completed"


def test_selecting_again_writes_nothing_and_another_one_wins(lab: Lab):
    """planning case 31: the first plan stays readable."""
    lab.planned("s", making("two", promising(10.0, 5.0), promising(12.0, 4.0)))
    first, second = ids(lab.sessions.candidates("s"))
    plan = lab.sessions.select("s", first, actor="tester")
    before = lab.log()
    assert lab.sessions.select("s", first, actor="tester") == plan
    assert lab.log() == before
    other = lab.sessions.select("s", second, actor="tester")
    session = lab.sessions.show("s")["session"]
    assert (session["selectedCandidateId"], session["selectedPlanId"]) == (second, other.id)
    assert Definitions(lab.journal).schedule_plan(plan.id).assignments == plan.assignments


def test_what_is_not_feasible_is_not_selected(lab: Lab):
    """planning case 29: 422, the session as it was, no plan, no row of evidence."""
    lab.planned("s", making("one", promising(20.0, 1.0)), deadline_seconds=10.0)
    (id,) = ids(lab.sessions.candidates("s"))
    before = lab.log()
    with pytest.raises(Invalid) as raised:
        lab.sessions.select("s", id, actor="tester")
    assert raised.value.field == "candidateId"
    assert lab.log() == before
    assert lab.journal.refusals() == []


def test_a_candidate_of_another_session_is_not_selected(lab: Lab):
    """planning case 30: 422 to select, 404 to look at."""
    lab.planned("s", making("one", placed()))
    lab.planned("t", making("one", placed()))
    (theirs,) = ids(lab.sessions.candidates("t"))
    for id in (theirs, "candidate-nothing"):
        with pytest.raises(Invalid):
            lab.sessions.select("s", id, actor="tester")
        with pytest.raises(NotFound):
            lab.sessions.candidate("s", id)


def test_a_cancelled_session_can_be_chosen_from(lab: Lab):
    """planning case 23, 71: what was found stays readable, and the status stays as it is."""

    def cancel(at: int) -> None:
        if at == 1:
            lab.sessions.cancel("s", actor="tester")

    lab.planned("s", making("two", placed(), promising(5.0, 5.0), between=cancel))
    (id,) = ids(lab.sessions.candidates("s"))
    plan = lab.sessions.select("s", id, actor="tester")
    assert Definitions(lab.journal).schedule_plan(plan.id).id == plan.id
    assert lab.sessions.candidate("s", id)["plan"]["id"] == plan.id
    assert lab.sessions.show("s")["session"]["status"] == "cancelled"


def test_a_selection_is_no_evidence_of_a_run(lab: Lab):
    """planning case 72: choosing writes a plan and a choice, and nothing of a run."""
    lab.planned("s", making("one", placed()))
    before = lab.journal.head()
    lab.sessions.select("s", ids(lab.sessions.candidates("s"))[0], actor="tester")
    streams = {each.stream.split("/")[0] for each in lab.journal.read(after=before)}
    assert streams == {"session", "schedule-plan", "scope"}


# documents


def test_summaries_say_how_many_assignments_and_not_which(lab: Lab):
    """planning case 34: the detail has them."""
    lab.planned("s", making("one", placed()))
    (summary,) = lab.sessions.candidates("s")
    assert summary["plan"]["assignmentCount"] == 3
    assert "assignments" not in summary["plan"]
    detail = lab.sessions.candidate("s", summary["id"])
    assert [each["activityId"] for each in detail["plan"]["assignments"]] == [
        "prepare",
        "analyze",
        "summarize",
    ]
    assert {**detail, "plan": None} == {**summary, "plan": None}


def test_documents_are_the_same_from_the_log_and_from_views(lab: Lab):
    """And every session is listed, the newest first."""
    lab.planned("s", making("two", placed(), promising(4.0, 9.0)))
    lab.create("t", "heft")
    with Views(lab.journal, PLANNING_VIEWS) as views:
        viewed = Sessions(lab.journal, lab.algorithms, views=views)
        for id in ("s", "t"):
            assert viewed.show(id) == lab.sessions.show(id)
            assert viewed.candidates(id) == lab.sessions.candidates(id)
        (first, _) = ids(viewed.candidates("s"))
        assert viewed.candidate("s", first) == lab.sessions.candidate("s", first)
        assert viewed.all() == lab.sessions.all()
        with pytest.raises(NotFound):
            viewed.show("nothing")
        assert views.verify() == []
    assert ids(lab.sessions.all()) == ["t", "s"]
