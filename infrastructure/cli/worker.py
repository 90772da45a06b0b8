"""`statelog worker`: the queue without HTTP."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from statelog.infrastructure.cli.common import FAILED, OK, Settings, command
from statelog.infrastructure.cli.options import LOG_FORMAT, VERBOSE, WORK_ROOT, Seconds
from statelog.infrastructure.cli.output import emit
from statelog.infrastructure.cli.signals import ending

if TYPE_CHECKING:
    from statelog.infrastructure.queue.worker import Done

EXAMPLES = """
\b
Examples:
  statelog worker
  statelog worker --store lab.db --concurrency 2 --log-format json
  statelog worker --once --json        do what there is to do, then end
"""


def add_to(group: click.Group) -> None:
    """Register the command."""

    @command(group, "worker", epilog=EXAMPLES)
    @click.option(
        "--concurrency",
        type=click.IntRange(min=1, max=1000),
        metavar="N",
        help="How many jobs are at work at once (default: 8).",
    )
    @click.option("--once", is_flag=True, help="End as soon as no job is available.")
    @click.option(
        "--lease",
        type=Seconds(min=0.1, max=86400),
        metavar="SECONDS",
        help="How long a job stays with a worker that is not heard of (default: 30).",
    )
    @WORK_ROOT
    @LOG_FORMAT
    @VERBOSE
    def worker(
        settings: Settings,
        *,
        concurrency: int | None,
        once: bool,
        lease: float | None,
        work_root: Path | None,
        log_format: str,
        verbose: bool,
    ) -> int:
        """Do the jobs of the queue: plan sessions and run what was submitted, until it is stopped.

        Several workers on one store share its jobs. SIGTERM or Ctrl-C stops what is at work, gives
        it back to the queue and ends with exit code 0; once more ends it at once, and its jobs are
        taken over when their leases have run out. With --json one line an attempt.
        """
        from statelog.domain.errors import StoreError
        from statelog.infrastructure.cli.handlers import job_worker
        from statelog.infrastructure.execution.workdir import work_root as root_of
        from statelog.infrastructure.logs import logged
        from statelog.infrastructure.queue.task import Outcome

        stop = threading.Event()
        level = "DEBUG" if verbose else "INFO"
        with logged(log_format, level), settings.journal(create=True) as journal:
            if journal.read_only:
                raise StoreError("read-only", f"{settings.named} cannot be written")
            service = job_worker(
                journal,
                root_of(settings.store_path, work_root, os.environ).absolute(),
                settings.who,
                concurrency=concurrency,
                lease_seconds=lease,
                on_done=_Printer() if settings.as_json else None,
            )
            with ending(stop):
                counts = service.run(stop, once=once)
        failed = counts[Outcome.FAILED] + counts[Outcome.RETRIED]
        return FAILED if once and failed else OK


class _Printer:
    """Prints a line an attempt; handlers end in threads of their own."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def __call__(self, done: Done) -> None:
        """Print one."""
        line = {
            "jobId": done.job_id,
            "eventType": done.event_type,
            "attempt": done.attempt,
            "outcome": done.outcome.value,
            "error": done.error,
        }
        with self._turn:
            emit(line)
