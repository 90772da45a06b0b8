"""One algorithm inside one session, and the candidates it emits (2.2, 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, assert_never

from statelog.domain.aggregate import Aggregate, changed
from statelog.domain.errors import Refused
from statelog.domain.event import Event
from statelog.domain.lifecycle import SAME, Lifecycle
from statelog.domain.planning.candidate import PlanCandidate
from statelog.domain.planning.estimate import Estimate
from statelog.domain.planning.progress import clamped, worth_telling
from statelog.domain.pmap import PMap
from statelog.domain.workflows.schedule_plan import Predicted


class Queued(Event, name="planning.algorithm_run.queued"):
    """The session asked for this algorithm; `estimate` says how long it may take."""

    algorithm: str
    objective: str
    configuration: Mapping[str, Any]
    estimate: Estimate


class Started(Event, name="planning.algorithm_run.started"):
    """It is this run's turn; again, after an interruption."""


class Progressed(Event, name="planning.algorithm_run.progressed"):
    """The algorithm came further: a fraction."""

    progress: float


class CandidateEmitted(Event, name="planning.algorithm_run.candidate_emitted"):
    """The algorithm found a valid plan; for ever, only its rank is told later."""

    candidate: PlanCandidate


class Completed(Event, name="planning.algorithm_run.completed"):
    """The algorithm is done, with candidates or without."""


class Failed(Event, name="planning.algorithm_run.failed"):
    """The algorithm raised, or emitted a plan that is not valid; the next one goes on."""

    reason: str


class Cancelled(Event, name="planning.algorithm_run.cancelled"):
    """Its session was called off."""


class RunStatus(Enum):
    """Where a run is."""

    NEW = "new"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL: Final = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})


@dataclass(frozen=True)
class Emitted:
    """What ranking and selection need of a candidate; `at` counts those of its run from 0."""

    id: str
    at: int
    plan_id: str
    predicted: Predicted
    feasible: bool


@dataclass(frozen=True)
class AlgorithmRun:
    """A run as its decisions see it, with its candidates by id."""

    status: RunStatus = RunStatus.NEW
    algorithm: str = ""
    configuration: Mapping[str, Any] | None = None
    progress: float = 0.0
    candidates: PMap[str, Emitted] = field(default_factory=PMap)

    @property
    def ended(self) -> bool:
        """Whether nothing can follow."""
        return self.status in TERMINAL

    @property
    def emitted(self) -> tuple[Emitted, ...]:
        """Its candidates in the order they came."""
        return tuple(sorted(self.candidates.values(), key=lambda each: each.at))


RunEvent = Queued | Started | Progressed | CandidateEmitted | Completed | Failed | Cancelled


def evolve(run: AlgorithmRun, event: RunEvent) -> AlgorithmRun:
    """The run after an event."""
    match event:
        case Queued():
            return changed(run, algorithm=event.algorithm, configuration=event.configuration)
        case Progressed():
            return changed(run, progress=event.progress)
        case CandidateEmitted(candidate=candidate):
            emitted = _emitted(candidate, len(run.candidates))
            return changed(run, candidates=run.candidates.set(candidate.id, emitted))
        case Completed():
            return changed(run, progress=1.0)
        case Started() | Failed() | Cancelled():
            return run
        case _:
            assert_never(event)


def _emitted(candidate: PlanCandidate, at: int) -> Emitted:
    return Emitted(candidate.id, at, candidate.plan.id, candidate.predicted, candidate.feasible)


_NEW, _QUEUED, _RUNNING = RunStatus.NEW, RunStatus.QUEUED, RunStatus.RUNNING
_COMPLETED, _FAILED, _CANCELLED = RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED

ALGORITHM_RUN = Aggregate(
    "algorithm_run",
    AlgorithmRun(),
    evolve,
    Lifecycle(
        _NEW,
        [
            # event              from        to
            (Queued, _NEW, _QUEUED),
            (Started, _QUEUED, _RUNNING),
            (Started, _RUNNING, SAME),
            (Progressed, _RUNNING, SAME),
            (CandidateEmitted, _RUNNING, SAME),
            (Completed, _RUNNING, _COMPLETED),
            (Failed, _RUNNING, _FAILED),
            (Cancelled, _QUEUED, _CANCELLED),
            (Cancelled, _RUNNING, _CANCELLED),
        ],
        final=TERMINAL,
        name="algorithm_run",
    ),
    stream="session/{}/run/{}",
)


def queue(
    run: AlgorithmRun,
    *,
    algorithm: str,
    objective: str,
    configuration: Mapping[str, Any],
    estimate: Estimate,
) -> list[Queued]:
    """Ask for a run of this algorithm."""
    return [Queued(algorithm, objective, configuration, estimate)]


def start(run: AlgorithmRun) -> list[Started]:
    """Begin it, or begin it again. Raises `Refused` (`ended`)."""
    _not_ended(run, "started")
    return [Started()]


def progress(run: AlgorithmRun, *, fraction: float) -> list[Progressed]:
    """Tell how far it is, when that is a step further (3.9). Raises `Refused` (`ended`)."""
    _not_ended(run, "progressing")
    if not worth_telling(run.progress, fraction):
        return []
    return [Progressed(clamped(fraction))]


def emit(run: AlgorithmRun, *, candidate: PlanCandidate) -> list[CandidateEmitted]:
    """Keep a candidate; nothing when it is kept (3.7). Raises `Refused` (`ended`)."""
    _not_ended(run, "taking candidates")
    return [] if candidate.id in run.candidates else [CandidateEmitted(candidate)]


def complete(run: AlgorithmRun) -> list[Completed]:
    """End it: the algorithm is done. Raises `Refused` (`ended`)."""
    _not_ended(run, "completed")
    return [Completed()]


def fail(run: AlgorithmRun, *, reason: str) -> list[Failed]:
    """End it: the algorithm went wrong. Raises `Refused` (`ended`)."""
    _not_ended(run, "failed")
    return [Failed(reason)]


def cancel(run: AlgorithmRun) -> list[Cancelled]:
    """End it with its session; nothing when it has ended."""
    return [] if run.ended else [Cancelled()]


def _not_ended(run: AlgorithmRun, wanted: str) -> None:
    if run.ended:
        raise Refused(f"the algorithm run is {run.status.value}: not {wanted}", rule="ended")
