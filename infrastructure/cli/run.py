"""`statelog run`: a plan file to a recorded result, here and now."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statelog.infrastructure.cli.common import Settings, command, emit

if TYPE_CHECKING:
    from statelog.infrastructure.execution.coordinator import Resolved

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
    @click.option(
        "--param",
        "params",
        multiple=True,
        metavar="STEP.KEY=VALUE",
        help="Set a parameter; VALUE is JSON if it parses, else a string. Repeatable.",
    )
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
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    progress = RunProgress(quiet=quiet)
    with settings.journal(create=True) as journal:
        with (
            session(
                journal,
                actor=settings.who,
                work_root=work_root(settings.store_path, root, os.environ).absolute(),
                path=[folder.absolute() for folder in path],
                listener=progress,
                say=lambda line: None if quiet else click.echo(line, err=True),
            ) as running,
            stoppable(running.cancel) as interrupted,
        ):
            resolved = running.run(body, adopt=adopt)
        with settings.views(journal) as views:
            views.catch_up()
    _show(settings, resolved, progress)
    return exit_code(resolved.resolution, resolved.report, interrupted=interrupted.is_set())


def _show(settings: Settings, resolved: Resolved, progress: Any) -> None:
    if settings.as_json:
        emit(resolved.to_json())
        return
    if progress.steps:
        click.echo(progress.table(resolved.report))
        click.echo()
    words = [f"plan {resolved.plan_id}"]
    if resolved.execution_id is not None:
        words.append(f"execution {resolved.execution_id}")
    result = resolved.outcome or resolved.resolution.value
    told = {"finalized": "recorded"}.get(resolved.resolution.value, resolved.resolution.value)
    click.echo(f"{', '.join(words)}: {click.style(result, bold=True)} ({told})")
    if resolved.reason and not resolved.succeeded:
        click.echo(f"  {resolved.reason}")


@contextmanager
def stoppable(cancel: threading.Event) -> Iterator[threading.Event]:
    """Let Ctrl-C and SIGTERM end the attempt after the running step; Ctrl-C twice at once.

    Yields an event that says whether Ctrl-C was pressed.
    """
    interrupted = threading.Event()

    def stop(number: int, _: object) -> None:
        if number == signal.SIGINT:
            if interrupted.is_set():
                raise KeyboardInterrupt
            interrupted.set()
            click.echo("finishing the running step; Ctrl-C again interrupts it", err=True)
        cancel.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
