"""The `run` part of every document about a run (1.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statelog.domain.runs.events import Completed, Started
from statelog.domain.runs.totals import makespan_counts
from statelog.domain.times import iso

SUMS = ("compute", "transfer", "queue", "interference", "overhead")


def run_document(
    run_id: str,
    start: Started,
    *,
    status: str,
    sums: Mapping[str, float],
    transferred_bytes: int,
    counts: tuple[int, int],
    completed: Completed | None,
    reason: str,
    times: tuple[int, int],
) -> dict[str, Any]:
    """The run; `sums` are seconds by name, `counts` its tasks and those that completed.

    `times` are when it started and ended, in microseconds, 0 while it has not ended. Makespan and
    cost are 0 unless it completed (4.5).
    """
    started_us, ended_us = times
    document: dict[str, Any] = {
        "id": run_id,
        "schedulePlanId": start.schedule_plan_id,
        "workflowVersionId": start.workflow_version_id,
        "mode": start.mode,
        "seed": start.seed,
        "status": status,
        "makespanSeconds": completed.makespan_seconds if completed else 0.0,
        "makespanCounts": makespan_counts(start.mode),
        "cost": completed.cost if completed else 0.0,
        "feasible": completed.feasible if completed else False,
        "activityCount": counts[0],
        "completedActivityCount": counts[1],
        "breakdown": {f"{name}Seconds": sums.get(name, 0.0) for name in SUMS},
        "transferredBytes": transferred_bytes,
        "kind": "workflow",
        "startedAt": iso(started_us),
    }
    if reason:
        document["failureReason"] = reason
    if start.recovers_run_id:
        document["recoversRunId"] = start.recovers_run_id
    if ended_us:
        document["finishedAt"] = iso(ended_us)
    return document
