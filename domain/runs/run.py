"""The execution run: one plan applied once, with its tasks and handles in one stream (2.5, P18)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, assert_never

from statelog.domain.aggregate import Aggregate, changed
from statelog.domain.errors import Refused
from statelog.domain.event import Event
from statelog.domain.lifecycle import SAME, Lifecycle
from statelog.domain.pmap import PMap
from statelog.domain.runs.events import (
    EVENTS,
    Completed,
    Failed,
    HandleCompleted,
    HandleFailed,
    HandleRunning,
    HandleStarting,
    HandleStopped,
    Placed,
    RunEvent,
    Started,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskInterruptRequested,
    TaskKept,
    TaskPreparing,
    TaskQueued,
    TaskStarted,
    TransferCompleted,
)
from statelog.domain.runs.handle import Handle, HandleStatus, evolve_handle
from statelog.domain.runs.task import ENDED, Task, TaskStatus, evolve_task
from statelog.domain.runs.totals import totals

SIMULATION: Final = "simulation"
REAL: Final = "real"


class RunStatus(Enum):
    """Where a run is; `created` is reserved (P22), and no run is cancelled (P17)."""

    NEW = "new"
    CREATED = "created"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True)
class Run:
    """A run so far: what it started with, and its tasks, handles and transfers by id.

    `placed` is what its plan says of each activity; every activity has a task from the start.
    """

    status: RunStatus = RunStatus.NEW
    start: Started | None = None
    placed: Mapping[str, Placed] = field(default_factory=dict)
    tasks: PMap[str, Task] = field(default_factory=PMap)
    handles: PMap[str, Handle] = field(default_factory=PMap)
    transfers: PMap[str, TransferCompleted] = field(default_factory=PMap)
    end: Completed | Failed | None = None

    def __hash__(self) -> int:
        return hash((self.status, self.tasks, self.handles, len(self.transfers)))

    @property
    def ended(self) -> bool:
        """Whether it is terminal."""
        return self.status in (RunStatus.COMPLETED, RunStatus.FAILED)

    @property
    def live(self) -> tuple[str, ...]:
        """Activities behind whose handle something may still run."""
        return tuple(each for each in self.placed if self._live(each))

    def _live(self, activity_id: str) -> bool:
        handle = self.handles.get(activity_id)
        return handle is not None and handle.live

    def handle(self, activity_id: str) -> Handle:
        """The handle of an activity, a blank one when it has none."""
        return self.handles.get(activity_id) or _NO_HANDLE

    @property
    def ready(self) -> tuple[str, ...]:
        """Activities that have not been queued and whose predecessors completed (2.6)."""
        return tuple(
            each.activity_id
            for each in self.placed.values()
            if self.tasks[each.activity_id].status is TaskStatus.NEW and self.may_queue(each)
        )

    def may_queue(self, placed: Placed) -> bool:
        """Whether all predecessors of an activity completed."""
        statuses = (self.tasks[each].status for each in placed.predecessors)
        return all(status is TaskStatus.COMPLETED for status in statuses)


_NO_HANDLE: Final = Handle()


def evolve(run: Run, event: RunEvent) -> Run:
    """The run after an event. Raises `IllegalTransition` when an entity's own table says no."""
    match event:
        case (
            TaskKept()
            | TaskQueued()
            | TaskPreparing()
            | TaskStarted()
            | TaskInterruptRequested()
            | TaskCompleted()
            | TaskFailed()
            | TaskCancelled()
        ):
            task = evolve_task(run.tasks[event.activity_id], event)
            return changed(run, tasks=run.tasks.set(event.activity_id, task))
        case (
            HandleStarting()
            | HandleRunning()
            | HandleCompleted()
            | HandleFailed()
            | HandleStopped()
        ):
            handle = evolve_handle(run.handle(event.activity_id), event)
            return changed(run, handles=run.handles.set(event.activity_id, handle))
        case TransferCompleted():
            return _moved(run, event)
        case Started(activities=activities):
            placed = {each.activity_id: each for each in activities}
            return changed(
                run, start=event, placed=placed, tasks=PMap(dict.fromkeys(placed, Task()))
            )
        case Completed() | Failed():
            return changed(run, end=event)
        case _:
            assert_never(event)


