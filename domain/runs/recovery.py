"""Repeating a failed run: which completed activities the new one keeps (2.8, P19)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from statelog.domain.errors import Invalid, Refused
from statelog.domain.runs.events import TaskKept
from statelog.domain.runs.run import Run, RunStatus
from statelog.domain.runs.task import TaskStatus


def recoverable(run_id: str, run: Run) -> None:
    """Raises `Refused` (`recoverable`) unless the run failed."""
    if run.status is not RunStatus.FAILED:
        why = f"run {run_id!r} is {run.status.value}; only a failed run is recovered"
        raise Refused(why, rule="recoverable")


def reusable(run: Run, activity_ids: Iterable[str], field: str) -> tuple[str, ...]:
    """The ids, each once. Raises `Invalid` for an activity that the run did not complete."""
    ids = tuple(dict.fromkeys(activity_ids))
    for at, activity_id in enumerate(ids):
        task = run.tasks.get(activity_id)
        if task is None:
            raise Invalid(f"{field}[{at}]", f"the run has no activity {activity_id!r}")
        if task.status is not TaskStatus.COMPLETED:
            why = f"activity {activity_id!r} is {task.status.value} there, not completed"
            raise Invalid(f"{field}[{at}]", why)
    return ids


def kept(
    run_id: str, run: Run, activity_ids: Collection[str], *, gone: Collection[str] = ()
) -> tuple[TaskKept, ...]:
    """What the new run takes over, with its allocation, in an order in which it could have run.

    An activity whose workspace is `gone` is run again when something that is not taken over needs
    what it left, and so on for those before it.
    """
    left = set(activity_ids)
    while lost := {each for each in left & set(gone) if _needed(run, each, left)}:
        left -= lost
    return tuple(_kept(run_id, run, each) for each in run.placed if each in left)


def _needed(run: Run, activity_id: str, kept: Collection[str]) -> bool:
    return any(
        activity_id in each.predecessors and each.activity_id not in kept
        for each in run.placed.values()
    )


def _kept(run_id: str, run: Run, activity_id: str) -> TaskKept:
    task = run.tasks[activity_id]
    return TaskKept(
        activity_id,
        task.kept_from or run_id,
        task.resource_id,
        task.runtime_id,
        task.started_at or 0.0,
        task.finished_at or 0.0,
        task.outputs,
    )
