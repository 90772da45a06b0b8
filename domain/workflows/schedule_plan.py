"""Schedule plans: which activity on which lane in which order; immutable, without status (1.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Predicted:
    """What a plan promises: seconds, money, and whether both are within the limits."""

    makespan_seconds: float = 0.0
    cost: float = 0.0
    feasible: bool = False


@dataclass(frozen=True)
class Assignment:
    """One activity on one lane (resource, core, slot); times are seconds from the plan's start."""

    activity_id: str
    resource_id: str
    id: str = ""
    plan_id: str = ""
    core_id: str = ""
    slot_id: str = ""
    order_on_resource: int = 0
    priority: int = 0
    predicted_ready_at: float = 0.0
    predicted_start_at: float = 0.0
    predicted_finish_at: float = 0.0
    predicted_runtime_seconds: float = 0.0
    predicted_transfer_seconds: float = 0.0
    predicted_cost: float = 0.0
    metadata: Object = field(default_factory=dict)


@dataclass(frozen=True)
class LifecycleAction:
    """A planned step of a cloud machine; kept and re-identified, not executed."""

    id: str
    schedule_plan_id: str = ""
    capacity_target_id: str = ""
    cloud_instance_id: str = ""
    action: str = ""
    earliest_start: float = 0.0
    expected_duration: float = 0.0
    depends_on: tuple[str, ...] = ()
    metadata: Object = field(default_factory=dict)


@dataclass(frozen=True)
class SchedulePlan:
    """A complete placement of one workflow version. Limits <= 0 are none."""

    id: str
    workflow_version_id: str = ""
    execution_scope_id: str = ""
    network_topology_id: str = ""
    source: str = "plugin"
    algorithm: str = ""
    algorithm_version: str = ""
    objective: str = ""
    deadline_seconds: float = 0.0
    budget: float = 0.0
    predicted: Predicted = Predicted()
    assignments: tuple[Assignment, ...] = ()
    lifecycle_actions: tuple[LifecycleAction, ...] = ()
    metadata: Object = field(default_factory=dict)
