"""Seeded bugs: for each claim of the model of planning at least one part that breaks it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from statelog.domain.aggregate import changed
from statelog.domain.lifecycle import SAME, Lifecycle
from statelog.domain.planning import algorithm_run as runs
from statelog.domain.planning import session as sessions
from statelog.domain.planning.algorithm_run import ALGORITHM_RUN, AlgorithmRun
from statelog.domain.planning.session import SESSION, SessionStatus
from tests.model.planning import checks
from tests.model.planning.world import Model

ONE = {"asked": (("s", ("a",)),)}
TWO_RUNS = {"asked": (("s", ("a", "b")),)}
TWO_SESSIONS = {"asked": (("s", ("a",)), ("t", ("a",))), "operations": (), "most_crashes": 1}


def with_row(event: Any, source: SessionStatus, target: SessionStatus) -> Any:
    """The session with a row that the rules do not have."""
    table = SESSION.lifecycle
    rows = [
        (row.event, row.source, SAME if row.source is row.target else row.target)
        for row in table.rows
    ]
    more = [*rows, (event, source, target)]
    return replace(SESSION, lifecycle=Lifecycle(SessionStatus.NEW, more, name=table.name))


def finish_anything(session: Any, *, candidates: Any) -> list[Any]:
    """Completed, whatever happened meanwhile."""
    return [sessions.Completed(tuple(candidates))]


def emit_again(run: AlgorithmRun, *, candidate: Any) -> list[Any]:
    """Whatever is emitted is kept."""
    return [runs.CandidateEmitted(candidate)]


def evolve_from_zero(run: AlgorithmRun, event: Any) -> AlgorithmRun:
    """A run that starts again is at its beginning."""
    evolved = runs.evolve(run, event)
    return changed(evolved, progress=0.0) if isinstance(event, runs.Started) else evolved


@dataclass(frozen=True)
class Bug:
    """What is wrong, the claim that catches it in how many moves, and the world it is in."""

    what: str
    caught_by: str
    moves: int
    world: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)

    def model(self) -> Model:
        """The model with the bug in it."""
        return Model(**self.world, **self.parts)

    def sound(self) -> Model:
        """The model without it."""
        return Model(**self.world)


BUGS = (
    Bug(
        "a session that a dead worker left is not requeued by the next one",
        checks.ONE_RUNNING,
        11,
        TWO_SESSIONS,
        {"requeues_the_last": False},
    ),
    Bug(
        "having a job is taken for having the turn",
        checks.ONE_WORKING,
        10,
        TWO_SESSIONS,
        {"waits_for_the_turn": False},
    ),
    Bug(
        "a completion overwrites a cancellation",
        checks.TERMINAL,
        7,
        {**ONE, "operations": ("cancels",), "most_crashes": 0},
        {
            "session": with_row(
                sessions.Completed, SessionStatus.CANCELLED, SessionStatus.COMPLETED
            ),
            "finish": finish_anything,
        },
    ),
    Bug(
        "a cancellation leaves the runs alone",
        checks.TOGETHER,
        2,
        {**ONE, "operations": ("cancels",), "most_crashes": 0},
        {"cancels_runs": False},
    ),
    Bug(
        "only the candidates of the last run are ranked",
        checks.RANKED,
        12,
        {**TWO_RUNS, "operations": (), "most_crashes": 0},
        {"ranked": lambda ended: ended[-1:]},
    ),
    Bug(
        "candidates are kept as often as they come",
        checks.ONCE,
        8,
        {**ONE, "operations": (), "most_crashes": 1},
        {"emit": emit_again},
    ),
    Bug(
        "a run that starts again is at its beginning",
        checks.FORWARD,
        14,
        {**ONE, "operations": (), "most_crashes": 1, "tells_progress": True},
        {"run": replace(ALGORITHM_RUN, evolve=evolve_from_zero)},
    ),
    Bug(
        "a session is stored before its job is published",
        checks.NOT_LOST,
        1,
        {**ONE, "operations": (), "most_crashes": 0},
        {"creates_at_once": False},
    ),
    Bug(
        "a handler that is interrupted returns as if it were done",
        checks.JOB_LAST,
        4,
        {**ONE, "operations": (), "faults": ("stop",), "most_faults": 1},
        {"interrupted_is_done": True},
    ),
    Bug(
        "a job that fails for good tells nobody",
        checks.JOB_LAST,
        7,
        {**ONE, "operations": (), "most_crashes": 2},
        {"tells_of_the_last_failure": False},
    ),
    Bug(
        "a lock outlives the process that took it",
        checks.STUCK,
        5,
        {**ONE, "operations": (), "most_crashes": 1},
        {"frees_the_lock": False},
    ),
)
