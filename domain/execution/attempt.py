"""The attempt: one run of the engine over a plan, with its steps in one stream (D2, D7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, assert_never

from statelog.domain.aggregate import Aggregate, changed
from statelog.domain.errors import Invalid, Refused
from statelog.domain.execution.attempt_events import (
    AttemptEvent,
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
from statelog.domain.execution.graph import Graph
from statelog.domain.execution.report import AttemptReport
from statelog.domain.execution.slot import Slot
from statelog.domain.execution.spec import PlanSpec
from statelog.domain.execution.step import Artifact
from statelog.domain.execution.step_lifecycle import (
    OUTCOMES,
    SATISFIED,
    StepState,
    StepStatus,
    evolve_step,
)
from statelog.domain.lifecycle import SAME, Lifecycle
from statelog.domain.pmap import PMap

_STEP_RUNNING = StepStatus.RUNNING


class AttemptStatus(Enum):
    """Where an attempt is."""

    NEW, RUNNING, CLOSED, VOIDED = "new", "running", "closed", "voided"


@dataclass(frozen=True)
class Attempt:
    """A running or ended attempt. `steps` holds the planned steps by id."""

    status: AttemptStatus = AttemptStatus.NEW
    start: Started | None = None
    steps: PMap[str, StepState] = field(default_factory=PMap)
    deps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    running: str | None = None
    report: Mapping[str, Any] | None = None

    def __hash__(self) -> int:
        return hash((self.status, self.steps, self.running))

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcome of each step that has one."""
        steps = self.steps.items()
        return {step_id: step.status.value for step_id, step in steps if step.status in OUTCOMES}


def evolve(attempt: Attempt, event: AttemptEvent) -> Attempt:
    """The attempt after an event. Raises `IllegalTransition` when the step's own table says no."""
    match event:
        case (
            StepStarted()
            | StepSucceeded()
            | StepProgress()
            | StepArtifact()
            | StepEmitted()
            | StepFailed()
            | StepRetryUnimplemented()
            | StepSkipped()
            | StepBlocked()
        ):
            step_id = event.step_id
            step = evolve_step(attempt.steps[step_id], event)
            running = step_id if step.status is _STEP_RUNNING else None
            return changed(attempt, steps=attempt.steps.set(step_id, step), running=running)
        case Started():
            steps = {entry["step_id"]: StepState() for entry in _named(event)}
            return changed(attempt, start=event, steps=PMap(steps), deps=_deps(event))
        case Closed(report=report):
            return changed(attempt, report=report, running=None)
        case Voided():
            return attempt
        case _:
            assert_never(event)


def _named(event: Started) -> list[Mapping[str, Any]]:
    return [entry for entry in event.steps if isinstance(entry["step_id"], str)]


def _deps(event: Started) -> dict[str, tuple[str, ...]]:
    """Dependencies by step; malformed ones never get past preflight and count as none."""
    return {entry["step_id"]: _texts(entry["deps"]) for entry in _named(event)}


def _texts(deps: Any) -> tuple[str, ...]:
    if not isinstance(deps, list | tuple):
        return ()
    return tuple(dict.fromkeys(dep for dep in deps if isinstance(dep, str)))


_NEW, _RUNNING = AttemptStatus.NEW, AttemptStatus.RUNNING

ATTEMPT = Aggregate(
    "attempt",
    Attempt(),
    evolve,
    Lifecycle(
        _NEW,
        [
            # event        from      to
            (Started, _NEW, _RUNNING),
            (Voided, _NEW, AttemptStatus.VOIDED),
            (StepStarted, _RUNNING, SAME),
            (StepProgress, _RUNNING, SAME),
            (StepArtifact, _RUNNING, SAME),
            (StepEmitted, _RUNNING, SAME),
            (StepSucceeded, _RUNNING, SAME),
            (StepFailed, _RUNNING, SAME),
            (StepRetryUnimplemented, _RUNNING, SAME),
            (StepSkipped, _RUNNING, SAME),
            (StepBlocked, _RUNNING, SAME),
            (Closed, _RUNNING, AttemptStatus.CLOSED),
        ],
        final={AttemptStatus.CLOSED, AttemptStatus.VOIDED},
        name="attempt",
    ),
    stream="plan/{}/attempt/{}",
)


