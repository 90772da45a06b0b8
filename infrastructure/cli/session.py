"""`statelog session`: compare scheduling algorithms, and choose among what they find."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.common import FAILED, OK, Settings, command, group
from statelog.infrastructure.cli.output import emit, printable, show, tell
from statelog.infrastructure.cli.tables import facts, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from statelog.infrastructure.journal import Journal
    from statelog.infrastructure.planning.requests import SessionRequest
    from statelog.infrastructure.planning.sessions import Sessions

HELP: Final = """Compare scheduling algorithms for a workflow, and choose a plan."""
EXAMPLES: Final = """
\b
Examples:
  statelog session create --workflow montage-v1 --scope lab --algorithm heft --wait
  statelog session candidates montage-1 --plot candidates.svg
  statelog session select montage-1 1
"""
CREATE: Final = """
\b
Examples:
  statelog session create session.yaml
  statelog session create --id m1 --workflow montage-v1 --scope lab \\
      --algorithm heft --algorithm moheft --deadline 600 --wait
"""
SESSION_ID = click.argument("session_id", metavar="ID")


def add_to(app: click.Group) -> click.Group:
    """Register the group and its commands; the group."""
    session = group(app, "session", HELP, EXAMPLES)
    _create(session)
    _show(session)
    _list(session)
    _candidates(session)
    _select(session)
    _cancel(session)
    return session


def _create(session: click.Group) -> None:
    @command(session, "create", epilog=CREATE)
    @click.argument("file", type=click.Path(path_type=Path), required=False)
    @click.option(
        "--id", "session_id", metavar="ID", help="The new session (default: a random id)."
    )
    @click.option("--workflow", metavar="ID", help="The workflow version to plan.")
    @click.option("--scope", metavar="ID", help="The execution scope to plan in.")
    @click.option("--topology", metavar="ID", help="The network (default: that of the scope).")
    @click.option("--algorithm", "algorithms", metavar="NAME", multiple=True, help="Repeatable.")
    @click.option("--deadline", type=float, metavar="SECONDS", help="The longest makespan.")
    @click.option("--budget", type=float, metavar="COST", help="The highest cost.")
    @click.option("--wait", is_flag=True, help="Work on it here until it has ended.")
    def create(settings: Settings, *, file: Path | None, wait: bool, **given: Any) -> int:
        """Ask for a planning session, as FILE (JSON or YAML) or the options say.

        Everything it needs is frozen now; workers of the store plan it, one session at a time. With
        --wait this process works too, and the exit code is 0 when the session is completed.
        """
        from statelog.infrastructure.cli.common import USAGE

        options = {name: value for name, value in given.items() if value not in (None, ())}
        if (file is None) == (not options):
            tell("error: give a FILE, or --workflow, --scope and --algorithm")
            return USAGE
        with settings.journal() as journal:
            request = _read(file) if file else _asked(journal, options)
            before = journal.head()
            _sessions(journal).create(request, actor=settings.who)
            status = _waited(settings, journal, request.id, before) if wait else "queued"
            page = _sessions(journal).show(request.id)
            if settings.as_json:
                emit(page)
            else:
                show(_told(page))
                if wait:
                    show("\n" + _board(_sessions(journal).candidates(request.id)))
        return OK if status in ("queued", "completed") else FAILED


def _read(file: Path) -> SessionRequest:
    from statelog.domain.errors import Invalid
    from statelog.infrastructure.documents import JSON_LIMIT, read_document
    from statelog.infrastructure.planning.requests import SessionRequest

    try:
        return SessionRequest.read(read_document(file, "", JSON_LIMIT))
    except Invalid as error:
        raise Invalid(f"{file}: {error.field}".rstrip(": "), error.why) from None


def _asked(journal: Journal, options: dict[str, Any]) -> SessionRequest:
    from statelog.domain.planning.session import Selection
    from statelog.infrastructure.clock import random_hex
    from statelog.infrastructure.planning.requests import SessionRequest

    scope = options.get("scope", "")
    return SessionRequest(
        options.get("session_id") or f"session-{random_hex()[:8]}",
        options.get("workflow", ""),
        scope,
        options.get("topology") or _topology(journal, scope),
        tuple(Selection(each) for each in options.get("algorithms", ())),
        _finite("--deadline", options.get("deadline", 0.0)),
        _finite("--budget", options.get("budget", 0.0)),
    )


def _topology(journal: Journal, scope: str) -> str:
    """The topology that a scope names; none when there is no such scope."""
    from statelog.domain.errors import NotFound
    from statelog.infrastructure.workflows.definitions import Definitions

    try:
        return Definitions(journal).scope(scope).network_topology_id
    except NotFound:
        return ""


def _finite(option: str, value: float) -> float:
    from math import isfinite

    from statelog.domain.errors import Invalid

    if not isfinite(value):
        raise Invalid(option, f"must be a number, not {value}")
    return value


def _waited(settings: Settings, journal: Journal, session_id: str, after: int) -> str:
    """The status the session ended with; progress on stderr."""
    from statelog.infrastructure.cli.handlers import owner_of
    from statelog.infrastructure.planning.waiting import work_until_ended

    owner = owner_of(settings.who)
    try:
        return work_until_ended(journal, session_id, _progress, owner=owner, after=after)
    except KeyboardInterrupt:
        tell(f"session {session_id!r} goes on with the next `statelog worker`")
        raise


def _progress(events: Sequence[Any]) -> None:
    """One line on stderr for each thing that happened."""
    from statelog.domain.times import iso_seconds

    for recorded in events:
        what, told = recorded.name.rsplit(".", 1)[1], ""
        subject = recorded.stream.rsplit("/", 1)[1] if "/run/" in recorded.stream else "session"
        match vars(recorded.event):
            case {"progress": progress}:
                told = f"{progress:.0%}"
            case {"reason": reason}:
                told = reason
            case {"candidate": candidate}:
                predicted = candidate.predicted
                told = f"makespan {predicted.makespan_seconds:g} s, cost {predicted.cost:g}"
        clock = iso_seconds(recorded.time)[11:19]
        tell(f"{clock}  {subject}  {what.replace('_', ' ')}  {told}".rstrip())


def _show(session: click.Group) -> None:
    @command(session, "show", epilog="Example: statelog session show montage-1")
    @SESSION_ID
    def show_one(settings: Settings, *, session_id: str) -> None:
        """Show a session: what was asked, how far it is, and each of its algorithm runs."""
        with _reading(settings) as sessions:
            page = sessions.show(session_id)
        if settings.as_json:
            emit(page)
        else:
            show(_told(page))


_RUNS: Final = ("algorithm", "status", "progress", "candidates", "estimate", "note")


def _told(page: dict[str, Any]) -> str:
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
        with _reading(settings) as sessions:
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

        with _reading(settings) as sessions:
            found = sessions.candidates(session_id)
        if plot is not None:
            plot.write_text(scatter(session_id, found), encoding="utf-8")
            tell(f"drawn into {plot}")
        if settings.as_json:
            for each in found:
                emit(each)
        else:
            show(_board(found))


_BOARD: Final = ("rank", "algorithm", "makespan", "cost", "Pareto", "feasible", "candidate")


def _board(found: list[dict[str, Any]]) -> str:
    rows = [
        [
            *(each["rank"] or "", each["algorithm"]),
            *(f"{each['predicted']['makespanSeconds']:.6g} s", f"{each['predicted']['cost']:.6g}"),
            *(each["paretoOptimal"], each["feasible"], each["id"]),
        ]
        for each in found
    ]
    return table(_BOARD, rows) if rows else "no candidates"


def _select(session: click.Group) -> None:
    @command(session, "select", epilog="Example: statelog session select montage-1 1")
    @SESSION_ID
    @click.argument("candidate", metavar="CANDIDATE")
    def select(settings: Settings, *, session_id: str, candidate: str) -> None:
        """Choose CANDIDATE, an id or a rank: its plan is stored and can be run.

        With --json the plan.
        """
        from statelog.domain.workflows.shape import show as shown

        with _reading(settings) as sessions:
            chosen = _by_rank(sessions, session_id, candidate)
            plan = sessions.select(session_id, chosen, actor=settings.who)
        if settings.as_json:
            emit(shown(plan))
        else:
            show(printable(f"session {session_id!r}: {chosen} is chosen; its plan is {plan.id}"))


def _by_rank(sessions: Sessions, session_id: str, candidate: str) -> str:
    if not candidate.isdecimal():
        return candidate
    ranks = {each["rank"]: str(each["id"]) for each in sessions.candidates(session_id)}
    return ranks.get(int(candidate), candidate) if int(candidate) else candidate


def _cancel(session: click.Group) -> None:
    @command(session, "cancel", epilog="Example: statelog session cancel montage-1")
    @SESSION_ID
    def cancel(settings: Settings, *, session_id: str) -> None:
        """Call a session off. What it found until now stays, and can be chosen."""
        with settings.journal() as journal:
            sessions = _sessions(journal)
            sessions.cancel(session_id, actor=settings.who)
            page = sessions.show(session_id)
        if settings.as_json:
            emit(page)
        else:
            show(printable(f"session {session_id!r}: cancelled"))


@contextmanager
def _reading(settings: Settings) -> Iterator[Sessions]:
    """The sessions of the store, read from views."""
    from statelog.infrastructure.planning.sessions import Sessions
    from statelog.projections.planning import PLANNING_VIEWS

    with settings.journal() as journal, settings.views(journal, PLANNING_VIEWS) as views:
        yield Sessions(journal, views=views)


def _sessions(journal: Journal) -> Sessions:
    from statelog.infrastructure.planning.sessions import Sessions

    return Sessions(journal)
