"""Attempt events in the shape of the event spool (1.6 to 1.8), as history and exports show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.event import Event, Recorded
from statelog.domain.execution.attempt_events import (
    Closed,
    Started,
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
from statelog.domain.execution.step import (
    Artifact,
    PermanentStepError,
    StepError,
    TransientStepError,
)
from statelog.domain.times import iso
from statelog.projections.execution.event_types import STEP_EVENTS, type_of
from statelog.projections.execution.streams import attempt_of, eid, plan_of

Spooled = dict[str, Any]

_STARTED: Final = (
    "execution_authority",
    "execution_owner",
    "failure_policy",
    "started_at",
)
_STEP: Final = ("step_id", "step_name", "deps")
_ADVISED: Final = frozenset(
    cls.__name__ for cls in (StepError, PermanentStepError, TransientStepError)
)


@dataclass(frozen=True)
class Start:
    """What an attempt's later events take from its start; blank when that is not known."""

    event: Started | None = None
    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, event: Started) -> Start:
        """The start, with its steps by ID."""
        return cls(event, {str(entry.get("step_id")): entry for entry in reversed(event.steps)})


_UNKNOWN: Final = Start()


def spool(events: Iterable[Recorded]) -> Iterator[Spooled]:
    """The attempt events among these, which are in log order, one after the other.

    An attempt's later events take realm, scope and identity from its start, which must be among
    the events; what is not known is null.
    """
    starts: dict[str, Start] = {}
    for recorded in events:
        if attempt_of(recorded) is None:
            continue
        if isinstance(recorded.event, Started):
            starts.setdefault(recorded.stream, Start.of(recorded.event))
        yield spooled(recorded, starts.get(recorded.stream, _UNKNOWN))


def spooled(recorded: Recorded, start: Start) -> Spooled:
    """One event of an attempt's stream, given the attempt's start.

    The payload comes first and what identifies the event last, so a payload cannot forge it.
    """
    event = recorded.event
    shown = {**_payload(event), "type": type_of(event)}
    if isinstance(event, STEP_EVENTS):
        shown.update(_step(event, start))
    return {
        **shown,
        "scope": _scope(event, start),
        "ts": iso(_happened(recorded, start)),
        **_identity(recorded, start.event),
    }


def _identity(recorded: Recorded, start: Started | None) -> Spooled:
    event = recorded.event
    captured = event.report if isinstance(event, Closed) and start is None else {}
    return {
        "eid": eid(recorded),
        "realm": start.realm if start else None,
        "plan_id": plan_of(recorded),
        "execution_id": attempt_of(recorded),
        "plan_generation": start.plan_generation if start else captured.get("plan_generation"),
        "run_token": start.run_token if start else captured.get("run_token"),
    }


def _happened(recorded: Recorded, start: Start) -> int:
    """An event of an imported attempt has the time it came with."""
    step_id = getattr(recorded.event, "step_id", None)
    told = start.steps.get(str(step_id), {}).get("ts")
    at = told.get(str(getattr(recorded.event, "seq", ""))) if isinstance(told, Mapping) else None
    return at if type(at) is int else recorded.time


def _payload(event: Event) -> Spooled:
    match event:
        case Started():
            steps = [{name: entry.get(name) for name in _STEP} for entry in event.steps]
            return {**{name: getattr(event, name) for name in _STARTED}, "steps": steps}
        case Closed(report=report):
            return {"report": dict(report)}
        case StepStarted():
            return {"params": dict(event.params), **({"why": list(event.why)} if event.why else {})}
        case StepProgress():
            return {"progress": event.progress, "message": event.message}
        case StepArtifact(artifact=artifact):
            return {"artifact": _artifact(artifact)}
        case StepEmitted(payload=payload):
            return dict(payload)
        case StepSucceeded():
            artifacts = [_artifact(artifact) for artifact in event.artifacts]
            return {
                "artifacts": artifacts,
                "metrics": dict(event.metrics),
                "extra": dict(event.extra),
            }
        case StepFailed():
            return _failed(event)
        case StepRetryUnimplemented():
            return {"error": event.error, "kind": event.kind}
        case StepSkipped():
            return {"reason": event.reason}
        case StepBlocked():
            return {
                "direct_blockers": list(event.direct_blockers),
                "failed_ancestors": list(event.failed_ancestors),
            }
        case _:
            return {}


def _artifact(artifact: Artifact) -> Spooled:
    return {"key": artifact.key, "path": artifact.path, "digest": artifact.digest}


def _failed(event: StepFailed) -> Spooled:
    """Code and advice are for the error types that have them (1.8)."""
    advised = event.error_type in _ADVISED or event.code or event.advice
    said = {"code": event.code, "advice": event.advice} if advised else {}
    return {"kind": event.kind, "error": event.error, **said}


def _step(event: StepEvent, start: Start) -> Spooled:
    fields: Spooled = {"step_id": event.step_id, "seq": event.seq}
    if not isinstance(event, StepBlocked):
        fields["run_id"] = event.run_id
    if not isinstance(event, StepBlocked | StepRetryUnimplemented):
        fields["fingerprint"] = event.fingerprint
    if not isinstance(event, StepRetryUnimplemented):
        fields["step_name"] = start.steps.get(event.step_id, {}).get("step_name")
    return fields


def _scope(event: Event, start: Start) -> Any:
    """The plan's scope; of the events a step publishes or is blocked by, its own if it has one."""
    if start.event is None:
        return None
    planless = StepSkipped | StepRetryUnimplemented
    if isinstance(event, STEP_EVENTS) and not isinstance(event, planless):
        return start.steps.get(event.step_id, {}).get("scope") or start.event.scope
    return start.event.scope
