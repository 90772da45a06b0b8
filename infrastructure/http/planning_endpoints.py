"""Endpoints of planning: algorithms, sessions, their candidates (5)."""

from __future__ import annotations

from typing import Any, Final

from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.workflows import shape
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.infrastructure.http import answers
from statelog.infrastructure.http.endpoint import Call, Endpoint, Services
from statelog.infrastructure.http.schema import Derived, ListOf
from statelog.infrastructure.planning.requests import IGNORED, SessionRequest

Document = dict[str, Any]

SESSION_BODY: Final = Derived(
    "PlanningSessionRequest", SessionRequest, optional=frozenset({"id"}), ignored=IGNORED
)


def _algorithms(services: Services, call: Call) -> list[Document]:
    names = ("id", "name", "objective", "multiple", "description", "version")
    return [
        {**{name: getattr(each, name) for name in names}, "defaults": dict(each.defaults)}
        for each in ALGORITHMS.values()
    ]


def _create(services: Services, call: Call) -> Document:
    request = SessionRequest.read(call.document)
    services.sessions.create(request, actor=services.actor)
    session: Document = services.sessions.show(request.id)["session"]
    return session


def _cancel(services: Services, call: Call) -> None:
    services.sessions.cancel(call.id("id"), actor=services.actor)


def _select(services: Services, call: Call) -> Document:
    ids = (call.id("id"), call.id("candidateId"))
    return shape.show(services.sessions.select(*ids, actor=services.actor))


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/planning-algorithms/",
        "listAlgorithms",
        "The scheduling algorithms there are",
        _algorithms,
        answer=ListOf(answers.AlgorithmDescriptor),
    ),
    Endpoint(
        "GET",
        "/planning-sessions/",
        "listSessions",
        "Every planning session, newest first",
        lambda services, call: services.sessions.all(),
        answer=ListOf(answers.PlanningSession),
    ),
    Endpoint(
        "POST",
        "/planning-sessions/",
        "createSession",
        "Freeze the input, and ask for a comparison of algorithms",
        _create,
        202,
        answers.PlanningSession,
        SESSION_BODY,
    ),
    Endpoint(
        "GET",
        "/planning-sessions/{id}/",
        "getSession",
        "One session with its algorithm runs",
        lambda services, call: services.sessions.show(call.id("id")),
        answer=answers.PlanningSessionPage,
        errors=(404,),
    ),
    Endpoint(
        "POST",
        "/planning-sessions/{id}/cancel/",
        "cancelSession",
        "Call a session off; done already is done",
        _cancel,
        204,
        errors=(404, 409),
    ),
    Endpoint(
        "GET",
        "/planning-sessions/{id}/candidates/",
        "listCandidates",
        "The candidates of a session by rank, makespan and cost",
        lambda services, call: services.sessions.candidates(call.id("id")),
        answer=ListOf(answers.PlanCandidateSummary),
        errors=(404,),
    ),
    Endpoint(
        "GET",
        "/planning-sessions/{id}/candidates/{candidateId}/",
        "getCandidate",
        "One candidate with its whole plan",
        lambda services, call: services.sessions.candidate(call.id("id"), call.id("candidateId")),
        answer=answers.PlanCandidate,
        errors=(404,),
    ),
    Endpoint(
        "POST",
        "/planning-sessions/{id}/candidates/{candidateId}/select/",
        "selectCandidate",
        "Choose a candidate: its plan is stored and can be run",
        _select,
        201,
        SchedulePlan,
        errors=(404, 409, 422),
    ),
)
"""Comparing algorithms, and choosing."""
