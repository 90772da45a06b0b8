"""The snapshot of one attempt, built from its trace (7.2 to 7.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from statelog.domain.execution.outcomes import BLOCKED, SATISFYING
from statelog.domain.times import iso
from statelog.projections.execution.attempt_trace import AttemptTrace
from statelog.projections.execution.event_types import OUTCOME_OF, STATE_OF
from statelog.projections.execution.step_trace import Shown, StepTrace

Entry = dict[str, Any]

PENDING: Final = "pending"
INTERRUPTED: Final = "interrupted"
UNREACHED: Final = "unreached"
UNKNOWN: Final = "unknown"

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


def uncorrelated_entries(trace: AttemptTrace) -> dict[str, Entry]:
    """The same of a history without executions: what left no event of a step is unknown (6.7)."""
    return {
        step_id: {**entry, "state": UNKNOWN} if entry["state"] == PENDING else entry
        for step_id, entry in step_entries(trace).items()
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
    if step.blocked is None:
        return {**_nothing(), "state": PENDING, "run_id": step.run_id}
    return {
        **_nothing(),
        "state": STATE_OF[BLOCKED],
        "outcome": BLOCKED,
        "ts": _ts(step.blocked.at),
        "direct_blockers": list(step.blocked.direct_blockers),
        "failed_ancestors": list(step.blocked.failed_ancestors),
    }


def _without_outcome(step: StepTrace, *, reached: bool) -> Entry:
    """Whatever its events say of an end, none was established."""
    shown = _identity(step) if step.latest is None else _from_event(step.run_id, step.latest)
    return {**shown, "state": INTERRUPTED if reached else UNREACHED}


def _with_outcome(step_id: str, step: StepTrace, report: Mapping[str, Any], outcome: str) -> Entry:
    """The report decides; events that record the same outcome lend their data."""
    effective = step.ended or step.latest
    if effective is not None and OUTCOME_OF.get(effective.type) == outcome:
        entry = _from_event(step.run_id, effective)
    else:
        entry = {**_identity(step), "progress": _progress(outcome)}
    entry.update(state=STATE_OF[outcome], outcome=outcome)
    if outcome == BLOCKED:
        if step.blocked is not None and not step.seen:
            entry["ts"] = _ts(step.blocked.at)
        for name in ("direct_blockers", "failed_ancestors"):
            entry[name] = _texts(_map(report, name).get(step_id))
    failure = _map(report, "failures").get(step_id)
    return {**entry, "error": dict(failure)} if isinstance(failure, Mapping) else entry


def _nothing() -> Entry:
    """The entry of a step of which nothing is known."""
    return {
        "state": PENDING,
        "outcome": None,
        "run_id": None,
        "fingerprint": None,
        "job": None,
        "ts": None,
        "progress": 0,
        "artifacts": [],
        "metrics": {},
        "error": None,
        "direct_blockers": [],
        "failed_ancestors": [],
    }


def _identity(step: StepTrace) -> Entry:
    """What identifies a step's run, and nothing of what it made."""
    known = {"run_id": step.run_id, "fingerprint": step.fingerprint, "job": step.job}
    return {**_nothing(), **known, "ts": _ts(step.at)}


def _from_event(run_id: str | None, shown: Shown) -> Entry:
    outcome = OUTCOME_OF.get(shown.type)
    return {
        **_nothing(),
        "state": shown.type,
        "outcome": outcome,
        "run_id": run_id,
        "fingerprint": shown.fingerprint,
        "job": shown.job,
        "ts": _ts(shown.at),
        "progress": _progress(outcome),
        **shown.own,
    }


def _progress(outcome: str | None) -> int:
    return 100 if outcome in SATISFYING else 0


def _ts(at: int | None) -> str | None:
    return None if at is None else iso(at)


def running_step(report: Mapping[str, Any]) -> str | None:
    """The step that a report says was running when the attempt ended."""
    running = _map(_map(report, "diagnostic"), "details").get("running_step_id")
    return running if isinstance(running, str) else None


def _map(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = value.get(key)
    return inner if type(inner) is dict or isinstance(inner, Mapping) else {}


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        return []
    return [item for item in value if isinstance(item, str)]
