"""`statelog daemon`: the service that runs what is due."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.options import LOG_FORMAT, VERBOSE, WORK_ROOT
from statelog.infrastructure.cli.signals import ending

EXAMPLES = """
\b
Examples:
  statelog daemon --path steps --work-root /scratch/lab
  statelog daemon --store lab.db --path steps --max-plans 4 --log-format json
"""


def add_to(group: click.Group) -> None:
    """Register the command."""

    @command(group, "daemon", epilog=EXAMPLES)
    @WORK_ROOT
    @click.option(
        "--path",
        "path",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Where step modules are found (default: the current folder). Repeatable.",
    )
    @click.option(
        "--max-plans",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many plans are at work at once (default: the number of processors).",
    )
    @LOG_FORMAT
    @VERBOSE
    def daemon(
        settings: Settings,
        *,
        work_root: Path | None,
        path: tuple[Path, ...],
        max_plans: int | None,
        log_format: str,
        verbose: bool,
    ) -> None:
        """Run the plans that are due, and those that become due, until it is stopped.

        Several daemons on one store share its plans. SIGTERM or Ctrl-C lets running steps finish
        and ends with exit code 0; the next daemon goes on with what was stopped. Once more ends it
        at once, and its plans are taken over like those of any killed process.
        """
        from statelog.domain.errors import StoreError
        from statelog.infrastructure.execution.daemon import Daemon
        from statelog.infrastructure.execution.workdir import work_root as root_of
        from statelog.infrastructure.logs import logged

        level = "DEBUG" if verbose else "INFO"
        stop = threading.Event()
        with logged(log_format, level), settings.journal(create=True) as journal:
            if journal.read_only:
                raise StoreError("read-only", f"{settings.named} cannot be written")
            service = Daemon(
                journal,
                root_of(settings.store_path, work_root, os.environ).absolute(),
                [folder.absolute() for folder in path or (Path.cwd(),)],
                settings.who,
                most=max_plans or os.cpu_count() or 1,
                log_format=log_format,
                log_level=level,
            )
            with ending(stop):
                service.run(stop)
