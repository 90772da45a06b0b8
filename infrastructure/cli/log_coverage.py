"""`statelog log coverage`: which transitions, statuses and refusals the log has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.all_rules import WITH, all_rules
from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.loading import PATHS
from statelog.infrastructure.cli.output import emit, show
from statelog.infrastructure.cli.tables import table

if TYPE_CHECKING:
    from statelog.infrastructure.audit.rules import Rules
    from statelog.infrastructure.usage import Usage

EXAMPLES: Final = """
\b
Examples:
  statelog log coverage
  statelog log coverage --lifecycle slot
"""


def add_to(log: click.Group) -> None:
    """Register the command."""

    @command(log, "coverage", epilog=EXAMPLES)
    @click.option("--lifecycle", "name", metavar="NAME", help="This lifecycle alone, row by row.")
    @WITH
    @PATHS
    def coverage_of_log(
        settings: Settings, *, name: str | None, more: Sequence[str], folders: Sequence[Path]
    ) -> None:
        """Show how much of each declared lifecycle the log has used.

        Transitions with their counts and how long things had been in the status, statuses, and
        what was refused in them. With --json one line a lifecycle.
        """
        from statelog.domain.errors import Invalid

        used = used_by_log(settings, all_rules(more, folders))
        if name is not None and name not in used:
            raise Invalid("lifecycle", f"{name!r} is not one of {', '.join(used)}")
        chosen = used if name is None else {name: used[name]}
        if settings.as_json:
            for usage in chosen.values():
                emit(usage.data())
        elif name is None:
            show(summary(chosen))
        else:
            show(usage_table(chosen[name]))


def used_by_log(settings: Settings, rules: Rules) -> Mapping[str, Usage]:
    """How much the log used of each lifecycle."""
    from statelog.infrastructure.audit.coverage import coverage
    from statelog.infrastructure.cli.pace import Pace

    with settings.journal() as journal:
        pace, size, refusals = Pace(), journal.head(), journal.refusals()
        return coverage(journal.rows(), rules, refusals, lambda done: pace("reading", done, size))


def summary(used: Mapping[str, Usage]) -> str:
    """A line a lifecycle: how many rows and statuses of those that there are."""
    rows = []
    for name, usage in used.items():
        declared = [row for row in usage.lifecycle.rows if not row.retired]
        statuses = set(usage.lifecycle.statuses.__members__) - {
            each.name for each in usage.lifecycle.reserved
        }
        taken = len(declared) - len(usage.unused)
        seen = len(usage.visited & statuses)
        lived = len(statuses - _before(usage))
        events = sum(usage.taken.values())
        refused = sum(usage.refused.values())
        rows.append([name, f"{taken} of {len(declared)}", f"{seen} of {lived}", events, refused])
    return table(["lifecycle", "transitions", "statuses", "events", "refused"], rows)


def _before(usage: Usage) -> set[str]:
    """The first status, when nothing can come back to it: no event says that a thing is in it."""
    targets = {row.target for row in usage.lifecycle.rows}
    return set() if usage.lifecycle.new in targets else {usage.lifecycle.new.name}


def usage_table(usage: Usage) -> str:
    """Rows, then statuses, then refusals."""
    data = usage.data()
    rows = [
        [
            f"{row['event']}{' (retired)' if row['retired'] else ''}",
            row["from"],
            row["to"],
            row["count"],
            *_stretch(row),
        ]
        for row in data["rows"]
    ]
    head = ["event", "from", "to", "count", "median", "p95"]
    texts = [table(head, rows)]
    places = [[each["status"], each["now"], *_stretch(each)] for each in data["statuses"]]
    texts.append(table(["status", "now", "stayed, median", "p95"], places))
    if data["refused"]:
        refused = [[each["status"], each["rule"], each["count"]] for each in data["refused"]]
        texts.append(table(["refused in", "rule", "count"], refused))
    return "\n\n".join(texts)


def _stretch(value: Mapping[str, Any]) -> list[str]:
    from statelog.infrastructure.usage import long

    times = (value["median_s"], value["p95_s"])
    return ["" if time is None else long(round(time * 1e6)) for time in times]
