"""`statelog log`: the events themselves, and what was refused."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli import (
    log_archive,
    log_at,
    log_audit,
    log_bisect,
    log_coverage,
    log_diff,
    log_erase,
    log_export,
    log_import,
    log_seal,
)
from statelog.infrastructure.cli.common import Settings, command, group
from statelog.infrastructure.cli.output import emit, printable, show
from statelog.infrastructure.cli.prefix import stream_prefix
from statelog.infrastructure.cli.tables import table

if TYPE_CHECKING:
    from statelog.domain.event import Recorded

HELP: Final = "Read the event log, check it, and take things out of it."
EXAMPLES: Final = """
\b
Examples:
  statelog log history reads-qc
  statelog log history plan/reads-qc/slot --since 120 --json
  statelog log tail --follow
  statelog log at 2026-01-31T09:30:00Z plan_status reads-qc
  statelog log diff 120 now plan_status reads-qc
  statelog log bisect checks:is_sound --view plan_status --key reads-qc
  statelog log audit
  statelog log coverage
  statelog log refusals
  statelog log export --payloads -o log.jsonl
  statelog log erase plan/reads-qc --reason 'GDPR request 17'
"""

_TAIL: Final = 10
_PUBLISHED: Final = "queue.job.published"
_PAYLOADS: Final = click.option(
    "--payloads", is_flag=True, help="Print the payloads of queue jobs too."
)


def add_to(app: click.Group) -> None:
    """Register the group and its commands."""
    log = group(app, "log", HELP, EXAMPLES)
    _history(log)
    _tail(log)
    log_at.add_to(log)
    log_diff.add_to(log)
    log_bisect.add_to(log)
    log_audit.add_to(log)
    log_coverage.add_to(log)
    _refusals(log)
    log_seal.add_to(log)
    log_erase.add_to(log)
    log_archive.add_to(log)
    log_export.add_to(log)
    log_import.add_to(log)


def _history(log: click.Group) -> None:
    @command(log, "history", epilog="Example: statelog log history reads-qc --since 120")
    @click.argument("prefix", metavar="PREFIX")
    @_PAYLOADS
    @click.option(
        "--since",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Only events after position N.",
    )
    def history(settings: Settings, *, prefix: str, since: int, payloads: bool) -> None:
        """Print every event of the stream PREFIX and of all streams below it, in log order.

        A bare plan id stands for plan/ID: the plan, its slot and its attempts. With --json one
        line an event.
        """
        from statelog.domain.errors import NotFound

        stream = stream_prefix(prefix)
        with settings.journal() as journal:
            found = False
            for recorded in journal.history(stream, after=since):
                found = True
                if settings.as_json:
                    emit(event_line(recorded, payloads=payloads))
                else:
                    show(event_text(recorded, payloads=payloads))
            if not found and next(journal.history(stream), None) is None:
                raise NotFound("stream", stream)


def _tail(log: click.Group) -> None:
    @command(log, "tail", epilog="Example: statelog log tail --since 1200 --follow | jq .name")
    @click.option(
        "--since",
        type=click.IntRange(min=0),
        metavar="N",
        help="Only events after position N (default: the last ten).",
    )
    @click.option("--follow", is_flag=True, help="Go on with events as they come, until Ctrl-C.")
    @_PAYLOADS
    def tail(settings: Settings, *, since: int | None, follow: bool, payloads: bool) -> None:
        """Print the end of the log as JSON lines, each event once and in order."""
        with settings.journal() as journal:
            after = max(0, journal.head() - _TAIL) if since is None else since
            with journal.follow(after=after) as follower:
                events = follower.ready()
                while events or follow:
                    for recorded in events:
                        emit(event_line(recorded, payloads=payloads))
                    events = follower.batch() if follow else follower.ready()


def _data(recorded: Recorded, *, payloads: bool) -> Any:
    """The data of an event, None once erased; without the payload of a job unless asked for."""
    from statelog.projections.queue.payloads import without_payload

    if recorded.data is None:
        return None
    data = json.loads(recorded.data)
    return data if payloads else without_payload(recorded.name, data)


def event_line(recorded: Recorded, *, payloads: bool = False) -> dict[str, Any]:
    """One event as a JSON line."""
    from statelog.domain.times import iso

    return {
        "position": recorded.position,
        "stream": recorded.stream,
        "version": recorded.version,
        "name": recorded.name,
        "schema": recorded.schema,
        "time": iso(recorded.time),
        "actor": recorded.actor,
        "command": recorded.command,
        "correlation": recorded.correlation,
        "cause": recorded.cause,
        "meta": recorded.meta,
        "data": _data(recorded, payloads=payloads),
    }


def event_text(recorded: Recorded, *, payloads: bool = False) -> str:
    """One event; on a terminal its data is cut where the line ends."""
    from statelog.domain.times import iso

    data = "(erased)" if recorded.data is None else recorded.data.decode()
    if recorded.name == _PUBLISHED and not payloads:
        data = json.dumps(_data(recorded, payloads=False), ensure_ascii=False)
    place = f"{recorded.stream}@{recorded.version}"
    line = printable(
        f"{recorded.position:>6}  {iso(recorded.time)}  {recorded.actor}  {recorded.name}  "
        f"{place}  {data}"
    )
    width = shutil.get_terminal_size().columns
    if not sys.stdout.isatty() or len(line) <= width:
        return line
    return f"{line[: width - 1]}\N{HORIZONTAL ELLIPSIS}"


def _refusals(log: click.Group) -> None:
    @command(log, "refusals", epilog="Example: statelog log refusals --limit 20")
    @click.option(
        "--limit",
        type=click.IntRange(min=1),
        metavar="N",
        help="Only the newest N (default: all that are kept).",
    )
    def refusals(settings: Settings, *, limit: int | None) -> None:
        """List the commands that a rule forbade, the oldest first. With --json one line each."""
        from statelog.domain.times import iso

        names = ("time", "actor", "stream", "version", "command", "rule", "reason")
        with settings.journal() as journal:
            found = [{**vars(each), "time": iso(each.time)} for each in journal.refusals(limit)]
            gone = journal.health()["refusals_gone"]
        if settings.as_json:
            for each in found:
                emit({name: each[name] for name in names})
            return
        if found:
            people = [name for name in names if name != "command"]
            show(table(people, [[each[name] for name in people] for each in found]))
        else:
            show("nothing was refused")
        if gone:
            show(f"\n{gone} older ones are no longer kept")
