"""`statelog lifecycle`: the declared tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.output import emit, show
from statelog.infrastructure.cli.tables import table

if TYPE_CHECKING:
    from statelog.domain.lifecycle import AnyLifecycle

NAMES: Final = (
    *("plan", "slot", "attempt", "step"),
    *("environment", "resource", "scope", "topology", "workflow", "schedule_plan"),
    *("job", "session", "algorithm_run"),
    *("run", "task", "handle"),
)
EXAMPLES: Final = """
\b
Examples:
  statelog lifecycle
  statelog lifecycle attempt --format mermaid
"""


def add_to(app: click.Group) -> None:
    """Register the command."""

    @command(app, "lifecycle", epilog=EXAMPLES)
    @click.argument("name", metavar="[NAME]", required=False, type=click.Choice(NAMES))
    @click.option(
        "--format",
        "form",
        type=click.Choice(["table", "mermaid", "markdown"]),
        default="table",
        show_default=True,
        help="How to print them.",
    )
    def lifecycle(settings: Settings, *, name: str | None, form: str) -> None:
        """Print the declared lifecycle NAME, or all of them: which event leads where.

        With --json one line a lifecycle.
        """
        from statelog.domain import describe

        declared = lifecycles()
        chosen = [declared[name]] if name else list(declared.values())
        if settings.as_json:
            for each in chosen:
                emit(describe.data(each))
            return
        render = {"table": _table, "mermaid": describe.mermaid, "markdown": describe.markdown}[form]
        if len(chosen) == 1:
            show(render(chosen[0]).rstrip("\n"))
            return
        show("\n\n".join(f"{_title(each, form)}\n{render(each)}".rstrip("\n") for each in chosen))


def lifecycles() -> dict[str, AnyLifecycle]:
    """Every declared lifecycle by name."""
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
