"""`statelog plan`: the commands that read plans, their attempts and their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.erased import readable
from statelog.infrastructure.cli.output import emit, show
from statelog.infrastructure.cli.plan_commands import PLAN_ID
from statelog.infrastructure.cli.tables import counted, facts, table

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal
    from statelog.infrastructure.views import Views

ATTEMPT = click.option(
    "--attempt", metavar="EXECUTION_ID", help="Of this attempt (default: the newest one)."
)


def add_to(plan: click.Group) -> None:
    """Register the commands in the group of plans."""
    _show(plan)
    _list(plan)
    _status(plan)
    _attempts(plan)
    _explain(plan)


def _show(plan: click.Group) -> None:
    @command(plan, "show", epilog="Example: statelog plan show reads-qc")
    @PLAN_ID
    def show_document(settings: Settings, *, plan_id: str) -> None:
        """Print a plan's document: approval, tokens, authority, body and last recorded result.

        `pending_result` says which result waits to be recorded, and why; null when none does.
        """
        from statelog.infrastructure.cli.status import pending_result

        with settings.journal() as journal, settings.views(journal) as views:
            document = views.get("plan_document", _known(plan_id))
            if document is None:
                raise _missing("plan", plan_id)
            pending = pending_result(journal, plan_id)
        emit({**document, "pending_result": pending}, pretty=not settings.as_json)


def _list(plan: click.Group) -> None:
    @command(plan, "list", epilog="Example: statelog plan list --json | jq -r .plan_id")
    def list_plans(settings: Settings) -> None:
        """List the plans: the last recorded result, and the newest attempt, which may differ.

        With --json one line a plan: its summary, the state of its `request` (open, parked or
        finished) and its newest `attempt`.
        """
        with settings.journal() as journal, settings.views(journal) as views:
            plans = listed(views)
        if settings.as_json:
            for line in plans:
                emit(line)
        else:
            show(plan_table(plans))


_LIST: Final = (
    *("plan", "status", "authority", "request", "last recorded", "newest attempt", "execution"),
)


def listed(views: Views) -> list[dict[str, Any]]:
    """One line a plan: its summary, the state of its request, and its newest attempt."""
    from statelog.domain.execution.request import request_state

    plans = [line for _, line in views.rows("plan_summary")]
    attempts = {id: seen["attempt"] for id, seen in views.rows("plan_status")}
    for line in plans:
        tokens = (line["run_token"], line["executed_run_token"])
        line["request"] = request_state(line["status"], *tokens)
        line["attempt"] = attempts.get(line["plan_id"])
    return plans


def plan_table(plans: list[dict[str, Any]]) -> str:
    """The lines of all plans as people read them."""
    return table(_LIST, [_row(line) for line in plans]) if plans else "no plans"


def _row(line: dict[str, Any]) -> list[Any]:
    attempt = line["attempt"] or {}
    request = f"{line['request'] or 'unreadable'} (run {line['run_token']})"
    return [
        *(line["plan_id"], line["status"], line["execution_authority"], request),
        *(line["last_finalized_outcome"], _ended(attempt), attempt.get("execution_id")),
    ]


def _ended(attempt: dict[str, Any]) -> str | None:
    """An attempt in a word: running, or its outcome, with the reason where it says more."""
    if not attempt or attempt["outcome"] is None:
        return attempt.get("state")
    reason = attempt["termination_reason"]
    more = "" if reason == "completed" else f" ({reason})"
    return f"{attempt['outcome']}{more}"


def _status(plan: click.Group) -> None:
    @command(plan, "status", epilog="Example: statelog plan status reads-qc")
    @PLAN_ID
    @ATTEMPT
    def status(settings: Settings, *, plan_id: str, attempt: str | None) -> None:
        """Show where a plan's newest attempt is, step by step.

        With --json the snapshot of the view `plan_status`, as it is; null before the first attempt.
        """
        from statelog.infrastructure.cli.status import Standing

        with settings.journal() as journal, settings.views(journal) as views:
            document = views.get("plan_document", _known(plan_id))
            snapshot = _snapshot(journal, plan_id, attempt) if attempt else None
            if attempt is None:
                snapshot = views.get("plan_status", plan_id)
                if snapshot is None and document is None:
                    raise _missing("plan", plan_id)
            elif snapshot is None:
                raise _missing("attempt", attempt)
            if settings.as_json:
                emit(snapshot)
            else:
                show(Standing.of(journal, plan_id, document, snapshot).text())


def _snapshot(journal: Journal, plan_id: str, execution_id: str) -> Any:
    from statelog.domain.execution.plan import PLAN
    from statelog.infrastructure.json_values import to_json
    from statelog.projections.execution.plan_status import plan_status, snapshot_of

    events = journal.history(PLAN.stream_of(plan_id), names=plan_status.names)
    return to_json(snapshot_of(readable(events), execution_id))


def _attempts(plan: click.Group) -> None:
    @command(plan, "attempts", epilog="Example: statelog plan attempts reads-qc")
    @PLAN_ID
    def attempts(settings: Settings, *, plan_id: str) -> None:
        """List every attempt of a plan, the newest first. With --json one line an attempt."""
        from statelog.domain.execution.plan import PLAN
        from statelog.infrastructure.json_values import to_json
        from statelog.projections.execution.plan_status import ATTEMPT_LIST_NAMES, attempts_of

        with settings.journal() as journal:
            stream = PLAN.stream_of(_known(plan_id))
            events = readable(journal.history(stream, names=ATTEMPT_LIST_NAMES))
            found: Any = to_json(attempts_of(events))
            if not found and not any(True for _ in journal.history(stream)):
                raise _missing("plan", plan_id)
        if settings.as_json:
            for each in found:
                emit(each)
        elif found:
            show(table(_ATTEMPTS, [_attempt_row(each) for each in found]))
        else:
            show("no attempts")


_ATTEMPTS: Final = ("execution", "run", "started", "ended", "result", "steps")


def _attempt_row(attempt: dict[str, Any]) -> list[Any]:
    return [
        *(attempt["execution_id"], attempt["run_token"]),
        *(attempt["started_at"], attempt["ended_at"], _ended(attempt), counted(attempt["counts"])),
    ]


def _explain(plan: click.Group) -> None:
    @command(plan, "explain", epilog="Example: statelog plan explain reads-qc report")
    @PLAN_ID
    @click.argument("step_id", metavar="STEP")
    @ATTEMPT
    def explain_step(
        settings: Settings, *, plan_id: str, step_id: str, attempt: str | None
    ) -> None:
        """Say why a step is in its state.

        The events that gave it, why it was not reused and what differs from its last success, and
        what failed upstream.
        """
        from statelog.domain.execution.plan import PLAN
        from statelog.infrastructure.json_values import to_json
        from statelog.projections.execution.explain import explain
        from statelog.projections.execution.plan_status import ATTEMPT_LIST_NAMES, attempts_of

        with settings.journal() as journal:
            stream = PLAN.stream_of(_known(plan_id))
            told: Any = to_json(explain(readable(journal.history(stream)), step_id, attempt))
            if told is None:
                if not any(True for _ in journal.history(stream)):
                    raise _missing("plan", plan_id)
                events = journal.history(stream, names=ATTEMPT_LIST_NAMES)
                known = attempts_of(each for each in events if each.data is not None)
                if attempt and attempt not in {each["execution_id"] for each in known}:
                    raise _missing("attempt", attempt)
                raise _missing(
                    "step" if known else "attempt of plan", step_id if known else plan_id
                )
        if settings.as_json:
            emit(told)
        else:
            show(_explained(told))


def _explained(told: dict[str, Any]) -> str:
    error, last = told["error"] or {}, told["last_success"]
    ending = told["attempt"]
    head = facts(
        {
            "step": f"{told['step_id']} ({told['step_name']})",
            "state": told["outcome"] or told["state"].removeprefix("step."),
            "since": told["ts"],
            "attempt": f"{told['execution_id']}, {_ended(ending)}",
            "attempt failure": (ending["diagnostic"] or {}).get("message"),
            "not reused because": told["why"] or None,
            "differs from last success": told["differ"] or None,
            "last success": f"{last['execution_id']}, {last['ts']}" if last else None,
            "fingerprint": told["fingerprint"],
            "error": error.get("error"),
            "error code": error.get("code"),
            "advice": error.get("advice"),
            "blocked by": told["direct_blockers"] or None,
            "failed upstream": [f"{k}: {v}" for k, v in told["failed_upstream"].items()] or None,
        }
    )
    names = ("position", "ts", "type", "actor", "eid")
    return f"{head}\n\n{table(names, [[each[n] for n in names] for each in told['events']])}"


def _known(plan_id: str) -> str:
    """The id, if a plan can have it. Raises `Invalid`."""
    from statelog.domain.execution.spec import path_part

    return path_part(plan_id, "plan_id")


def _missing(kind: str, id: str) -> Exception:
    from statelog.domain.errors import NotFound

    return NotFound(kind, id)
