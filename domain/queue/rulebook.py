"""What an audit checks of queue jobs: their lifecycle, and what decisions about leases keep."""

from __future__ import annotations

from typing import Final

from statelog.domain.queue.job import JOB, Failed, Job, Leased, Published, Retried, Returned
from statelog.domain.rulebook import Audited, Rule, Rulebook

NEXT_ATTEMPT: Final = "a lease begins the next attempt"
WITHIN_MAXIMUM: Final = "a job has no more attempts than it may"
WHEN_AVAILABLE: Final = "a job is leased once it is available"
LAST_ATTEMPT: Final = "a job fails for good with its last attempt"
GIVEN_BACK: Final = "an attempt given back is counted once or not at all"


def _within(before: Job, event: Leased | Retried) -> bool:
    attempt = event.attempt if isinstance(event, Leased) else before.attempts + 1
    return attempt <= before.max_attempts


RULEBOOK: Final = Rulebook(
    (
        Audited(
            JOB,
            (
                Rule(
                    NEXT_ATTEMPT,
                    lambda before, event, _, __: bool(event.attempt == before.attempts + 1),
                    "the attempt does not follow the one before",
                    (Leased,),
                ),
                Rule(
                    WITHIN_MAXIMUM,
                    lambda before, event, _, __: _within(before, event),
                    "the attempts that were asked for were used up",
                    (Leased, Retried),
                ),
                Rule(
                    WHEN_AVAILABLE,
                    lambda before, event, _, __: bool(before.available_at <= event.leased_at),
                    "it was leased before it was available",
                    (Leased,),
                ),
                Rule(
                    LAST_ATTEMPT,
                    lambda before, _, __, ___: bool(before.attempts >= before.max_attempts),
                    "it had attempts left",
                    (Failed,),
                ),
                Rule(
                    GIVEN_BACK,
                    lambda before, event, _, __: (
                        event.attempts in (before.attempts, before.attempts - 1)
                    ),
                    "the attempts it is said to have had are others than it had",
                    (Returned,),
                ),
            ),
        ),
    ),
    private=frozenset({Published.stored_name}),
)
"""Jobs."""
