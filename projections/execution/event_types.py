"""The `type` under which events of an attempt are shown (1.6 to 1.8, D2)."""

from __future__ import annotations

from typing import Final

from statelog.domain.event import Event
from statelog.domain.execution.attempt_events import (
    Closed,
    Started,
    StepArtifact,
    StepBlocked,
    StepEmitted,
    StepFailed,
    StepProgress,
    StepRetryUnimplemented,
    StepSkipped,
    StepStarted,
    StepSucceeded,
    Voided,
)
from statelog.domain.execution.outcomes import BLOCKED, FAILED, REUSED, SUCCEEDED

TYPES: Final[dict[type[Event], str]] = {
    Started: "plan.attempt_started",
    Closed: "plan.attempt_report",
    Voided: "plan.attempt_voided",
    StepStarted: "step.started",
    StepProgress: "step.progress",
    StepArtifact: "step.artifact",
    StepSucceeded: "step.succeeded",
    StepFailed: "step.failed",
    StepRetryUnimplemented: "step.retry_unimplemented",
    StepSkipped: "step.skipped",
    StepBlocked: "step.blocked",
}
STEP_EVENTS: Final = (
    StepStarted,
    StepProgress,
    StepArtifact,
    StepEmitted,
    StepSucceeded,
    StepFailed,
    StepRetryUnimplemented,
    StepSkipped,
    StepBlocked,
)
ATTEMPT_EVENTS: Final = (Started, *STEP_EVENTS, Closed)

OUTCOME_OF: Final = {
    "step.succeeded": SUCCEEDED,
    "step.skipped": REUSED,
    "step.failed": FAILED,
    "step.blocked": BLOCKED,
}
"""The step outcome that an event of this type records."""

STATE_OF: Final = {outcome: state for state, outcome in OUTCOME_OF.items()}
"""The state in which a step with this outcome is shown."""


def type_of(event: Event) -> str:
    """The type of an event of an attempt; an event of a step's own names it itself."""
    return event.type if isinstance(event, StepEmitted) else TYPES[type(event)]
