"""The coordinator: runs the algorithms of one session after another, and ranks (2.1, 2.2, 3.8)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from statelog.domain.aggregate import Loaded
from statelog.domain.errors import Conflict, Invalid, OutcomeUnknown, Refused, StoreError
from statelog.domain.ids import stream_parts
from statelog.domain.planning import algorithm_run as runs
from statelog.domain.planning import session as sessions
from statelog.domain.planning.algorithm_run import ALGORITHM_RUN, AlgorithmRun
from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.algorithms.port import Algorithm
from statelog.domain.planning.candidate import PlanCandidate, candidate
from statelog.domain.planning.problem import Problem
from statelog.domain.planning.progress import worth_telling
from statelog.domain.planning.ranking import Ranked, rank
from statelog.domain.planning.session import SESSION, Session, Started
from statelog.domain.workflows.graph import topological_order
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.domain.workflows.validate import validate
from statelog.infrastructure.codec import escaped
from statelog.infrastructure.journal import TRIES, Journal
from statelog.infrastructure.planning.endings import end, load_session
from statelog.infrastructure.planning.turn import CalledOff, Watch, turn
from statelog.infrastructure.queue.worker import Handler, Interrupted, Work

ACTOR: Final = "planner"
TELL_S: Final = 0.2
"""How often a run tells its progress at most; a short one does not."""

_LONGEST: Final = 1000


class AlgorithmFailed(Exception):
    """An algorithm raised, or emitted a plan that cannot be kept."""


def planning_handler(
    journal: Journal,
    algorithms: Mapping[str, Algorithm] = ALGORITHMS,
    *,
    actor: str = ACTOR,
    tell_seconds: float = TELL_S,
) -> Handler:
    """The handler of `planning.session.requested`.

    It returns when the session has ended, however that was (P5), and at once for one that had. It
    raises `Interrupted` when the worker stops, so that the job is delivered again.
    """

    def handle(work: Work) -> None:
        session_id = str(work.payload["sessionId"])
        with Watch(journal, session_id, work.stop) as watch, suppress(CalledOff, Refused):
            if load_session(journal, session_id).state.ended:
                return
            with turn(journal, watch):
                planner = _Planner(
                    journal=journal,
                    algorithms=algorithms,
                    actor=actor,
                    id=session_id,
                    watch=watch,
                    tell_seconds=tell_seconds,
                )
                planner.plan()

    return handle


@dataclass(kw_only=True)
class _Planner:
    """Work on one session by whoever has the turn."""

    journal: Journal
    algorithms: Mapping[str, Algorithm]
    actor: str
    id: str
    watch: Watch
    tell_seconds: float

    def plan(self) -> None:
        """Run what has not ended, then rank. Raises `Interrupted`, `CalledOff`."""
        session = self._started()
        problem = session.problem
        assert problem is not None
        try:
            topological_order(problem.workflow)
        except Invalid as error:
            reason = escaped(f"the input cannot be planned: {error}")[:_LONGEST]
            end(self.journal, self.id, sessions.fail, actor=self.actor, reason=reason)
            return
        ended = [self._run(each.id, problem) for each in session.algorithms]
        self._finish(_ranked(ended))

    def _started(self) -> Session:
        """Start the session, and requeue the one that the last holder of the turn left running.

        Whoever has the turn is the only one who starts, so that one is the last that was started.
        """
        for tries_left in reversed(range(TRIES)):
            mine = self.journal.load(SESSION, self.id)
            if mine.state.ended:
                raise CalledOff
            change = mine.decide(sessions.start)
            try:
                self.journal.commit(*self._left(), change, actor=self.actor)
            except Conflict:
                if not tries_left:
                    raise
            else:
                return change.state
        raise AssertionError("unreachable")

    def _left(self) -> list[Any]:
        last = next(self.journal.latest(SESSION.name, Started.stored_name), None)
        if last is None or last.stream == SESSION.stream_of(self.id):
            return []
        left = self.journal.load(SESSION, stream_parts(last.stream)[1])
        return [left.decide(sessions.requeue)]

    def _run(self, algorithm_id: str, problem: Problem) -> AlgorithmRun:
        """Run one algorithm to its end, unless it is there already."""
        run = _Run(self, algorithm_id)
        if run.now.state.ended:
            return run.now.state
        run.append(runs.start)
        try:
            for plan in self._plans(run, problem):
                self._keep(run, self._candidate(run, problem, plan))
                self.watch.look()
        except AlgorithmFailed as failed:
            run.append(runs.fail, reason=escaped(str(failed))[:_LONGEST])
        else:
            run.append(runs.complete)
        return run.now.state

    def _plans(self, run: _Run, problem: Problem) -> Iterator[SchedulePlan]:
        """The plans of the algorithm; whatever it raises itself is its failure."""
        algorithm = self.algorithms.get(run.algorithm)
        if algorithm is None:
            raise AlgorithmFailed(f"algorithm {run.algorithm!r} is not registered any more")
        try:
            yield from algorithm.plans(problem, run.now.state.configuration or {}, run.report)
        except (Interrupted, CalledOff, Refused, StoreError, Conflict, OutcomeUnknown):
            raise
        except Exception as error:
            raise AlgorithmFailed(_said(error)) from error

    def _candidate(self, run: _Run, problem: Problem, plan: SchedulePlan) -> PlanCandidate:
        """The candidate of a plan, if it is valid (3.6). Raises `AlgorithmFailed`."""
        try:
            validate(plan, problem.workflow, problem.resources, problem.scope, problem.topology)
            return candidate(
                plan,
                session_id=self.id,
                run_id=f"{self.id}-{run.algorithm}",
                algorithm=run.algorithm,
                objective=self.algorithms[run.algorithm].objective,
                deadline_seconds=problem.deadline_seconds,
                budget=problem.budget,
            )
        except Exception as error:
            raise AlgorithmFailed(f"emitted an invalid plan: {_said(error)}") from error

    def _keep(self, run: _Run, found: PlanCandidate) -> None:
        """Emit a candidate. Raises `AlgorithmFailed` for one that the log cannot hold."""
        try:
            run.append(runs.emit, candidate=found)
        except Invalid as error:
            raise AlgorithmFailed(f"emitted an invalid plan: {error}") from error

    def _finish(self, ranked: Sequence[Ranked]) -> None:
        """End the session; one that was cancelled meanwhile stays so, and that is kept (P1, P6)."""
        journal, finish = self.journal, sessions.finish
        journal.execute(SESSION, self.id, finish, actor=self.actor, candidates=ranked)


class _Run:
    """One algorithm run as it was last seen: nobody but a cancellation writes to it too."""

    def __init__(self, planner: _Planner, algorithm: str) -> None:
        self._planner = planner
        self.algorithm = algorithm
        self.now: Loaded[AlgorithmRun] = self._load()
        self._tell_at = time.monotonic() + planner.tell_seconds

    def append(self, decision: Callable[..., Sequence[Any]], **given: Any) -> None:
        """Decide and commit. Raises `Refused` when the run was cancelled; that is kept (P1)."""
        journal, actor = self._planner.journal, self._planner.actor
        change = self.now.decide(decision, **given)
        if not change.events:
            return
        try:
            self.now = journal.commit(change, actor=actor).loaded[0]
        except Conflict:
            journal.execute(ALGORITHM_RUN, self.now.id, decision, actor=actor, **given)
            self.now = self._load()

    def report(self, fraction: float) -> None:
        """What an algorithm calls as it goes on. Raises `Interrupted`, `CalledOff`."""
        self._planner.watch.look()
        if worth_telling(self.now.state.progress, fraction) and time.monotonic() >= self._tell_at:
            self._tell_at = time.monotonic() + self._planner.tell_seconds
            self.append(runs.progress, fraction=fraction)

    def _load(self) -> Loaded[AlgorithmRun]:
        return self._planner.journal.load(ALGORITHM_RUN, (self._planner.id, self.algorithm))


def _ranked(ended: Sequence[AlgorithmRun]) -> tuple[Ranked, ...]:
    """The candidates of all runs, those of an earlier run first where nothing else decides."""
    return rank([each for run in ended for each in run.emitted])


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
