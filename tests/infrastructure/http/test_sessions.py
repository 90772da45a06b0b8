"""Planning sessions over HTTP, through a real server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from statelog.domain.planning.algorithms.port import Algorithm
from statelog.domain.workflows.schedule_plan import LifecycleAction
from statelog.infrastructure.queue.queue import Queue
from tests.domain.planning.problems import placed
from tests.infrastructure.http.live import Live
from tests.infrastructure.planning.lab import Lab, broken, making

_numbers = count(1)


@pytest.fixture(scope="module")
def live(idle: Live) -> Live:
    """A server with something to plan."""
    with idle.journal() as journal:
        Lab(journal)
    return idle


@pytest.fixture
def id() -> str:
    """A session that nobody has asked for."""
    return f"s{next(_numbers)}"


def body(id: str, *algorithms: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "workflowVersionId": "chain-v1",
        "executionScopeId": "lab",
        "networkTopologyId": "wire",
        "algorithms": [{"id": each} for each in algorithms or ("heft",)],
        **more,
    }


def create(live: Live, id: str, *algorithms: str, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = live.post(
        "/planning-sessions/", body(id, *algorithms, **more), status=202
    )
    return made


def work(live: Live, *algorithms: Algorithm) -> None:
    """Do every job there is in this process, with these in the place of others."""
    with live.journal() as journal:
        lab = Lab(journal)
        lab.register(*algorithms)
        lab.work()


def page(live: Live, id: str) -> dict[str, Any]:
    found: dict[str, Any] = live.get(f"/planning-sessions/{id}/")
    return found


def candidates(live: Live, id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = live.get(f"/planning-sessions/{id}/candidates/")
    return found


def select(live: Live, id: str, candidate: str) -> Any:
    return live("POST", f"/planning-sessions/{id}/candidates/{candidate}/select/")


def cancel(live: Live, id: str) -> Any:
    return live("POST", f"/planning-sessions/{id}/cancel/")


def meanwhile(act: Callable[[], None]) -> Algorithm:
    """HEFT's place is taken by what emits a plan, does something, and emits another."""
    plan = placed()
    other = replace(plan, assignments=tuple(reversed(plan.assignments)))
    return making("heft", plan, other, between=lambda at: act() if at == 1 else None)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"algorithms": []}, "algorithms"),
        ({"algorithms": [{"id": "heft"}, {"id": "heft"}]}, "algorithms"),
        ({"algorithms": [{"id": "no-such"}]}, "algorithms"),
        ({"id": ""}, "id"),
        ({"workflowVersionId": "no-such"}, "workflowVersionId"),
        ({"executionScopeId": "no-such"}, "executionScopeId"),
        ({"networkTopologyId": ""}, "networkTopologyId"),
    ],
)
def test_what_cannot_be_planned_is_refused(live: Live, id: str, given: dict[str, Any], field: str):
    """Planning cases 1, 2, 3: 422 naming the field, and nothing is stored, no refusal either."""
    before = live.kept()
    refused = live("POST", "/planning-sessions/", {**body(id), **given})
    assert refused.status == 422
    assert refused.error.startswith(field)
    assert live.kept() == before
    assert live("GET", f"/planning-sessions/{id}/").status == 404


def test_an_id_is_taken_once(live: Live, id: str):
    """Planning case 4: 422, and the first session is unchanged."""
    create(live, id)
    first, before = page(live, id), live.kept()
    again = live("POST", "/planning-sessions/", body(id, "cpop", deadlineSeconds=5))
    assert (again.status, again.error) == (422, "id: is that of a session that exists")
    assert (page(live, id), live.kept()) == (first, before)


def test_an_unknown_field_is_400(live: Live, id: str):
    """Planning case 5."""
    before = live.kept()
    refused = live("POST", "/planning-sessions/", body(id, deadlines=5))
    assert (refused.status, refused.error) == (400, "deadlines: is not a known field")
    assert live.kept() == before


def test_text_is_415(live: Live, id: str):
    """Planning case 6."""
    before = live.kept()
    refused = live("POST", "/planning-sessions/", body(id), media="text/plain")
    assert refused.status == 415
    assert "Content-Type" in refused.error
    assert live.kept() == before


def test_what_is_ours_to_say_is_ignored(live: Live, id: str):
    """P4: status, progress, count and reason of the body mean nothing."""
    told = {"status": "completed", "progress": 1, "candidateCount": 9, "failureReason": "x"}
    made = create(live, id, **told)
    assert made["status"] == "queued"
    assert (made["progress"], made["candidateCount"]) == (0, 0)
    assert "failureReason" not in made


