"""The step inside an attempt: an entity with a lifecycle table of its own (2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from statelog.domain.aggregate import changed
from statelog.domain.execution.attempt_events import (
    StepArtifact,
    StepBlocked,
    StepEmitted,
    StepEvent,
    StepFailed,
    StepProgress,
    StepRetryUnimplemented,
    StepSkipped,
    StepStarted,
    StepSucceeded,
)
from statelog.domain.lifecycle import SAME, Lifecycle


class StepStatus(Enum):
    """Where a step is within one attempt; interrupted and unreached are no statuses."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    REUSED = "reused"
    FAILED = "failed"
    BLOCKED = "blocked"


_PENDING, _RUNNING, _FAILED = StepStatus.PENDING, StepStatus.RUNNING, StepStatus.FAILED
SATISFIED = frozenset({StepStatus.SUCCEEDED, StepStatus.REUSED})
OUTCOMES = frozenset({*SATISFIED, StepStatus.FAILED, StepStatus.BLOCKED})

STEP = Lifecycle(
    _PENDING,
    [
        # event        from      to
        (StepStarted, _PENDING, _RUNNING),
        (StepSkipped, _PENDING, StepStatus.REUSED),
        (StepBlocked, _PENDING, StepStatus.BLOCKED),
        (StepFailed, _PENDING, _FAILED),
        (StepProgress, _RUNNING, SAME),
        (StepArtifact, _RUNNING, SAME),
        (StepEmitted, _RUNNING, SAME),
        (StepSucceeded, _RUNNING, StepStatus.SUCCEEDED),
        (StepFailed, _RUNNING, _FAILED),
        (StepRetryUnimplemented, _FAILED, SAME),
    ],
    final={StepStatus.SUCCEEDED, StepStatus.REUSED, StepStatus.FAILED, StepStatus.BLOCKED},
    name="step",
)


@dataclass(frozen=True)
class StepState:
    """One step of the attempt: its status, the number of its last event, why it failed."""

    status: StepStatus = StepStatus.PENDING
    seq: int = 0
    run_id: str | None = None
    fingerprint: str | None = None
    failure: Mapping[str, Any] | None = None


def evolve_step(step: StepState, event: StepEvent) -> StepState:
    """The step after one of its events. Raises `IllegalTransition`."""
    status = STEP.after(step.status, type(event))
    if isinstance(event, StepStarted):
        return changed(
            step, status=status, seq=event.seq, run_id=event.run_id, fingerprint=event.fingerprint
        )
    if isinstance(event, StepFailed):
        return StepState(status, event.seq, event.run_id, event.fingerprint, failure(event))
    return changed(step, status=status, seq=event.seq)


def failure(event: StepFailed) -> dict[str, Any]:
    """The failure as reports and snapshots show it (1.7)."""
    return {
        "step_id": event.step_id,
        "error": event.error,
        "kind": event.kind,
        "code": event.code,
        "advice": event.advice,
        "error_type": event.error_type,
    }
