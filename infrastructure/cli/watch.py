"""`statelog plan watch`: what happens to plans, as it happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.common import FAILED, OK, Settings, command
from statelog.infrastructure.cli.output import emit, printable, show

if TYPE_CHECKING:
    from statelog.domain.event import Event, Recorded
    from statelog.infrastructure.journal import Journal
    from statelog.infrastructure.views import Views

    Told = Callable[[Sequence[Recorded]], None]

_CALM_S: Final = 0.1
"""How long a terminal is left as it is."""


def add_to(plan: click.Group) -> None:
    """Register the command in the group of plans."""

    @command(plan, "watch", epilog="Example: statelog plan watch reads-qc --until-done")
    @click.argument("plan_id", metavar="[ID]", required=False)
    @click.option("--until-done", is_flag=True, help="End when the plan's request is finished.")
    def watch(settings: Settings, *, plan_id: str | None, until_done: bool) -> int:
        """Show what happens to a plan, or to all plans, until Ctrl-C.

        On a terminal a table that changes, with the extra statelog[rich]; else, or piped, a line
        an event. With --json one JSON line an event. With --until-done the exit code is 0 when the
        request was finished with success.
        """
        from statelog.domain.errors import Invalid
        from statelog.domain.execution.plan import PLAN
        from statelog.domain.execution.spec import path_part

        if until_done and plan_id is None:
            raise Invalid("--until-done", "needs the ID of a plan")
        stream = None if plan_id is None else PLAN.stream_of(path_part(plan_id, "plan_id"))
        with (
            settings.journal() as journal,
            settings.views(journal) as views,
            journal.follow(after=journal.head(), prefix=stream) as follower,
        ):
            code = _ended(views, plan_id)
            with _told(settings, journal, views, plan_id) as told:
                while not until_done or code is None:
                    told(follower.batch())
                    if until_done:
                        code = _ended(views, plan_id)
                told(follower.ready())
        return code or OK


def _ended(views: Views, plan_id: str | None) -> int | None:
    """The exit code once the request is finished. Raises `NotFound` for a plan not there."""
    from statelog.domain.errors import NotFound
    from statelog.domain.execution.request import request_state

    if plan_id is None:
        return None
    found = views.get("plan_document", plan_id)
    if found is None:
        raise NotFound("plan", plan_id)
    tokens = (found.get("run_token", 0), found.get("executed_run_token", -1))
    if request_state(found.get("status"), *tokens) != "finished":
        return None
    return OK if found["latest_request_succeeded"] else FAILED


@contextmanager
def _told(
    settings: Settings, journal: Journal, views: Views, plan_id: str | None
) -> Iterator[Told]:
    """How events are shown: as JSON lines, in a table that changes, or as lines."""
    if settings.as_json:
        yield _each(lambda *line: emit(_json(*line)))
        return
    board = _Board(journal, views, plan_id)
    console = _console()
    if console is None:
        show(board.text())
        yield _each(lambda *line: show(_text(*line)))
        return
    from rich.live import Live
    from rich.text import Text

    with Live(Text.from_ansi(board.text()), console=console, auto_refresh=False) as live:

        def refresh(events: Sequence[Recorded]) -> None:
            live.update(Text.from_ansi(board.text()), refresh=True)
            time.sleep(_CALM_S)

        yield refresh


def _console() -> Any:
    """A terminal that can be drawn on, if there is one and rich is installed."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console()
    return console if console.is_terminal and not console.is_dumb_terminal else None


class _Board:
    """Everything about one plan, or a line a plan."""

    def __init__(self, journal: Journal, views: Views, plan_id: str | None) -> None:
        self._journal = journal
        self._views = views
        self._plan_id = plan_id

    def text(self) -> str:
        """As it is now."""
        from statelog.infrastructure.cli.plan_reading import listed, plan_table
        from statelog.infrastructure.cli.status import Standing

        if self._plan_id is None:
            return plan_table(listed(self._views))
        document = self._views.get("plan_document", self._plan_id)
        snapshot = self._views.get("plan_status", self._plan_id)
        return Standing.of(self._journal, self._plan_id, document, snapshot).text()


def _each(tell: Callable[[Recorded, str, str], None]) -> Told:
    """Tell of each event that people want to hear of."""

    def told(events: Sequence[Recorded]) -> None:
        for recorded in events:
            word, note = happened(recorded)
            if word:
                tell(recorded, word, note)

    return told


def happened(recorded: Recorded) -> tuple[str, str]:
    """What an event means in a word or two, and a note; no word for what says nothing new."""
    found = _to_the_plan(recorded.event) or _in_an_attempt(recorded.event)
    return found or (recorded.name.rsplit(".", 1)[1].replace("_", " "), "")


def _to_the_plan(event: Event) -> tuple[str, str] | None:
    from statelog.domain.execution import plan, slot

    match event:
        case plan.RunRequested(run_token=token):
            return f"run {token} requested", ""
        case plan.Adopted(execution_authority=authority):
            return "adopted", f"by {authority}"
        case plan.RequestFinished(run_token=token, outcome=outcome):
            return f"run {token} finished", outcome
        case plan.GenerationAssigned() | slot.Reporting() | slot.FloorRaised():
            return "", ""
        case slot.Held(execution_id=execution_id):
            return "admitted", f"execution {execution_id}"
        case slot.GaveUp(reason=reason):
            return "result pending", reason
        case slot.Released(how=how, reason=reason):
            return "released", f"{how}, {reason}" if reason else how
    return None


def _in_an_attempt(event: Event) -> tuple[str, str] | None:
    from statelog.domain.execution import attempt_events as attempt

    match event:
        case attempt.Started(steps=steps):
            return "started", f"{len(steps)} steps"
        case attempt.StepStarted(why=why):
            return "step started", "; ".join(why)
        case attempt.StepProgress(progress=percent, message=message):
            return "step progress", f"{percent:.0f} %{f', {message}' if message else ''}"
        case attempt.StepFailed(error=error):
            return "step failed", error
        case attempt.StepBlocked(failed_ancestors=ancestors):
            return "step blocked", f"by {', '.join(ancestors)}"
        case attempt.Closed(report=report):
            return f"ended {report['outcome']}", report["termination_reason"]
        case attempt.StepArtifact() | attempt.StepEmitted() | attempt.StepRetryUnimplemented():
            return "", ""
    return None


def _json(recorded: Recorded, word: str, note: str) -> dict[str, Any]:
    from statelog.domain.times import iso
    from statelog.projections.execution.streams import attempt_of, plan_of

    return {
        "position": recorded.position,
        "time": iso(recorded.time),
        "plan_id": plan_of(recorded),
        "execution_id": attempt_of(recorded) or getattr(recorded.event, "execution_id", None),
        "step_id": getattr(recorded.event, "step_id", None),
        "happened": word,
        "note": note,
    }


def _text(recorded: Recorded, word: str, note: str) -> str:
    from statelog.domain.times import iso_seconds
    from statelog.projections.execution.streams import plan_of

    where = [plan_of(recorded), getattr(recorded.event, "step_id", None)]
    parts = [iso_seconds(recorded.time)[11:19], *filter(None, where), word, note]
    return printable("  ".join(filter(None, parts)))
