"""Whether a definition that comes along says what the registered one of its id says (P10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statelog.domain.errors import Invalid
from statelog.domain.workflows.graph import bytes_between, edges
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.domain.workflows.workflow import Activity, WorkflowVersion


def agree_on_workflow(given: WorkflowVersion, registered: WorkflowVersion) -> None:
    """Raise `Invalid` when activity ids, edges, durations or sizes differ; all else may (P10).

    Edges are compared as pairs, whether control or data, and sizes as the bytes of each pair.
    """
    theirs, ours = _durations(given), _durations(registered)
    _compare("activities", theirs.keys(), ours.keys())
    for at, activity in enumerate(given.activities):
        if theirs[activity.id] != ours[activity.id]:
            raise _differs(f"activities[{at}].simulation.durationSeconds", registered.id)
    _compare("dependencies", set(edges(given)), set(edges(registered)))
    if bytes_between(given) != bytes_between(registered):
        raise _differs("dataDependencies", registered.id)


def _durations(workflow: WorkflowVersion) -> dict[str, tuple[Any, Any]]:
    return {activity.id: _duration(activity) for activity in workflow.activities}


def _duration(activity: Activity) -> tuple[Any, Any]:
    """Seconds that planning and simulation start from; where one is not given it is the other."""
    planned = activity.simulation.duration_seconds if activity.simulation else 0.0
    base = activity.metadata.get("baseRuntimeSeconds")
    simulated = base if isinstance(base, int | float) and base > 0 else 0.0
    return planned or simulated, simulated or planned


def agree_on_plan(given: SchedulePlan, registered: SchedulePlan) -> None:
    """Raise `Invalid` when two plans of one id are of other records or place activities apart."""
    for name, field in (
        ("workflow_version_id", "workflowVersionId"),
        ("execution_scope_id", "executionScopeId"),
        ("network_topology_id", "networkTopologyId"),
    ):
        if getattr(given, name) != getattr(registered, name):
            raise _differs(field, registered.id)
    if _placement(given) != _placement(registered):
        raise _differs("assignments", registered.id)


def _placement(plan: SchedulePlan) -> Mapping[str, tuple[Any, ...]]:
    return {
        each.activity_id: (each.resource_id, each.core_id, each.slot_id, each.order_on_resource)
        for each in plan.assignments
    }


def _compare(field: str, given: Any, registered: Any) -> None:
    if given != registered:
        differing = ", ".join(map(_said, sorted(given ^ registered)[:3]))
        raise Invalid(field, f"differs from what is registered with this id: {differing}")


def _said(value: Any) -> str:
    return " -> ".join(value) if isinstance(value, tuple) else repr(value)


def _differs(field: str, id: str) -> Invalid:
    return Invalid(field, f"differs from that of {id!r}, which is registered")
