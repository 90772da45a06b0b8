"""Recording a result: what may be asked for, and how one read of the plan is judged (2.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.execution.endings import Report, finishes_request
from statelog.domain.execution.request import (
    AUTHORITIES,
    Document,
    generation,
    owner_of,
    present,
    token,
)

IDENTITY: Final = (
    "execution_id",
    "plan_id",
    "plan_generation",
    "run_token",
    "failure_policy",
    "outcome",
    "termination_reason",
)
"""The seven fields that say which completion a record is of (1.10)."""


@dataclass(frozen=True)
class FinalizationRequest:
    """A result to record: the completion's identity, who executed it, and its report.

    Raises `Invalid` for an empty generation, a token that is not an integer from 0, an unknown
    authority, a report that does not finish its request (also one that could not be published),
    or one that says otherwise than the identity.
    """

    execution_id: str
    plan_id: str
    plan_generation: str
    run_token: int
    failure_policy: str
    outcome: str
    termination_reason: str
    execution_authority: str
    execution_owner: str | None
    report: Report

    def __post_init__(self) -> None:
        if generation(self.plan_generation) is None:
            raise Invalid("plan_generation", "must be a non-empty string")
        if type(self.run_token) is not int or self.run_token < 0:
            raise Invalid("run_token", f"must be an integer of at least 0, not {self.run_token!r}")
        if self.execution_authority not in AUTHORITIES:
            raise Invalid("execution_authority", f"must be one of {', '.join(AUTHORITIES)}")
        if not finishes_request(self.report):
            raise Invalid("report", "does not finish the request")
        for field, value in self.identity.items():
            if self.report.get(field) != value:
                raise Invalid(field, f"is {value!r}, and {self.report.get(field)!r} in the report")

    @classmethod
    def of(cls, report: Report, authority: str, owner: str | None) -> FinalizationRequest:
        """The request whose identity is that of the report. Raises `Invalid`."""
        identity: dict[str, Any] = {field: report.get(field) for field in IDENTITY}
        return cls(**identity, execution_authority=authority, execution_owner=owner, report=report)

    @property
    def identity(self) -> dict[str, Any]:
        """The seven fields of the identity by name."""
        return {field: getattr(self, field) for field in IDENTITY}

    def record(self, finalized_at: str) -> dict[str, Any]:
        """The record `last_finalized_execution`; `finalized_at` is ISO-8601 UTC (1.10)."""
        return {**self.identity, "finalized_at": finalized_at, "report": dict(self.report)}


class Finalization(Enum):
    """How one finalization call ends (1.11)."""

    COMMITTED = "committed"
    ALREADY_COMMITTED = "already_committed"
    CONFLICT = "conflict"
    SUPERSEDED = "superseded"


class Supersession(Enum):
    """Why a result can never be recorded (1.11)."""

    PLAN_MISSING = "plan_missing"
    GENERATION_CHANGED = "generation_changed"
    AUTHORITY_CHANGED = "authority_changed"
    REQUEST_ALREADY_FINALIZED = "request_already_finalized"


@dataclass(frozen=True)
class Verdict:
    """How a result stands towards the plan; the reason is there exactly when it is superseded."""

    finalization: Finalization
    reason: Supersession | None = None

    def __post_init__(self) -> None:
        if (self.finalization is Finalization.SUPERSEDED) != (self.reason is not None):
            raise ValueError("a reason belongs to a superseded result, and to no other")

    @property
    def writes(self) -> bool:
        """Whether the result is to be written, conditional on the version that was judged."""
        return self.finalization is Finalization.COMMITTED


def judge(
    request: FinalizationRequest, document: Document | None, *, lost_race: bool = False
) -> Verdict:
    """Judge one read of the plan, in the order of 2.6.

    `committed` means: write it now, and this is the verdict once the write landed. After a write
    that lost its race read again and judge with `lost_race`, which says `conflict` instead: nothing
    was written, try again. Raises `Invalid` when the executed token of the same generation cannot
    be read: then nothing may be written and nothing is dropped.
    """
    if document is None or not present(document):
        return _superseded(Supersession.PLAN_MISSING)
    if generation(document.plan_generation) != request.plan_generation:
        return _superseded(Supersession.GENERATION_CHANGED)
    executed = token(document.executed_run_token, "executed_run_token")
    if executed == request.run_token and _is_recorded(request, document):
        return Verdict(Finalization.ALREADY_COMMITTED)
    if not _same_executor(request, document):
        return _superseded(Supersession.AUTHORITY_CHANGED)
    if executed >= request.run_token:
        return _superseded(Supersession.REQUEST_ALREADY_FINALIZED)
    return Verdict(Finalization.CONFLICT if lost_race else Finalization.COMMITTED)


def _superseded(reason: Supersession) -> Verdict:
    return Verdict(Finalization.SUPERSEDED, reason)


def _is_recorded(request: FinalizationRequest, document: Document) -> bool:
    if document.last is None:
        return False
    recorded: Mapping[str, Any] = {"plan_id": document.plan_id, **document.last}
    return all(recorded.get(field) == value for field, value in request.identity.items())


def _same_executor(request: FinalizationRequest, document: Document) -> bool:
    now = (document.execution_authority, owner_of(document.execution_owner))
    return now == (request.execution_authority, request.execution_owner)
