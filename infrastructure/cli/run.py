"""`statelog run`: a plan file to a recorded result, here and now."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.output import (
    emit,
    log_to_stderr,
    printable,
    show,
    stdout_to_stderr,
    tell,
)
from statelog.infrastructure.cli.plan_commands import PARAM
from statelog.infrastructure.cli.signals import stoppable

if TYPE_CHECKING:
    from statelog.infrastructure.cli.progress import RunProgress
    from statelog.infrastructure.execution.coordinator import Resolved
    from statelog.infrastructure.journal import Journal

EXAMPLES = """
\b
Examples:
  statelog run plan.json
  statelog run plan.json --param align.threads=8 --param "align.reads=R1.fq"
  statelog --store lab.db run plan.json --work-root /scratch/lab --json
"""


def add_to(group: click.Group) -> None:
    """Register the command."""

    @command(group, "run", epilog=EXAMPLES)
    @click.argument("plan_file", type=click.Path(path_type=Path))
    @click.option(
        "--work-root",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where steps work (default: $STATELOG_WORK_ROOT, else <store>.work).",
    )
    @click.option(
        "--path",
        "path",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Where step modules are found (default: the plan file's folder). Repeatable.",
    )
    @PARAM
    @click.option(
        "--adopt", is_flag=True, help="Take the plan over from the daemon or another run."
    )
    @click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
    def run(
        settings: Settings,
        *,
        plan_file: Path,
        work_root: Path | None,
        path: tuple[Path, ...],
        params: tuple[str, ...],
        adopt: bool,
        quiet: bool,
    ) -> int:
        """Run PLAN_FILE here and record its result.

        A new plan is saved and approved. An unchanged one is settled, or run again with every step
        reused that still holds; a changed one becomes a new generation. Exit code 0: success is
        recorded; 1: anything else; 2: the file cannot be used; 130: Ctrl-C.
        """
        from statelog.infrastructure.execution.planfile import read_plan, with_params

        body = with_params(read_plan(plan_file), list(params))
        folders = path or (plan_file.absolute().parent,)
        return _run(settings, body, root=work_root, path=folders, adopt=adopt, quiet=quiet)


def _run(
    settings: Settings,
    body: dict[str, Any],
    *,
    root: Path | None,
    path: tuple[Path, ...],
    adopt: bool,
    quiet: bool,
) -> int:
    from statelog.domain.execution.endings import exit_code
    from statelog.infrastructure.cli.progress import RunProgress
    from statelog.infrastructure.execution.plans import checked_body
    from statelog.infrastructure.execution.run_once import session
    from statelog.infrastructure.execution.workdir import work_root

    checked_body(body)
    log_to_stderr()
    progress = RunProgress(quiet=quiet)
    with settings.journal(create=True) as journal:
        with (
            session(
                journal,
                actor=settings.who,
                work_root=work_root(settings.store_path, root, os.environ).absolute(),
                path=[folder.absolute() for folder in path],
                listener=progress,
                say=lambda line: None if quiet else tell(line),
            ) as running,
            stoppable(running.cancel) as stopped,
            stdout_to_stderr(),
        ):
            resolved = running.run(body, adopt=adopt)
        _catch_up(settings, journal)
    settings.code = exit_code(resolved.resolution, resolved.report, interrupted=stopped.interrupted)
    _show(settings, resolved, progress)
    return settings.code


def _catch_up(settings: Settings, journal: Journal) -> None:
    """The views as they are now; when that fails the log is none the worse for it."""
    from statelog.domain.errors import StoreError

    try:
        with settings.views(journal) as views:
            views.catch_up()
    except StoreError as error:
        tell(f"warning: the views are behind the log: {error}")


def _show(settings: Settings, resolved: Resolved, progress: RunProgress) -> None:
    told = {"finalized": "recorded"}.get(resolved.resolution.value, resolved.resolution.value)
    told = told.replace("_", " ")
    if resolved.report is None:
        tell(f"error: plan {resolved.plan_id!r} was not run ({told}): {resolved.reason}")
    if settings.as_json:
        emit(resolved.to_json())
    if settings.as_json or resolved.report is None:
        return
    if progress.steps:
        show(f"{progress.table(resolved.report)}\n")
    result = click.style(str(resolved.outcome), bold=True)
    plan = printable(resolved.plan_id)
    show(f"plan {plan}, execution {resolved.execution_id}: {result} ({told})")
    if resolved.reason and not resolved.succeeded:
        show(f"  {printable(resolved.reason)}")
