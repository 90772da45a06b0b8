"""The `planning_session` view: a session, its algorithm runs, how far they are (1.2, 1.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.aggregate import changed
from statelog.domain.errors import Invalid
from statelog.domain.event import Recorded
from statelog.domain.ids import stream_parts
from statelog.domain.planning import algorithm_run as run
from statelog.domain.planning import session
from statelog.domain.planning.progress import session_progress
from statelog.domain.times import iso
from statelog.domain.workflows.shape import show as shown
from statelog.projections.projection import Projection

Object = Mapping[str, Any]


@dataclass(frozen=True)
class RunLine:
    """One algorithm run of the page; times in microseconds."""

    algorithm: str
    objective: str = ""
    status: str = "queued"
    progress: float = 0.0
    candidates: int = 0
    configuration: Object = field(default_factory=dict)
    estimate: Object = field(default_factory=dict)
    failure_reason: str = ""
    started_at: int | None = None
    completed_at: int | None = None


@dataclass(frozen=True)
class SessionPage:
    """What the page holds; times in microseconds. `asked` are the fields of the request."""

    status: str = ""
    asked: Object = field(default_factory=dict)
    runs: tuple[RunLine, ...] = ()
    selected_candidate_id: str = ""
    selected_plan_id: str = ""
    failure_reason: str = ""
    created_at: int = 0
    started_at: int | None = None
    completed_at: int | None = None

    @property
    def progress(self) -> float:
        """The share that is done; 1 when completed (P7)."""
        if self.status == "completed":
            return 1.0
        ended = ("completed", "failed")
        return session_progress((run.status in ended, run.progress) for run in self.runs)


def session_of(recorded: Recorded) -> str | None:
    """The session an event of its stream, or of one of its runs, belongs to."""
    return stream_parts(recorded.stream)[1]


def evolve(page: SessionPage, recorded: Recorded) -> SessionPage:
    """The page after an event of the session or of one of its runs."""
    parts = stream_parts(recorded.stream)
    if len(parts) > 2:
        return _with_run(page, parts[3], recorded)
    event, time = recorded.event, recorded.time
    match event:
        case session.Created():
            return SessionPage("queued", _asked(event), created_at=time)
        case session.Started():
            first = time if page.started_at is None else page.started_at
            return changed(page, status="running", started_at=first)
        case session.Requeued():
            return changed(page, status="queued")
        case session.CandidateSelected(candidate_id=candidate, plan_id=plan):
            return changed(page, selected_candidate_id=candidate, selected_plan_id=plan)
        case session.Failed(reason=reason):
            return changed(page, status="failed", failure_reason=reason, completed_at=time)
        case session.Completed():
            return changed(page, status="completed", completed_at=time)
        case session.Cancelled():
            return changed(page, status="cancelled", completed_at=time)
        case _:
            return page


def _asked(created: session.Created) -> dict[str, Any]:
    problem = created.problem
    limits = {"deadlineSeconds": problem.deadline_seconds, "budget": problem.budget}
    return {
        "workflowVersionId": problem.workflow.id,
        "executionScopeId": problem.scope.id,
        "networkTopologyId": problem.topology.id,
        "algorithms": [shown(each) for each in created.algorithms],
        **{name: limit for name, limit in limits.items() if limit},
        **({"configuration": problem.configuration} if problem.configuration else {}),
    }


def _with_run(page: SessionPage, algorithm: str, recorded: Recorded) -> SessionPage:
    if isinstance(recorded.event, run.Queued):
        return changed(page, runs=(*page.runs, _queued(recorded.event)))
    lines = (_moved(line, recorded) if line.algorithm == algorithm else line for line in page.runs)
    return changed(page, runs=tuple(lines))


def _queued(event: run.Queued) -> RunLine:
    return RunLine(
        event.algorithm,
        event.objective,
        configuration=event.configuration,
        estimate=shown(event.estimate),
    )


def _moved(line: RunLine, recorded: Recorded) -> RunLine:
    event, time = recorded.event, recorded.time
    match event:
        case run.Started():
            first = time if line.started_at is None else line.started_at
            return changed(line, status="running", started_at=first)
        case run.Progressed(progress=progress):
            return changed(line, progress=progress)
        case run.CandidateEmitted():
            return changed(line, candidates=line.candidates + 1)
        case run.Completed():
            return changed(line, status="completed", progress=1.0, completed_at=time)
        case run.Failed(reason=reason):
            return changed(line, status="failed", failure_reason=reason, completed_at=time)
        case run.Cancelled():
            return changed(line, status="cancelled", completed_at=time)
        case _:
            return line


def show(session_id: str, page: SessionPage) -> dict[str, Any]:
    """`{session, algorithmRuns}`, the runs in the order they were selected."""
    about = {
        "id": session_id,
        **page.asked,
        "status": page.status,
        "progress": page.progress,
        "candidateCount": sum(line.candidates for line in page.runs),
        "selectedCandidateId": page.selected_candidate_id,
        "selectedPlanId": page.selected_plan_id,
        "failureReason": page.failure_reason,
        **_times(page, created=page.created_at),
    }
    return {
        "session": _without_blanks(about),
        "algorithmRuns": [_run(session_id, line) for line in page.runs],
    }


def _run(session_id: str, line: RunLine) -> dict[str, Any]:
    about = {
        "id": f"{session_id}-{line.algorithm}",
        "planningSessionId": session_id,
        "algorithm": line.algorithm,
        "objective": line.objective,
        "status": line.status,
        "progress": line.progress,
        "candidateCount": line.candidates,
        "configuration": line.configuration,
        "estimate": line.estimate,
        "failureReason": line.failure_reason,
        **_times(line),
    }
    return _without_blanks(about)


def _times(of: SessionPage | RunLine, created: int | None = None) -> dict[str, str]:
    told = {"createdAt": created, "startedAt": of.started_at, "completedAt": of.completed_at}
    return {name: iso(time) for name, time in told.items() if time is not None}


def _without_blanks(about: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in about.items() if value not in ("", {})}


def _column(name: str) -> Callable[[Object], Any]:
    return lambda document: document["session"].get(name)


def below(session_id: str) -> str | None:
    """The streams that hold every event of a session's rows; None for what cannot be an id."""
    try:
        return session.SESSION.stream_of(session_id)
    except Invalid:
        return None


planning_session: Final[Projection[SessionPage]] = Projection(
    "planning_session",
    SessionPage(),
    evolve,
    key=session_of,
    below=below,
    events=(
        *(session.Created, session.Started, session.Requeued, session.Completed),
        *(session.Failed, session.Cancelled, session.CandidateSelected),
        *(run.Queued, run.Started, run.Progressed, run.CandidateEmitted),
        *(run.Completed, run.Failed, run.Cancelled),
    ),
    show=show,
    columns={
        "status": _column("status"),
        "workflow_version_id": _column("workflowVersionId"),
        "progress": _column("progress"),
        "candidate_count": _column("candidateCount"),
        "created_at": _column("createdAt"),
    },
)
"""One session with its runs."""
