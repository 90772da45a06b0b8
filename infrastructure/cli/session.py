"""`statelog session`: compare scheduling algorithms, and choose among what they find."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli import session_reading
from statelog.infrastructure.cli.common import FAILED, OK, Settings, command, group
from statelog.infrastructure.cli.output import emit, printable, show, tell
from statelog.infrastructure.cli.session_reading import SESSION_ID, board, reading, told

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
_NAMES: Final = "An algorithm to run: heft, cpop, min-min, max-min or moheft"
CREATE: Final = """
\b
Examples:
  statelog session create session.yaml
  statelog session create --id m1 --workflow montage-v1 --scope lab \\
      --algorithm heft --algorithm moheft --deadline 600 --wait
"""


def add_to(app: click.Group) -> click.Group:
    """Register the group and its commands; the group."""
    session = group(app, "session", HELP, EXAMPLES)
    _create(session)
    session_reading.add_to(session)
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
    @click.option(
        "--algorithm", "algorithms", metavar="NAME", multiple=True, help=f"{_NAMES}. Repeatable."
    )
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
            _created(settings, journal, request, of_options=file is None)
            status = _waited(settings, journal, request.id, before) if wait else "queued"
            page = _sessions(journal).show(request.id)
            if settings.as_json:
                emit(page)
            else:
                show(told(page))
                found = board(_sessions(journal).candidates(request.id)) if wait else _LATER
                show("\n" + found)
        return OK if status in ("queued", "completed") else FAILED


_LATER: Final = "`statelog worker` plans it, or create it with --wait"


def _read(file: Path) -> SessionRequest:
    from statelog.domain.errors import Invalid
    from statelog.infrastructure.documents import JSON_LIMIT, read_document
    from statelog.infrastructure.planning.requests import SessionRequest

    document = read_document(file, "", JSON_LIMIT)
    try:
        return SessionRequest.read(document)
    except Invalid as error:
        raise Invalid(f"{file}: {error.field}".rstrip(": "), error.why) from None


def _created(
    settings: Settings, journal: Journal, request: SessionRequest, *, of_options: bool
) -> None:
    """Create the session; what is wrong with an option is told by the option's name."""
    from statelog.domain.errors import Invalid

    try:
        _sessions(journal).create(request, actor=settings.who)
    except Invalid as error:
        if not of_options:
            raise
        name = _OPTIONS.get(error.field.partition("[")[0], error.field)
        why = error.why
        if name == "--scope" and not request.execution_scope_id:
            why += _scopes(settings, journal)
        raise Invalid(name, why) from None


_OPTIONS: Final = {
    "id": "--id",
    "workflowVersionId": "--workflow",
    "executionScopeId": "--scope",
    "networkTopologyId": "--topology",
    "algorithms": "--algorithm",
}


def _scopes(settings: Settings, journal: Journal) -> str:
    """Which scopes there are, the newest first, for whoever named none."""
    from statelog.infrastructure.workflows.listing import newest_first
    from statelog.projections.workflows import WORKFLOW_VIEWS

    with settings.views(journal, WORKFLOW_VIEWS) as views:
        found = [line["id"] for line in newest_first(views, "execution_scopes")]
    more = ", ..." if len(found) > _SOME else ""
    if not found:
        return "; there is none yet: `statelog workflow import --resources` registers one"
    return f"; there are {', '.join(found[:_SOME])}{more}"


_SOME: Final = 5


def _asked(journal: Journal, options: dict[str, Any]) -> SessionRequest:
    from statelog.domain.planning.session import Selection
    from statelog.infrastructure.clock import random_hex
    from statelog.infrastructure.planning.requests import SessionRequest

    scope = options.get("scope", "")
    return SessionRequest(
        options.get("session_id", f"session-{random_hex()[:8]}"),
        options.get("workflow", ""),
        scope,
        options["topology"] if "topology" in options else _topology(journal, scope),
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
        what, more = recorded.name.rsplit(".", 1)[1], ""
        subject = recorded.stream.rsplit("/", 1)[1] if "/run/" in recorded.stream else "session"
        match vars(recorded.event):
            case {"progress": progress}:
                more = f"{progress:.0%}"
            case {"reason": reason}:
                more = reason
            case {"candidate": candidate}:
                predicted = candidate.predicted
                more = f"makespan {predicted.makespan_seconds:g} s, cost {predicted.cost:g}"
        clock = iso_seconds(recorded.time)[11:19]
        tell(f"{clock}  {subject}  {what.replace('_', ' ')}  {more}".rstrip())


def _select(session: click.Group) -> None:
    @command(session, "select", epilog="Example: statelog session select montage-1 1")
    @SESSION_ID
    @click.argument("candidate", metavar="CANDIDATE")
    def select(settings: Settings, *, session_id: str, candidate: str) -> None:
        """Choose CANDIDATE, an id or a rank: its plan is stored and can be run.

        With --json the plan.
        """
        from statelog.domain.workflows.shape import show as shown

        with reading(settings) as sessions:
            chosen = _by_rank(sessions, session_id, candidate)
            plan = sessions.select(session_id, chosen, actor=settings.who)
        for warning in plan.metadata.get("warnings", ()):
            tell(f"warning: {warning}")
        if settings.as_json:
            emit(shown(plan))
        else:
            show(printable(f"session {session_id!r}: {chosen} is chosen; its plan is {plan.id}"))
            show(printable(f"run it: statelog execution submit --session {session_id} --wait"))


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


def _sessions(journal: Journal) -> Sessions:
    from statelog.infrastructure.planning.sessions import Sessions

    return Sessions(journal)
