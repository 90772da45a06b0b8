"""Events of an execution run, of its tasks and handles, and its transfers (1.7 to 1.12, P18).

All of them are on the run's own stream, which names the run. Times are seconds: since the Unix
epoch in a real run, since the simulated beginning in a simulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from statelog.domain.event import Event

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Placed:
    """One activity as the run took it from plan and workflow: where, after what, what for (1.5)."""

    activity_id: str
    resource_id: str
    runtime_id: str = ""
    assignment_id: str = ""
    name: str = ""
    core_id: str = ""
    slot_id: str = ""
    order_on_resource: int = 0
    priority: int = 0
    predecessors: tuple[str, ...] = ()
    price_per_second: float = 0.0
    predicted_start_at: float = 0.0
    predicted_finish_at: float = 0.0
    predicted_runtime_seconds: float = 0.0
    predicted_transfer_seconds: float = 0.0
    predicted_cost: float = 0.0


class Started(Event, name="runs.run.started"):
    """A run began; `activities` are in an order in which they can run.

    What it needs of plan, workflow and resources is kept here, so the run says for ever what it
    was. `predicted` are the plan's promises: makespan (s) and cost; limits <= 0 are none.
    """

    mode: str
    schedule_plan_id: str
    workflow_version_id: str
    activities: tuple[Placed, ...]
    seed: int = 0
    started_at: float = 0.0
    predicted_makespan_seconds: float = 0.0
    predicted_cost: float = 0.0
    deadline_seconds: float = 0.0
    budget: float = 0.0
    recovers_run_id: str = ""


class Completed(Event, name="runs.run.completed"):
    """All activities completed; the totals of 4.5 (seconds, money, bytes)."""

    finished_at: float
    makespan_seconds: float
    cost: float
    feasible: bool
    compute_seconds: float
    transfer_seconds: float
    queue_seconds: float
    interference_seconds: float
    overhead_seconds: float
    transferred_bytes: int


class Failed(Event, name="runs.run.failed"):
    """The run ended without completing its plan; nothing of it runs any more (P12)."""

    finished_at: float
    reason: str


class TaskKept(Event, name="runs.task.kept"):
    """A completed activity of the recovered run was taken over with its allocation (P19)."""

    activity_id: str
    from_run_id: str
    resource_id: str
    runtime_id: str
    started_at: float
    finished_at: float
    outputs: tuple[Object, ...] = ()


class TaskQueued(Event, name="runs.task.queued"):
    """All predecessors completed and their data is there: the activity may run."""

    activity_id: str
    queued_at: float
    reason: str = ""


class TaskPreparing(Event, name="runs.task.preparing"):
    """The activity was admitted; its workspace is being filled and its runtime prepared."""

    activity_id: str
    prepared_at: float
    reason: str = ""


class TaskStarted(Event, name="runs.task.started"):
    """The activity runs on what was allocated to it."""

    activity_id: str
    started_at: float
    resource_id: str
    runtime_id: str
    queue_seconds: float


class TaskInterruptRequested(Event, name="runs.task.interrupt_requested"):
    """Somebody asked to interrupt the activity; whoever supervises the run stops it (2.8)."""

    activity_id: str
    requested_at: float


class TaskCompleted(Event, name="runs.task.completed"):
    """The activity did what it should; its stage metrics (4.4) and observed outputs."""

    activity_id: str
    finished_at: float
    runtime_seconds: float
    queue_seconds: float = 0.0
    transfer_seconds: float = 0.0
    interference_seconds: float = 0.0
    overhead_seconds: float = 0.0
    transfer_bytes: int = 0
    cost: float = 0.0
    outputs: tuple[Object, ...] = ()


class TaskFailed(Event, name="runs.task.failed"):
    """The activity could not be started, or did not do what it should."""

    activity_id: str
    finished_at: float
    reason: str


class TaskCancelled(Event, name="runs.task.cancelled"):
    """The activity was stopped, or never started, for a reason that is not its own."""

    activity_id: str
    finished_at: float
    reason: str


class HandleStarting(Event, name="runs.handle.starting"):
    """The activity's command is about to be handed to a runtime: recorded before it is (P19)."""

    activity_id: str
    resource_id: str
    runtime_id: str
    started_at: float
    command: Object = field(default_factory=dict)
    metadata: Object = field(default_factory=dict)


class HandleRunning(Event, name="runs.handle.running"):
    """The runtime runs it; `container_started_at` is when its own code began, if it says so."""

    activity_id: str
    external_id: str
    started_at: float
    submitted_at: float | None = None
    container_started_at: float | None = None


class HandleCompleted(Event, name="runs.handle.completed"):
    """The runtime ended it well."""

    activity_id: str
    finished_at: float
    exit_code: int | None = None
    log: str = ""


class HandleFailed(Event, name="runs.handle.failed"):
    """The runtime ended it badly, could not start or stop it, or does not know it (U11)."""

    activity_id: str
    finished_at: float
    failure: str
    exit_code: int | None = None
    log: str = ""


class HandleStopped(Event, name="runs.handle.stopped"):
    """The runtime stopped it as it was asked to."""

    activity_id: str
    finished_at: float
    failure: str
    exit_code: int | None = None
    log: str = ""


class TransferCompleted(Event, name="runs.transfer.completed"):
    """Bytes that a producer left reached where its consumer runs (1.10)."""

    id: str
    producer_activity_id: str
    consumer_activity_id: str
    source_resource_id: str
    target_resource_id: str
    bytes: int
    started_at: float
    finished_at: float
    duration_seconds: float
    cost: float = 0.0
    strategy: str = ""
    route: tuple[str, ...] = ()
    files_transferred: int = 0


TaskEvent = (
    TaskKept
    | TaskQueued
    | TaskPreparing
    | TaskStarted
    | TaskInterruptRequested
    | TaskCompleted
    | TaskFailed
    | TaskCancelled
)
HandleEvent = HandleStarting | HandleRunning | HandleCompleted | HandleFailed | HandleStopped
RunEvent = Started | TaskEvent | HandleEvent | TransferCompleted | Completed | Failed
EVENTS = (
    Started,
    TaskKept,
    TaskQueued,
    TaskPreparing,
    TaskStarted,
    TaskInterruptRequested,
    TaskCompleted,
    TaskFailed,
    TaskCancelled,
    HandleStarting,
    HandleRunning,
    HandleCompleted,
    HandleFailed,
    HandleStopped,
    TransferCompleted,
    Completed,
    Failed,
)
