"""Why a step is in the state it is shown in: the events that gave it, and what they say (D15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from statelog.domain.event import Recorded
from statelog.domain.execution.attempt_events import (
    Closed,
    Started,
    StepBlocked,
    StepFailed,
    StepSkipped,
    StepStarted,
    StepSucceeded,
)
from statelog.domain.execution.imported import shown_order
from statelog.domain.execution.reuse import differences
from statelog.domain.times import iso
from statelog.projections.execution.attempt_trace import AttemptTrace, fold_attempt
from statelog.projections.execution.event_types import STEP_EVENTS, type_of
from statelog.projections.execution.snapshot import step_entry
from statelog.projections.execution.streams import attempt_of, eid, plan_of

_TELLING: Final = (StepStarted, StepSkipped, StepSucceeded, StepFailed, StepBlocked)


def explain(
    events: Iterable[Recorded], step_id: str, execution_id: str | None = None
) -> dict[str, Any] | None:
    """Why the step is in its state, in the newest observed attempt or the one named.

    `events` are the plan's, in log order. The answer holds the step's snapshot entry, `why` it was
    not reused, which fingerprint parts `differ` from its last success before, that `last_success`,
    what `failed_upstream`, how the attempt ended, and the `events` that gave the state. None when
    there is no such attempt, or the step is not planned in it.
    """
    told = [recorded for recorded in events if _concerns(recorded, step_id)]
    trace, own = _attempt(told, execution_id)
    entry = step_entry(trace, step_id) if trace else None
    if trace is None or entry is None:
        return None
    before = _last_success(told, step_id, _first_evaluation(own, step_id))
    return {
        "plan_id": plan_of(own[0]),
        "step_id": step_id,
        "execution_id": trace.execution_id,
        **entry,
        "why": _why(own, step_id),
        "differ": _differ(own, step_id, before),
        "last_success": _named(before),
        "failed_upstream": _failures(own, entry["failed_ancestors"]),
        "attempt": _ending(trace),
        "events": [_event(recorded) for recorded in own if _gave(recorded, step_id)],
    }


def _concerns(recorded: Recorded, step_id: str) -> bool:
    """Starts and reports, everything of the step, and failures of others: they may block it."""
    if attempt_of(recorded) is None:
        return False
    event = recorded.event
    if isinstance(event, Started | Closed | StepFailed):
        return True
    return isinstance(event, STEP_EVENTS) and event.step_id == step_id


def _attempt(
    told: Sequence[Recorded], execution_id: str | None
) -> tuple[AttemptTrace | None, list[Recorded]]:
    """The attempt asked for, or the newest observed one, and its events."""
    observed = {
        id
        for recorded in told
        if isinstance(recorded.event, Started | Closed) and (id := attempt_of(recorded))
    }
    newest = max(observed, key=shown_order, default="")
    chosen = newest if execution_id is None else execution_id
    if chosen not in observed:
        return None, []
    own = [recorded for recorded in told if attempt_of(recorded) == chosen]
    trace = AttemptTrace(chosen)
    for recorded in own:
        trace = fold_attempt(trace, recorded.event, recorded.time)
    return trace, own


def _of(events: Iterable[Recorded], step_id: str) -> Iterator[Recorded]:
    return (
        recorded
        for recorded in events
        if isinstance(recorded.event, STEP_EVENTS) and recorded.event.step_id == step_id
    )


def _first_evaluation(own: Sequence[Recorded], step_id: str) -> int:
    """The position before which a last success counts."""
    first = next(_of(own, step_id), own[-1])
    return first.position


def _last_success(told: Sequence[Recorded], step_id: str, before: int) -> Recorded | None:
    successes = [
        recorded
        for recorded in _of(told, step_id)
        if isinstance(recorded.event, StepSucceeded) and recorded.position < before
    ]
    return successes[-1] if successes else None


def _why(own: Sequence[Recorded], step_id: str) -> list[str]:
    events = [recorded.event for recorded in _of(own, step_id)]
    return [line for event in events if isinstance(event, StepStarted) for line in event.why]


def _differ(own: Sequence[Recorded], step_id: str, before: Recorded | None) -> list[str] | None:
    """None when there is nothing to compare: no success before, an imported one, or none now."""
    now = [recorded.event for recorded in _of(own, step_id)]
    parts = [event.parts for event in now if isinstance(event, StepSucceeded)]
    if before is None or not parts or not isinstance(before.event, StepSucceeded):
        return None
    if not before.event.parts:
        return None
    return list(differences(before.event.parts, parts[-1]))


def _named(success: Recorded | None) -> dict[str, Any] | None:
    if success is None or not isinstance(success.event, StepSucceeded):
        return None
    return {
        "execution_id": attempt_of(success),
        "eid": eid(success),
        "ts": iso(success.time),
        "fingerprint": success.event.fingerprint,
    }


def _failures(own: Sequence[Recorded], ancestors: Sequence[str]) -> dict[str, str]:
    """What the failed steps upstream said, by step."""
    said = {
        recorded.event.step_id: recorded.event.error
        for recorded in own
        if isinstance(recorded.event, StepFailed)
    }
    return {step_id: said[step_id] for step_id in ancestors if step_id in said}


def _ending(trace: AttemptTrace) -> dict[str, Any]:
    report: Mapping[str, Any] = trace.report or {}
    names = ("termination_reason", "outcome", "diagnostic")
    state = "running" if trace.report is None else "finished"
    return {"state": state, **{name: report.get(name) for name in names}}


def _gave(recorded: Recorded, step_id: str) -> bool:
    """Whether the event is one of those that gave the step its state."""
    event = recorded.event
    if isinstance(event, Started | Closed):
        return True
    return isinstance(event, _TELLING) and event.step_id == step_id


def _event(recorded: Recorded) -> dict[str, Any]:
    return {
        "position": recorded.position,
        "eid": eid(recorded),
        "type": type_of(recorded.event),
        "ts": iso(recorded.time),
        "actor": recorded.actor,
    }
