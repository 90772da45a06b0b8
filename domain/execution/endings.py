"""What an attempt's ending means: is the request finished, how loud, which exit code (4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from statelog.domain.execution.outcomes import (
    CANCELLED,
    COMPLETED,
    FAILED,
    FAILED_FAST,
    ORCHESTRATION_ERROR,
    PREFLIGHT_REJECTED,
    SUCCEEDED,
)
from statelog.domain.execution.spec import CONTINUE_INDEPENDENT, POLICIES

Report = Mapping[str, Any]
"""The JSON mapping of an attempt report (1.7)."""

Level = Literal["INFO", "WARNING", "ERROR"]
"""Name of a log level."""

INTERRUPTED: Final = 130
"""The exit code of Ctrl-C."""


class Resolution(Enum):
    """What became of one wish to execute a plan (1.11)."""

    NOT_FOUND = "not_found"
    NOT_AUTHORIZED = "not_authorized"
    NOT_ELIGIBLE = "not_eligible"
    DUPLICATE = "duplicate"
    INVALID_DOCUMENT = "invalid_document"
    ADMISSION_FAILED = "admission_failed"
    FINALIZED = "finalized"
    UNFINISHED = "unfinished"
    CANCELLED = "cancelled"
    FINALIZATION_PENDING = "finalization_pending"
    SUPERSEDED = "superseded"


class Recording(Enum):
    """What became of recording a result that finishes its request."""

    RECORDED = "recorded"
    SUPERSEDED = "superseded"
    PENDING = "pending"


_INFO = {Resolution.NOT_AUTHORIZED, Resolution.NOT_ELIGIBLE, Resolution.DUPLICATE}
_WARNING = {Resolution.CANCELLED, Resolution.SUPERSEDED}
_RECORDED = {
    Recording.RECORDED: Resolution.FINALIZED,
    Recording.SUPERSEDED: Resolution.SUPERSEDED,
    Recording.PENDING: Resolution.FINALIZATION_PENDING,
}


def finishes_request(report: Report | None) -> bool:
    """Whether outcome and token are to be recorded together (4.2).

    Only the report's own words decide, never an exception: `completed` and `succeeded` under both
    policies, `completed` or `preflight_rejected` and `failed` under `continue_independent`. A
    report that is missing, open or could not be published finishes nothing.
    """
    if report is None or report.get("publication_failure") is not None:
        return False
    ending = (report.get("termination_reason"), report.get("outcome"))
    policy = report.get("failure_policy")
    if ending == (COMPLETED, SUCCEEDED):
        return policy in POLICIES
    failed = ((COMPLETED, FAILED), (PREFLIGHT_REJECTED, FAILED))
    return policy == CONTINUE_INDEPENDENT and ending in failed


def resolution_of(report: Report | None, recording: Recording | None = None) -> Resolution:
    """The resolution of an attempt that ran (4.2); no report means the engine returned none.

    `recording` is needed when the report finishes its request, and ignored otherwise. Raises
    `ValueError` when it is needed and missing.
    """
    if finishes_request(report):
        if recording is None:
            raise ValueError("a finished request was recorded, superseded or is pending: say which")
        return _RECORDED[recording]
    if report is not None and report.get("termination_reason") == CANCELLED:
        return Resolution.CANCELLED
    return Resolution.UNFINISHED


def log_level(resolution: Resolution, report: Report | None = None) -> Level:
    """How loud a resolution is told (4.3, D18); the report matters for `finalized` only."""
    if resolution in _INFO:
        return "INFO"
    if resolution in _WARNING:
        return "WARNING"
    if resolution is not Resolution.FINALIZED or report is None:
        return "ERROR"
    ending = (report.get("termination_reason"), report.get("outcome"))
    levels: dict[tuple[Any, Any], Level] = {
        (COMPLETED, SUCCEEDED): "INFO",
        (COMPLETED, FAILED): "WARNING",
    }
    return levels.get(ending, "ERROR")


def exit_code(
    resolution: Resolution,
    report: Report | None = None,
    *,
    interrupted: bool = False,
    taken_over: bool = False,
) -> int:
    """What one plan contributes to the exit code of a run (9, D18).

    `interrupted`: Ctrl-C was pressed, which is 130 whatever else happened. `taken_over`: a plan
    that was this session's went to somebody else while it waited (2.8), which is no error; being
    refused a plan at once is one.
    """
    if interrupted:
        return INTERRUPTED
    if resolution is Resolution.FINALIZED and report is not None:
        return 0 if report.get("outcome") == SUCCEEDED else 1
    return 0 if resolution is Resolution.NOT_AUTHORIZED and taken_over else 1


def combined_exit_code(codes: Iterable[int]) -> int:
    """The exit code of a run over several plans: the highest, 0 for none."""
    return max(codes, default=0)


def pending_line(plan_id: str, execution_id: str, outcome: str) -> str:
    """The log line of a result that stays pending, word for word (D18)."""
    return (
        f"Plan '{plan_id}' execution '{execution_id}' {outcome} finished, but its result could "
        "not be recorded; keeping it pending, and not executing the plan again until it is "
        "recorded or superseded."
    )


@dataclass(frozen=True)
class Ending:
    """One row of the table of endings (4.2)."""

    number: str
    finished: bool
    resolution: Resolution
    level: Level
    exit: int


def ending(
    report: Report | None, recording: Recording | None = None, *, interrupted: bool = False
) -> Ending:
    """The row of the table of endings an attempt falls in (E1 to E11).

    `finished` says that outcome and token are recorded together. Raises as `resolution_of`.
    """
    resolution = resolution_of(report, recording)
    return Ending(
        number=_number(report, resolution),
        finished=resolution is Resolution.FINALIZED,
        resolution=resolution,
        level=log_level(resolution, report),
        exit=exit_code(resolution, report, interrupted=interrupted),
    )


def _number(report: Report | None, resolution: Resolution) -> str:
    if report is None or report.get("termination_reason") is None:
        return "E11"
    if resolution is Resolution.SUPERSEDED:
        return "E9"
    if resolution is Resolution.FINALIZATION_PENDING:
        return "E10"
    reason = report["termination_reason"]
    if report.get("publication_failure") is not None and reason != CANCELLED:
        return "E8"
    if reason == PREFLIGHT_REJECTED:
        return "E4" if report.get("failure_policy") in POLICIES else "E5"
    if reason == COMPLETED:
        return "E1" if report.get("outcome") == SUCCEEDED else "E2"
    return {FAILED_FAST: "E3", CANCELLED: "E6", ORCHESTRATION_ERROR: "E7"}.get(reason, "E11")
