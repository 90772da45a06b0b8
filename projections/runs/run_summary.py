"""The `run_summary` view: one line of each run, for lists (5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from statelog.domain.aggregate import changed
from statelog.domain.event import Recorded
from statelog.domain.pmap import PMap
from statelog.domain.runs.events import (
    Completed,
    Failed,
    RunEvent,
    Started,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskKept,
    TaskQueued,
    TransferCompleted,
)
from statelog.domain.runs.totals import tidy
from statelog.projections.projection import Projection
from statelog.projections.runs.run_document import SUMS, run_document
from statelog.projections.runs.seen import below, run_of

PAGE_SIZE: Final = 20
LARGEST_PAGE: Final = 100
ALL: Final = "all"


@dataclass(frozen=True)
class Line:
    """What a list needs of a run. `tasks` says of each activity whether it completed."""

    start: Started | None = None
    completed: Completed | None = None
    reason: str = ""
    status: str = "running"
    started_us: int = 0
    ended_us: int = 0
    tasks: PMap[str, bool] = field(default_factory=PMap)
    sums: Mapping[str, float] = field(default_factory=dict)
    transferred_bytes: int = 0


def evolve(line: Line, recorded: Recorded) -> Line:
    """The line after an event."""
    event = cast("RunEvent", recorded.event)
    match event:
        case Started():
            return changed(line, start=changed(event, activities=()), started_us=recorded.time)
        case Completed():
            return changed(line, completed=event, status="completed", ended_us=recorded.time)
        case Failed():
            return changed(line, status="failed", reason=event.reason, ended_us=recorded.time)
        case TransferCompleted():
            more = {"transfer": event.duration_seconds}
            moved = line.transferred_bytes + event.bytes
            return changed(line, sums=_added(line.sums, more), transferred_bytes=moved)
        case TaskCompleted():
            more = {name: getattr(event, f"{_FIELDS[name]}_seconds") for name in _FIELDS}
            return _task(changed(line, sums=_added(line.sums, more)), event.activity_id, done=True)
        case TaskKept():
            return _task(line, event.activity_id, done=True)
        case TaskQueued() | TaskFailed() | TaskCancelled():
            return _task(line, event.activity_id, done=False)
    return line


_FIELDS: Final[Mapping[str, str]] = {
    "compute": "runtime",
    **{name: name for name in SUMS if name not in ("compute", "transfer")},
}
"""What of a completed task is added to which sum; transfers are summed as they are recorded."""


def _task(line: Line, activity_id: str, *, done: bool) -> Line:
    return changed(line, tasks=line.tasks.set(activity_id, done))


def _added(sums: Mapping[str, float], more: Mapping[str, float]) -> dict[str, float]:
    return {**sums, **{name: sums.get(name, 0.0) + value for name, value in more.items()}}


def show(run_id: str, line: Line) -> dict[str, Any] | None:
    """The line, None before the run started."""
    if line.start is None:
        return None
    return run_document(
        run_id,
        line.start,
        status=line.status,
        sums={name: tidy(value) for name, value in line.sums.items()},
        transferred_bytes=line.transferred_bytes,
        counts=(len(line.tasks), sum(line.tasks.values())),
        completed=line.completed,
        reason=line.reason,
        times=(line.started_us, line.ended_us),
    )


run_summary: Final[Projection[Line]] = Projection(
    "run_summary",
    Line(),
    evolve,
    key=run_of,
    events=(
        Started,
        Completed,
        Failed,
        TransferCompleted,
        TaskKept,
        TaskQueued,
        TaskCompleted,
        TaskFailed,
        TaskCancelled,
    ),
    show=show,
    columns={
        "schedule_plan_id": lambda line: line["schedulePlanId"],
        "mode": lambda line: line["mode"],
        "status": lambda line: line["status"],
        "started_at": lambda line: line["startedAt"],
    },
    below=below,
)
"""One line of each run."""


def newest_first(lines: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Lines by start, the latest first, then by id, the greatest first (5)."""
    return sorted(lines, key=lambda line: (line["startedAt"], line["id"]), reverse=True)


def chosen(
    lines: Iterable[Mapping[str, Any]], *, mode: str = ALL, status: str = ALL, kind: str = ALL
) -> list[Mapping[str, Any]]:
    """Lines that match every filter; empty and `all` match everything."""
    wanted = {"mode": mode, "status": status, "kind": kind}
    asked = {name: value for name, value in wanted.items() if value not in ("", ALL)}
    return [line for line in lines if all(line[name] == value for name, value in asked.items())]


def page_of(lines: Sequence[Mapping[str, Any]], page: int, page_size: int) -> dict[str, Any]:
    """One page of lines that are in order; a size outside 1 to 100 is 20, pages count from 1."""
    size = page_size if 1 <= page_size <= LARGEST_PAGE else PAGE_SIZE
    number = max(1, page)
    first = (number - 1) * size
    return {
        "items": [{"run": line} for line in lines[first : first + size]],
        "page": number,
        "pageSize": size,
        "total": len(lines),
        "hasNext": first + size < len(lines),
    }