def _moved(run: Run, transfer: TransferCompleted) -> Run:
    """A transfer counts for the activity that waits for it (4.4)."""
    consumer = transfer.consumer_activity_id
    task = run.tasks[consumer]
    task = changed(
        task,
        transfer_seconds=task.transfer_seconds + transfer.duration_seconds,
        transfer_bytes=task.transfer_bytes + transfer.bytes,
    )
    return changed(
        run,
        tasks=run.tasks.set(consumer, task),
        transfers=run.transfers.set(transfer.id, transfer),
    )


_NEW, _RUNNING = RunStatus.NEW, RunStatus.RUNNING
_WITHIN: Final = [event for event in EVENTS if event not in (Started, Completed, Failed)]

RUN = Aggregate(
    "run",
    Run(),
    evolve,
    Lifecycle(
        _NEW,
        [
            # event    from      to
            (Started, _NEW, _RUNNING),
            *((event, _RUNNING, SAME) for event in _WITHIN),
            (Completed, _RUNNING, RunStatus.COMPLETED),
            (Failed, _RUNNING, RunStatus.FAILED),
        ],
        final={RunStatus.COMPLETED, RunStatus.FAILED},
        reserved={RunStatus.CREATED},
        name="run",
    ),
)


def going(run: Run) -> None:
    """Raises `Refused`: `run_started` before the run began, `run_ended` after it ended (P1)."""
    if run.status is RunStatus.NEW:
        raise Refused("the run has not started", rule="run_started")
    if run.ended:
        raise Refused(f"the run is {run.status.value}", rule="run_ended")


def start(run: Run, *, started: Started, kept: Sequence[TaskKept] = ()) -> list[Event]:
    """Begin the run, with what it keeps of the run it recovers; nothing if it began before.

    Raises `Refused` (`run_ended`).
    """
    if run.status is RunStatus.NEW:
        return [started, *kept]
    going(run)
    return []


def simulated(run: Run, *, events: Sequence[Event]) -> Sequence[Event]:
    """Record the next part of a simulation. Raises `Refused` (`simulation`, `run_ended`)."""
    going(run)
    if run.start is None or run.start.mode != SIMULATION:
        raise Refused("only a simulation is recorded as it was computed", rule="simulation")
    return events


def complete(run: Run, *, at: float) -> list[Completed]:
    """End the run well, with its totals (4.5).

    Raises `Refused`: `open_tasks` while an activity has not completed, `live_handles`.
    """
    going(run)
    _nothing_runs(run)
    for activity_id in run.placed:
        if run.tasks[activity_id].status is not TaskStatus.COMPLETED:
            raise Refused(f"activity {activity_id!r} has not completed", rule="open_tasks")
    return [Completed(finished_at=at, **totals(run).__dict__)]


def fail(run: Run, *, reason: str, at: float) -> list[TaskCancelled | Failed]:
    """End the run badly: what never ended is cancelled with the reason, in order, first (P12).

    Raises `Refused`: `live_handles` while something may run, `results_first` for an activity whose
    handle ended by itself and whose result is not recorded.
    """
    going(run)
    _nothing_runs(run)
    open_ = [each for each in run.placed if run.tasks[each].status not in ENDED]
    for activity_id in open_:
        if run.handle(activity_id).status in (HandleStatus.COMPLETED, HandleStatus.FAILED):
            why = f"the result of activity {activity_id!r} is not recorded"
            raise Refused(why, rule="results_first")
    return [*(TaskCancelled(each, at, reason) for each in open_), Failed(at, reason)]


def _nothing_runs(run: Run) -> None:
    if live := run.live:
        raise Refused(f"activity {live[0]!r} may still run", rule="live_handles")


def failure_of(run: Run) -> str | None:
    """Why a run in which nothing can go on has failed, naming the first activity; else None."""
    for activity_id, task in _in_time(run):
        if task.status is TaskStatus.FAILED:
            return f"activity {activity_id} failed: {task.reason}"
        if task.status is TaskStatus.CANCELLED:
            return f"activity {activity_id} was cancelled: {task.reason}"
    return None


def _in_time(run: Run) -> Iterable[tuple[str, Task]]:
    ended = ((each, run.tasks[each]) for each in run.placed)
    return sorted(ended, key=lambda pair: pair[1].finished_at or 0.0)
