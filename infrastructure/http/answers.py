"""The documents that views answer, as types: what the OpenAPI document says of them (1.2 to 1.10).

Definitions are answered as their records; `schema` derives the short lines of lists from those.
Nothing is ever made of these classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from statelog.domain.planning.estimate import Estimate
from statelog.domain.planning.session import Selection
from statelog.domain.workflows.resources import EnvironmentVersion, Scope, Topology
from statelog.domain.workflows.schedule_plan import Predicted, SchedulePlan
from statelog.domain.workflows.workflow import WorkflowVersion
from statelog.infrastructure.http.schema import Derived, OneOf

Object = Mapping[str, Any]


@dataclass(frozen=True)
class AlgorithmDescriptor:
    """A scheduling algorithm; several candidates come of it when it is `multiple`."""

    id: str
    name: str
    objective: str
    multiple: bool
    description: str
    version: str
    defaults: Object


@dataclass(frozen=True)
class PlanningSession:
    """A comparison of algorithms over frozen input."""

    id: str
    workflow_version_id: str
    execution_scope_id: str
    network_topology_id: str
    status: str
    algorithms: tuple[Selection, ...]
    progress: float
    candidate_count: int
    created_at: str
    selected_candidate_id: str = ""
    selected_plan_id: str = ""
    deadline_seconds: float = 0.0
    budget: float = 0.0
    configuration: Object = field(default_factory=dict)
    failure_reason: str = ""
    started_at: str = ""
    completed_at: str = ""


@dataclass(frozen=True)
class AlgorithmRun:
    """One algorithm inside one session."""

    id: str
    planning_session_id: str
    algorithm: str
    objective: str
    status: str
    progress: float
    candidate_count: int
    estimate: Estimate
    configuration: Object = field(default_factory=dict)
    failure_reason: str = ""
    started_at: str = ""
    completed_at: str = ""


@dataclass(frozen=True)
class PlanningSessionPage:
    """A session and its runs, in the order in which they were selected."""

    session: PlanningSession
    algorithm_runs: tuple[AlgorithmRun, ...]


PlanOutline: Final = Derived(
    "PlanOutline",
    SchedulePlan,
    without=frozenset({"assignments", "lifecycleActions", "deadlineSeconds", "budget", "metadata"}),
    more={"assignmentCount": int},
)


@dataclass(frozen=True)
class PlanCandidateSummary:
    """A candidate without its assignments; `rank` is 0 until the session completes."""

    id: str
    planning_session_id: str
    algorithm_run_id: str
    algorithm: str
    objective: str
    rank: int
    pareto_optimal: bool
    dominated: bool
    feasible: bool
    predicted: Predicted
    fingerprint: str
    placement_hash: str
    created_at: str
    plan: Annotated[Object, PlanOutline]


PlanCandidate: Final = Derived(
    "PlanCandidate", PlanCandidateSummary, frozenset({"plan"}), {"plan": SchedulePlan}
)


@dataclass(frozen=True)
class QueueJob:
    """A job of the queue; its payload is never shown."""

    id: str
    category: str
    event_type: str
    status: str
    priority: int
    available_at: str
    attempts: int
    max_attempts: int
    created_at: str
    aggregate_type: str = ""
    aggregate_id: str = ""
    lease_owner: str = ""
    lease_expires_at: str = ""
    idempotency_key: str = ""
    last_error: str = ""
    started_at: str = ""
    completed_at: str = ""


@dataclass(frozen=True)
class Breakdown:
    """Where the seconds of a run went; parallel work is counted once an activity."""

    compute_seconds: float
    transfer_seconds: float
    queue_seconds: float
    interference_seconds: float
    overhead_seconds: float


@dataclass(frozen=True)
class ExecutionRun:
    """A plan applied in one mode. `makespanCounts` says from when the makespan counts."""

    id: str
    schedule_plan_id: str
    workflow_version_id: str
    mode: str
    seed: int
    status: str
    makespan_seconds: float
    makespan_counts: str
    cost: float
    feasible: bool
    activity_count: int
    completed_activity_count: int
    breakdown: Breakdown
    transferred_bytes: int
    kind: str
    started_at: str
    failure_reason: str = ""
    recovers_run_id: str = ""
    finished_at: str = ""


@dataclass(frozen=True)
class RunItem:
    """A run in a list."""

    run: ExecutionRun


@dataclass(frozen=True)
class RunItems:
    """A page of a list of runs."""

    items: tuple[RunItem, ...]
    page: int
    page_size: int
    total: int
    has_next: bool


RunList: Final = OneOf(tuple[RunItem, ...], RunItems)


@dataclass(frozen=True)
class TaskExecution:
    """One attempt of one activity; times are seconds: see `makespanCounts` of its run."""

    id: str
    execution_run_id: str
    plan_assignment_id: str
    activity_id: str
    planned_resource_id: str
    attempt: int
    status: str
    runtime_seconds: float
    queue_seconds: float
    transfer_seconds: float
    interference_seconds: float
    overhead_seconds: float
    transfer_bytes: int
    cost: float
    allocated_resource_id: str = ""
    runtime_id: str = ""
    ready_at: float = 0.0
    data_ready_at: float = 0.0
    queued_at: float = 0.0
    started_at: float = 0.0
    finished_at: float = 0.0
    failure_reason: str = ""
    metadata: Object = field(default_factory=dict)


@dataclass(frozen=True)
class ActivityHandle:
    """A started activity, whatever runs it."""

    id: str
    run_id: str
    activity_id: str
    resource_id: str
    runtime_id: str
    status: str
    started_at: float = 0.0
    external_id: str = ""
    finished_at: float = 0.0
    exit_code: int = 0
    failure: str = ""
    log: str = ""
    command: Object = field(default_factory=dict)
    metadata: Object = field(default_factory=dict)


@dataclass(frozen=True)
class DataTransfer:
    """Bytes that were moved."""

    id: str
    execution_run_id: str
    status: str
    producer_activity_id: str
    consumer_activity_id: str
    source_resource_id: str
    target_resource_id: str
    bytes: int
    started_at: float
    finished_at: float
    duration_seconds: float
    cost: float
    strategy: str = ""
    route: tuple[str, ...] = ()
    files_transferred: int = 0


@dataclass(frozen=True)
class DomainEvent:
    """Something that happened to a run or an activity of it (1.12)."""

    id: str
    event_type: str
    aggregate_type: str
    aggregate_id: str
    payload: Object
    occurred_at: str


@dataclass(frozen=True)
class ExecutionRunPage:
    """All there is to see of a run."""

    run: ExecutionRun
    activities: tuple[TaskExecution, ...]
    data_transfers: tuple[DataTransfer, ...]
    handles: tuple[ActivityHandle, ...]
    events: tuple[DomainEvent, ...]
    data_objects: tuple[Any, ...]
    data_locations: tuple[Any, ...]
    artifact_materializations: tuple[Any, ...]
    artifact_transfer_runs: tuple[Any, ...]


@dataclass(frozen=True)
class PlannedAndObserved:
    """A number as it was planned and as it was seen, each once it is known."""

    planned: float = 0.0
    observed: float = 0.0
    delta: float = 0.0


@dataclass(frozen=True)
class Placement:
    """Where an activity was to run, and where it ran."""

    planned: str
    observed: str = ""
    same: bool = False


@dataclass(frozen=True)
class ComparedActivity:
    """An activity as it was planned and as it was seen; times are seconds from the run's zero."""

    activity_id: str
    name: str
    status: str
    resource_id: Placement
    lane: Object
    start_seconds: PlannedAndObserved
    finish_seconds: PlannedAndObserved
    runtime_seconds: PlannedAndObserved
    cost: PlannedAndObserved
    kept_from_run_id: str = ""
    failure_reason: str = ""


