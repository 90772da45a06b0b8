"""What the views of one run fold its events into: its start, its parts and its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, assert_never, cast

from statelog.domain.aggregate import changed
from statelog.domain.event import Event, Recorded
from statelog.domain.ids import stream_parts
from statelog.domain.pmap import PMap
from statelog.domain.runs.activities import with_stopped_handles
from statelog.domain.runs.events import (
    EVENTS,
    Completed,
    Failed,
    HandleCompleted,
    HandleEvent,
    HandleFailed,
    HandleRunning,
    HandleStarting,
    HandleStopped,
    Placed,
    RunEvent,
    Started,
    TaskCancelled,
    TaskCompleted,
    TaskEvent,
    TaskFailed,
    TaskInterruptRequested,
    TaskKept,
    TaskPreparing,
    TaskQueued,
    TaskStarted,
    TransferCompleted,
)
from statelog.domain.runs.handle import Handle, evolve_handle
from statelog.domain.runs.task import Task, TaskStatus, evolve_task

RUN_EVENTS: Final[tuple[type[Event], ...]] = EVENTS


@dataclass(frozen=True)
class Said:
    """One of the events that a run page lists, as it is needed there; `time` in microseconds."""

    name: str
    time: int
    activity_id: str = ""


@dataclass(frozen=True)
class Seen:
    """A run as its views see it. Times of the whole run are microseconds, of the log."""

    start: Started | None = None
    completed: Completed | None = None
    failed: Failed | None = None
    started_us: int = 0
    ended_us: int = 0
    tasks: PMap[str, Task] = field(default_factory=PMap)
    handles: PMap[str, Handle] = field(default_factory=PMap)
    transfers: PMap[str, TransferCompleted] = field(default_factory=PMap)
    said: PMap[str, Said] = field(default_factory=PMap)

    @property
    def status(self) -> str:
        """Its status in one word."""
        if self.completed is not None:
            return "completed"
        return "failed" if self.failed is not None else "running"

    @property
    def placed(self) -> tuple[Placed, ...]:
        """Its activities in an order in which they can run."""
        return () if self.start is None else self.start.activities

    def task(self, activity_id: str) -> Task:
        """The task of an activity as it is read (2.6), a new one when it has none."""
        task = self.tasks.get(activity_id) or _NEW
        handle = self.handles.get(activity_id)
        return task if handle is None else with_stopped_handles(task, handle)

    @property
    def rows(self) -> tuple[tuple[Placed, Task], ...]:
        """The activities that have a task, in order."""
        found = ((each, self.task(each.activity_id)) for each in self.placed)
        return tuple((each, task) for each, task in found if task.status is not TaskStatus.NEW)


_NEW: Final = Task()
_LISTED: Final = (Started, Completed, Failed, TaskStarted, TaskCompleted, TaskFailed, TaskCancelled)


def run_of(recorded: Recorded) -> str | None:
    """The run whose stream an event is on."""
    parts = stream_parts(recorded.stream)
    return parts[1] if len(parts) == 2 and parts[0] == "run" else None


def below(run_id: str) -> str | None:
    """The stream that has every event of a run."""
    from statelog.domain.runs.run import RUN

    return RUN.stream_of(run_id) if run_id else None


def evolve(seen: Seen, recorded: Recorded) -> Seen:
    """The run after one of its events. Raises `IllegalTransition` for a damaged log."""
    event = cast("RunEvent", recorded.event)
    seen = _after(seen, event, recorded.time)
    if isinstance(event, _LISTED):
        said = Said(event.stored_name, recorded.time, getattr(event, "activity_id", ""))
        return changed(seen, said=seen.said.set(f"{recorded.version:012}", said))
    return seen


def _after(seen: Seen, event: RunEvent, time: int) -> Seen:
    match event:
        case Started():
            return changed(seen, start=event, started_us=time)
        case Completed():
            return changed(seen, completed=event, ended_us=time)
        case Failed():
            return changed(seen, failed=event, ended_us=time)
        case TransferCompleted():
            return changed(seen, transfers=seen.transfers.set(event.id, event))
        case (
            HandleStarting()
            | HandleRunning()
            | HandleCompleted()
            | HandleFailed()
            | HandleStopped()
        ):
            return changed(seen, handles=_handles(seen, event))
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
            return changed(seen, tasks=_tasks(seen, event))
        case _:
            assert_never(event)


def _handles(seen: Seen, event: HandleEvent) -> PMap[str, Handle]:
    handle = seen.handles.get(event.activity_id) or Handle()
    return seen.handles.set(event.activity_id, evolve_handle(handle, event))


def _tasks(seen: Seen, event: TaskEvent) -> PMap[str, Task]:
    task = seen.tasks.get(event.activity_id) or _NEW
    return seen.tasks.set(event.activity_id, evolve_task(task, event))
