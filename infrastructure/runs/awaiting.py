"""Working on the run requests of a store in this process until one of them has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from statelog.domain.event import Recorded
from statelog.domain.queue.job import JOB, JobStatus
from statelog.domain.runs.run import RUN
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.worker import JobWorker
from statelog.infrastructure.runs.handler import run_failure, run_handler
from statelog.infrastructure.runs.submit import CATEGORY, REQUESTED, job_id_of

Told = Callable[[Sequence[Recorded]], None]
REFUSED: Final = "refused"
"""The answer for a request that creates no run."""


def work_until_ended(
    journal: Journal,
    run_id: str,
    told: Told = lambda events: None,
    *,
    owner: str,
    work_root: Path,
    after: int | None = None,
) -> str:
    """Work, or wait for whoever works, until the run has ended; its status, or `refused`.

    `told` hears the events of the run and its job from the position `after` on (default: from now).
    What is not done when this is interrupted stays in the queue; a request that creates no run is
    answered after its first attempt. Raises what the worker raises.
    """
    stop, failures = threading.Event(), list[BaseException]()
    worker = JobWorker(
        journal,
        {REQUESTED: run_handler(journal, work_root)},
        owner,
        categories=(CATEGORY,),
        on_failure={REQUESTED: run_failure(journal)},
    )
    thread = threading.Thread(target=_run, args=(worker, stop, failures), name="runs")
    ours = {RUN.stream_of(run_id), JOB.stream_of(job_id_of(run_id))}
    start = journal.head() if after is None else after
    with journal.follow(after=start) as follower:
        thread.start()
        try:
            while _outcome(journal, run_id) is None and thread.is_alive():
                told([each for each in follower.batch() if each.stream in ours])
        finally:
            stop.set()
            follower.wake()
            thread.join()
        told([each for each in follower.ready() if each.stream in ours])
    if failures:
        raise failures[0]
    return _outcome(journal, run_id) or "running"


def _outcome(journal: Journal, run_id: str) -> str | None:
    """How it ended; None while it goes on."""
    run = journal.load(RUN, run_id).state
    if run.ended:
        return run.status.value
    job = journal.load(JOB, job_id_of(run_id)).state
    if run.start is None and (job.ended or (job.status is JobStatus.PENDING and job.last_error)):
        return REFUSED
    return None


def _run(worker: JobWorker, stop: threading.Event, failures: list[Any]) -> None:
    try:
        worker.run(stop)
    except BaseException as error:
        failures.append(error)
