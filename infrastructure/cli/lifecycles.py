"""`statelog lifecycle`: the declared tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.all_rules import WITH, all_rules
from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.loading import PATHS
from statelog.infrastructure.cli.log_coverage import usage_table, used_by_log
from statelog.infrastructure.cli.output import emit, show, write_file
from statelog.infrastructure.cli.tables import table

if TYPE_CHECKING:
    from statelog.domain.lifecycle import AnyLifecycle
    from statelog.infrastructure.usage import Usage

NAMES: Final = (
    *("plan", "slot", "attempt", "step"),
    *("environment", "resource", "scope", "topology", "workflow", "schedule_plan"),
    *("job", "session", "algorithm_run"),
    *("run", "task", "handle", "erasure"),
)
EXAMPLES: Final = """
\b
Examples:
  statelog lifecycle
  statelog lifecycle attempt --format mermaid
  statelog lifecycle plan --from-log --format svg -o plan.svg
"""
_FORMS: Final = ("table", "mermaid", "markdown", "svg")


def add_to(app: click.Group) -> None:
    """Register the command."""

    @command(app, "lifecycle", epilog=EXAMPLES)
    @click.argument("name", metavar="[NAME]", required=False)
    @click.option(
        "--format",
        "form",
        type=click.Choice(_FORMS),
        default="table",
        show_default=True,
        help="How to print them.",
    )
    @click.option(
        "--from-log",
        is_flag=True,
        help="With what the log did: how often each row, how long things stayed, what was refused.",
    )
    @click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write it here (default: stdout).",
    )
    @WITH
    @PATHS
    def lifecycle(
        settings: Settings,
        *,
        name: str | None,
        form: str,
        from_log: bool,
        output: Path | None,
        more: Sequence[str],
        folders: Sequence[Path],
    ) -> None:
        """Print the declared lifecycle NAME, or all of them: which event leads where.

        With --from-log also what happened to it in the log. With --json one line a lifecycle.
        """
        rules = all_rules(more, folders)
        chosen = _chosen({**lifecycles(), **rules.lifecycles}, name, form)
        used = used_by_log(settings, rules) if from_log else {}
        if settings.as_json:
            for each in chosen:
                emit(_data(each, used))
            return
        text = _rendered(chosen, form, used)
        if output is None:
            show(text)
        else:
            write_file(output, f"{text}\n")


def _chosen(declared: dict[str, AnyLifecycle], name: str | None, form: str) -> list[AnyLifecycle]:
    from statelog.domain.errors import Invalid

    if name is None:
        if form == "svg":
            raise Invalid("name", "is needed: an SVG file shows one lifecycle")
        return list(declared.values())
    if name not in declared:
        raise Invalid("name", f"{name!r} is not one of {', '.join(declared)}")
    return [declared[name]]


def _data(lifecycle: AnyLifecycle, used: Mapping[str, Usage]) -> dict[str, Any]:
    from statelog.domain import describe

    known = used.get(lifecycle.name)
    described = describe.data(lifecycle)
    return described if known is None else {**described, "used": known.data()}


def _rendered(chosen: Sequence[AnyLifecycle], form: str, used: Mapping[str, Usage]) -> str:
    texts = [_render(each, form, used.get(each.name)).rstrip("\n") for each in chosen]
    if len(texts) == 1:
        return texts[0]
    titled = zip(chosen, texts, strict=True)
    return "\n\n".join(f"{_title(each, form)}\n{text}" for each, text in titled)


def _render(lifecycle: AnyLifecycle, form: str, usage: Usage | None) -> str:
    from statelog.domain import describe, diagram

    notes = None if usage is None else usage.notes()
    if form == "table":
        return _table(lifecycle) if usage is None else usage_table(usage)
    if form == "markdown":
        return describe.markdown(lifecycle)
    return (diagram.svg if form == "svg" else describe.mermaid)(lifecycle, notes)


def lifecycles() -> dict[str, AnyLifecycle]:
    """Every declared lifecycle by name."""
    from statelog.domain.erasure import ERASURE
    from statelog.domain.execution.attempt import ATTEMPT
    from statelog.domain.execution.plan import PLAN
    from statelog.domain.execution.slot import SLOT
    from statelog.domain.execution.step_lifecycle import STEP
    from statelog.domain.planning.algorithm_run import ALGORITHM_RUN
    from statelog.domain.planning.session import SESSION
    from statelog.domain.queue.job import JOB
    from statelog.domain.runs.handle import HANDLE
    from statelog.domain.runs.run import RUN
    from statelog.domain.runs.task import TASK
    from statelog.domain.workflows.definitions import KINDS

    found = (
        PLAN.lifecycle,
        SLOT.lifecycle,
        ATTEMPT.lifecycle,
        STEP,
        *(kind.aggregate.lifecycle for kind in KINDS.values()),
        JOB.lifecycle,
        SESSION.lifecycle,
        ALGORITHM_RUN.lifecycle,
        RUN.lifecycle,
        TASK,
        HANDLE,
        ERASURE.lifecycle,
    )
    return {each.name: each for each in found}


def _title(lifecycle: AnyLifecycle, form: str) -> str:
    return {"mermaid": f"%% {lifecycle.name}", "markdown": f"## {lifecycle.name}\n"}.get(
        form, click.style(lifecycle.name, bold=True)
    )


def _table(lifecycle: AnyLifecycle) -> str:
    from statelog.domain import describe

    described: dict[str, Any] = describe.data(lifecycle)
    rows = [
        [f"{row['event']}{' (retired)' if row['retired'] else ''}", row["from"], row["to"]]
        for row in described["rows"]
    ]
    final = ", ".join(described["final"]) or "none"
    return f"{table(['event', 'from', 'to'], rows)}\nstarts as {described['new']}; final: {final}"
