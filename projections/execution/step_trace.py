"""What the events of one step in one attempt left behind, in constant space (7.3, 7.4).

The order of a step's events is that of the attempt's stream: steps number their events as they
are appended. Nothing here enforces a lifecycle; whatever was recorded is folded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

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
from statelog.projections.execution.event_types import OUTCOME_OF, type_of

T = TypeVar("T")

_new, _set = object.__new__, object.__setattr__

_FAILED: Final = "step.failed"
_NO_JOB: Final[tuple[Any, ...]] = (None, "", [], {})
_PLANS_SCOPE: Final = (StepSkipped, StepRetryUnimplemented)
_ENDS: Final = (StepSucceeded, StepSkipped, StepFailed)
_NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True)
class Shown:
    """An event that a step's state may be read from.

    Fingerprint and job are those of the latest events up to it that have one; `at` is its time in
    microseconds. `own` are fields of the step's entry (7.3) that only this event gives.
    """

    type: str
    fingerprint: str | None
    job: Any
    at: int | None
    own: Mapping[str, Any]


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
    whether an event carried the step's own scope; `at` is None before the first event.
    """

    run_id: str | None = None
    scoped: bool = False
    fingerprint: str | None = None
    job: Any = None
    at: int | None = None
    latest: Shown | None = None
    ended: Shown | None = None
    blocked: Blocked | None = None

    @property
    def seen(self) -> bool:
        """Whether the step left any event but a block."""
        return self.at is not None


def fold_step(trace: StepTrace, event: StepEvent, at: int) -> StepTrace:
    """The trace after one of the step's events, recorded at this time (microseconds)."""
    if isinstance(event, StepBlocked):
        return changed(trace, blocked=Blocked(event.direct_blockers, event.failed_ancestors, at))
    fingerprint = event.__dict__.get("fingerprint") or trace.fingerprint
    job, shown = trace.job, type_of(event)
    if isinstance(event, StepEmitted):
        job = _job(event) or job
    latest, ended = trace.latest, trace.ended
    if isinstance(event, _ENDS):
        if _replaces(ended, shown):
            ended = _shown(shown, fingerprint, job, at, _result(event))
    elif shown.startswith("step.") and shown not in OUTCOME_OF:
        latest = _shown(shown, fingerprint, job, at, _progress(event))
    return _made(
        StepTrace,
        {
            "run_id": trace.run_id or event.run_id,
            "scoped": trace.scoped or not isinstance(event, _PLANS_SCOPE),
            "fingerprint": fingerprint,
            "job": job,
            "at": at,
            "latest": latest,
            "ended": ended,
            "blocked": trace.blocked,
        },
    )


def _replaces(ended: Shown | None, now: str) -> bool:
    """Only a failure replaces what ended a step, and nothing replaces a failure."""
    return ended is None or (now == _FAILED and ended.type != _FAILED)


def _shown(type: str, fingerprint: str | None, job: Any, at: int, own: Mapping[str, Any]) -> Shown:
    fields = {"type": type, "fingerprint": fingerprint, "job": job, "at": at, "own": own}
    return _made(Shown, fields)


def _made(cls: type[T], fields: dict[str, Any]) -> T:
    """An instance with all these fields, for a third of what `__init__` of a frozen one costs."""
    made = _new(cls)
    _set(made, "__dict__", fields)
    return made


def _job(event: StepEmitted) -> Any:
    job = event.payload.get("job")
    return None if job in _NO_JOB else job


def _progress(event: StepEvent) -> Mapping[str, Any]:
    if isinstance(event, StepProgress):
        return {"progress": event.progress}
    own = event.payload.get("progress") if isinstance(event, StepEmitted) else None
    number = isinstance(own, int | float) and not isinstance(own, bool)
    return {"progress": own} if number else _NOTHING


def _result(event: StepSucceeded | StepSkipped | StepFailed) -> Mapping[str, Any]:
    if isinstance(event, StepSkipped):
        return _NOTHING
    if isinstance(event, StepSucceeded):
        names = ("digest", "key", "path")
        artifacts = [{name: getattr(each, name) for name in names} for each in event.artifacts]
        return {"artifacts": artifacts, "metrics": event.metrics}
    of_error = ("error", "kind", "code", "advice")
    return {"error": {name: getattr(event, name) for name in of_error}}
