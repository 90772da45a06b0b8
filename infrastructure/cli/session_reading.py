"""`statelog session`: the commands that only look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.output import emit, show, tell, write_file
from statelog.infrastructure.cli.tables import facts, table

if TYPE_CHECKING:
    from statelog.infrastructure.planning.sessions import Sessions

SESSION_ID = click.argument("session_id", metavar="ID")


def add_to(session: click.Group) -> None:
    """Register the commands in the group of sessions."""
    _show(session)
    _list(session)
    _candidates(session)


@contextmanager
def reading(settings: Settings) -> Iterator[Sessions]:
    """The sessions of the store, read from views."""
    from statelog.infrastructure.planning.sessions import Sessions
    from statelog.projections.planning import PLANNING_VIEWS

    with settings.journal() as journal, settings.views(journal, PLANNING_VIEWS) as views:
        yield Sessions(journal, views=views)


def _show(session: click.Group) -> None:
    @command(session, "show", epilog="Example: statelog session show montage-1")
    @SESSION_ID
    def show_one(settings: Settings, *, session_id: str) -> None:
        """Show a session: what was asked, how far it is, and each of its algorithm runs."""
        with reading(settings) as sessions:
            page = sessions.show(session_id)
        if settings.as_json:
            emit(page)
        else:
            show(told(page))


_RUNS: Final = ("algorithm", "status", "progress", "candidates", "estimate", "note")


def told(page: dict[str, Any]) -> str:
    """A session and its runs as people read them."""
    about = page["session"]
    head = facts(
        {
            "session": about["id"],
            "status": about["status"],
            "progress": f"{about['progress']:.0%}",
            "workflow": about["workflowVersionId"],
            "scope": about["executionScopeId"],
            "topology": about["networkTopologyId"],
            "deadline": about.get("deadlineSeconds"),
            "budget": about.get("budget"),
            "failure": about.get("failureReason"),
            "chosen": about.get("selectedCandidateId"),
            "plan": about.get("selectedPlanId"),
            "created": about["createdAt"],
            "started": about.get("startedAt"),
            "ended": about.get("completedAt"),
        }
    )
    rows = [
        [
            *(run["algorithm"], run["status"], f"{run['progress']:.0%}", run["candidateCount"]),
            *(f"{run['estimate']['durationSeconds']} s", run.get("failureReason")),
        ]
        for run in page["algorithmRuns"]
    ]
    return f"{head}\n\n{table(_RUNS, rows)}"


def _list(session: click.Group) -> None:
    @command(session, "list", epilog="Example: statelog session list --json")
    def list_all(settings: Settings) -> None:
        """List every session, the newest first. With --json one line a session."""
        with reading(settings) as sessions:
            found = sessions.all()
        if settings.as_json:
            for each in found:
                emit(each)
        elif found:
            show(table(_LIST, [_line(each) for each in found]))
        else:
            show("no sessions")


_LIST: Final = ("session", "status", "progress", "workflow", "candidates", "chosen", "created")


def _line(about: dict[str, Any]) -> list[Any]:
    return [
        *(about["id"], about["status"], f"{about['progress']:.0%}", about["workflowVersionId"]),
        *(about["candidateCount"], about.get("selectedCandidateId"), about["createdAt"]),
    ]


def _candidates(session: click.Group) -> None:
    @command(session, "candidates", epilog="Example: statelog session candidates m1 --plot m1.svg")
    @SESSION_ID
    @click.option(
        "--plot",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE.svg",
        help="Draw makespan against cost into this file.",
    )
    def candidates(settings: Settings, *, session_id: str, plot: Path | None) -> None:
        """List the candidates of a session by rank. With --json one line a candidate."""
        from statelog.projections.planning.scatter import scatter

        with reading(settings) as sessions:
            found = sessions.candidates(session_id)
            waits = not found and sessions.show(session_id)["session"]["status"] == "queued"
        if plot is not None:
            write_file(plot, scatter(session_id, found))
            tell(f"drawn into {plot}")
        if settings.as_json:
            for each in found:
                emit(each)
        else:
            show(board(found))
        if waits:
            tell("the session is queued: `statelog worker` plans it")


_BOARD: Final = ("rank", "algorithm", "makespan", "cost", "Pareto", "feasible", "candidate")


def board(found: list[dict[str, Any]]) -> str:
    """Candidates as people read them, in their order."""
    rows = [
        [
            *(each["rank"] or "", each["algorithm"]),
            *(f"{each['predicted']['makespanSeconds']:.6g} s", f"{each['predicted']['cost']:.6g}"),
            *(each["paretoOptimal"], each["feasible"], each["id"]),
        ]
        for each in found
    ]
    return table(_BOARD, rows) if rows else "no candidates"
