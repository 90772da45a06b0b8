"""Stage metrics of one real task, from what its handle and its runtime said (4.4)."""

from __future__ import annotations

from dataclasses import dataclass

from statelog.domain.runs.handle import Handle


@dataclass(frozen=True)
class Stages:
    """Seconds and money of one task; none is negative."""

    runtime_seconds: float
    queue_seconds: float
    overhead_seconds: float
    cost: float


def queued_for(started_at: float, submitted_at: float | None, queued_at: float | None) -> float:
    """Seconds from the hand-over to the runtime, or else from the queue, to the start."""
    since = submitted_at if submitted_at is not None else queued_at
    return 0.0 if since is None else max(0.0, started_at - since)


def stages(
    handle: Handle, *, finished_at: float, queued_at: float | None, price_per_second: float
) -> Stages:
    """What a task cost and took once it finished at `finished_at` (epoch seconds)."""
    own = handle.container_started_at
    began = handle.started_at if own is None else max(handle.started_at, own)
    runtime = max(0.0, finished_at - began)
    return Stages(
        runtime_seconds=runtime,
        queue_seconds=queued_for(handle.started_at, handle.submitted_at, queued_at),
        overhead_seconds=0.0 if own is None else max(0.0, own - handle.started_at),
        cost=runtime * price_per_second,
    )
