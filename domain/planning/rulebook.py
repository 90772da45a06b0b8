"""What an audit checks of planning: sessions, algorithm runs, and what one says of the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.aggregate import changed
from statelog.domain.planning import algorithm_run as runs
from statelog.domain.planning import session as sessions
from statelog.domain.planning.algorithm_run import ALGORITHM_RUN, AlgorithmRun, CandidateEmitted
from statelog.domain.planning.session import (
    NO_CANDIDATE,
    SESSION,
    CandidateSelected,
    Session,
    SessionStatus,
)
from statelog.domain.rulebook import Audited, Family, Ids, Rule, Rulebook

ASKED_FOR: Final = "an algorithm runs because its session asked for it"
ITS_TURN: Final = "algorithms run one by one, in the order they were asked for"
IN_SESSION: Final = "an algorithm runs while its session does"
ALL_ENDED: Final = "a session ends with a result once every run has ended"
ALL_RANKED: Final = "a session ranks the candidates that its runs emitted"
WAS_EMITTED: Final = "a candidate that is selected was emitted"
FORWARD: Final = "progress never goes back"


@dataclass(frozen=True)
class Planned:
    """A session and its runs by algorithm."""

    session: Session = SESSION.blank
    runs: Mapping[str, AlgorithmRun] = field(default_factory=dict)

    @property
    def emitted(self) -> dict[str, str]:
        """Candidates and the plan of each."""
        return {
            each.id: each.plan_id for run in self.runs.values() for each in run.candidates.values()
        }

    @property
    def ended(self) -> bool:
        """Whether every algorithm that was asked for has run to its end."""
        found = (self.runs.get(each.id) for each in self.session.algorithms)
        return all(run is not None and run.ended for run in found)


def _evolve(planned: Planned, event: Any, algorithm: str | None) -> Planned:
    if algorithm is None:
        return changed(planned, session=SESSION.apply(planned.session, event))
    run = ALGORITHM_RUN.apply(planned.runs.get(algorithm, ALGORITHM_RUN.blank), event)
    return changed(planned, runs={**planned.runs, algorithm: run})


def _asked_for(before: Planned, event: runs.Queued, algorithm: str | None) -> bool:
    asked = {each.id for each in before.session.algorithms}
    return event.algorithm == algorithm and algorithm in asked


def _its_turn(before: Planned, algorithm: str | None) -> bool:
    for each in before.session.algorithms:
        if each.id == algorithm:
            return True
        run = before.runs.get(each.id)
        if run is None or not run.ended:
            return False
    return False


def _all_ended(before: Planned, event: sessions.Completed | sessions.Failed) -> bool:
    gave_up = isinstance(event, sessions.Failed) and event.reason != NO_CANDIDATE
    return gave_up or before.ended


def _all_ranked(before: Planned, event: sessions.Completed | sessions.Failed) -> bool:
    if isinstance(event, sessions.Failed):
        return event.reason != NO_CANDIDATE or not before.emitted
    return sorted(each.id for each in event.candidates) == sorted(before.emitted)


_ENDS: Final = (sessions.Completed, sessions.Failed)
_BETWEEN: Final = (
    Rule(
        ASKED_FOR,
        lambda before, event, algorithm, _: _asked_for(before, event, algorithm),
        "the session asked for other algorithms, or the stream is another one's",
        (runs.Queued,),
        (sessions.Created,),
    ),
    Rule(
        ITS_TURN,
        lambda before, _, algorithm, __: _its_turn(before, algorithm),
        "an algorithm before it had not ended",
        (runs.Started,),
        (sessions.Created, runs.Started),
    ),
    Rule(
        IN_SESSION,
        lambda before, _, __, ___: before.session.status is SessionStatus.RUNNING,
        "the session was not running",
        (runs.Started,),
        (sessions.Started, sessions.Requeued, sessions.Cancelled),
    ),
    Rule(
        ALL_ENDED,
        lambda before, event, _, __: _all_ended(before, event),
        "an algorithm had not ended",
        _ENDS,
        (runs.Started,),
    ),
    Rule(
        ALL_RANKED,
        lambda before, event, _, __: _all_ranked(before, event),
        "the candidates are others than those emitted",
        _ENDS,
        (CandidateEmitted,),
    ),
    Rule(
        WAS_EMITTED,
        lambda before, event, _, __: before.emitted.get(event.candidate_id) == event.plan_id,
        "no run of the session emitted it, or it has another plan",
        (CandidateSelected,),
        (CandidateEmitted,),
    ),
)


def _algorithm_of(ids: Ids) -> str | None:
    return ids[1] if len(ids) > 1 else None


RULEBOOK: Final = Rulebook(
    (
        Audited(SESSION),
        Audited(
            ALGORITHM_RUN,
            (
                Rule(
                    FORWARD,
                    lambda before, event, _, __: bool(before.progress <= event.progress <= 1),
                    "it is less than it was, or more than all",
                    (runs.Progressed,),
                ),
            ),
        ),
    ),
    (Family("session/{}", Planned(), _evolve, _BETWEEN, member=_algorithm_of),),
)
"""Planning sessions and algorithm runs."""
