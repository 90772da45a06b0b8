"""What the events of one step in one attempt left behind, in constant space (7.3, 7.4).

The order of a step's events is that of the attempt's stream: steps number their events as they
are appended. Nothing here enforces a lifecycle; whatever was recorded is folded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.aggregate import changed
from statelog.domain.execution.attempt_events import (
    StepBlocked,
    StepEmitted,
    StepEvent,
    StepFailed,
    StepProgress,
    StepRetryUnimplemented,
    StepSkipped,
    StepSucceeded,
)
from statelog.domain.execution.step import Artifact
from statelog.projections.execution.event_types import OUTCOME_OF, type_of

_FAILED: Final = "step.failed"
_NO_JOB: Final[tuple[Any, ...]] = (None, "", [], {})


@dataclass(frozen=True)
class Carried:
    """What identifies a step's run; each value is from the latest event that has it.

    `at` is in microseconds since 1970 UTC, None before the first event.
    """

    fingerprint: str | None = None
    job: Any = None
    at: int | None = None


@dataclass(frozen=True)
class Shown:
    """An event that a step's state may be read from, and what was carried up to it."""

    type: str
    carried: Carried
    progress: float | None = None
    artifacts: tuple[Artifact, ...] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    failure: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Blocked:
    """The blockers a block event named, and its time."""

    direct_blockers: tuple[str, ...]
    failed_ancestors: tuple[str, ...]
    at: int


@dataclass(frozen=True)
class StepTrace:
    """One step's events, folded.

    `latest` is the last event of a `step.*` type that ends nothing, `ended` the one that did end
    the step. Block events are kept apart: they lend nothing to a step that was run. `scoped` says
    whether an event carried the step's own scope.
    """

    run_id: str | None = None
    seen: bool = False
    scoped: bool = False
    carried: Carried = field(default_factory=Carried)
    latest: Shown | None = None
    ended: Shown | None = None
    blocked: Blocked | None = None


def fold_step(trace: StepTrace, event: StepEvent, at: int) -> StepTrace:
    """The trace after one of the step's events, recorded at this time (microseconds)."""
    if isinstance(event, StepBlocked):
        return changed(trace, blocked=Blocked(event.direct_blockers, event.failed_ancestors, at))
    carried = _carry(trace.carried, event, at)
    trace = changed(
        trace,
        run_id=trace.run_id or event.run_id,
        seen=True,
        scoped=trace.scoped or not isinstance(event, StepSkipped | StepRetryUnimplemented),
        carried=carried,
    )
    shown = type_of(event)
    if isinstance(event, StepSucceeded | StepSkipped | StepFailed):
        return changed(trace, ended=_ended(trace.ended, _final(shown, carried, event)))
    if shown.startswith("step.") and shown not in OUTCOME_OF:
        return changed(trace, latest=Shown(shown, carried, _progress(event)))
    return trace


def _carry(before: Carried, event: StepEvent, at: int) -> Carried:
    fingerprint = getattr(event, "fingerprint", None) or before.fingerprint
    return Carried(fingerprint, _job(event) or before.job, at)


def _job(event: StepEvent) -> Any:
    if not isinstance(event, StepEmitted):
        return None
    job = event.payload.get("job")
    return None if job in _NO_JOB else job


def _progress(event: StepEvent) -> float | None:
    if isinstance(event, StepProgress):
        return event.progress
    own = event.payload.get("progress") if isinstance(event, StepEmitted) else None
    return own if isinstance(own, int | float) and not isinstance(own, bool) else None


def _final(shown: str, carried: Carried, event: StepSucceeded | StepSkipped | StepFailed) -> Shown:
    if isinstance(event, StepSucceeded):
        return Shown(shown, carried, None, event.artifacts, event.metrics)
    if isinstance(event, StepSkipped):
        return Shown(shown, carried)
    failure = {
        "error": event.error,
        "kind": event.kind,
        "code": event.code,
        "advice": event.advice,
    }
    return Shown(shown, carried, failure=failure)


def _ended(before: Shown | None, now: Shown) -> Shown:
    """Only a failure replaces what ended a step, and nothing replaces a failure."""
    if before is None or (now.type == _FAILED and before.type != _FAILED):
        return now
    return before