def test_sessions_are_planned_one_at_a_time(live: Live):
    """Planning case 7: the second one is queued until the first one has ended."""
    first, second = f"s{next(_numbers)}", f"s{next(_numbers)}"
    create(live, first)
    create(live, second)
    seen = []

    def look() -> None:
        status = {id: page(live, id)["session"]["status"] for id in (first, second)}
        seen.append(sorted(status.values()))

    work(live, meanwhile(look))
    assert [each for each in seen if "running" in each] == [
        ["queued", "running"],
        ["completed", "running"],
    ]
    assert page(live, second)["session"]["status"] == "completed"


def test_a_queued_session_is_cancelled(live: Live, id: str):
    """Planning cases 19, 20: 204, all its runs too; once more is 204 and changes nothing."""
    create(live, id, "heft", "cpop")
    assert cancel(live, id).status == 204
    found, before = page(live, id), live.kept()
    assert found["session"]["status"] == "cancelled"
    assert "completedAt" in found["session"]
    assert {run["status"] for run in found["algorithmRuns"]} == {"cancelled"}
    again = cancel(live, id)
    assert (again.status, again.body) == (204, b"")
    assert (page(live, id), live.kept()) == (found, before)


@pytest.mark.parametrize("ending", ["completed", "failed"])
def test_what_has_ended_is_not_cancelled(live: Live, id: str, ending: str):
    """Planning case 21, P9: 409; no event, no view changes, and one refusal is kept."""
    create(live, id)
    work(live, making("heft", placed() if ending == "completed" else broken()))
    found, (events, refusals) = page(live, id), live.kept()
    assert found["session"]["status"] == ending
    refused = cancel(live, id)
    assert refused.status == 409
    assert ending in refused.error
    assert page(live, id) == found
    assert live.kept() == (events, refusals + 1)


def test_what_is_not_there_is_404(live: Live):
    """Planning case 22, P9: nothing is kept of any of these."""
    before = live.kept()
    for method, path in (
        ("POST", "cancel/"),
        ("GET", ""),
        ("GET", "candidates/"),
        ("GET", "candidates/c/"),
        ("POST", "candidates/c/select/"),
    ):
        answer = live(method, f"/planning-sessions/none/{path}")
        assert (answer.status, answer.error) == (404, "Not Found")
    assert live.kept() == before


def test_a_candidate_of_a_cancelled_session_is_selected(live: Live, id: str):
    """Planning cases 23, 71: 201, the plan is stored, and the session is still cancelled."""
    create(live, id)

    def call_off() -> None:
        assert cancel(live, id).status == 204

    work(live, meanwhile(call_off))
    (found,) = candidates(live, id)
    plan = select(live, id, found["id"])
    assert plan.status == 201
    assert live.get(f"/schedule-plans/{plan.json['id']}/") == plan.json
    session = page(live, id)["session"]
    assert session["status"] == "cancelled"
    assert session["selectedPlanId"] == plan.json["id"]


def test_what_is_not_feasible_is_not_selected(live: Live, id: str):
    """Planning case 29: 422, the session is unchanged, no plan is stored, no refusal kept."""
    create(live, id, deadlineSeconds=0.001)
    work(live)
    (found,) = candidates(live, id)
    assert (found["feasible"], found["paretoOptimal"]) == (False, False)
    session, before = page(live, id), live.kept()
    refused = select(live, id, found["id"])
    assert refused.status == 422
    assert "deadline" in refused.error
    assert (page(live, id), live.kept()) == (session, before)
    assert live("GET", f"/schedule-plans/{found['plan']['id']}/").status == 404


def test_a_candidate_of_another_session(live: Live):
    """Planning case 30: 422 to select, 404 to read."""
    first, second = f"s{next(_numbers)}", f"s{next(_numbers)}"
    create(live, first)
    create(live, second, deadlineSeconds=9999)
    work(live)
    (other,) = candidates(live, second)
    assert select(live, first, other["id"]).status == 422
    wrong = live("GET", f"/planning-sessions/{first}/candidates/{other['id']}/")
    assert (wrong.status, wrong.error) == (404, "Not Found")
    right = live.get(f"/planning-sessions/{second}/candidates/{other['id']}/")
    assert right["plan"]["assignments"]


