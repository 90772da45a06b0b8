"""Whether a plan is due: a function of the log, of nobody's memory (D11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from statelog.domain.execution.outcomes import COMPLETED, FAILED_FAST, PREFLIGHT_REJECTED
from statelog.domain.execution.request import (
    Claim,
    Document,
    eligible,
    may_execute,
    owner_of,
    present,
    request_state,
    token,
)

ABANDONED: Final = "abandoned"
"""How an attempt ended that others closed, because its holder was dead (D9)."""

MOST_ABANDONED: Final = 4
"""Attempts at one document version that may be abandoned: the first and three that follow it."""

ANSWERS: Final = frozenset({COMPLETED, FAILED_FAST, PREFLIGHT_REJECTED})


class Due(Enum):
    """No; yes, now; or at start: only a start-up pass or a document change runs it."""

    NO, YES, AT_START = "no", "yes", "at_start"


@dataclass(frozen=True)
class AttemptFact:
    """What the log says about one attempt that started.

    Generation, token, authority and owner are those captured at admission. `closed_at` is the
    version the plan's stream had at the log position of the attempt's close (the number of plan
    events before it), none while the attempt is open: an attempt answers the document versions up
    to that one, not only the one it read. `ended` is the termination reason, or `abandoned`.
    Reservations that never started are no attempts.
    """

    plan_generation: str | None
    run_token: int | None
    execution_authority: str | None
    execution_owner: str | None
    closed_at: int | None = None
    ended: str | None = None


def due(
    document: Document | None, version: int, attempts: Sequence[AttemptFact], claim: Claim
) -> Due:
    """Whether the caller should execute the plan now (D11).

    `version` is the current version of the plan's stream, which is the document's revision;
    `attempts` are the plan's attempts in the order of their execution IDs. A plan whose attempt
    for the same request is open is not due: its end decides.
    """
    if document is None or not _may_run(document, claim):
        return Due.NO
    concerned = _concerned(document, version, attempts)
    if any(fact.closed_at is None or fact.ended in ANSWERS for fact in concerned):
        return Due.NO
    if abandoned(concerned) >= MOST_ABANDONED:
        return Due.NO
    if concerned and concerned[-1].ended != ABANDONED:
        return Due.AT_START
    return Due.YES


def gave_up(document: Document | None, version: int, attempts: Sequence[AttemptFact]) -> bool:
    """Whether the last attempt was the one abandonment too many at this document version.

    Whoever closed it asks this after the close and writes one ERROR line.
    """
    if document is None or not present(document) or not _readable(document):
        return False
    concerned = _concerned(document, version, attempts)
    last = bool(concerned) and concerned[-1].ended == ABANDONED
    return last and abandoned(concerned) == MOST_ABANDONED


def abandoned(attempts: Sequence[AttemptFact]) -> int:
    """How many of these attempts were abandoned."""
    return sum(fact.ended == ABANDONED for fact in attempts)


def _may_run(document: Document, claim: Claim) -> bool:
    allowed = may_execute(claim, document.execution_authority, document.execution_owner)
    return allowed and eligible(document.status, document.run_token, document.executed_run_token)


def _readable(document: Document) -> bool:
    tokens = (document.run_token, document.executed_run_token)
    return request_state(document.status, *tokens) is not None


def _concerned(
    document: Document, version: int, attempts: Sequence[AttemptFact]
) -> list[AttemptFact]:
    """The attempts for this document version: same request and executor, not closed before it."""
    now = (
        document.plan_generation,
        token(document.run_token),
        document.execution_authority,
        owner_of(document.execution_owner),
    )
    return [
        fact
        for fact in attempts
        if _identity(fact) == now and (fact.closed_at is None or fact.closed_at >= version)
    ]


def _identity(fact: AttemptFact) -> tuple[str | None, int | None, str | None, str | None]:
    return (
        fact.plan_generation,
        fact.run_token,
        fact.execution_authority,
        fact.execution_owner,
    )
