"""What a simulation found out, and the events that a run records of it (4.2, P18)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from statelog.domain.aggregate import changed
from statelog.domain.event import Event
from statelog.domain.runs.events import TaskCompleted, TaskQueued, TaskStarted, TransferCompleted
from statelog.domain.runs.totals import tidy
from statelog.domain.runs.transfer import simulated_id

WAITING: Final = "waiting for its lane"


@dataclass(frozen=True)
class Simulated:
    """One activity: its times, where its time went (seconds), and its share of the cost."""

    activity_id: str
    resource_id: str
    ready_at: float
    started_at: float
    finished_at: float
    runtime_seconds: float
    overhead_seconds: float
    transfer_seconds: float = 0.0
    transfer_bytes: int = 0
    cost: float = 0.0

    @property
    def queue_seconds(self) -> float:
        """How long it waited for its lane."""
        return self.started_at - self.ready_at


@dataclass(frozen=True)
class Trace:
    """All that happened; tasks are in an order in which they can run."""

    tasks: tuple[Simulated, ...]
    transfers: tuple[TransferCompleted, ...]

    @property
    def makespan_seconds(self) -> float:
        """The latest finish, from 0 (P16)."""
        return tidy(max((task.finished_at for task in self.tasks), default=0.0))

    @property
    def cost(self) -> float:
        """Of all resources and transfers."""
        moved = sum(transfer.cost for transfer in self.transfers)
        return tidy(sum(task.cost for task in self.tasks) + moved)


def events_of(trace: Trace, run_id: str, runtimes: Mapping[str, str]) -> tuple[Event, ...]:
    """What a simulated run records, in simulated time order (P18).

    `runtimes` is the runtime of each activity. At one moment an activity's transfers come first,
    and what it waited for comes before it.
    """
    at = {task.activity_id: number for number, task in enumerate(trace.tasks)}
    timed: list[tuple[float, int, int, Event]] = []
    for transfer in trace.transfers:
        when, consumer = transfer.finished_at, transfer.consumer_activity_id
        timed.append((when, at[consumer], 0, _moved(transfer, run_id)))
    for task in trace.tasks:
        place = at[task.activity_id]
        for step, (when, event) in enumerate(_task_events(task, runtimes), 1):
            timed.append((when, place, step, event))
    timed.sort(key=lambda entry: entry[:3])
    return tuple(event for *_, event in timed)


def _task_events(
    task: Simulated, runtimes: Mapping[str, str]
) -> Iterator[tuple[float, TaskQueued | TaskStarted | TaskCompleted]]:
    name, queue = task.activity_id, tidy(task.queue_seconds)
    yield task.ready_at, TaskQueued(name, tidy(task.ready_at), WAITING if queue else "")
    yield (
        task.started_at,
        TaskStarted(name, tidy(task.started_at), task.resource_id, runtimes.get(name, ""), queue),
    )
    yield (
        task.finished_at,
        TaskCompleted(
            name,
            tidy(task.finished_at),
            runtime_seconds=tidy(task.runtime_seconds),
            queue_seconds=queue,
            transfer_seconds=tidy(task.transfer_seconds),
            overhead_seconds=tidy(task.overhead_seconds),
            transfer_bytes=task.transfer_bytes,
            cost=tidy(task.cost),
        ),
    )


def _moved(transfer: TransferCompleted, run_id: str) -> TransferCompleted:
    return changed(
        transfer,
        id=simulated_id(run_id, transfer.producer_activity_id, transfer.consumer_activity_id),
        started_at=tidy(transfer.started_at),
        finished_at=tidy(transfer.finished_at),
        duration_seconds=tidy(transfer.duration_seconds),
        cost=tidy(transfer.cost),
    )