def test_another_candidate_may_be_selected_later(live: Live, id: str):
    """Planning case 31: the ids are those of the later one; the earlier plan is still there."""
    create(live, id, "heft", "cpop")
    work(live)
    x, y = candidates(live, id)
    first, second = select(live, id, x["id"]).json, select(live, id, y["id"]).json
    session = page(live, id)["session"]
    assert (session["selectedCandidateId"], session["selectedPlanId"]) == (y["id"], second["id"])
    assert live.get(f"/schedule-plans/{first['id']}/") == first
    before = live.kept()
    assert select(live, id, y["id"]).json == second
    assert live.kept() == before


def test_a_candidate_is_selected_early(live: Live, id: str):
    """Planning cases 18, 32: what came already is there with rank 0, and 201 to select."""
    create(live, id)
    seen: dict[str, Any] = {}

    def look() -> None:
        seen["session"] = page(live, id)["session"]
        seen["candidates"] = candidates(live, id)
        seen["selected"] = select(live, id, seen["candidates"][0]["id"])

    work(live, meanwhile(look))
    assert (seen["session"]["status"], seen["session"]["candidateCount"]) == ("running", 1)
    (early,) = seen["candidates"]
    assert (early["rank"], early["paretoOptimal"]) == (0, False)
    assert seen["selected"].status == 201
    session = page(live, id)["session"]
    assert session["status"] == "completed"
    assert session["selectedPlanId"] == seen["selected"].json["id"]


def test_lifecycle_actions_follow_their_plan(live: Live, id: str):
    """Planning case 33: both kinds of dependencies name the new ids."""
    bare = placed()
    assignments = tuple(replace(each, id=f"of-{each.activity_id}") for each in bare.assignments)
    plan = replace(bare, assignments=assignments)
    actions = (
        LifecycleAction("up", action="provision"),
        LifecycleAction("down", action="stop", depends_on=("up", plan.assignments[0].id)),
    )
    create(live, id)
    work(live, making("heft", replace(plan, lifecycle_actions=actions)))
    (found,) = candidates(live, id)
    detail = live.get(f"/planning-sessions/{id}/candidates/{found['id']}/")["plan"]
    up, down = detail["lifecycleActions"]
    ids = {each["activityId"]: each["id"] for each in detail["assignments"]}
    first = plan.assignments[0]
    assert down["dependsOn"] == [up["id"], ids[first.activity_id]]
    assert up["id"] != "up"
    assert ids[first.activity_id] != first.id


def test_summaries_have_no_assignments(live: Live, id: str):
    """Planning case 34: each has `assignmentCount` instead; so have lists of plans."""
    create(live, id, "heft", "moheft")
    work(live)
    found = candidates(live, id)
    assert len(found) > 1
    for each in found:
        assert each["plan"]["assignmentCount"] == len(placed().assignments)
        assert "assignments" not in each["plan"]
    assert [each["rank"] for each in found] == list(range(1, len(found) + 1))
    select(live, id, found[0]["id"])
    newest = live.get("/schedule-plans/")[0]
    assert newest["id"] == found[0]["plan"]["id"]
    assert newest["assignmentCount"] == len(placed().assignments)
    assert "assignments" not in newest


def test_sessions_are_listed_newest_first(live: Live, id: str):
    """A read sees the write before it, also the one of another process."""
    create(live, id)
    with live.journal() as journal:
        Lab(journal).create(f"{id}-other", "heft")
    listed = [each["id"] for each in live.get("/planning-sessions/")]
    assert listed[:2] == [f"{id}-other", id]


def test_algorithms_are_described(live: Live):
    """P14: five of them."""
    found = live.get("/planning-algorithms/")
    assert [each["id"] for each in found] == ["heft", "cpop", "min-min", "max-min", "moheft"]
    assert found[-1]["multiple"] is True


def test_ids_may_hold_anything(live: Live):
    """An id with a slash, a space and another script is one part of the path."""
    id = f"a/b c/\N{GREEK SMALL LETTER ALPHA}%2F{next(_numbers)}"
    create(live, id)
    quoted = "a%2Fb%20c%2F%CE%B1%252F" + id[-len(id.partition("%2F")[2]) :]
    assert page(live, quoted)["session"]["id"] == id
    assert live("GET", "/planning-sessions/%ff%fe/").status == 404


def test_two_at_the_same_moment(live: Live, id: str):
    """Of many who ask for one id at once, one gets it; there is one session and one job."""
    answers: list[int] = []

    def ask() -> None:
        answers.append(live("POST", "/planning-sessions/", body(id)).status)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [202] + [422] * 7
    with live.journal() as journal:
        jobs = [job for job in Queue(journal).jobs().values() if job.aggregate_id == id]
    assert len(jobs) == 1
