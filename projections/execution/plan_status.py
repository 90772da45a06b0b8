"""The `plan_status` snapshot: the newest observed attempt of a plan and its steps (7).

It says what the log says. Whether the process that holds a plan is alive is not in the log: a
result is `pending` here once its holder said that it gave up recording it (D10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.aggregate import changed
from statelog.domain.event import Event, Recorded
from statelog.domain.execution.attempt_events import Closed, Started
from statelog.domain.execution.execution_ids import order_key
from statelog.domain.execution.imported import UNCORRELATED, shown_order
from statelog.domain.execution.slot import GaveUp, Released
from statelog.domain.pmap import PMap
from statelog.domain.times import iso
from statelog.projections.execution.attempt_trace import UNTOUCHED, AttemptTrace, fold_attempt
from statelog.projections.execution.event_types import ATTEMPT_EVENTS, STEP_EVENTS
from statelog.projections.execution.imported_times import happened_at
from statelog.projections.execution.snapshot import (
    attempt_entry,
    scope_of,
    step_entries,
    uncorrelated_entries,
)
from statelog.projections.execution.step_trace import StepTrace, fold_step
from statelog.projections.execution.streams import attempt_of, plan_of, stream_of
from statelog.projections.projection import Document, Projection

_STEPS: Final = frozenset(event.stored_name for event in STEP_EVENTS)


@dataclass(frozen=True)
class Pending:
    """A result that its holder could not record, and why."""

    execution_id: str
    reason: str


@dataclass(frozen=True)
class Status:
    """The attempt that is shown, and those above it that nobody has observed yet.

    `updated` is the recorded time of the last event folded in, in microseconds.
    """

    shown: AttemptTrace | None = None
    unobserved: Mapping[str, AttemptTrace] = field(default_factory=dict)
    pending: Pending | None = None
    updated: int = 0


def evolve(state: Status, recorded: Recorded) -> Status:
    """The state after an event of the plan's slot or of one of its attempts."""
    event, execution_id = recorded.event, attempt_of(recorded)
    if execution_id is None:
        return _slot(state, event, recorded.time)
    trace = _known(state, execution_id)
    if trace is None:
        return state
    return _with(state, fold_attempt(trace, event, recorded.time), recorded.time)


def _slot(state: Status, event: Event, at: int) -> Status:
    if isinstance(event, GaveUp):
        return changed(state, pending=Pending(event.execution_id, event.reason), updated=at)
    if isinstance(event, Released) and state.pending is not None:
        return changed(state, pending=None, updated=at)
    return state


def _known(state: Status, execution_id: str) -> AttemptTrace | None:
    """The attempt so far; None for one that is older than the one shown."""
    if state.shown is not None:
        if state.shown.execution_id == execution_id:
            return state.shown
        if shown_order(execution_id) < shown_order(state.shown.execution_id):
            return None
    return state.unobserved.get(execution_id) or AttemptTrace(execution_id)


def _with(state: Status, trace: AttemptTrace, at: int) -> Status:
    if not trace.observed:
        return changed(state, unobserved={**state.unobserved, trace.execution_id: trace})
    if state.shown is not None and state.shown.execution_id == trace.execution_id:
        return changed(state, shown=trace, updated=at)
    newest = shown_order(trace.execution_id)
    above = {id: other for id, other in state.unobserved.items() if shown_order(id) > newest}
    return changed(state, shown=trace, unobserved=above, updated=at)


def together(state: Status, events: Iterable[Recorded]) -> Status:
    """The state after these events, with one copy of an attempt's steps instead of one for each."""
    at, steps = None, _steps(state)
    for recorded in events:
        shown = state.shown
        if shown and recorded.name in _STEPS and attempt_of(recorded) == shown.execution_id:
            event: Any = recorded.event
            at = recorded.time
            before = steps.get(event.step_id) or UNTOUCHED
            steps[event.step_id] = fold_step(before, event, happened_at(shown.times, event, at))
            continue
        if at is not None:
            state, at = changed(state, updated=at), None
        state = evolve(state, recorded)
        if shown is None or (state.shown and state.shown.execution_id != shown.execution_id):
            steps = _steps(state)
    if state.shown is not None:
        state = changed(state, shown=changed(state.shown, steps=PMap(steps)))
    return state if at is None else changed(state, updated=at)


def _steps(state: Status) -> dict[str, StepTrace]:
    return {} if state.shown is None else dict(state.shown.steps)


def show(plan_id: str, state: Status) -> dict[str, Any] | None:
    """The snapshot (7.2), with `pending`: None, or which execution's result and why.

    Of a history without executions `projection` is `legacy` and `attempt` None (6.7).
    """
    trace = state.shown
    if trace is None:
        return None
    older = trace.execution_id == UNCORRELATED
    return {
        "type": "plan_status",
        "realm": trace.start.realm if trace.start else None,
        "plan_id": plan_id,
        "scope": scope_of(trace),
        "projection": "legacy" if older else "attempt",
        "updated_at": iso(state.updated),
        "pending": None if state.pending is None else dict(vars(state.pending)),
        "attempt": None if older else attempt_entry(trace),
        "steps": uncorrelated_entries(trace) if older else step_entries(trace),
    }


def _of_attempt(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda document: (document["attempt"] or {}).get(name)


plan_status: Final = Projection(
    "plan_status",
    Status(),
    evolve,
    key=plan_of,
    below=stream_of,
    events=(*ATTEMPT_EVENTS, GaveUp, Released),
    show=show,
    together=together,
    columns={
        "realm": lambda document: document["realm"],
        "execution_id": _of_attempt("execution_id"),
        "attempt_state": _of_attempt("state"),
        "outcome": _of_attempt("outcome"),
        "termination_reason": _of_attempt("termination_reason"),
        "pending": lambda document: document["pending"] is not None,
        "updated_at": lambda document: document["updated_at"],
    },
)
"""The snapshot of each plan: its newest observed attempt, step by step."""

ATTEMPT_LIST_NAMES: Final = frozenset({Started.stored_name, Closed.stored_name})
"""Stored names of the events that `attempts_of` needs."""


def snapshot_of(events: Iterable[Recorded], execution_id: str) -> Document | None:
    """The snapshot of one attempt, which need not be the newest; None if it was not observed.

    `events` are the plan's, as far as `plan_status` reads them; others are passed over.
    """
    state, plan_id = Status(), ""
    for recorded in events:
        if plan_status.reads(recorded) and _is_about(recorded, execution_id):
            state, plan_id = evolve(state, recorded), plan_of(recorded) or ""
    return show(plan_id, state)


def _is_about(recorded: Recorded, execution_id: str) -> bool:
    own = attempt_of(recorded)
    if own is not None:
        return own == execution_id
    return getattr(recorded.event, "execution_id", None) == execution_id


def attempts_of(events: Iterable[Recorded]) -> list[dict[str, Any]]:
    """Every observed attempt of a plan, newest first, each with the fields of `attempt` (7.2).

    `events` are the plan's; only those named in `ATTEMPT_LIST_NAMES` are read.
    """
    traces: dict[str, AttemptTrace] = {}
    for recorded in events:
        execution_id = attempt_of(recorded)
        if execution_id in (None, UNCORRELATED):
            continue
        if recorded.name in ATTEMPT_LIST_NAMES:
            trace = traces.get(execution_id) or AttemptTrace(execution_id)
            traces[execution_id] = fold_attempt(trace, recorded.event, recorded.time)
    return [attempt_entry(traces[id]) for id in sorted(traces, key=order_key, reverse=True)]
