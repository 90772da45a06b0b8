"""The snapshot of one attempt, built from its trace (7.2 to 7.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from statelog.domain.execution.outcomes import BLOCKED, SATISFYING
from statelog.domain.times import iso
from statelog.projections.execution.attempt_trace import AttemptTrace
from statelog.projections.execution.event_types import OUTCOME_OF, STATE_OF
from statelog.projections.execution.step_trace import Blocked, Carried, Shown, StepTrace

Entry = dict[str, Any]

PENDING: Final = "pending"
INTERRUPTED: Final = "interrupted"
UNREACHED: Final = "unreached"

_FROM_REPORT: Final = (
    "ended_at",
    "termination_reason",
    "outcome",
    "is_drained",
    "counts",
    "diagnostic",
)
_CAPTURED: Final = ("plan_generation", "run_token", "failure_policy", "started_at")
_UNTOUCHED: Final = StepTrace()


def attempt_entry(trace: AttemptTrace) -> Entry:
    """The fields of `attempt` (7.2): identity from the start, the ending from the report."""
    start, report = trace.start, trace.report
    captured = vars(start) if start is not None else (report or {})
    return {
        "execution_id": trace.execution_id,
        **{name: captured.get(name) for name in _CAPTURED},
        "execution_authority": start.execution_authority if start else None,
        "execution_owner": start.execution_owner if start else None,
        "state": "running" if report is None else "finished",
        **{name: (report or {}).get(name) for name in _FROM_REPORT},
    }


def step_entries(trace: AttemptTrace) -> dict[str, Entry]:
    """The fields of `steps` (7.3), one entry for each planned step, in planned order."""
    return {
        step_id: {"step_name": name, **_step(step_id, _trace(trace, step_id), trace.report)}
        for step_id, name in planned_steps(trace).items()
    }


def step_entry(trace: AttemptTrace, step_id: str) -> Entry | None:
    """One entry of `steps`; None for a step that is not planned."""
    name = planned_steps(trace).get(step_id)
    if name is None:
        return None
    return {"step_name": name, **_step(step_id, _trace(trace, step_id), trace.report)}


def planned_steps(trace: AttemptTrace) -> dict[str, str]:
    """Names by step ID: the start's list, else the report's IDs, else what left events."""
    if trace.start is not None:
        return _first(
            (entry.get("step_id"), str(entry.get("step_name") or "")) for entry in trace.start.steps
        )
    ids = (trace.report or {}).get("step_ids")
    if isinstance(ids, list | tuple):
        return _first((step_id, "") for step_id in ids)
    return dict.fromkeys(sorted(trace.steps), "")


def scope_of(trace: AttemptTrace) -> Mapping[str, Any] | None:
    """The first scope that is not empty: the start's, else one that a step's event carried."""
    if trace.start is None:
        return None
    if trace.start.scope:
        return trace.start.scope
    own = {entry.get("step_id"): entry.get("scope") for entry in trace.start.steps}
    steps = [(own.get(step_id), _trace(trace, step_id)) for step_id in planned_steps(trace)]
    ran = [scope for scope, step in steps if scope and step.scoped]
    blocked = [scope for scope, step in steps if scope and step.blocked]
    return next(iter([*ran, *blocked]), None)


def _first(pairs: Iterable[tuple[Any, str]]) -> dict[str, str]:
    names: dict[str, str] = {}
    for step_id, name in pairs:
        if isinstance(step_id, str):
            names.setdefault(step_id, name)
    return names


def _trace(trace: AttemptTrace, step_id: str) -> StepTrace:
    return trace.steps.get(step_id) or _UNTOUCHED


def _step(step_id: str, step: StepTrace, report: Mapping[str, Any] | None) -> Entry:
    if report is None:
        return _live(step)
    outcome = _map(report, "step_outcomes").get(step_id)
    if not isinstance(outcome, str) or outcome not in STATE_OF:
        return _without_outcome(step, reached=step.seen or step_id == running_step(report))
    return _with_outcome(step_id, step, report, outcome)


def _live(step: StepTrace) -> Entry:
    """While the attempt runs its events are all there is."""
    effective = step.ended or step.latest
    if effective is not None:
        return _from_event(step.run_id, effective)
    if step.blocked is not None:
        return _entry(
            "step.blocked",
            BLOCKED,
            None,
            Carried(at=step.blocked.at),
            direct_blockers=list(step.blocked.direct_blockers),
            failed_ancestors=list(step.blocked.failed_ancestors),
        )
    return _entry(PENDING, None, step.run_id, Carried())


def _without_outcome(step: StepTrace, *, reached: bool) -> Entry:
    """Whatever its events say of an end, none was established."""
    state = INTERRUPTED if reached else UNREACHED
    if step.latest is None:
        return _entry(state, None, step.run_id, step.carried)
    return {**_from_event(step.run_id, step.latest), "state": state}


def _with_outcome(step_id: str, step: StepTrace, report: Mapping[str, Any], outcome: str) -> Entry:
    """The report decides; events that record the same outcome lend their data."""
    effective = step.ended or step.latest
    if effective is not None and OUTCOME_OF.get(effective.type) == outcome:
        entry = _from_event(step.run_id, effective)
    else:
        blocked = step.blocked if outcome == BLOCKED else None
        carried = _identity(step, blocked)
        entry = _entry(STATE_OF[outcome], outcome, step.run_id, carried, _progress(outcome))
    if outcome == BLOCKED:
        for name in ("direct_blockers", "failed_ancestors"):
            entry[name] = _texts(_map(report, name).get(step_id))
    failure = _map(report, "failures").get(step_id)
    return {**entry, "error": dict(failure)} if isinstance(failure, Mapping) else entry


def _identity(step: StepTrace, blocked: Blocked | None) -> Carried:
    if step.seen or blocked is None:
        return step.carried
    return Carried(at=blocked.at)


def _from_event(run_id: str | None, shown: Shown) -> Entry:
    outcome = OUTCOME_OF.get(shown.type)
    progress = _progress(outcome) if shown.progress is None else shown.progress
    return _entry(
        shown.type,
        outcome,
        run_id,
        shown.carried,
        progress,
        artifacts=[dict(vars(artifact)) for artifact in shown.artifacts],
        metrics=dict(shown.metrics),
        error=None if shown.failure is None else dict(shown.failure),
    )


def _progress(outcome: str | None) -> float:
    return 100 if outcome in SATISFYING else 0


def _entry(
    state: str,
    outcome: str | None,
    run_id: str | None,
    carried: Carried,
    progress: float = 0,
    **known: Any,
) -> Entry:
    return {
        "state": state,
        "outcome": outcome,
        "run_id": run_id,
        "fingerprint": carried.fingerprint,
        "job": carried.job,
        "ts": None if carried.at is None else iso(carried.at),
        "progress": progress,
        "artifacts": [],
        "metrics": {},
        "error": None,
        "direct_blockers": [],
        "failed_ancestors": [],
        **known,
    }


def running_step(report: Mapping[str, Any]) -> str | None:
    """The step that a report says was running when the attempt ended."""
    running = _map(_map(report, "diagnostic"), "details").get("running_step_id")
    return running if isinstance(running, str) else None


def _map(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = value.get(key)
    return inner if isinstance(inner, Mapping) else {}


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        return []
    return [item for item in value if isinstance(item, str)]
