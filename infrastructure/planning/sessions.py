"""Planning sessions of one journal: asked for, cancelled, chosen from, and read (2.1, 3.12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import Conflict, Invalid, NotFound
from statelog.domain.event import Recorded
from statelog.domain.planning import algorithm_run as runs
from statelog.domain.planning import session as sessions
from statelog.domain.planning.algorithm_run import ALGORITHM_RUN, AlgorithmRun, CandidateEmitted
from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.algorithms.port import Algorithm
from statelog.domain.planning.candidate import PlanCandidate
from statelog.domain.planning.estimate import estimate
from statelog.domain.planning.problem import Problem
from statelog.domain.planning.session import SESSION, Selection, Session
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.planning.endings import end, load_session
from statelog.infrastructure.planning.requests import SessionRequest, problem_of
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.views import Views
from statelog.infrastructure.workflows.definitions import Definitions
from statelog.projections.planning.candidates import detail, planning_candidates, summary_of
from statelog.projections.planning.session_view import planning_session
from statelog.projections.projection import Projection
from statelog.projections.replay import replay

REQUESTED: Final = "planning.session.requested"
CATEGORY: Final = "orchestration"

_TRIES: Final = 5


class Sessions:
    """The planning sessions of one journal. With `views` its documents are read from there."""

    def __init__(
        self,
        journal: Journal,
        algorithms: Mapping[str, Algorithm] = ALGORITHMS,
        *,
        views: Views | None = None,
    ) -> None:
        self.journal = journal
        self.algorithms = algorithms
        self.definitions = Definitions(journal)
        self._views = views

    def create(self, request: SessionRequest, *, actor: str) -> Loaded[Session]:
        """Freeze the input and ask for a comparison: session, runs and job in one append (P2, P3).

        Raises `Invalid` naming the field: an empty or taken id, a reference to what is not there,
        and no, unregistered or repeated algorithms. Then nothing is stored.
        """
        sessions.check_algorithms([each.id for each in request.algorithms], self.algorithms)
        problem = problem_of(self.definitions, request)
        created = self.journal.load(SESSION, request.id).decide(
            sessions.create,
            problem=problem,
            algorithms=request.algorithms,
            known=self.algorithms,
        )
        queued = [self._queued(request.id, each, problem) for each in request.algorithms]
        job = Queue(self.journal).publication(
            category=CATEGORY,
            event_type=REQUESTED,
            aggregate_type="planning_session",
            aggregate_id=request.id,
            payload={"sessionId": request.id},
            key=f"planning-session:{request.id}",
        )
        try:
            self.journal.commit(created, *queued, job, actor=actor)
        except Conflict:
            raise Invalid("id", "is that of a session that exists") from None
        return created.after

    def _queued(self, id: str, selection: Selection, problem: Problem) -> Change[AlgorithmRun]:
        return ALGORITHM_RUN.blank_of((id, selection.id)).decide(
            runs.queue,
            algorithm=selection.id,
            objective=self.algorithms[selection.id].objective,
            configuration=selection.configuration,
            estimate=estimate(selection.id, problem, selection.configuration),
        )

    def cancel(self, id: str, *, actor: str) -> Loaded[Session]:
        """Call a session and its runs off; done already is done.

        Raises `NotFound`, and `Refused` (`ended`) for one that is completed or failed.
        """
        return end(self.journal, id, sessions.cancel, actor=actor)

    def select(self, id: str, candidate_id: str, *, actor: str) -> SchedulePlan:
        """Choose a candidate: its plan is registered and named by the session, in one append.

        Whatever the status, and again as often as one likes (3.12). Raises `NotFound` for the
        session, and `Invalid` for a candidate that it does not have or that is not feasible.
        """
        for tries_left in reversed(range(_TRIES)):
            session = load_session(self.journal, id)
            found = self._emitted(session, candidate_id)
            if not found.feasible:
                raise Invalid("candidateId", f"{candidate_id!r} is not within deadline and budget")
            plan = found.plan
            given = {"candidate_id": candidate_id, "plan_id": plan.id}
            chosen = session.decide(sessions.select, **given)
            registered = self.definitions.registrations(plan)
            if not any(change.events for change in (chosen, *registered)):
                return plan
            try:
                self.journal.commit(chosen, *registered, actor=actor)
            except Conflict:
                if not tries_left:
                    raise
            else:
                return plan
        raise AssertionError("unreachable")

    def _emitted(self, session: Loaded[Session], candidate_id: str) -> PlanCandidate:
        """A candidate as it came. Raises `Invalid` when the session has no such."""
        mark = f'"{candidate_id}"'.encode(errors="backslashreplace")
        for recorded in self.journal.history(session.stream, names={CandidateEmitted.stored_name}):
            # plans are long, and only one of them is wanted
            if mark in (recorded.data or b""):
                found = _candidate(recorded)
                if found.id == candidate_id:
                    return found
        why = f"session {session.id!r} has no candidate {candidate_id!r}"
        raise Invalid("candidateId", why)

    # documents

    def show(self, id: str) -> dict[str, Any]:
        """`{session, algorithmRuns}`. Raises `NotFound`."""
        return self._document(planning_session, id)

    def all(self) -> list[dict[str, Any]]:
        """The `session` of every one, newest first."""
        found = [document["session"] for document in self._documents()]
        return sorted(found, key=lambda each: (each["createdAt"], each["id"]), reverse=True)

    def candidates(self, id: str) -> list[dict[str, Any]]:
        """Summaries of the candidates by rank, makespan and cost. Raises `NotFound`."""
        found: list[dict[str, Any]] = self._document(planning_candidates, id)["candidates"]
        return found

    def candidate(self, id: str, candidate_id: str) -> dict[str, Any]:
        """One candidate with its whole plan.

        Raises `NotFound` for an unknown session, and a candidate that it does not have.
        """
        found = summary_of(self._document(planning_candidates, id), candidate_id)
        if found is None:
            raise NotFound("candidate", candidate_id)
        summary, position = found
        recorded = next(self.journal.read(after=position - 1, upto=position))
        return detail(summary, _candidate(recorded))

    def _document(self, view: Projection[Any], id: str) -> dict[str, Any]:
        stream = _stream(id)
        if self._views is not None:
            found = self._views.get(view.name, id)
        else:
            found = replay(view, self.journal.history(stream, names=view.names)).get(id)
        if found is None:
            raise NotFound("session", id)
        return dict(found)

    def _documents(self) -> Iterator[Mapping[str, Any]]:
        view = planning_session
        if self._views is not None:
            return (document for _, document in self._views.rows(view.name))
        events = self.journal.history(SESSION.name, names=view.names)
        return iter(replay(view, events).values())


def _stream(id: str) -> str:
    """The stream of a session. Raises `NotFound` for an id that none can have."""
    try:
        return SESSION.stream_of(id)
    except Invalid:
        raise NotFound("session", id) from None


def _candidate(recorded: Recorded) -> PlanCandidate:
    event = recorded.event
    assert isinstance(event, CandidateEmitted)
    return event.candidate
