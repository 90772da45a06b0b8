"""Totals of a run: makespan, cost and where the time went (4.5, P16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from statelog.domain.runs.task import Task

if TYPE_CHECKING:
    from statelog.domain.runs.run import Run

FROM_ZERO: Final = "from the beginning of the simulation"
FROM_FIRST_START: Final = "from the first task's start"


@dataclass(frozen=True)
class Totals:
    """Seconds, money and bytes; parallel work is counted once for each activity."""

    makespan_seconds: float = 0.0
    cost: float = 0.0
    feasible: bool = False
    compute_seconds: float = 0.0
    transfer_seconds: float = 0.0
    queue_seconds: float = 0.0
    interference_seconds: float = 0.0
    overhead_seconds: float = 0.0
    transferred_bytes: int = 0


def tidy(value: float) -> float:
    """A figure to a billionth, so that sums read as people would write them."""
    return round(value, 9)


def within(makespan_seconds: float, cost: float, deadline_seconds: float, budget: float) -> bool:
    """Whether both limits are kept; a limit <= 0 is none (3.6)."""
    in_time = deadline_seconds <= 0 or makespan_seconds <= deadline_seconds
    return in_time and (budget <= 0 or cost <= budget)


def makespan(tasks: list[Task], mode: str) -> float:
    """Seconds to the last finish, from 0 in a simulation, else from the first start (P16)."""
    finishes = [task.finished_at for task in tasks if task.finished_at is not None]
    starts = [task.started_at for task in tasks if task.started_at is not None]
    if not finishes:
        return 0.0
    return max(finishes) - (0.0 if mode == "simulation" else min(starts, default=max(finishes)))


def makespan_counts(mode: str) -> str:
    """From when the makespan of a run of this mode counts."""
    return FROM_ZERO if mode == "simulation" else FROM_FIRST_START


def totals(run: Run) -> Totals:
    """The totals of all that the run did itself; what it kept of another run is not counted."""
    own = [task for task in (run.tasks[each] for each in run.placed) if not task.kept_from]
    moved = [run.transfers[each] for each in sorted(run.transfers)]
    start = run.start
    seconds = tidy(makespan(own, start.mode if start else ""))
    cost = tidy(sum(task.cost for task in own) + sum(each.cost for each in moved))
    limits = (start.deadline_seconds, start.budget) if start else (0.0, 0.0)
    return Totals(
        makespan_seconds=seconds,
        cost=cost,
        feasible=within(seconds, cost, *limits),
        compute_seconds=tidy(sum(task.runtime_seconds for task in own)),
        transfer_seconds=tidy(sum(each.duration_seconds for each in moved)),
        queue_seconds=tidy(sum(task.queue_seconds for task in own)),
        interference_seconds=tidy(sum(task.interference_seconds for task in own)),
        overhead_seconds=tidy(sum(task.overhead_seconds for task in own)),
        transferred_bytes=sum(each.bytes for each in moved),
    )
