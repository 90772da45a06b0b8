"""Short stories of a plan, told with the domain's own decisions, into a log made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statelog.domain.event import Event
from statelog.domain.execution import attempt as decisions
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.attempt_events import Closed, Started
from statelog.domain.execution.plan import RequestFinished, Saved
from statelog.domain.execution.slot import Held, Released, Reporting
from tests.projections.recorded import Log

FIRST = "20260101T100000000000Z_0001"
SECOND = "20260101T110000000000Z_0001"
THIRD = "20260101T120000000000Z_0001"

STEPS = ("a", "b", "c")


def saved(generation: str = "g1", **changes: Any) -> Saved:
    """A plan of three steps, for the daemon."""
    given: dict[str, Any] = {
        "plan_id": "p",
        "realm": "lab",
        "scope": {"kind": "run", "id": "r1"},
        "plan": {"plan_id": "p", "realm": "lab", "steps": []},
        "preview": {},
        "plan_generation": generation,
        "run_token": 0,
        "executed_run_token": -1,
        "execution_authority": "daemon",
        "execution_owner": None,
    }
    return Saved(**{**given, **changes})


def held(execution_id: str, token: int = 0, generation: str = "g1", **changes: Any) -> Held:
    """The slot's reservation for the daemon."""
    given: dict[str, Any] = {
        "execution_id": execution_id,
        "holder": "h1",
        "plan_version": 1,
        "plan_generation": generation,
        "run_token": token,
        "execution_authority": "daemon",
        "execution_owner": None,
    }
    return Held(**{**given, **changes})


def planned(step_id: Any, deps: Sequence[Any] = (), **more: Any) -> dict[str, Any]:
    """One planned step as the start lists it."""
    return {"step_id": step_id, "step_name": f"Step {step_id}", "deps": list(deps), **more}


def started(execution_id: str, **changes: Any) -> Started:
    """The start of an attempt at request 0: steps a, b, c without dependencies."""
    given: dict[str, Any] = {
        "execution_id": execution_id,
        "plan_id": "p",
        "realm": "lab",
        "scope": {"kind": "run", "id": "r1"},
        "plan_generation": "g1",
        "run_token": 0,
        "execution_authority": "daemon",
        "execution_owner": None,
        "failure_policy": "continue_independent",
        "started_at": "2026-01-01T10:00:00Z",
        "steps": tuple(planned(step_id) for step_id in STEPS),
    }
    return Started(**{**given, **changes})


class Run:
    """One attempt, told step by step."""

    def __init__(self, log: Log, execution_id: str = FIRST, **start: Any) -> None:
        self.log = log
        self.id = execution_id
        self.state = ATTEMPT.blank
        self._tell(started(execution_id, **start))

    def _tell(self, *events: Event) -> None:
        for event in events:
            self.state = ATTEMPT.apply_new(self.state, event)
        self.log.attempt(self.id, *events)

    def start(self, step_id: str, **given: Any) -> None:
        """A step starts."""
        facts = {"run_id": f"run_{step_id}", "fingerprint": f"sha256:{step_id}", "params": {}}
        self._tell(*decisions.start_step(self.state, step_id=step_id, **{**facts, **given}))

    def progress(self, step_id: str, percent: float) -> None:
        """It reports progress."""
        self._tell(*decisions.report_progress(self.state, step_id=step_id, progress=percent))

    def emit(self, step_id: str, type: str, **payload: Any) -> None:
        """It publishes an event of its own."""
        self._tell(*decisions.emit(self.state, step_id=step_id, type=type, payload=payload))

    def succeed(self, step_id: str, **given: Any) -> None:
        """It starts if it has not, and succeeds."""
        if self.state.running != step_id:
            self.start(step_id)
        self._tell(*decisions.succeed(self.state, step_id=step_id, **given))

    def fail(self, step_id: str, **given: Any) -> None:
        """It starts if it has not, and fails."""
        if self.state.running != step_id:
            self.start(step_id)
        facts = {"kind": "permanent", "error": "no disk", "error_type": "OSError"}
        self._tell(*decisions.fail(self.state, step_id=step_id, **{**facts, **given}))

    def skip(self, step_id: str) -> None:
        """Its last success is reused."""
        facts = {"run_id": f"run_{step_id}", "fingerprint": f"sha256:{step_id}"}
        self._tell(*decisions.skip_step(self.state, step_id=step_id, **facts))

    def block(self, step_id: str, direct: Sequence[str], ancestors: Sequence[str]) -> None:
        """It is blocked."""
        self._tell(*decisions.block(self.state, steps=[(step_id, direct, ancestors)]))

    def close(
        self, reason: str = "completed", diagnostic: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The attempt ends; answers its report."""
        report = decisions.report_so_far(self.state)
        report = report.closed(reason, "2026-01-01T10:30:00Z", diagnostic)
        self._tell(*decisions.close(self.state, report=report))
        return report.to_json()


def finished(report: Mapping[str, Any]) -> RequestFinished:
    """The recording of a report."""
    names = (
        *("execution_id", "plan_generation", "run_token"),
        *("failure_policy", "outcome", "termination_reason"),
    )
    return RequestFinished(**{name: report[name] for name in names})


def record(log: Log, report: Mapping[str, Any]) -> None:
    """The slot files the report, and the plan records it."""
    log.slot(Reporting(report["execution_id"]))
    log.plan(finished(report))
    log.slot(Released(report["execution_id"], "recorded"))


def closed(execution_id: str = FIRST, **changes: Any) -> Closed:
    """A close with a report made by hand, for what the domain would not write."""
    given: dict[str, Any] = {
        "execution_id": execution_id,
        "plan_id": "p",
        "plan_generation": "g1",
        "run_token": 0,
        "failure_policy": "continue_independent",
        "started_at": "2026-01-01T10:00:00Z",
        "ended_at": "2026-01-01T10:30:00Z",
        "termination_reason": "orchestration_error",
        "outcome": "failed",
        "is_drained": False,
        "step_ids": list(STEPS),
        "step_outcomes": {},
        "unreached_step_ids": list(STEPS),
        "failures": {},
        "direct_blockers": {},
        "failed_ancestors": {},
        "diagnostic": None,
        "publication_failure": None,
        "counts": {"succeeded": 0, "reused": 0, "failed": 0, "blocked": 0, "unreached": 3},
    }
    return Closed(report={**given, **changes})
