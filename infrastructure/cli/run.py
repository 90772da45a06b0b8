"""`statelog run`: plan files to recorded results, here and now."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.options import LOG_FORMAT, VERBOSE, WORK_ROOT, Seconds
from statelog.infrastructure.cli.output import (
    emit,
    printable,
    show,
    stdout_is_gone,
    stdout_to_stderr,
    tell,
)
from statelog.infrastructure.cli.plan_commands import PARAM
from statelog.infrastructure.cli.signals import stoppable
from statelog.infrastructure.logs import shortened

if TYPE_CHECKING:
    from statelog.infrastructure.cli.progress import RunProgress
    from statelog.infrastructure.execution.resolved import Resolved
    from statelog.infrastructure.execution.session import Finished, Wish
    from statelog.infrastructure.journal import Journal

EXAMPLES = """
\b
Examples:
  statelog run plan.json
  statelog run plan.json --param align.threads=8 --param "align.reads=R1.fq"
  statelog run lane1.json lane2.json --json
  statelog run plan.json --draft --timeout 3600
"""


def add_to(group: click.Group) -> None:
    """Register the command."""

    @command(group, "run", epilog=EXAMPLES)
    @click.argument(
        "plan_files", nargs=-1, required=True, metavar="PLAN_FILE...", type=click.Path()
    )
    @WORK_ROOT
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
    @click.option("--draft", is_flag=True, help="Save it as a draft, and wait for its approval.")
    @click.option(
        "--timeout",
        type=Seconds(min=0),
        default=1800,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for plans to become executable; what runs or is queued still runs.",
    )
    @LOG_FORMAT
    @VERBOSE
    @click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
    def run(
        settings: Settings,
        *,
        plan_files: tuple[str, ...],
        work_root: Path | None,
        path: tuple[Path, ...],
        params: tuple[str, ...],
        log_format: str,
        verbose: bool,
        **options: Any,
    ) -> int:
        """Run each PLAN_FILE here and record its result, one at a time.

        A new plan is saved and approved. An unchanged one is settled, or run again with every step
        reused that still holds; a changed one becomes a new generation. Exit code 0: every success
        is recorded; 1: anything else; 2: a file cannot be used; 130: Ctrl-C.
        """
        from statelog.infrastructure.logs import logged

        wishes = _wishes(plan_files, path, params)
        with logged(log_format, "INFO" if verbose else "WARNING"):
            return _run(settings, wishes, root=work_root, **options)


def _wishes(files: tuple[str, ...], path: tuple[Path, ...], params: tuple[str, ...]) -> list[Wish]:
    """Every file read and checked, before anything is saved. Raises `Invalid`."""
    from statelog.domain.errors import Invalid
    from statelog.infrastructure.execution.planfile import read_plan, with_params
    from statelog.infrastructure.execution.plans import checked_body
    from statelog.infrastructure.execution.session import Wish

    if params and len(files) > 1:
        raise Invalid("--param", "is for one plan file at a time")
    wishes: dict[str, Wish] = {}
    for file in map(Path, files):
        body = with_params(read_plan(file), list(params))
        plan_id = checked_body(body).plan_id
        if plan_id in wishes:
            raise Invalid("PLAN_FILE", f"plan {plan_id!r} is in two of the files")
        folders = path or (file.absolute().parent,)
        wishes[plan_id] = Wish(body, [folder.absolute() for folder in folders])
    return list(wishes.values())


def _run(
    settings: Settings,
    wishes: list[Wish],
    *,
    root: Path | None,
    quiet: bool,
    **options: Any,
) -> int:
    from statelog.domain.execution.endings import combined_exit_code
    from statelog.infrastructure.cli.progress import RunProgress
    from statelog.infrastructure.execution.run_once import session
    from statelog.infrastructure.execution.session import Session
    from statelog.infrastructure.execution.workdir import work_root

    progress = RunProgress(quiet=quiet, named=len(wishes) > 1)
    with settings.journal(create=True) as journal:
        with (
            session(
                journal,
                actor=settings.who,
                work_root=work_root(settings.store_path, root, os.environ).absolute(),
                path=[],
                listener=progress,
                say=lambda line: None if quiet else tell(line),
            ) as running,
            stoppable(running.cancel) as stopped,
            stdout_to_stderr() as stdout,
        ):
            settings.results = stdout
            results = Results(stdout, progress, as_json=settings.as_json)
            finished = Session(
                running, ended=results, timeout_s=options.pop("timeout"), **options
            ).run(wishes)
        _catch_up(settings, journal)
    settings.code = combined_exit_code(
        each.code(interrupted=stopped.interrupted) for each in finished
    )
    if results.lost is not None and results.lost.errno != errno.EPIPE:
        raise results.lost
    return settings.code


def _catch_up(settings: Settings, journal: Journal) -> None:
    """The views as they are now; when that fails the log is none the worse for it."""
    from statelog.domain.errors import StoreError

    try:
        with settings.views(journal) as views:
            views.catch_up()
    except StoreError as error:
        tell(f"warning: the views are behind the log: {error}")


class Results:
    """Prints what became of each plan as it ends.

    `lost` is why the first of them could not be printed; the work goes on all the same.
    """

    def __init__(self, stdout: TextIO, progress: RunProgress, *, as_json: bool) -> None:
        self._stdout = stdout
        self._progress = progress
        self._as_json = as_json
        self.lost: OSError | None = None

    def __call__(self, finished: Finished) -> None:
        """Print one."""
        resolved = finished.resolved
        if resolved.report is None and finished.code():
            tell(
                f"error: plan {resolved.plan_id!r} was not run ({_word(resolved)}): "
                f"{resolved.reason}"
            )
        elif resolved.report is None:
            tell(f"plan {resolved.plan_id!r} is somebody else's now: {resolved.reason}")
        try:
            self._print(resolved)
        except OSError as error:
            self.lost = self.lost or error
            stdout_is_gone(self._stdout)

    def _print(self, resolved: Resolved) -> None:
        if self._as_json:
            emit(resolved.to_json(), file=self._stdout)
        elif resolved.report is not None:
            if self._progress.has_seen(resolved.execution_id):
                show(f"{self._progress.table(resolved.report)}\n", self._stdout)
            result = click.style(str(resolved.outcome), bold=True)
            plan = printable(resolved.plan_id)
            show(
                f"plan {plan}, execution {resolved.execution_id}: {result} ({_word(resolved)})",
                self._stdout,
            )
            if resolved.reason and not resolved.succeeded:
                show(f"  {printable(shortened(resolved.reason))}", self._stdout)


def _word(resolved: Resolved) -> str:
    word = resolved.resolution.value
    return {"finalized": "recorded"}.get(word, word.replace("_", " "))
