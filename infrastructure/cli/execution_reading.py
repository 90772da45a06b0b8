"""`statelog execution`: the commands that only read, and how runs are printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.output import emit, show, tell
from statelog.infrastructure.cli.tables import facts, table

if TYPE_CHECKING:
    from statelog.infrastructure.runs.runs import Runs

Document = Mapping[str, Any]
RUN_ID = click.argument("run_id", metavar="ID")


def add_to(execution: click.Group) -> None:
    """Register the commands."""
    _show(execution)
    _list(execution)


def _show(execution: click.Group) -> None:
    @command(execution, "show", epilog="Example: statelog execution show run-1 --json")
    @RUN_ID
    def show_one(settings: Settings, *, run_id: str) -> None:
        """Show a run: what it came to, each of its activities, and what was moved.

        There is a run as soon as a worker has started it. With --json all there is to see of it.
        """
        with reading(settings) as runs:
            page = runs.get(run_id)
        show_run(settings, page)


def show_run(settings: Settings, page: Document) -> None:
    """Print the page of a run."""
    if settings.as_json:
        emit(page)
        return
    run, parts = page["run"], page["run"]["breakdown"]
    show(
        facts(
            {
                "run": run["id"],
                "status": run["status"],
                "failure": run.get("failureReason"),
                "mode": run["mode"],
                "plan": run["schedulePlanId"],
                "recovers": run.get("recoversRunId"),
                "activities": f"{run['completedActivityCount']} of {run['activityCount']}",
                "makespan": f"{run['makespanSeconds']:.6g} s, {run['makespanCounts']}",
                "cost": f"{run['cost']:.6g}",
                "compute": f"{parts['computeSeconds']:.6g} s",
                "transfer": f"{parts['transferSeconds']:.6g} s, {run['transferredBytes']} bytes",
                "queue": f"{parts['queueSeconds']:.6g} s",
                "overhead": f"{parts['overheadSeconds']:.6g} s",
            }
        )
    )
    zero = _zero(page)
    if page["activities"]:
        show("\n" + table(_ACTIVITIES, [_activity(each, zero) for each in page["activities"]]))
    if page["dataTransfers"]:
        show("\n" + table(_TRANSFERS, [_transfer(each, zero) for each in page["dataTransfers"]]))


def tell_where(root: Path, run_id: str, handles: Sequence[Document]) -> None:
    """Where the output of a command that failed is."""
    from statelog.infrastructure.runs.folders import RunFolder

    bad = [each["activityId"] for each in handles if each["status"] == "failed"]
    for activity_id in bad[:1]:
        tell(f"what {activity_id} printed is in {RunFolder(root, run_id).control(activity_id)}")


_ACTIVITIES: Final = ("activity", "status", "where", "start", "end", "runtime", "cost", "note")
_TRANSFERS: Final = ("from", "to", "bytes", "start", "seconds", "cost")


def _zero(page: Document) -> float:
    """When the first task of a real run started: people read seconds from there."""
    if page["run"]["mode"] == "simulation":
        return 0.0
    starts = [task.get("startedAt") for task in page["activities"] if not _kept(task)]
    return min((at for at in starts if at is not None), default=0.0)


def _kept(task: Document) -> str | None:
    kept: str | None = task.get("metadata", {}).get("keptFromRunId")
    return kept


def _activity(task: Document, zero: float) -> list[Any]:
    where = task.get("allocatedResourceId") or task["plannedResourceId"]
    kept = _kept(task)
    note = task.get("failureReason") or (f"kept from {kept}" if kept else None)
    seen = (None, None) if kept else (task.get("startedAt"), task.get("finishedAt"))
    times = [None if at is None else number(at - zero) for at in seen]
    figures = (number(task["runtimeSeconds"]), number(task["cost"]))
    return [task["activityId"], task["status"], where, *times, *figures, note]


def _transfer(moved: Document, zero: float) -> list[Any]:
    ends = (moved["producerActivityId"], moved["consumerActivityId"], moved["bytes"])
    figures = (moved["startedAt"] - zero, moved["durationSeconds"], moved["cost"])
    return [*ends, *map(number, figures)]


def number(value: float | None) -> str | None:
    """To the millisecond."""
    return None if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def _list(execution: click.Group) -> None:
    @command(execution, "list", epilog="Example: statelog execution list --status failed")
    @click.option("--page", type=int, metavar="N", help="Which page (default: all runs).")
    @click.option("--page-size", type=int, metavar="N", help="Runs a page, 1 to 100.")
    @click.option("--mode", default="all", metavar="MODE", help="`simulation` or `real`.")
    @click.option("--status", default="all", metavar="STATUS", help="`running`, `completed` ...")
    @click.option("--kind", default="all", metavar="KIND", help="`workflow`.")
    def list_runs(
        settings: Settings,
        *,
        page: int | None,
        page_size: int | None,
        mode: str,
        status: str,
        kind: str,
    ) -> None:
        """List the runs, the newest first. With --json one line a run, or the page.

        Of all modes, statuses and kinds, or of one of each; `all` is every one.

        A page size that is not from 1 to 100 counts as 20.
        """
        asked = {"mode": mode, "status": status, "kind": kind}
        with reading(settings) as runs:
            if page is None and page_size is None:
                found = runs.all(**asked)
            else:
                paged = runs.page(page or 1, 20 if page_size is None else page_size, **asked)
                if settings.as_json:
                    emit(paged)
                    return
                found = [item["run"] for item in paged["items"]]
        _print_list(settings, found)


_LIST: Final = ("run", "status", "mode", "plan", "done", "makespan", "cost", "started")


def _print_list(settings: Settings, found: Sequence[Document]) -> None:
    if settings.as_json:
        for each in found:
            emit(each)
    elif found:
        show(table(_LIST, [_line(each) for each in found]))
    else:
        show("no runs")


def _line(run: Document) -> list[Any]:
    done = f"{run['completedActivityCount']} of {run['activityCount']}"
    figures = (f"{run['makespanSeconds']:.6g} s", f"{run['cost']:.6g}", run["startedAt"])
    return [*(run["id"], run["status"], run["mode"], run["schedulePlanId"]), done, *figures]


class Progress:
    """One line on stderr for each thing that happened to a run or its job.

    Of a simulation only its beginning and end are told: all of it happens at once.
    """

    def __init__(self) -> None:
        self._simulated = False

    def __call__(self, events: Sequence[Any]) -> None:
        """Tell of some events."""
        from statelog.domain.times import iso_seconds

        for recorded in events:
            event = recorded.event
            _, subject, what = recorded.name.split(".")
            self._simulated = getattr(event, "mode", "") == "simulation" or self._simulated
            if self._simulated and subject not in ("run", "job"):
                continue
            about = getattr(event, "activity_id", "") or subject
            what = f"{subject} {what}" if subject == "handle" else what
            clock = iso_seconds(recorded.time)[11:19]
            tell(f"{clock}  {about}  {what.replace('_', ' ')}  {_why(event)}".rstrip())


def _why(event: Any) -> str:
    """What an event says of a reason, if it does."""
    said = (getattr(event, name, None) for name in ("reason", "failure", "error"))
    return next((str(each) for each in said if each), "")


@contextmanager
def reading(settings: Settings) -> Iterator[Runs]:
    """The runs of the store, read from views."""
    from statelog.infrastructure.runs.runs import Runs
    from statelog.projections.runs import RUN_VIEWS

    with (
        settings.journal() as journal,
        settings.views(journal, RUN_VIEWS) as views,
        explained(Runs(journal, views=views)) as runs,
    ):
        yield runs


@contextmanager
def explained(runs: Runs) -> Iterator[Runs]:
    """The same runs; of one that is not there the error says what became of its request."""
    from statelog.domain.errors import NotFound

    try:
        yield runs
    except NotFound as error:
        if error.kind == "run":
            for note in _of_request(runs, error.id):
                error.add_note(note)
        raise


def _of_request(runs: Runs, run_id: str) -> Iterator[str]:
    """What a request without a run waits for, or why there will be none."""
    from statelog.domain.errors import NotFound

    try:
        job = runs.job(run_id).state
    except NotFound:
        return
    yield f"it was asked for, and its job is {job.status.value}"
    if job.last_error:
        yield job.last_error
    elif not job.ended:
        yield "`statelog worker` carries it out"
