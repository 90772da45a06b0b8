"""The `run_comparison` view: what a plan promised beside what its run did, activity by activity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from statelog.domain.runs.events import Placed
from statelog.domain.runs.task import Task
from statelog.domain.runs.totals import makespan_counts, tidy
from statelog.projections.projection import Projection
from statelog.projections.runs.critical_path import critical_path
from statelog.projections.runs.seen import RUN_EVENTS, Seen, below, evolve, run_of


def show(run_id: str, seen: Seen) -> dict[str, Any] | None:
    """The comparison, None before the run started.

    Times are seconds from the run's zero: the simulated beginning, or the first task's start
    (P16). A delta is what was seen less what was planned; what was not seen yet is left out.
    """
    start = seen.start
    if start is None:
        return None
    zero, promised = _zero(seen), start.predicted_makespan_seconds > 0
    return {
        "runId": run_id,
        "schedulePlanId": start.schedule_plan_id,
        "workflowVersionId": start.workflow_version_id,
        "mode": start.mode,
        "status": seen.status,
        "makespanCounts": makespan_counts(start.mode),
        "makespanSeconds": _both(
            start.predicted_makespan_seconds if promised else None,
            seen.completed.makespan_seconds if seen.completed else None,
        ),
        "cost": _both(
            start.predicted_cost if promised else None,
            seen.completed.cost if seen.completed else None,
        ),
        "activities": [_activity(each, seen.task(each.activity_id), zero) for each in seen.placed],
        "criticalPath": [_shifted(step, zero) for step in critical_path(seen)],
    }


def _zero(seen: Seen) -> float:
    if seen.start is None or seen.start.mode == "simulation":
        return 0.0
    starts = [task.started_at for _, task in seen.rows if not task.kept_from]
    return min((at for at in starts if at is not None), default=seen.start.started_at)


def _both(planned: float | None, observed: float | None) -> dict[str, float]:
    shown = {"planned": planned, "observed": observed}
    if planned is not None and observed is not None:
        shown["delta"] = tidy(observed - planned)
    return {name: value for name, value in shown.items() if value is not None}


def _activity(placed: Placed, task: Task, zero: float) -> dict[str, Any]:
    kept = bool(task.kept_from)
    plan, seen = _planned(placed), {} if kept else _observed(task, zero)
    shown: dict[str, Any] = {
        "activityId": placed.activity_id,
        "name": placed.name or placed.activity_id,
        "status": task.status.value,
        "resourceId": _where(placed.resource_id, task.resource_id),
        "lane": {"coreId": placed.core_id, "slotId": placed.slot_id},
        "startSeconds": _both(plan.get("start"), seen.get("start")),
        "finishSeconds": _both(plan.get("finish"), seen.get("finish")),
        "runtimeSeconds": _both(plan.get("runtime"), seen.get("runtime")),
        "cost": _both(plan.get("cost"), seen.get("cost")),
    }
    if kept:
        shown["keptFromRunId"] = task.kept_from
    if task.reason:
        shown["failureReason"] = task.reason
    return shown


def _planned(placed: Placed) -> dict[str, float]:
    """What the plan promised; nothing for a plan that was made without predictions."""
    if placed.predicted_finish_at <= 0 and placed.predicted_runtime_seconds <= 0:
        return {}
    return {
        "start": placed.predicted_start_at,
        "finish": placed.predicted_finish_at,
        "runtime": placed.predicted_runtime_seconds,
        "cost": placed.predicted_cost,
    }


def _observed(task: Task, zero: float) -> dict[str, float]:
    """What was seen so far."""
    if task.started_at is None:
        return {}
    seen = {"start": tidy(task.started_at - zero)}
    if task.finished_at is not None:
        seen |= {"finish": tidy(task.finished_at - zero)}
        seen |= {"runtime": task.runtime_seconds, "cost": task.cost}
    return seen


def _where(planned: str, observed: str) -> dict[str, Any]:
    if not observed:
        return {"planned": planned}
    return {"planned": planned, "observed": observed, "same": planned == observed}


def _shifted(step: Mapping[str, Any], zero: float) -> dict[str, Any]:
    """A step of the critical path in seconds from the run's zero."""
    shown = dict(step)
    shown["startSeconds"] = tidy(shown.pop("startedAt") - zero)
    shown["finishSeconds"] = tidy(shown.pop("finishedAt") - zero)
    return shown


run_comparison: Final[Projection[Seen]] = Projection(
    "run_comparison",
    Seen(),
    evolve,
    key=run_of,
    events=RUN_EVENTS,
    show=show,
    below=below,
)
"""Plan against observation, for each run."""


def evidence(plan_id: str, lines: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The runs of a plan: only a run that names the plan is evidence of it (case 72)."""
    return [line for line in lines if line["schedulePlanId"] == plan_id]
