"""What the workers of this program do: the one place that puts the handlers of jobs together."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

LIMITS = {"orchestration": 1}
"""Sessions are planned one at a time, so a second one would only wait where a run could work."""

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal
    from statelog.infrastructure.queue.ends import OnFailure
    from statelog.infrastructure.queue.worker import Done, Handler, JobWorker


def handlers(journal: Journal, work_root: Path) -> dict[str, Handler]:
    """Handlers by event type; runs work below `work_root`. Imported when they are asked for."""
    from statelog.infrastructure.planning.coordinator import planning_handler
    from statelog.infrastructure.queue.worker import registered
    from statelog.infrastructure.runs.handler import run_handler

    return registered(
        ("planning.session.requested", planning_handler(journal)),
        ("execution.run.requested", run_handler(journal, work_root)),
    )


def on_failure(journal: Journal) -> dict[str, OnFailure]:
    """What is recorded besides, by event type, when a job fails for good."""
    from statelog.infrastructure.planning.endings import abandoned
    from statelog.infrastructure.runs.runs import run_failure

    return {
        "planning.session.requested": abandoned(journal),
        "execution.run.requested": run_failure(journal),
    }


def owner_of(who: str) -> str:
    """A name for one worker that no other has: who, on which machine, in which process."""
    from statelog.infrastructure.clock import random_hex

    return f"{who}@{platform.node()}:{os.getpid()}:{random_hex()[:8]}"


def job_worker(
    journal: Journal,
    work_root: Path,
    who: str,
    *,
    concurrency: int | None = None,
    lease_seconds: float | None = None,
    on_done: Callable[[Done], None] | None = None,
) -> JobWorker:
    """The worker that `statelog worker` and `statelog serve` run; None is the default of it."""
    from statelog.infrastructure.queue.queue import LEASE_S
    from statelog.infrastructure.queue.worker import CONCURRENCY, JobWorker

    return JobWorker(
        journal,
        handlers(journal, work_root),
        owner_of(who),
        concurrency=concurrency or CONCURRENCY,
        lease_seconds=lease_seconds or LEASE_S,
        limits=LIMITS,
        on_failure=on_failure(journal),
        on_done=on_done,
    )
