"""What an audit checks of execution runs: order, ends, and that totals are those of the tasks."""

from __future__ import annotations

from math import isclose
from typing import Any, Final

from statelog.domain.rulebook import Audited, Entity, Rule, Rulebook
from statelog.domain.runs.events import (
    Completed,
    Failed,
    HandleStarting,
    TaskKept,
    TaskQueued,
)
from statelog.domain.runs.handle import HANDLE
from statelog.domain.runs.run import RUN, Run
from statelog.domain.runs.task import ENDED, TASK, TaskStatus
from statelog.domain.runs.totals import totals

AFTER_NEEDED: Final = "an activity is queued after those it needs"
OF_RECOVERY: Final = "an activity is kept only from the run that is recovered"
AS_PLACED: Final = "a command starts for an activity of the plan"
ALL_COMPLETED: Final = "a run completes once all its activities have"
ALL_OVER: Final = "a run fails once all its activities are over"
NOTHING_LIVE: Final = "a run ends when nothing of it may still run"
AS_SUMMED: Final = "the totals of a run are those of its activities"


def _after_needed(before: Run, event: TaskQueued) -> bool:
    placed = before.placed.get(event.activity_id)
    return placed is not None and before.may_queue(placed)


def _of_recovery(before: Run, event: TaskKept) -> bool:
    return before.start is not None and bool(before.start.recovers_run_id and event.from_run_id)


def _statuses(run: Run) -> set[TaskStatus]:
    return {run.tasks[each].status for each in run.placed}


def _as_summed(before: Run, event: Completed) -> bool:
    told, summed = vars(event), vars(totals(before))
    return all(_alike(told[name], value) for name, value in summed.items())


def _alike(one: Any, other: Any) -> bool:
    return isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)


_RULES: Final = (
    Rule(
        AFTER_NEEDED,
        lambda before, event, _, __: _after_needed(before, event),
        "one that it needs had not completed",
        (TaskQueued,),
    ),
    Rule(
        OF_RECOVERY,
        lambda before, event, _, __: _of_recovery(before, event),
        "the run recovers no other one, or none is named",
        (TaskKept,),
    ),
    Rule(
        AS_PLACED,
        lambda before, event, _, __: event.activity_id in before.placed,
        "the run has no such activity",
        (HandleStarting,),
    ),
    Rule(
        ALL_COMPLETED,
        lambda before, _, __, ___: _statuses(before) <= {TaskStatus.COMPLETED},
        "an activity had not completed",
        (Completed,),
    ),
    Rule(
        ALL_OVER,
        lambda before, _, __, ___: _statuses(before) <= ENDED,
        "an activity had not ended, nor was it cancelled",
        (Failed,),
    ),
    Rule(
        NOTHING_LIVE,
        lambda before, _, __, ___: not before.live,
        "a command may still run",
        (Completed, Failed),
    ),
    Rule(
        AS_SUMMED,
        lambda before, event, _, __: _as_summed(before, event),
        "a figure is not what the activities add up to",
        (Completed,),
    ),
)


def _activity_of(event: Any) -> str:
    return str(event.activity_id)


RULEBOOK: Final = Rulebook(
    (Audited(RUN, _RULES, (Entity(TASK, _activity_of), Entity(HANDLE, _activity_of))),)
)
"""Execution runs with their tasks and handles."""
