"""`statelog execution`: run plans, in simulation or for real, and look at what they did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli import execution_compare
from statelog.infrastructure.cli import execution_reading as reading
from statelog.infrastructure.cli.common import FAILED, OK, USAGE, Settings, command, group
from statelog.infrastructure.cli.options import WORK_ROOT
from statelog.infrastructure.cli.output import emit, printable, show, tell

if TYPE_CHECKING:
    from statelog.domain.aggregate import Loaded
    from statelog.domain.queue.job import Job
    from statelog.infrastructure.journal import Journal

HELP: Final = """Run schedule plans, in simulation or for real, and compare plan and observation."""
EXAMPLES: Final = """
\b
Examples:
  statelog execution submit request.yaml --wait
  statelog execution submit --session m1 --mode simulation --run-id try-1 --wait
  statelog execution compare try-1
  statelog execution gantt try-1 -o try-1.svg
"""
SUBMIT: Final = """
\b
Examples:
  statelog execution submit request.yaml
  statelog execution submit --session m1 --mode real --run-id run-1 --wait
  statelog execution submit --plan m1-2f0c81d7a3b5 --wait
"""
RECOVER: Final = """Example: statelog execution recover run-1 run-2 --reuse fetch,align --wait"""
_WAIT = click.option("--wait", is_flag=True, help="Work on it here until it has ended.")
_RUN_ID = click.argument("run_id", metavar="ID")


def add_to(app: click.Group) -> click.Group:
    """Register the group and its commands; the group."""
    execution = group(app, "execution", HELP, EXAMPLES)
    _submit(execution)
    _simulate(execution)
    reading.add_to(execution)
    execution_compare.add_to(execution)
    _interrupt(execution)
    _recover(execution)
    return execution


def _submit(execution: click.Group) -> None:
    @command(execution, "submit", epilog=SUBMIT)
    @click.argument("file", type=click.Path(path_type=Path), required=False)
    @click.option("--plan", "plan_id", metavar="ID", help="A schedule plan that is registered.")
    @click.option(
        "--session", "session_id", metavar="ID", help="The plan that was chosen in this session."
    )
    @click.option(
        "--mode",
        type=click.Choice(["simulation", "real"]),
        help="How to run the plan (default: simulation).",
    )
    @click.option("--run-id", metavar="ID", help="The new run (default: a random id).")
    @click.option("--seed", type=int, metavar="N", help="Kept with the run.")
    @_WAIT
    @WORK_ROOT
    def submit(
        settings: Settings,
        *,
        file: Path | None,
        wait: bool,
        work_root: Path | None,
        **given: Any,
    ) -> int:
        """Ask for a run, as FILE (JSON or YAML) says, or of a plan that is registered.

        Workers of the store carry it out; the same run id again is the first request. With --wait
        this process works too, and the exit code is 0 when the run is completed. With --json the
        job, or with --wait the run's page.
        """
        options = {name: value for name, value in given.items() if value is not None}
        if [file is not None, "plan_id" in options, "session_id" in options].count(True) != 1 or (
            file is not None and options
        ):
            tell("error: give a FILE, or --plan or --session, with --mode, --run-id and --seed")
            return USAGE
        with settings.journal(create=file is not None) as journal:
            before = journal.head()
            run_id, job = _asked(settings, journal, file, options)
            if wait:
                return _carried_out(settings, journal, run_id, before, work_root)
            _tell_job(settings, run_id, job)
        return OK


def _asked(
    settings: Settings, journal: Journal, file: Path | None, options: dict[str, Any]
) -> tuple[str, Loaded[Job]]:
    from statelog.infrastructure.clock import random_hex
    from statelog.infrastructure.runs.bundle import read_request
    from statelog.infrastructure.runs.runs import Runs

    runs = Runs(journal)
    if file is not None:
        request = read_request(file)
        return request.run.id, runs.submit(request, actor=settings.who)
    run_id = options.get("run_id", f"run-{random_hex()[:8]}")
    job = runs.submit_plan(
        options.get("plan_id") or _chosen(journal, options["session_id"]),
        run_id=run_id,
        mode=options.get("mode", "simulation"),
        seed=options.get("seed", 0),
        actor=settings.who,
    )
    return run_id, job


def _chosen(journal: Journal, session_id: str) -> str:
    """The plan that was chosen in a session. Raises `NotFound`, and `Refused` if none was."""
    from statelog.domain.errors import Refused
    from statelog.infrastructure.planning.sessions import Sessions

    plan_id = Sessions(journal).show(session_id)["session"].get("selectedPlanId")
    if plan_id is None:
        why = f"no plan was chosen in session {session_id!r}: `statelog session select` does that"
        raise Refused(why, rule="plan_chosen")
    return str(plan_id)


def _tell_job(settings: Settings, run_id: str, job: Loaded[Job]) -> None:
    from statelog.projections.queue.jobs import document

    if settings.as_json:
        emit(document(str(job.id), job.state))
        return
    status = job.state.status.value
    show(printable(f"run {run_id!r} is asked for: job {job.id} is {status}"))
    if status == "pending":
        show("  `statelog worker` carries it out, or submit it with --wait")


def _carried_out(
    settings: Settings, journal: Journal, run_id: str, after: int, work_root: Path | None
) -> int:
    """Work until the run has ended, and say what became of it."""
    import os

    from statelog.infrastructure.cli.handlers import owner_of
    from statelog.infrastructure.execution.workdir import work_root as root_of
    from statelog.infrastructure.runs.awaiting import REFUSED, work_until_ended
    from statelog.infrastructure.runs.runs import Runs

    root = root_of(settings.store_path, work_root, os.environ).absolute()
    owner = owner_of(settings.who)
    try:
        status = work_until_ended(
            journal, run_id, reading.Progress(), owner=owner, work_root=root, after=after
        )
    except KeyboardInterrupt:
        tell(f"run {run_id!r} goes on with the next `statelog worker`")
        raise
    if status == REFUSED:
        return _refused(settings, Runs(journal).job(run_id), run_id)
    page = Runs(journal).get(run_id)
    reading.show_run(settings, page)
    if status != "completed" and page["handles"]:
        reading.tell_where(root, run_id, page["handles"])
    return OK if status == "completed" else FAILED


def _refused(settings: Settings, job: Loaded[Job], run_id: str) -> int:
    """There is no run: what its job says."""
    from statelog.projections.queue.jobs import document

    tell(f"error: run {run_id!r} cannot begin: {job.state.last_error or job.state.status.value}")
    if settings.as_json:
        emit(document(str(job.id), job.state))
    return FAILED


def _simulate(execution: click.Group) -> None:
    @command(execution, "simulate", epilog="Example: statelog execution simulate bundle/")
    @click.argument("folder", metavar="BUNDLE_DIR", type=click.Path(path_type=Path))
    @WORK_ROOT
    def simulate(settings: Settings, *, folder: Path, work_root: Path | None) -> int:
        """Register what the files in BUNDLE_DIR say, run its request, and print the numbers.

        The files are environment, scope, topology, workflow, plan-request and execution-request,
        YAML or JSON; all but the last one may be missing. Once more it prints the same run.
        """
        from statelog.infrastructure.runs.bundle import post_bundle

        with settings.journal(create=True) as journal:
            before = journal.head()
            run_id, _ = post_bundle(journal, folder, actor=settings.who, told=tell)
            return _carried_out(settings, journal, run_id, before, work_root)


def _interrupt(execution: click.Group) -> None:
    @command(execution, "interrupt", epilog="Example: statelog execution interrupt run-1 align")
    @click.argument("run_id", metavar="RUN")
    @click.argument("activity_id", metavar="ACTIVITY")
    def interrupt(settings: Settings, *, run_id: str, activity_id: str) -> None:
        """Stop ACTIVITY of a real run; what does not depend on it goes on, and the run fails.

        Once more is no error. One that has ended is, and so is one that has not been started.
        """
        from statelog.infrastructure.runs.runs import Runs

        with settings.journal() as journal, reading.explained(Runs(journal)) as runs:
            run = runs.interrupt(run_id, activity_id, actor=settings.who)
        status = run.state.tasks[activity_id].status.value
        if settings.as_json:
            emit({"runId": run_id, "activityId": activity_id, "status": status})
            return
        did = "cancelled" if status == "cancelled" else "will be stopped"
        show(printable(f"run {run_id!r}: activity {activity_id!r} {did}"))


def _recover(execution: click.Group) -> None:
    @command(execution, "recover", epilog=RECOVER)
    @click.argument("run_id", metavar="RUN")
    @click.argument("new_run_id", metavar="NEW_ID")
    @click.option(
        "--reuse",
        metavar="A,B",
        default="",
        help="Completed activities that are kept and not run again.",
    )
    @_WAIT
    @WORK_ROOT
    def recover(
        settings: Settings,
        *,
        run_id: str,
        new_run_id: str,
        reuse: str,
        wait: bool,
        work_root: Path | None,
    ) -> int:
        """Repeat the failed run RUN as NEW_ID."""
        from statelog.infrastructure.runs.runs import Runs

        ids = [each.strip() for each in reuse.split(",") if each.strip()]
        with settings.journal() as journal:
            before = journal.head()
            with reading.explained(Runs(journal)) as runs:
                job = runs.recover(run_id, new_run_id, ids, actor=settings.who)
            if wait:
                return _carried_out(settings, journal, new_run_id, before, work_root)
            _tell_job(settings, new_run_id, job)
        return OK