def start(attempt: Attempt, *, plan: PlanSpec, slot: Slot, started_at: str) -> list[Started]:
    """Begin the attempt that a slot was reserved for; `started_at` is ISO-8601 UTC."""
    return [
        Started(
            execution_id=slot.execution_id or "",
            plan_id=plan.plan_id,
            realm=plan.realm,
            scope=plan.scope,
            plan_generation=slot.plan_generation,
            run_token=slot.run_token,
            execution_authority=slot.execution_authority,
            execution_owner=slot.execution_owner,
            failure_policy=plan.failure_policy,
            started_at=started_at,
            steps=tuple(
                {
                    "step_id": step.step_id,
                    "step_name": step.name,
                    "deps": step.deps,
                    **({"scope": step.scope} if step.scope else {}),
                }
                for step in plan.steps
            ),
        )
    ]


def _step(attempt: Attempt, step_id: str) -> StepState:
    step = attempt.steps.get(step_id)
    if step is None:
        raise Refused(f"step {step_id!r} is not planned", rule="planned_step")
    return step


def _may_begin(attempt: Attempt, step_id: str) -> StepState:
    step = _step(attempt, step_id)
    if attempt.running is not None:
        raise Refused(f"step {attempt.running!r} is running", rule="one_running_step")
    for dep in attempt.deps[step_id]:
        if _step(attempt, dep).status not in SATISFIED:
            raise Refused(f"{step_id!r} needs {dep!r}", rule="prerequisites")
    return step


def start_step(
    attempt: Attempt,
    *,
    step_id: str,
    run_id: str,
    fingerprint: str,
    params: Mapping[str, Any],
    why: Sequence[str] = (),
) -> list[StepStarted]:
    """Start a step that is not reused.

    Raises `Refused` (`planned_step`, `one_running_step`, `prerequisites`).
    """
    step = _may_begin(attempt, step_id)
    return [StepStarted(step_id, step.seq + 1, run_id, fingerprint, params, tuple(why))]


def skip_step(
    attempt: Attempt, *, step_id: str, run_id: str, fingerprint: str
) -> list[StepSkipped]:
    """Reuse a step's last success. Raises `Refused` as `start_step` does."""
    step = _may_begin(attempt, step_id)
    return [StepSkipped(step_id, step.seq + 1, run_id, fingerprint)]


def _running(attempt: Attempt, step_id: str) -> tuple[int, str, str]:
    step = _step(attempt, step_id)
    if step.status is not StepStatus.RUNNING:
        raise Refused(f"step {step_id!r} is not running", rule="running_step")
    return step.seq + 1, step.run_id or "", step.fingerprint or ""


def report_progress(
    attempt: Attempt, *, step_id: str, progress: float, message: str | None = None
) -> list[StepProgress]:
    """Say how far a running step is. Raises `Refused` (`running_step`)."""
    seq, run_id, print_ = _running(attempt, step_id)
    return [StepProgress(step_id, seq, run_id, print_, progress, message)]


def register_artifact(attempt: Attempt, *, step_id: str, artifact: Artifact) -> list[StepArtifact]:
    """Register what a running step produced. Raises `Refused` (`running_step`)."""
    seq, run_id, print_ = _running(attempt, step_id)
    return [StepArtifact(step_id, seq, run_id, print_, artifact)]


_ENGINES_OWN = frozenset(
    f"step.{word}"
    for word in (
        "started",
        "progress",
        "artifact",
        "succeeded",
        "failed",
        "retry_unimplemented",
        "skipped",
        "blocked",
    )
)


