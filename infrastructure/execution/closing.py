"""Closing an attempt: its report, and the slot's next state, in one commit (D7, D9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.execution import attempt as decisions
from statelog.domain.execution import slot as slots
from statelog.domain.execution.attempt import Attempt
from statelog.domain.execution.endings import finishes_request
from statelog.domain.execution.faults import RUNNING, Fenced, OrchestrationError, PreflightRejected
from statelog.domain.execution.report import AttemptReport
from statelog.domain.execution.slot import Slot
from statelog.infrastructure.codec import escaped
from statelog.infrastructure.execution.writer import AttemptWriter


@dataclass(frozen=True)
class Ending:
    """Why an attempt ends: a termination reason, and the attempt-level failure if there is one."""

    reason: str
    diagnostic: Mapping[str, Any] | None = None


def close(
    writer: AttemptWriter,
    ending: Ending,
    ended_at: str,
    *,
    publication_failure: Mapping[str, Any] | None = None,
    released_because: str | None = None,
) -> Mapping[str, Any]:
    """Append the closed report and move the slot on; answers the report.

    Raises `Fenced` and `PublicationError` as the writer does.
    """
    report = final_report(writer.attempt.state, ending, ended_at, publication_failure)
    document = report.to_json()
    while True:
        slot = _moved_on(writer.slot, document, released_because)
        try:
            writer.commit(writer.attempt.decide(decisions.close, report=report), slot)
            return document
        except Fenced:
            if not writer.reread_slot():
                raise


def _moved_on(
    slot: Loaded[Slot], report: Mapping[str, Any], released_because: str | None
) -> Change[Slot]:
    """The slot of a closed attempt: its result is to be recorded, or the plan is free."""
    execution_id = slot.state.execution_id or ""
    if finishes_request(report):
        return slot.decide(slots.file_report, execution_id=execution_id)
    return slot.decide(
        slots.release, execution_id=execution_id, how=slots.UNFINISHED, reason=released_because
    )


def final_report(
    attempt: Attempt,
    ending: Ending,
    ended_at: str,
    publication_failure: Mapping[str, Any] | None = None,
) -> AttemptReport:
    """The closed report of an attempt as its events tell it."""
    details = (ending.diagnostic or {}).get("details", {})
    report = decisions.report_so_far(attempt, interrupted=details.get(RUNNING))
    report = report.closed(ending.reason, ended_at, ending.diagnostic)
    if publication_failure is not None:
        report = report.with_publication_failure(publication_failure)
    return report


def diagnostic(error: BaseException, running: str | None = None) -> dict[str, Any]:
    """An attempt-level failure as reports show it (1.7)."""
    ours = isinstance(error, OrchestrationError | PreflightRejected)
    given: Mapping[str, Any] = getattr(error, "details", {}) if ours else {}
    details = {key: _storable(value) for key, value in given.items()}
    if running is not None:
        details[RUNNING] = running
    return {
        "message": text_of(error),
        "error_type": escaped(type(error).__name__),
        "details": details,
    }


def text_of(error: BaseException) -> str:
    """What an error says, storable; its class when it says nothing or cannot say it."""
    try:
        text = str(error)
    except Exception:
        text = ""
    name = type(error).__name__
    if not isinstance(error, Exception) and text:
        return escaped(f"{name}: {text}")  # `sys.exit(3)` says no more than 3
    return escaped(text or name)


def _storable(value: Any) -> Any:
    return escaped(value) if isinstance(value, str) else value
