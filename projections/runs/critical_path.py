"""The critical path of a run as it was observed: what its makespan is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from statelog.domain.runs.events import Placed
from statelog.domain.runs.task import Task
from statelog.projections.runs.seen import Seen

START, DATA, CONTROL, LANE = "start", "transfer", "predecessor", "lane"
_CLOSE: Final = 1e-6


def critical_path(seen: Seen) -> list[dict[str, Any]]:
    """The chain of activities that ends last, each with what it waited for, in order of time.

    From the activity that finished last back to the first one: each time to what came last of its
    predecessors, the transfers from them, and whoever had its lane before. `because` is `start`,
    `predecessor`, `transfer` or `lane`, and `waitedFor` the activity.
    """
    ran = {each.activity_id: (each, task) for each, task in seen.rows if _ran(task)}
    if not ran:
        return []
    lanes = _before_on_lane(ran)
    arrivals = _arrivals(seen)
    here: str | None = max(ran, key=lambda each: (_finish(ran[each][1]), each))
    steps: list[dict[str, Any]] = []
    while here is not None:
        placed, task = ran[here]
        why, before, at = _last(placed, task, ran, arrivals, lanes)
        steps.append(_step(placed, task, why, before, at))
        here = before
    return steps[::-1]


def _ran(task: Task) -> bool:
    return task.started_at is not None and task.finished_at is not None and not task.kept_from


def _finish(task: Task) -> float:
    return task.finished_at or 0.0


Ran = Mapping[str, tuple[Placed, Task]]


def _arrivals(seen: Seen) -> Mapping[tuple[str, str], float]:
    """When the last bytes of a producer reached its consumer."""
    found: dict[tuple[str, str], float] = {}
    for each in seen.transfers.values():
        pair = (each.producer_activity_id, each.consumer_activity_id)
        found[pair] = max(found.get(pair, 0.0), each.finished_at)
    return found


def _before_on_lane(ran: Ran) -> Mapping[str, str]:
    """Who ran before each activity on its lane, by the times that were seen."""
    lanes: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for activity_id, (placed, task) in ran.items():
        lanes[task.resource_id or placed.resource_id, placed.core_id, placed.slot_id].append(
            activity_id
        )
    found = {}
    for lane in lanes.values():
        lane.sort(key=lambda each: (ran[each][1].started_at or 0.0, _finish(ran[each][1]), each))
        found.update(dict(zip(lane[1:], lane, strict=False)))
    return found


def _last(
    placed: Placed,
    task: Task,
    ran: Ran,
    arrivals: Mapping[tuple[str, str], float],
    lanes: Mapping[str, str],
) -> tuple[str, str | None, float]:
    """What an activity waited for longest; nothing that ended after it began counts."""
    start = task.started_at or 0.0
    waits = [
        (at, why, before)
        for at, why, before in _waits(placed, ran, arrivals, lanes)
        if at <= start + _CLOSE
    ]
    if not waits:
        return START, None, 0.0
    at, why, before = max(waits, key=lambda wait: (wait[0], wait[1] != LANE, wait[2]))
    return why, before, at


def _waits(
    placed: Placed,
    ran: Ran,
    arrivals: Mapping[tuple[str, str], float],
    lanes: Mapping[str, str],
) -> Iterator[tuple[float, str, str]]:
    for before in placed.predecessors:
        if before in ran:
            arrived = arrivals.get((before, placed.activity_id))
            finished = _finish(ran[before][1])
            if arrived is not None and arrived > finished:
                yield arrived, DATA, before
            else:
                yield finished, CONTROL, before
    lane = lanes.get(placed.activity_id)
    if lane is not None:
        yield _finish(ran[lane][1]), LANE, lane


def _step(placed: Placed, task: Task, why: str, before: str | None, at: float) -> dict[str, Any]:
    shown = {
        "activityId": placed.activity_id,
        "resourceId": task.resource_id or placed.resource_id,
        "because": why,
        "startedAt": task.started_at,
        "finishedAt": task.finished_at,
        "slackSeconds": max(0.0, round((task.started_at or 0.0) - at, 9)),
    }
    if before is not None:
        shown["waitedFor"] = before
    return shown
