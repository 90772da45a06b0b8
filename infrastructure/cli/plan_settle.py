"""`statelog plan settle`: one bounded round for a result that waits to be recorded (D10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from statelog.infrastructure.cli.common import FAILED, OK, Settings, command
from statelog.infrastructure.cli.options import LOG_FORMAT
from statelog.infrastructure.cli.output import emit, printable, show
from statelog.infrastructure.cli.plan_commands import PLAN_ID

if TYPE_CHECKING:
    from statelog.infrastructure.execution.settle import Recorded
    from statelog.infrastructure.journal import Journal


def add_to(plan: click.Group) -> None:
    """Register the command in the group of plans."""

    @command(plan, "settle", epilog="Example: statelog plan settle reads-qc")
    @PLAN_ID
    @LOG_FORMAT
    def settle(settings: Settings, *, plan_id: str, log_format: str) -> int:
        """Record a result that is pending, or free the plan of what a dead process left.

        One bounded round, whoever may execute the plan: nothing runs. Exit code 0: nothing is
        pending any more; 1: it still is.
        """
        from statelog.infrastructure.logs import logged

        with logged(log_format, "WARNING"), settings.journal() as journal:
            settled = _settled(settings, journal, plan_id)
        if settings.as_json:
            emit(_json(plan_id, settled))
        else:
            show(printable(f"plan {plan_id!r}: {_text(settled)}"))
        return FAILED if settled is not None and settled.recording.value == "pending" else OK


def _settled(settings: Settings, journal: Journal, plan_id: str) -> Recorded | None:
    from statelog.domain.errors import NotFound
    from statelog.domain.execution.plan import PLAN
    from statelog.domain.execution.spec import path_part
    from statelog.infrastructure.execution.settle import Settler
    from statelog.infrastructure.holders import Holders

    if not journal.load(PLAN, path_part(plan_id, "plan_id")).version:
        raise NotFound("plan", plan_id)
    return Settler(journal, Holders.for_journal(journal), settings.who).recover(plan_id)


def _json(plan_id: str, settled: Recorded | None) -> dict[str, object]:
    report = settled.report if settled else {}
    return {
        "plan_id": plan_id,
        "recording": settled.recording.value if settled else None,
        "reason": settled.reason if settled else None,
        **{name: report.get(name) for name in ("execution_id", "run_token", "outcome")},
    }


def _text(settled: Recorded | None) -> str:
    if settled is None:
        return "no result is pending"
    why = f" ({settled.reason})" if settled.reason else ""
    which = f"the result of execution {settled.report['execution_id']}"
    told = {
        "recorded": f"is recorded: {settled.report['outcome']}",
        "superseded": f"is superseded{why} and dropped",
        "pending": f"is still pending{why}",
    }
    return f"{which} {told[settled.recording.value]}"
