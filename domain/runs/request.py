"""The request for a run: what `POST /execution-runs/` takes, and what is asked of it (4.1, 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.ids import encode_part
from statelog.domain.runs.run import REAL, SIMULATION
from statelog.domain.workflows.checks import check_id
from statelog.domain.workflows.resources import (
    Profile,
    Resource,
    Runtime,
    RuntimeBinding,
    Scope,
    Topology,
)
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.domain.workflows.workflow import WorkflowVersion

Object = Mapping[str, Any]
NOT_BUILT: Final = "not built"
_MODES: Final = (SIMULATION, REAL)


@dataclass(frozen=True)
class RunSpec:
    """The run that is asked for. What only a run can say of itself is taken and ignored (P4)."""

    id: str = ""
    schedule_plan_id: str = ""
    mode: str = ""
    seed: int = 0
    kind: str = "workflow"
    title: str = ""
    recovers_run_id: str = ""
    environment_snapshot_id: str = ""
    resource_id: str = ""
    runtime_id: str = ""
    connection_id: str = ""
    actor_id: str = ""
    status: str = ""
    makespan_seconds: float = 0.0
    cost: float = 0.0
    failure_reason: str = ""
    activity_count: int = 0
    completed_activity_count: int = 0
    breakdown: Object = field(default_factory=dict)
    transferred_bytes: int = 0
    started_at: str = ""
    finished_at: str = ""


@dataclass(frozen=True)
class Recovery:
    """Which completed activities of the recovered run are not run again (2.8)."""

    reusable_activity_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunRequest:
    """A run, with everything it needs inside: the job's payload is its frozen input."""

    run: RunSpec
    plan: SchedulePlan
    workflow: WorkflowVersion
    resources: tuple[Resource, ...] = ()
    execution_scope: Scope | None = None
    runtimes: tuple[Runtime, ...] = ()
    runtime_bindings: tuple[RuntimeBinding, ...] = ()
    network_topology: Topology | None = None
    activity_profiles: tuple[Profile, ...] = ()
    preparation_requirements_by_activity: Object = field(default_factory=dict)
    runtime_allocations: Object = field(default_factory=dict)
    recovery: Recovery = Recovery()


def checked(request: RunRequest) -> RunRequest:
    """The request, if it may be accepted; whether it can be run is looked at when it is.

    Raises `Invalid` naming the field: an id that is empty (P10) or too long, an unknown mode,
    a mode or kind that is not built (P19).
    """
    run = request.run
    _id("run.id", run.id)
    _id("plan.id", request.plan.id)
    _id("workflow.id", request.workflow.id)
    if run.mode == "interactive":
        raise Invalid("run.mode", f"{run.mode}: {NOT_BUILT}")
    if run.mode not in _MODES:
        raise Invalid("run.mode", f"must be one of {', '.join(_MODES)}, not {run.mode!r}")
    _built(request)
    return request


def _id(field: str, id: str) -> None:
    check_id(id, field)
    try:
        encode_part(id)
    except Invalid as error:
        raise Invalid(field, error.why) from None


def _built(request: RunRequest) -> None:
    """Raises `Invalid` for what the original has and this has not yet."""
    if request.run.kind not in ("", "workflow"):
        raise Invalid("run.kind", f"{request.run.kind}: {NOT_BUILT}")
    if request.preparation_requirements_by_activity:
        raise Invalid("preparationRequirementsByActivity", f"materialization: {NOT_BUILT}")
    if request.runtime_allocations:
        raise Invalid("runtimeAllocations", f"cloud capacity: {NOT_BUILT}")
    if request.run.mode == REAL and request.plan.lifecycle_actions:
        raise Invalid("plan.lifecycleActions", f"cloud capacity: {NOT_BUILT}")
