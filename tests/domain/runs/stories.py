"""Runs with a past: `a`, then `b` and `c` after it, on one machine of price 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from statelog.domain.event import Event
from statelog.domain.runs import activities
from statelog.domain.runs.events import Placed, Started, TransferCompleted
from statelog.domain.runs.run import RUN, Run, start

BEGUN = Started(
    mode="real",
    schedule_plan_id="p1",
    workflow_version_id="w1",
    activities=(
        Placed("a", "m", "local", price_per_second=2.0),
        Placed("b", "m", "local", predecessors=("a",), price_per_second=2.0),
        Placed("c", "m", "local", predecessors=("a",), price_per_second=2.0),
    ),
    started_at=100.0,
)


def told(*steps: Step, begun: Started = BEGUN) -> tuple[Event, ...]:
    """The events of a run to which all this happened."""
    events, run = RUN.decide(Run(), start, started=begun)
    for decide, given in steps:
        more, run = RUN.decide(run, decide, **given)
        events = (*events, *more)
    return events


Step = tuple[Callable[..., Sequence[Event]], dict[str, Any]]


def started(activity_id: str, at: float = 100.0) -> list[Step]:
    """Queued, prepared, and its command about to be started."""
    return [
        (activities.queue_task, {"activity_id": activity_id, "at": at}),
        (activities.prepare_task, {"activity_id": activity_id, "at": at}),
        (
            activities.start_handle,
            {"activity_id": activity_id, "runtime_id": "local", "at": at, "command": {}},
        ),
    ]


def running(activity_id: str, at: float = 100.0) -> list[Step]:
    """Started, and seen running."""
    given = {"activity_id": activity_id, "external_id": "77", "started_at": at}
    return [*started(activity_id, at), (activities.handle_running, given)]


def completed(activity_id: str, at: float = 100.0, seconds: float = 10.0) -> list[Step]:
    """Run to its end, which was good."""
    end = at + seconds
    return [
        *running(activity_id, at),
        (activities.handle_completed, {"activity_id": activity_id, "at": end, "exit_code": 0}),
        (activities.complete_task, {"activity_id": activity_id, "at": end}),
    ]


def moved(producer: str, consumer: str, seconds: float = 1.0, size: int = 10) -> TransferCompleted:
    """A transfer."""
    return TransferCompleted(
        f"r1:{producer}:{consumer}",
        producer,
        consumer,
        "m",
        "n",
        size,
        110.0,
        110.0 + seconds,
        seconds,
        0.5,
    )
