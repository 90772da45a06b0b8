"""A plan's state and the JSON of a report, each with one line to change about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from statelog.domain.execution.plan import Plan, PlanStatus

BODY: dict[str, Any] = {"plan_id": "p", "realm": "lab", "steps": []}

APPROVED = Plan(
    status=PlanStatus.APPROVED,
    plan_id="p",
    realm="lab",
    body=BODY,
    plan_generation="g1",
    run_token=0,
    executed_run_token=-1,
    execution_authority="daemon",
    execution_owner=None,
)


def document(**changes: Any) -> Plan:
    """An approved plan of the daemon with an open request 0, and these changes."""
    return replace(APPROVED, **changes)


def report(
    termination_reason: str | None = "completed", outcome: str | None = "succeeded", **changes: Any
) -> dict[str, Any]:
    """The report of an attempt for request 0 of that plan."""
    return {
        "execution_id": "20250101T000000000000Z_0001",
        "plan_id": "p",
        "plan_generation": "g1",
        "run_token": 0,
        "failure_policy": "fail_fast",
        "started_at": "2025-01-01T00:00:00Z",
        "ended_at": "2025-01-01T00:00:01Z",
        "termination_reason": termination_reason,
        "outcome": outcome,
        "is_drained": termination_reason == "completed",
        "publication_failure": None,
        **changes,
    }
