"""Events of an attempt and of the steps inside it (1.6 to 1.8).

The attempt's identity is its stream name and its first event; no event repeats it, so none can
forge it. `seq` numbers a step's events from 1 without gaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from statelog.domain.event import Event
from statelog.domain.execution.step import Artifact

CACHE_HIT: Final = "cache_hit"


class Started(Event, name="execution.attempt.started"):
    """An attempt began; `steps` are mappings of `step_id`, `step_name`, `deps` in plan order.

    A step whose scope overrides the plan's has its own `scope` there.
    """

    execution_id: str
    plan_id: str
    realm: str
    scope: Mapping[str, Any]
    plan_generation: str | None
    run_token: int | None
    execution_authority: str | None
    execution_owner: str | None
    failure_policy: Any
    started_at: str
    steps: tuple[Mapping[str, Any], ...]


class StepStarted(Event, name="execution.attempt.step_started"):
    """A step was not reused, for these reasons (D15), and its function is about to be called."""

    step_id: str
    seq: int
    run_id: str
    fingerprint: str
    params: Mapping[str, Any]
    why: tuple[str, ...] = ()


class StepProgress(Event, name="execution.attempt.step_progress"):
    """A running step reported how far it is, in percent."""

    step_id: str
    seq: int
    run_id: str
    fingerprint: str
    progress: float
    message: str | None = None


class StepArtifact(Event, name="execution.attempt.step_artifact"):
    """A running step registered something it produced."""

    step_id: str
    seq: int
    run_id: str
    fingerprint: str
    artifact: Artifact


class StepEmitted(Event, name="execution.attempt.step_emitted"):
    """A running step published an event of a type of its own."""

    step_id: str
    seq: int
    run_id: str
    fingerprint: str
    type: str
    payload: Mapping[str, Any]


class StepSucceeded(Event, name="execution.attempt.step_succeeded"):
    """The function returned and every declared output exists; `parts` made the fingerprint."""

    step_id: str
    seq: int
    run_id: str
    fingerprint: str
    artifacts: tuple[Artifact, ...] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)


class StepFailed(Event, name="execution.attempt.step_failed"):
    """A step failed in an ordinary way; without a fingerprint, hashing its inputs failed (D23)."""

    step_id: str
    seq: int
    run_id: str | None
    fingerprint: str | None
    kind: str
    error: str
    error_type: str
    code: str | None = None
    advice: str | None = None


class StepRetryUnimplemented(Event, name="execution.attempt.step_retry_unimplemented"):
    """The failure was transient, and the engine does not retry."""

    step_id: str
    seq: int
    run_id: str | None
    error: str
    kind: str = "transient"


class StepSkipped(Event, name="execution.attempt.step_skipped"):
    """The step's last success still holds and was reused."""

    step_id: str
    seq: int
    run_id: str
    fingerprint: str
    reason: str = CACHE_HIT


class StepBlocked(Event, name="execution.attempt.step_blocked"):
    """The step cannot run in this attempt: blockers as known at that moment (5.5)."""

    step_id: str
    seq: int
    direct_blockers: tuple[str, ...]
    failed_ancestors: tuple[str, ...]


class Closed(Event, name="execution.attempt.closed"):
    """The attempt ended; its report, with the fields of 1.7, never changes."""

    report: Mapping[str, Any]


class Voided(Event, name="execution.attempt.voided"):
    """The reservation's holder died before the attempt started; a late start conflicts (D9)."""


StepEvent = (
    StepStarted
    | StepProgress
    | StepArtifact
    | StepEmitted
    | StepSucceeded
    | StepFailed
    | StepRetryUnimplemented
    | StepSkipped
    | StepBlocked
)
AttemptEvent = Started | StepEvent | Closed | Voided
