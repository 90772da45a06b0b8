"""Section 7 read once more, as slowly as it is written: from lists of spooled events, no folding.

It judges the fold of `plan_status`, and shares nothing with it but the shape of an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statelog.domain.execution.execution_ids import order_key

Spooled = dict[str, Any]
ENDS = {"step.succeeded": "succeeded", "step.skipped": "reused", "step.failed": "failed"}
STATES = {outcome: type for type, outcome in ENDS.items()} | {"blocked": "step.blocked"}
CLOSING = ("ended_at", "termination_reason", "outcome", "is_drained", "counts", "diagnostic")


def newest_attempt(events: Sequence[Spooled]) -> tuple[Spooled, dict[str, Spooled]] | None:
    """The fields of `attempt` and of `steps` of the attempt that a snapshot shows."""
    records = ("plan.attempt_started", "plan.attempt_report")
    observed = {event["execution_id"] for event in events if event["type"] in records}
    if not observed:
        return None
    chosen = max(observed, key=order_key)
    own = [event for event in events if event["execution_id"] == chosen]
    start = first(own, "plan.attempt_started")
    closed = first(own, "plan.attempt_report")
    report = closed["report"] if closed else None
    identity = start or report or {}
    captured = ("plan_generation", "run_token", "failure_policy", "started_at")
    attempt = {
        "execution_id": chosen,
        **{name: identity.get(name) for name in captured},
        "execution_authority": start["execution_authority"] if start else None,
        "execution_owner": start["execution_owner"] if start else None,
        "state": "finished" if report else "running",
        **{name: report.get(name) if report else None for name in CLOSING},
    }
    steps = {}
    for step_id, name in planned(start, report).items():
        told = [event for event in own if event.get("step_id") == step_id and "seq" in event]
        steps[step_id] = {"step_name": name, **step(step_id, told, report)}
    return attempt, steps


def first(events: Sequence[Spooled], type: str) -> Spooled | None:
    return next((event for event in events if event["type"] == type), None)


def planned(start: Spooled | None, report: Spooled | None) -> dict[str, str]:
    names: dict[str, str] = {}
    if start:
        for entry in start["steps"]:
            if isinstance(entry["step_id"], str) and entry["step_id"] not in names:
                names[entry["step_id"]] = entry["step_name"]
    elif report:
        names = {step_id: "" for step_id in report["step_ids"] if isinstance(step_id, str)}
    return names


def effective(events: Sequence[Spooled], *, ends: bool = True) -> Spooled | None:
    chosen: Spooled | None = None
    for event in events:
        if not event["type"].startswith("step."):
            continue
        if event["type"] in ENDS and not ends:
            continue
        over = chosen is not None and chosen["type"] in ENDS
        fails = event["type"] == "step.failed" and (not chosen or chosen["type"] != "step.failed")
        if not over or fails:
            chosen = event
    return chosen


def step(step_id: str, told: Sequence[Spooled], report: Spooled | None) -> Spooled:
    blocks = [event for event in told if event["type"] == "step.blocked"]
    run = [event for event in told if event["type"] != "step.blocked"]
    shown = effective(run)
    if report is None:
        if shown:
            return entry(run, shown)
        if blocks:
            return {**nothing(), **identity(blocks[-1:]), **blocked(blocks[-1])}
        return {**nothing(), "run_id": run_id(run), "state": "pending"}
    outcome = report["step_outcomes"].get(step_id)
    if outcome not in STATES:
        details = (report["diagnostic"] or {}).get("details", {})
        state = "interrupted" if run or details.get("running_step_id") == step_id else "unreached"
        live = effective(run, ends=False)
        base = entry(run, live) if live else {**nothing(), **identity(run), "run_id": run_id(run)}
        return {**base, "state": state}
    if shown and ENDS.get(shown["type"]) == outcome:
        base = entry(run, shown)
    else:
        known = run or (blocks[-1:] if outcome == "blocked" else [])
        base = {**nothing(), **identity(known), "run_id": run_id(run), "state": STATES[outcome]}
        base["progress"] = 100 if outcome in ("succeeded", "reused") else 0
    base["outcome"] = outcome
    if outcome == "blocked":
        base["direct_blockers"] = report["direct_blockers"].get(step_id, [])
        base["failed_ancestors"] = report["failed_ancestors"].get(step_id, [])
    base["error"] = report["failures"].get(step_id, base["error"])
    return base


def blocked(event: Spooled) -> Spooled:
    lists = {name: event[name] for name in ("direct_blockers", "failed_ancestors")}
    return {"state": "step.blocked", "outcome": "blocked", **lists}


def entry(run: Sequence[Spooled], shown: Spooled) -> Spooled:
    before = run[: next(at for at, event in enumerate(run) if event is shown) + 1]
    outcome = ENDS.get(shown["type"])
    made = {**nothing(), **identity(before), "run_id": run_id(run)}
    made |= {"state": shown["type"], "outcome": outcome}
    made["progress"] = shown.get("progress", 100 if outcome in ("succeeded", "reused") else 0)
    if outcome == "succeeded":
        made |= {"artifacts": shown["artifacts"], "metrics": shown["metrics"]}
    if outcome == "failed":
        made["error"] = {name: shown.get(name) for name in ("error", "kind", "code", "advice")}
    return made


def identity(events: Sequence[Spooled]) -> Spooled:
    known: Spooled = {}
    for event in events:
        for name in ("fingerprint", "job", "ts"):
            if event.get(name) not in (None, ""):
                known[name] = event[name]
    return known


def run_id(run: Sequence[Spooled]) -> str | None:
    return next((event["run_id"] for event in run if event.get("run_id")), None)


def nothing() -> Spooled:
    return {
        **{"state": None, "outcome": None, "run_id": None, "fingerprint": None, "job": None},
        **{"ts": None, "progress": 0, "artifacts": [], "metrics": {}, "error": None},
        **{"direct_blockers": [], "failed_ancestors": []},
    }
