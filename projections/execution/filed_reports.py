"""Reports of closed attempts, kept until the plan records one of them (D7).

A report is in its attempt's stream, and its recording in the plan's: a view that shows both keeps
the last one closed, and the one that the slot says is to be recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.event import Event, Recorded
from statelog.domain.execution.attempt_events import Closed
from statelog.domain.execution.plan import RequestFinished
from statelog.domain.execution.slot import Reporting
from statelog.domain.times import iso_seconds
from statelog.projections.execution.streams import attempt_of

Report = Mapping[str, Any]

REPORT_EVENTS: Final = (Closed, Reporting)


@dataclass(frozen=True)
class FiledReports:
    """Reports by execution ID, and the execution whose result is to be recorded."""

    reports: Mapping[str, Report] = field(default_factory=dict)
    awaited: str | None = None


def file(filed: FiledReports, event: Event, execution_id: str | None) -> FiledReports:
    """What is kept after a close, or after the slot said whose result is to be recorded."""
    if isinstance(event, Closed) and execution_id is not None:
        kept = {id: report for id, report in filed.reports.items() if id == filed.awaited}
        return FiledReports({execution_id: event.report, **kept}, filed.awaited)
    if isinstance(event, Reporting):
        return FiledReports(filed.reports, event.execution_id)
    return filed


def file_recorded(filed: FiledReports, recorded: Recorded) -> FiledReports:
    """The same for a recorded event, which knows its attempt."""
    return file(filed, recorded.event, attempt_of(recorded))


def completion(
    plan_id: str, finished: RequestFinished, at: int, filed: FiledReports
) -> dict[str, Any]:
    """The record of a finished request (1.10): identity, when, and the full report.

    The report is None when no close of that execution was seen.
    """
    return {
        "execution_id": finished.execution_id,
        "plan_id": plan_id,
        "plan_generation": finished.plan_generation,
        "run_token": finished.run_token,
        "failure_policy": finished.failure_policy,
        "outcome": finished.outcome,
        "termination_reason": finished.termination_reason,
        "finalized_at": iso_seconds(at),
        "report": filed.reports.get(finished.execution_id),
    }
