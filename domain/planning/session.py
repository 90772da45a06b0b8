"""Planning sessions: a reproducible comparison of algorithms over frozen input (2.1, P1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, assert_never

from statelog.domain.aggregate import Aggregate, changed
from statelog.domain.errors import Invalid, Refused
from statelog.domain.event import Event
from statelog.domain.lifecycle import SAME, Lifecycle
from statelog.domain.planning.problem import Problem
from statelog.domain.planning.ranking import Ranked

NO_CANDIDATE: Final = "no algorithm produced a valid candidate"


@dataclass(frozen=True)
class Selection:
    """An algorithm that was asked for, and its own configuration."""

    id: str
    configuration: Mapping[str, Any] = field(default_factory=dict)


class Created(Event, name="planning.session.created"):
    """Somebody asked for a comparison; `problem` is all that planning will read (P3)."""

    problem: Problem
    algorithms: tuple[Selection, ...]


class Started(Event, name="planning.session.started"):
    """A coordinator began, or began again, to run the algorithms."""


class Requeued(Event, name="planning.session.requeued"):
    """Whoever ran the algorithms was interrupted; the session waits for its turn again."""


class Completed(Event, name="planning.session.completed"):
    """Every run has ended, and the candidates are ranked (P6)."""

    candidates: tuple[Ranked, ...]


class Failed(Event, name="planning.session.failed"):
    """There is nothing to choose from, or the input cannot be planned (P5)."""

    reason: str


class Cancelled(Event, name="planning.session.cancelled"):
    """Somebody called it off; what was found until then stays."""


class CandidateSelected(Event, name="planning.session.candidate_selected"):
    """Somebody chose a candidate: its plan can be run (3.12)."""

    candidate_id: str
    plan_id: str


class SessionStatus(Enum):
    """Where a session is."""

    NEW = "new"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL: Final = frozenset(
    {SessionStatus.COMPLETED, SessionStatus.FAILED, SessionStatus.CANCELLED}
)


@dataclass(frozen=True)
class Session:
    """A session as its decisions see it; its runs are aggregates of their own."""

    status: SessionStatus = SessionStatus.NEW
    problem: Problem | None = None
    algorithms: tuple[Selection, ...] = ()
    selected_candidate_id: str = ""
    selected_plan_id: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing but a selection can follow."""
        return self.status in TERMINAL


SessionEvent = Created | Started | Requeued | Completed | Failed | Cancelled | CandidateSelected


def evolve(session: Session, event: SessionEvent) -> Session:
    """The session after an event."""
    match event:
        case Created():
            return changed(session, problem=event.problem, algorithms=event.algorithms)
        case CandidateSelected():
            return changed(
                session,
                selected_candidate_id=event.candidate_id,
                selected_plan_id=event.plan_id,
            )
        case Started() | Requeued() | Completed() | Failed() | Cancelled():
            return session
        case _:
            assert_never(event)


_NEW, _QUEUED, _RUNNING = SessionStatus.NEW, SessionStatus.QUEUED, SessionStatus.RUNNING
_COMPLETED, _FAILED = SessionStatus.COMPLETED, SessionStatus.FAILED
_CANCELLED = SessionStatus.CANCELLED

SESSION = Aggregate(
    "session",
    Session(),
    evolve,
    Lifecycle(
        _NEW,
        [
            # event               from        to
            (Created, _NEW, _QUEUED),
            (Started, _QUEUED, _RUNNING),
            (Requeued, _RUNNING, _QUEUED),
            (Completed, _RUNNING, _COMPLETED),
            (Failed, _RUNNING, _FAILED),
            (Failed, _QUEUED, _FAILED),
            (Cancelled, _QUEUED, _CANCELLED),
            (Cancelled, _RUNNING, _CANCELLED),
            (CandidateSelected, _QUEUED, SAME),
            (CandidateSelected, _RUNNING, SAME),
            (CandidateSelected, _COMPLETED, SAME),
            (CandidateSelected, _FAILED, SAME),
            (CandidateSelected, _CANCELLED, SAME),
        ],
        final=TERMINAL,
        name="session",
    ),
)


def create(
    session: Session, *, problem: Problem, algorithms: Sequence[Selection], known: Collection[str]
) -> list[Created]:
    """Ask for a comparison. Raises `Invalid` for a session that is there, or bad `algorithms`."""
    if session.status is not _NEW:
        raise Invalid("id", "is that of a session that exists")
    check_algorithms([each.id for each in algorithms], known)
    return [Created(problem, tuple(algorithms))]


def check_algorithms(ids: Sequence[str], known: Collection[str]) -> None:
    """Raises `Invalid` for none, one that nobody registered, or one that is named twice."""
    if not ids:
        raise Invalid("algorithms", f"must name at least one of {', '.join(sorted(known))}")
    for at, id in enumerate(ids):
        if id not in known:
            there = ", ".join(sorted(known))
            raise Invalid(f"algorithms[{at}].id", f"{id!r} is not registered; there are {there}")
        if id in ids[:at]:
            raise Invalid(f"algorithms[{at}].id", f"{id!r} is named twice")


def start(session: Session) -> list[Requeued | Started]:
    """Begin to work on it; again, when whoever did was interrupted. Raises `Refused` (`ended`)."""
    _not_ended(session, "started")
    return [*requeue(session), Started()]


def requeue(session: Session) -> list[Requeued]:
    """Say that nobody works on it any more; nothing unless it was running."""
    return [Requeued()] if session.status is _RUNNING else []


def finish(session: Session, *, candidates: Sequence[Ranked]) -> list[Completed | Failed]:
    """End it when every run has: completed with candidates, else failed (P5, P6).

    Raises `Refused` (`ended`).
    """
    _not_ended(session, "completed")
    return [Completed(tuple(candidates))] if candidates else [Failed(NO_CANDIDATE)]


def fail(session: Session, *, reason: str) -> list[Failed]:
    """End it because its input cannot be planned, or nobody will. Raises `Refused` (`ended`)."""
    _not_ended(session, "failed")
    return [Failed(reason)]


def cancel(session: Session) -> list[Cancelled]:
    """Call it off; nothing when it is. Raises `Refused` (`ended`) when it ended otherwise."""
    if session.status is _CANCELLED:
        return []
    _not_ended(session, "cancelled")
    return [Cancelled()]


def select(session: Session, *, candidate_id: str, plan_id: str) -> list[CandidateSelected]:
    """Choose a candidate, whatever the status; nothing when it is chosen (3.12)."""
    if session.selected_candidate_id == candidate_id:
        return []
    return [CandidateSelected(candidate_id, plan_id)]


def _not_ended(session: Session, wanted: str) -> None:
    if session.ended:
        raise Refused(f"the session is {session.status.value}: not {wanted}", rule="ended")