@dataclass(frozen=True)
class RunComparison:
    """What a plan promised beside what its run did, and what the makespan was made of."""

    run_id: str
    schedule_plan_id: str
    workflow_version_id: str
    mode: str
    status: str
    makespan_counts: str
    makespan_seconds: PlannedAndObserved
    cost: PlannedAndObserved
    activities: tuple[ComparedActivity, ...]
    critical_path: tuple[Object, ...]


@dataclass(frozen=True)
class ImportedWorkflow:
    """What a workflow file stands for: ids to create a session with, and what was ignored."""

    workflow_version_id: str
    format: str
    definition_hash: str
    activity_count: int
    registered: bool
    warnings: tuple[str, ...]
    execution_scope_id: str = ""
    network_topology_id: str = ""
    environment_version_ids: tuple[str, ...] = ()


_AT: Final = {"registeredAt": str}

EnvironmentLine: Final = Derived(
    "EnvironmentLine",
    EnvironmentVersion,
    frozenset(
        {
            *("runtimes", "resources", "storages", "connections", "activityResourceProfiles"),
            "resourceRuntimeBindings",
        }
    ),
    {"runtimeCount": int, "resourceCount": int, "profileCount": int, **_AT},
)
ScopeLine: Final = Derived("ExecutionScopeLine", Scope, more=_AT)
TopologyLine: Final = Derived(
    "NetworkTopologyLine", Topology, frozenset({"links"}), {"linkCount": int, **_AT}
)
WorkflowLine: Final = Derived(
    "WorkflowLine",
    WorkflowVersion,
    frozenset({"activities", "dependencies", "dataDependencies"}),
    {"activityCount": int, "dependencyCount": int, "dataDependencyCount": int, **_AT},
)
PlanLine: Final = Derived(
    "SchedulePlanLine",
    SchedulePlan,
    frozenset({"assignments", "lifecycleActions"}),
    {"assignmentCount": int, **_AT},
)
