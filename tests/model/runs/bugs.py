"""Seeded bugs of real runs: for each claim a wrong part that breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from statelog.domain.event import Event
from statelog.domain.lifecycle import Lifecycle
from statelog.domain.runs.events import Completed, Failed, Started, TaskCancelled, TaskQueued
from statelog.domain.runs.run import RUN, Run, RunStatus
from statelog.domain.runs.task import ENDED, TaskStatus
from statelog.domain.runs.totals import totals
from tests.model.runs import checks
from tests.model.runs.world import NAMES, Chance, Model

NOTHING: Final = Chance(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Bug:
    """What is wrong, the claim that catches it, and the parts; nothing goes wrong but `chance`."""

    what: str
    caught_by: str
    parts: dict[str, Any]
    chance: Chance = NOTHING

    def model(self) -> Model:
        """The model with the bug in it."""
        return Model(chance=self.chance, **self.parts)

    def sound(self) -> Model:
        """The model without it."""
        return Model(chance=self.chance)


def fails_at_once(run: Run, *, reason: str, at: float) -> Sequence[Event]:
    """The end is recorded, and what runs goes on."""
    return [*_cancelled(run, reason), Failed(at, reason)]


def _cancelled(run: Run, reason: str) -> Sequence[Event]:
    open_ = [each for each in NAMES if run.tasks[each].status not in ENDED]
    return [TaskCancelled(each, 0.0, reason) for each in open_]


def only_fails(run: Run, *, reason: str, at: float) -> Sequence[Event]:
    """U9: what never started stays as it is."""
    return [] if run.live else [Failed(at, reason)]


def completes_with_what_there_is(run: Run, *, at: float) -> Sequence[Event]:
    """A cancelled task counts as done."""
    ended = (TaskStatus.COMPLETED, TaskStatus.CANCELLED)
    if any(run.tasks[each].status not in ended for each in NAMES):
        return []
    return [Completed(finished_at=at, **totals(run).__dict__)]


def queues_anything(run: Run, *, activity_id: str, at: float) -> Sequence[Event]:
    """Predecessors are not looked at."""
    return [TaskQueued(activity_id, at)]


def begins_again(run: Run, *, started: Started) -> Sequence[Event]:
    """U8: a redelivered job starts a failed run again."""
    return [] if run.status is RunStatus.RUNNING else [started]


def _new(run: Run) -> tuple[str, ...]:
    return tuple(each for each in NAMES if run.tasks[each].status is TaskStatus.NEW)


RESTARTABLE: Final = replace(
    RUN,
    lifecycle=Lifecycle(
        RunStatus.NEW,
        [
            *((row.event, row.source, row.target) for row in RUN.lifecycle.rows),
            (Started, RunStatus.FAILED, RunStatus.RUNNING),
        ],
        reserved={RunStatus.CREATED},
        name="restartable run",
    ),
)

ONE_BAD: Final = Chance(0, 0, 1, 0, 0)
ONE_CRASH: Final = Chance(1, 0, 0, 0, 0)

BUGS: Final = (
    Bug(
        "a run fails while its commands run",
        checks.ORPHANS,
        {"fail": fails_at_once},
        ONE_BAD,
    ),
    Bug("a command is started before its start is recorded", checks.NAMED, {"spawns_first": True}),
    Bug(
        "a worker starts what the last one started",
        checks.ONCE,
        {"spawns_again": True},
        ONE_CRASH,
    ),
    Bug("a failed run leaves its queue as it is", checks.OPEN, {"fail": only_fails}, ONE_BAD),
    Bug(
        "a redelivered job starts a failed run again",
        checks.TERMINAL,
        {"start": begins_again, "run": RESTARTABLE},
        ONE_BAD,
    ),
    Bug(
        "predecessors are not looked at",
        checks.ORDER,
        {"queue": queues_anything, "ready": _new},
    ),
    Bug("whatever ended is taken for good", checks.TRUE, {"believes": True}, ONE_BAD),
    Bug(
        "a cancelled activity counts as done",
        checks.WHOLE,
        {"complete": completes_with_what_there_is},
        Chance(0, 1, 0, 0, 0),
    ),
    Bug(
        "a start that was recorded and never made is waited for",
        checks.STUCK,
        {"waits_for_the_unborn": True},
        ONE_CRASH,
    ),
)
