"""`statelog plan`: the commands that change plan documents (D3, D4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.common import Settings, command, group
from statelog.infrastructure.cli.output import emit, printable, show

if TYPE_CHECKING:
    from statelog.infrastructure.execution.plans import Plans
    from statelog.infrastructure.journal import Committed

HELP: Final = """Save, approve, request, adopt and read plans."""
EXAMPLES: Final = """
\b
Examples:
  statelog plan save plan.json --approve
  statelog plan list
  statelog plan status reads-qc
"""

REV = click.option(
    "--rev",
    type=click.IntRange(min=0),
    metavar="N",
    help="Only if the plan is at this revision (`_rev` of `plan show`).",
)
PLAN_ID = click.argument("plan_id", metavar="ID")
PARAM = click.option(
    "--param",
    "params",
    multiple=True,
    metavar="STEP.KEY=VALUE",
    help="Set a parameter; VALUE is JSON if it parses, else a string. Repeatable.",
)

Act = Callable[["Plans", str, int | None], "Committed[Any]"]


def add_to(app: click.Group) -> click.Group:
    """Register the group and its commands; the group."""
    plan = group(app, "plan", HELP, EXAMPLES)
    _save(plan)
    for name, act, told, help in _ACTS:
        _simple(plan, name, act, told, help)
    return plan


def _save(plan: click.Group) -> None:
    @command(plan, "save", epilog=_example("save plan.json --approve"))
    @click.argument("file", type=click.Path(path_type=Path))
    @click.option("--approve", is_flag=True, help="Allow it to run (default: a draft).")
    @click.option("--force", is_flag=True, help="Save over an existing plan: a new generation.")
    @REV
    @PARAM
    def save(
        settings: Settings,
        *,
        file: Path,
        approve: bool,
        force: bool,
        rev: int | None,
        params: tuple[str, ...],
    ) -> None:
        """Save the plan in FILE for the daemon, as a draft.

        A plan that is there already needs --force or --rev, and becomes a new generation: its
        tokens start again and its last result is dropped.
        """
        from statelog.infrastructure.execution.planfile import read_plan, with_params
        from statelog.infrastructure.execution.plans import checked_body

        body = with_params(read_plan(file), list(params))
        checked_body(body)
        with settings.journal(create=True) as journal:
            saved = _plans(settings, journal).save(body, approve=approve, force=force, rev=rev)
        _tell(settings, saved, "saved")


def _simple(plan: click.Group, name: str, act: Act, told: str, help: str) -> None:
    @command(plan, name, help=help, epilog=_example(f"{name} reads-qc"))
    @PLAN_ID
    @REV
    def simple(settings: Settings, *, plan_id: str, rev: int | None) -> None:
        with settings.journal() as journal:
            _tell(settings, act(_plans(settings, journal), plan_id, rev), told)


_ACTS: Final[tuple[tuple[str, Act, str, str], ...]] = (
    (
        "approve",
        lambda plans, id, rev: plans.approve(id, rev=rev),
        "approved",
        "Allow a plan to run. Of an approved one with an open request: look at it again.",
    ),
    (
        "draft",
        lambda plans, id, rev: plans.draft(id, rev=rev),
        "returned to draft",
        "Take the permission to run back. What runs now goes on.",
    ),
    (
        "request",
        lambda plans, id, rev: plans.request(id, rev=rev),
        "asked for another run",
        "Ask for another run: raise the run token by one.",
    ),
    (
        "touch",
        lambda plans, id, rev: plans.touch(id, rev=rev),
        "touched",
        "Ask to look at a plan again, with nothing changed.",
    ),
    (
        "adopt",
        lambda plans, id, rev: plans.adopt(id, rev=rev),
        "given to the daemon",
        "Give a plan to the daemon. A result that waits to be recorded is settled first.",
    ),
    (
        "delete",
        lambda plans, id, rev: plans.delete(id, rev=rev),
        "deleted",
        "Delete a plan's document. The log keeps its history.",
    ),
)


def _example(words: str) -> str:
    return f"Example: statelog plan {words}"


def _plans(settings: Settings, journal: Any) -> Plans:
    from statelog.infrastructure.execution.plans import Plans
    from statelog.infrastructure.holders import Holders

    return Plans(journal, settings.who, Holders.for_journal(journal))


def _tell(settings: Settings, committed: Committed[Any], told: str) -> None:
    """Say what the command did, and where the plan is now."""
    from statelog.domain.execution.request import request_state

    plan, plan_id = committed.state, str(committed.loaded[0].id)
    changed = bool(committed.events)
    status = plan.status.value
    if settings.as_json:
        emit(
            {
                "plan_id": plan_id,
                "_rev": str(committed.version),
                "changed": changed,
                "status": status,
                "plan_generation": plan.plan_generation,
                "run_token": plan.run_token,
                "executed_run_token": plan.executed_run_token,
                "execution_authority": plan.execution_authority,
                "execution_owner": plan.execution_owner,
            }
        )
        return
    now = [f"revision {committed.version}"]
    if status != "absent":
        state = request_state(status, plan.run_token, plan.executed_run_token)
        now = [status, f"run {plan.run_token} {state or 'unreadable'}", *now]
    did = told if changed else "nothing to change"
    show(printable(f"plan {plan_id!r}: {did}; {', '.join(now)}"))
    if changed and status == "draft" and told == "asked for another run":
        show(printable(f"  it runs once it is approved: statelog plan approve {plan_id}"))
