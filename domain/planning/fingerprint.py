"""Which plans are the same placement (3.7, P8): hashes without any generated id in them."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from statelog.domain.errors import Invalid
from statelog.domain.workflows.schedule_plan import Assignment, SchedulePlan


def placement_hash(plan: SchedulePlan) -> str:
    """SHA-256, 64 hex characters, of where, in which order and with which predicted times.

    Equal for two algorithms that found the same placement, in whatever order it is listed.
    Raises `Invalid` for a prediction that is not a finite number.
    """
    rows = sorted(_row(assignment) for assignment in plan.assignments)
    metrics = [plan.predicted.makespan_seconds + 0.0, plan.predicted.cost + 0.0]
    return sha256(_canonical({"assignments": rows, "predicted": metrics})).hexdigest()


def fingerprint(algorithm_run_id: str, placement: str) -> str:
    """SHA-256, 64 hex characters, of an algorithm run's id and a placement's hash."""
    return sha256(f"{algorithm_run_id}:{placement}".encode()).hexdigest()


def _row(a: Assignment) -> tuple[Any, ...]:
    times = (a.predicted_ready_at, a.predicted_start_at, a.predicted_finish_at)
    metrics = (a.predicted_runtime_seconds, a.predicted_transfer_seconds, a.predicted_cost)
    where = (a.activity_id, a.resource_id, a.core_id, a.slot_id, a.order_on_resource)
    return (*where, *(seconds + 0.0 for seconds in (*times, *metrics)))


def _canonical(document: Any) -> bytes:
    try:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise Invalid("predicted", "must be finite numbers") from error
    return text.encode()
