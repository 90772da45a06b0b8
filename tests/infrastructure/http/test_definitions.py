"""Definitions over HTTP, and the OpenAPI document held against every answer."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import jsonschema_rs
import pytest

from statelog.infrastructure.http.app import ENDPOINTS
from statelog.infrastructure.http.openapi import openapi
from tests.domain.runs.bundles import golden
from tests.domain.workflows import wffile
from tests.infrastructure.http.asking import own, real
from tests.infrastructure.http.live import YAML, Answer, Live, soon
from tests.infrastructure.planning.lab import Lab

_numbers = count(1)

ENVIRONMENT = {
    "environment": {"id": "e", "name": "E"},
    "version": {"id": "e-v1", "environmentId": "e", "version": 1},
    "runtimes": [{"id": "sim", "name": "S", "driver": "simgrid", "mode": "simulation"}],
    "resources": [{"id": "m", "cpuCores": 2, "cpuCapacity": 2, "schedulable": True}],
    "resourceRuntimeBindings": [{"resourceId": "m", "runtimeId": "sim", "enabled": True}],
}
SCOPE = {"id": "e", "environmentVersionIds": ["e-v1"]}
TOPOLOGY = {"id": "n", "executionScopeId": "e", "links": []}
WORKFLOW = {
    "name": "Pair",
    "spec": {
        "namespace": "n",
        "schedule": "ignored",
        "activities": [
            {"name": "a", "simulation": {"durationSeconds": 1}},
            {"name": "b", "simulation": {"durationSeconds": 2}, "dependsOn": ["a"]},
        ],
    },
}
PLAN = {
    "id": "p",
    "workflowVersionId": "pair-v1",
    "executionScopeId": "e",
    "networkTopologyId": "n",
    "assignments": [
        {"activityId": "a", "resourceId": "m", "coreId": "m-core-1", "orderOnResource": 0},
        {"activityId": "b", "resourceId": "m", "coreId": "m-core-1", "orderOnResource": 1},
    ],
}
POSTS = (
    ("/environments/", ENVIRONMENT),
    ("/execution-scopes/", SCOPE),
    ("/network-topologies/", TOPOLOGY),
    ("/workflow-definitions/", WORKFLOW),
    ("/schedule-plans/", {"plan": PLAN}),
)


@pytest.fixture(scope="module")
def live(idle: Live) -> Live:
    """A server where these are registered."""
    for path, document in POSTS:
        idle.post(path, document)
    return idle


@pytest.mark.parametrize(("path", "document"), POSTS, ids=[path for path, _ in POSTS])
def test_the_same_again_is_answered_as_before(live: Live, path: str, document: Any):
    """201 with the record, and nothing is stored."""
    before = live.kept()
    first, again = live.post(path, document), live.post(path, document)
    assert first == again
    assert live.kept() == before


@pytest.mark.parametrize(
    ("path", "document", "given", "field"),
    [
        ("/environments/", ENVIRONMENT, {"storages": [{"id": "x"}]}, "id"),
        ("/execution-scopes/", SCOPE, {"name": "another"}, "id"),
        ("/network-topologies/", TOPOLOGY, {"name": "another"}, "id"),
        ("/workflow-definitions/", WORKFLOW, {"name": "pair "}, "id"),
        ("/execution-scopes/", SCOPE, {"id": "x", "environmentVersionIds": ["none"]}, "environm"),
        ("/execution-scopes/", SCOPE, {"id": ""}, "id"),
        ("/network-topologies/", TOPOLOGY, {"id": "x", "executionScopeId": "none"}, "executionS"),
        ("/schedule-plans/import/", {}, {"plan": {**PLAN, "workflowVersionId": "none"}}, "plan."),
        ("/schedule-plans/import/", {}, {"plan": {**PLAN, "id": "x", "assignments": []}}, "plan."),
        ("/schedule-plans/", {}, {"plan": {**PLAN, "executionScopeId": "none"}}, "plan."),
        ("/resources/", {}, {"id": "x", "environmentVersionId": "none"}, "environmentVersionId"),
    ],
)
def test_what_breaks_a_rule_is_422(
    live: Live, path: str, document: dict[str, Any], given: dict[str, Any], field: str
):
    """P9: the field is named, and nothing is stored."""
    before = live.kept()
    refused = live("POST", path, {**document, **given})
    assert refused.status == 422, refused.body
    assert refused.error.startswith(field)
    assert live.kept() == before


@pytest.mark.parametrize("path", sorted({each.path for each in ENDPOINTS if each.body is not None}))
@pytest.mark.parametrize("document", [{"noSuchField": 1}, [], "text", 7, None])
def test_what_has_another_shape_is_400(live: Live, path: str, document: Any):
    """P9: everywhere, and nothing is stored."""
    before = live.kept()
    refused = live("POST", path, data=json.dumps(document).encode())
    assert refused.status == 400, refused.body
    assert live.kept() == before


def test_a_resource_is_added_to_an_environment(live: Live):
    """It counts from then on; the environment is listed as it was published."""
    added = {"id": "m2", "environmentVersionId": "e-v1", "cpuCores": 4, "schedulable": True}
    shown = live.post("/resources/", added)
    assert shown == live.post("/resources/", added)
    assert live.get("/resources/")[0] == shown
    line = next(each for each in live.get("/environments/") if each["id"] == "e-v1")
    assert line["resourceCount"] == 1


def test_a_scope_is_removed_until_a_plan_refers_to_it(live: Live):
    """204, then 404; 409 for one that is used, which leaves one refusal and nothing else (P9)."""
    live.post("/execution-scopes/", {**SCOPE, "id": "unused"})
    assert live("DELETE", "/execution-scopes/unused/").status == 204
    assert live("GET", "/execution-scopes/unused/").status == 404
    assert "unused" not in [each["id"] for each in live.get("/execution-scopes/")]
    assert live("DELETE", "/execution-scopes/unused/").status == 404
    events, refusals = live.kept()
    refused = live("DELETE", "/execution-scopes/e/")
    assert (refused.status, refused.error) == (409, "a schedule plan refers to the scope")
    assert live.kept() == (events, refusals + 1)
    assert live.get("/execution-scopes/e/")["id"] == "e"


def test_an_imported_plan_says_so(live: Live):
    """Whatever the body says of its source."""
    plan = {**PLAN, "id": "imported", "source": "manual"}
    assert live.post("/schedule-plans/import/", {"plan": plan})["source"] == "imported"
    stored = live.post("/schedule-plans/", {"plan": {**plan, "id": "given"}})
    assert stored["source"] == "manual"
    assert [each["id"] for each in live.get("/schedule-plans/")][:2] == ["given", "imported"]


def test_a_workflow_is_exported_and_imported_again(live: Live):
    """The YAML that comes out goes in again, as the same version."""
    exported = live("GET", "/workflow-definitions/pair-v1/export/")
    assert exported.headers["content-type"].startswith(YAML)
    again = live.post("/workflow-definitions/import/", data=exported.body, media=YAML, status=201)
    assert again["workflowVersionId"] == "pair-v1"
    assert again["registered"] is False


def test_what_is_ignored_is_told(live: Live):
    """Legacy keys of a portable workflow are warnings of an import."""
    told = live.post("/workflow-definitions/import/", WORKFLOW)
    assert told["warnings"] == ["spec.schedule: is ignored"]


def test_a_measured_workflow_is_imported(live: Live):
    """P20: WfFormat, with the environment it is planned on, ready for a session."""
    told = live.post("/workflow-definitions/import/?name=measured", wffile.twin())
    assert told["workflowVersionId"] == "measured-v1"
    session = {"id": f"m{next(_numbers)}", "algorithms": [{"id": "heft"}]}
    session |= {
        name: told[name] for name in ("workflowVersionId", "executionScopeId", "networkTopologyId")
    }
    assert live.post("/planning-sessions/", session, status=202)["status"] == "queued"


class Document:
    """The OpenAPI document, as a client reads it."""

    def __init__(self, document: dict[str, Any], base: str) -> None:
        self.document, self.base = document, base

    def hold(self, path: str, method: str, answer: Answer) -> None:
        """Hold an answer against what is said of it."""
        operation = self.document["paths"][f"{self.base}{path}"][method.lower()]
        said = operation["responses"][str(answer.status)]
        if "content" not in said:
            assert answer.body == b""
            return
        ((media, content),) = said["content"].items()
        assert answer.headers["content-type"].startswith(media)
        if media == YAML:
            return
        schema = {**content["schema"], "components": self.document["components"]}
        jsonschema_rs.validator_for(schema).validate(answer.json)


@pytest.fixture(scope="module")
def full(busy: Live) -> tuple[Live, dict[str, str]]:
    """A server with one of everything, and ids to fill paths with."""
    with busy.journal() as journal:
        lab = Lab(journal)
        lab.create("s", "heft", "moheft", budget=9.0, deadline_seconds=99.0)
        lab.create("failing", "heft")
    busy.post("/execution-runs/", own(golden(), "r"), status=202)
    busy.post("/execution-runs/", real("r-real", "true", "exit 3", edges=(("a", "b"),)), status=202)
    soon(lambda: busy.get("/planning-sessions/s/")["session"]["status"] == "completed")
    for run in ("r", "r-real"):
        soon(lambda run=run: busy("GET", f"/execution-runs/{run}/").status == 200)
    soon(lambda: busy.get("/execution-runs/r-real/")["run"]["status"] == "failed")
    (candidate, *_) = busy.get("/planning-sessions/s/candidates/")
    plan = busy.post(f"/planning-sessions/s/candidates/{candidate['id']}/select/")
    ids = {
        "planning-sessions": "s",
        "candidateId": candidate["id"],
        "schedule-plans": plan["id"],
        "execution-runs": "r-real",
        "activityId": "a",
        "execution-scopes": "lab",
        "network-topologies": "wire",
        "workflow-definitions": "chain-v1",
    }
    return busy, ids


@pytest.fixture(scope="module")
def document(full: tuple[Live, dict[str, str]]) -> Document:
    live, _ = full
    return Document(live.get("/openapi.json"), live.base)


def filled(path: str, ids: dict[str, str]) -> str:
    kind = path.split("/")[1]
    parts = {"{id}": ids.get(kind, ""), "{candidateId}": ids["candidateId"], "{activityId}": "a"}
    for name, value in parts.items():
        path = path.replace(name, value)
    return path


GETS = [each.path for each in ENDPOINTS if each.method == "GET"]


@pytest.mark.parametrize("path", GETS)
def test_every_answer_is_as_the_document_says(
    full: tuple[Live, dict[str, str]], document: Document, path: str
):
    """With a record of each kind there; and so is the 404 of each that has one."""
    live, ids = full
    answer = live("GET", filled(path, ids))
    assert answer.status == 200
    document.hold(path, "GET", answer)
    if "{id}" in path:
        document.hold(path, "GET", live("GET", filled(path, dict.fromkeys(ids, "none"))))


def test_every_kind_of_answer_to_a_post_is_as_the_document_says(
    full: tuple[Live, dict[str, str]], document: Document
):
    """Registered, stored, accepted, and refused in each way."""
    live, _ = full
    for asked, body in (
        *POSTS,
        ("/schedule-plans/import/", {"plan": {**PLAN, "id": "p2"}}),
        ("/workflow-definitions/import/", WORKFLOW),
        ("/workflow-definitions/import/?name=twin", wffile.twin()),
        ("/resources/", {"id": "m9", "environmentVersionId": "e-v1"}),
        ("/execution-runs/", own(golden(), "r")),
    ):
        answer = live("POST", asked, body)
        assert answer.status in (201, 202), answer.body
        path = asked.partition("?")[0]
        document.hold(path, "POST", answer)
        document.hold(path, "POST", live("POST", path, {"x": 1}))
        document.hold(path, "POST", live("POST", path, {}, media="text/plain"))
    for path in ("/execution-runs/?page=1", "/execution-runs/?page=x"):
        document.hold("/execution-runs/", "GET", live("GET", path))
    select = "/planning-sessions/{id}/candidates/{candidateId}/select/"
    document.hold(select, "POST", live("POST", "/planning-sessions/s/candidates/x/select/"))
    document.hold(
        "/planning-sessions/{id}/cancel/", "POST", live("POST", "/planning-sessions/s/cancel/")
    )


def test_the_document_is_the_same_at_both_places(full: tuple[Live, dict[str, str]]):
    """`/openapi.json`, and below the base path; it is that of the code."""
    live, _ = full
    below = live.get("/openapi.json")
    base, live.base = live.base, ""
    try:
        assert live.get("/openapi.json") == below
    finally:
        live.base = base
    assert below == json.loads(json.dumps(openapi(ENDPOINTS, base)))
    assert below["openapi"].startswith("3.1")
