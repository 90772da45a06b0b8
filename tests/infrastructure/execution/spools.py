"""Makes folders in the layout of 6.4 and 6.7, whole or damaged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FIRST = "20240101T100000000000Z_0001"
SECOND = "20240101T110000000000Z_0001"
THIRD = "20240101T120000000000Z_0001"
OLD = "20231231T235959000000Z_00ff"

STEPS = ("a", "b")


def marked(part: str) -> str:
    """One part of a step's path, as 6.4 spells it; said again, not shared with the reader."""
    unsafe = part.startswith("%") or part in ("", ".", "..")
    lower = part.lower()
    return f"%{part}" if unsafe or lower.endswith(".json") or lower.endswith(".json.tmp") else part


class Spool:
    """A spool with one realm `lab`, told attempt by attempt."""

    def __init__(self, folder: Path, plan_id: str = "p", realm: str = "lab") -> None:
        self.root = folder
        self.plan = folder / realm / plan_id
        self.who = {"realm": realm, "plan_id": plan_id, "scope": {"kind": "run", "id": "r1"}}

    def attempt(self, execution_id: str) -> Path:
        """The directory of an attempt, made when it is not there."""
        path = self.plan / "attempts" / execution_id
        path.mkdir(parents=True, exist_ok=True)
        return path

    def start(self, execution_id: str = FIRST, /, steps: Any = STEPS, **changes: Any) -> Path:
        """A start record: steps by ID, without dependencies."""
        entries = [{"step_id": each, "step_name": f"Step {each}", "deps": []} for each in steps]
        return self.write(
            self.attempt(execution_id) / "plan_attempt_started.json",
            {
                **self.correlated(execution_id),
                "type": "plan.attempt_started",
                "execution_authority": "daemon",
                "execution_owner": None,
                "failure_policy": "fail_fast",
                "started_at": "2024-01-01T10:00:00+00:00",
                "steps": entries,
                **changes,
            },
        )

    def report(
        self, execution_id: str = FIRST, /, outcomes: Mapping[str, str] = {}, **changes: Any
    ) -> Path:
        """A report record: outcomes by step."""
        told = {
            "execution_id": execution_id,
            "plan_id": self.who["plan_id"],
            "plan_generation": "g1",
            "run_token": 0,
            "failure_policy": "fail_fast",
            "started_at": "2024-01-01T10:00:00+00:00",
            "ended_at": "2024-01-01T10:05:00+00:00",
            "termination_reason": "completed",
            "outcome": "succeeded",
            "is_drained": True,
            "step_ids": list(STEPS),
            "step_outcomes": dict(outcomes),
            "unreached_step_ids": [],
            "failures": {},
            "direct_blockers": {},
            "failed_ancestors": {},
            "diagnostic": None,
            "publication_failure": None,
            "counts": {},
        }
        record = {
            **self.correlated(execution_id),
            "type": "plan.attempt_report",
            "report": {**told, **changes},
        }
        return self.write(self.attempt(execution_id) / "plan_attempt_report.json", record)

    def event(
        self, step_id: str, kind: str, seq: Any = 1, execution_id: str = FIRST, /, **fields: Any
    ) -> Path:
        """An event of a step of an attempt."""
        steps = self.attempt(execution_id) / "steps"
        folder = steps.joinpath(*map(marked, step_id.split("/")))
        given = {**self.correlated(execution_id), **self.of_step(step_id, kind, seq), **fields}
        return self.write(folder / f"{seq:04}_{kind.replace('.', '_')}.json", given)

    def older(self, step_id: str, run_id: str, kind: str, seq: int = 1, /, **fields: Any) -> Path:
        """An event of times without executions."""
        path = self.plan / step_id / run_id / f"{seq:04}_{kind.replace('.', '_')}.json"
        given = {**self.who, **self.of_step(step_id, kind, seq), "run_id": run_id}
        return self.write(path, {**given, **fields})

    def correlated(self, execution_id: str) -> dict[str, Any]:
        """What every record of an attempt says."""
        identity = {"execution_id": execution_id, "plan_generation": "g1", "run_token": 0}
        return {**self.who, **identity, "ts": "2024-01-01T10:00:00+00:00"}

    def of_step(self, step_id: str, kind: str, seq: Any) -> dict[str, Any]:
        """What every event of a step says."""
        second = seq if type(seq) is int else 0
        return {
            "type": kind,
            "eid": f"{step_id}-{kind}-{seq}",
            "ts": f"2024-01-01T10:00:{second % 60:02}+00:00",
            "step_id": step_id,
            "step_name": f"Step {step_id}",
            "seq": seq,
            "run_id": f"run-{step_id}",
            "fingerprint": f"sha256:{step_id}",
        }

    def write(self, path: Path, value: Any) -> Path:
        """A file with a JSON value, its folders made."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    def ran(self, execution_id: str = FIRST) -> None:
        """An attempt in which a succeeded and b was reused."""
        self.start(execution_id)
        self.event("a", "step.started", 1, execution_id, params={"n": 1})
        self.event("a", "step.progress", 2, execution_id, progress=40, message="almost")
        made = {"key": "out", "path": "a.txt", "digest": None}
        self.event("a", "step.succeeded", 3, execution_id, artifacts=[made], metrics={"n": 1})
        self.event("b", "step.skipped", 1, execution_id, reason="cache_hit")
        self.report(execution_id, {"a": "succeeded", "b": "reused"})


def document(plan_id: str = "p", **changes: Any) -> dict[str, Any]:
    """A plan document of elsewhere: approved, its request open, without a generation."""
    step = {"step_id": "a", "name": "A", "fn_ref": "steps:write", "params": {"text": "x"}}
    body = {"plan_id": plan_id, "realm": "lab", "steps": [{**step, "outputs": {}}]}
    return {
        "_id": plan_id,
        "_rev": "17-abc",
        "realm": "lab",
        "status": "approved",
        "plan": body,
        "run_token": 0,
        "executed_run_token": -1,
        "execution_authority": "daemon",
        "approved_at": "2020-01-01T00:00:00+00:00",
        "approved_by": "alice",
        "colour": "blue",
        **changes,
    }