def emit(
    attempt: Attempt, *, step_id: str, type: str, payload: Mapping[str, Any]
) -> list[StepEmitted]:
    """Publish an event of the step's own.

    Raises `Invalid` for a type that is empty or the engine's own, `Refused` (`running_step`).
    """
    if not type or type in _ENGINES_OWN or type.startswith("plan."):
        raise Invalid("type", f"{type!r} is not a type of your own")
    seq, run_id, print_ = _running(attempt, step_id)
    return [StepEmitted(step_id, seq, run_id, print_, type, payload)]


def succeed(
    attempt: Attempt,
    *,
    step_id: str,
    artifacts: Sequence[Artifact] = (),
    metrics: Mapping[str, Any] | None = None,
    extra: Mapping[str, Any] | None = None,
    parts: Mapping[str, Any] | None = None,
) -> list[StepSucceeded]:
    """Record a success. Raises `Refused` (`running_step`)."""
    seq, run_id, print_ = _running(attempt, step_id)
    return [
        StepSucceeded(
            step_id, seq, run_id, print_, tuple(artifacts), metrics or {}, extra or {}, parts or {}
        )
    ]


def fail(
    attempt: Attempt,
    *,
    step_id: str,
    kind: str,
    error: str,
    error_type: str,
    code: str | None = None,
    advice: str | None = None,
    run_id: str | None = None,
) -> list[StepFailed | StepRetryUnimplemented]:
    """Record an ordinary failure, with the retry diagnostic of a transient one.

    `run_id` is for a step that fails before it started (D23). Raises `Refused`.
    """
    step = _step(attempt, step_id)
    if step.status is StepStatus.PENDING:
        step = changed(_may_begin(attempt, step_id), run_id=run_id)
    seq, run = step.seq + 1, step.run_id
    failed = StepFailed(step_id, seq, run, step.fingerprint, kind, error, error_type, code, advice)
    if kind != "transient":
        return [failed]
    return [failed, StepRetryUnimplemented(step_id, seq + 1, run, error)]


def block(
    attempt: Attempt, *, steps: Sequence[tuple[str, Sequence[str], Sequence[str]]]
) -> list[StepBlocked]:
    """Block steps: (step id, direct blockers, failed ancestors) each, all of one failure."""
    return [
        StepBlocked(step_id, _step(attempt, step_id).seq + 1, tuple(direct), tuple(ancestors))
        for step_id, direct, ancestors in steps
    ]


def report_so_far(attempt: Attempt, interrupted: str | None = None) -> AttemptReport:
    """The open report of an attempt, as its events tell it (1.7).

    An `interrupted` step has no outcome, whatever its events say. Raises `Refused` (`started`)
    for an attempt that has not started.
    """
    start = attempt.start
    if start is None:
        raise Refused("the attempt has not started", rule="started")
    failures = {
        step_id: step.failure for step_id, step in attempt.steps.items() if step.failure is not None
    }
    return AttemptReport.of(
        execution_id=start.execution_id,
        plan_id=start.plan_id,
        plan_generation=start.plan_generation,
        run_token=start.run_token,
        failure_policy=start.failure_policy,
        started_at=start.started_at,
        step_ids=[entry["step_id"] for entry in start.steps],
        graph=Graph.of(attempt.deps.items()),
        outcomes={step: how for step, how in attempt.outcomes.items() if step != interrupted},
        failures=failures,
    )


def close(attempt: Attempt, *, report: AttemptReport) -> list[Closed]:
    """Close the attempt with its closed report.

    Raises `Refused` for another attempt's report (`own_report`) or an open one (`closed_report`).
    """
    if attempt.start is None or report.execution_id != attempt.start.execution_id:
        raise Refused("the report is of another attempt", rule="own_report")
    if report.termination_reason is None:
        raise Refused("the report is still open", rule="closed_report")
    return [Closed(report=report.to_json())]


def void(attempt: Attempt) -> list[Voided]:
    """Take the first version of an attempt whose holder died before it started (D9)."""
    return [Voided()]
