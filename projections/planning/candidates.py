"""The `planning_candidates` view: what a session found, ranked once it is completed (1.4, 3.8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from statelog.domain.aggregate import changed
from statelog.domain.event import Recorded
from statelog.domain.planning import session
from statelog.domain.planning.algorithm_run import CandidateEmitted
from statelog.domain.planning.candidate import PlanCandidate
from statelog.domain.planning.ranking import Ranked
from statelog.domain.times import iso
from statelog.domain.workflows.schedule_plan import Predicted
from statelog.domain.workflows.shape import show as shown
from statelog.projections.planning.session_view import below, session_of
from statelog.projections.projection import Projection

Object = Mapping[str, Any]
_PLAN_FIELDS: Final = (
    *("id", "workflowVersionId", "executionScopeId", "networkTopologyId", "source"),
    *("algorithm", "algorithmVersion", "objective", "predicted"),
)
NOT_RANKED: Final = Ranked("", 0, pareto_optimal=False, dominated=False)


@dataclass(frozen=True)
class Line:
    """One candidate, without its plan; `position` is where the log has it with the plan."""

    id: str
    run_id: str
    algorithm: str
    objective: str
    predicted: Predicted
    feasible: bool
    fingerprint: str
    placement_hash: str
    plan: Object
    position: int
    created_at: int


@dataclass(frozen=True)
class Candidates:
    """The candidates of a session in the order they came, and their places once ranked."""

    lines: tuple[Line, ...] = ()
    places: tuple[Ranked, ...] = ()


def evolve(found: Candidates, recorded: Recorded) -> Candidates:
    """What was found after an event."""
    match recorded.event:
        case CandidateEmitted(candidate=candidate):
            return changed(found, lines=(*found.lines, _line(candidate, recorded)))
        case session.Completed(candidates=places):
            return changed(found, places=places)
        case _:
            return found


def _line(candidate: PlanCandidate, recorded: Recorded) -> Line:
    plan = shown(replace(candidate.plan, assignments=(), lifecycle_actions=()))
    summary: dict[str, Any] = {name: plan[name] for name in _PLAN_FIELDS if name in plan}
    return Line(
        candidate.id,
        candidate.algorithm_run_id,
        candidate.algorithm,
        candidate.objective,
        candidate.predicted,
        candidate.feasible,
        candidate.fingerprint,
        candidate.placement_hash,
        {**summary, "assignmentCount": len(candidate.plan.assignments)},
        recorded.position,
        recorded.time,
    )


def show(session_id: str, found: Candidates) -> dict[str, Any]:
    """Summaries by rank, makespan and cost; and where in the log each one is with its plan."""
    return {
        "planningSessionId": session_id,
        "candidates": [
            {**_summary(session_id, line, place), "plan": line.plan}
            for line, place in _placed(found)
        ],
        "positions": {line.id: line.position for line in found.lines},
    }


def _placed(found: Candidates) -> list[tuple[Line, Ranked]]:
    places = {place.id: place for place in found.places}
    pairs = [(line, places.get(line.id, NOT_RANKED)) for line in found.lines]
    return sorted(pairs, key=_order)


def _order(pair: tuple[Line, Ranked]) -> tuple[int, float, float]:
    line, place = pair
    return place.rank, line.predicted.makespan_seconds, line.predicted.cost


def _summary(session_id: str, line: Line, place: Ranked) -> dict[str, Any]:
    return {
        "id": line.id,
        "planningSessionId": session_id,
        "algorithmRunId": line.run_id,
        "algorithm": line.algorithm,
        "objective": line.objective,
        "rank": place.rank,
        "paretoOptimal": place.pareto_optimal,
        "dominated": place.dominated,
        "feasible": line.feasible,
        "predicted": shown(line.predicted),
        "fingerprint": line.fingerprint,
        "placementHash": line.placement_hash,
        "createdAt": iso(line.created_at),
    }


def detail(summary: Object, candidate: PlanCandidate) -> dict[str, Any]:
    """A summary with the whole plan in place of its outline."""
    return {**summary, "plan": shown(candidate.plan)}


def summary_of(document: Object, candidate_id: str) -> tuple[dict[str, Any], int] | None:
    """The summary of one candidate in a document of the view, and its position in the log."""
    candidates: Iterable[dict[str, Any]] = document["candidates"]
    found = next((each for each in candidates if each["id"] == candidate_id), None)
    return None if found is None else (found, document["positions"][candidate_id])


planning_candidates: Final[Projection[Candidates]] = Projection(
    "planning_candidates",
    Candidates(),
    evolve,
    key=session_of,
    below=below,
    events=(session.Created, session.Completed, CandidateEmitted),
    show=show,
    columns={"candidate_count": lambda document: len(document["candidates"])},
)
"""The candidates of one session."""
