"""Attempt events in the shape of the spool: fields, scope rules, identity that cannot be forged."""

from __future__ import annotations

from typing import Any

from statelog.domain.event import Event
from statelog.domain.execution.attempt_events import (
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
from statelog.domain.execution.plan import Approved
from statelog.domain.execution.step import Artifact
from statelog.domain.times import iso
from statelog.projections.execution.spool import spool
from tests.projections.execution.stories import FIRST, SECOND, Run, closed, planned, saved, started
from tests.projections.recorded import Log

OF_A: dict[str, Any] = {"step_id": "a", "run_id": "r1", "fingerprint": "f1"}
PLANS = {"kind": "run", "id": "r1"}
ITS_OWN = {"kind": "lane", "id": "1"}


def told(*events: Event) -> dict[str, Any]:
    """The last of these events, in an attempt whose step a has a scope of its own."""
    log = Log()
    log.attempt(FIRST, started(FIRST, steps=(planned("a", ["b"], scope=ITS_OWN), planned("b"))))
    log.attempt(FIRST, *events)
    return list(spool(log.events))[-1]


def envelope(type: str, version: int = 2, scope: object = ITS_OWN) -> dict[str, Any]:
    log = Log()
    at = log.attempt(FIRST, *[started(FIRST)] * version).time
    return {
        "type": type,
        "ts": iso(at),
        "eid": f"plan/p/attempt/{FIRST}@{version}",
        "realm": "lab",
        "scope": scope,
        "plan_id": "p",
        "execution_id": FIRST,
        "plan_generation": "g1",
        "run_token": 0,
    }


NAMED = {"step_id": "a", "step_name": "Step a"}
RUNNING = {**NAMED, "run_id": "r1", "fingerprint": "f1"}
MADE = {"key": "out", "path": "/work/out.txt", "digest": None}


def test_the_start_has_its_fields():
    """1.6: no scope in the list of steps."""
    assert told() == {
        **envelope("plan.attempt_started", 1, PLANS),
        "execution_authority": "daemon",
        "execution_owner": None,
        "failure_policy": "continue_independent",
        "started_at": "2026-01-01T10:00:00Z",
        "steps": [planned("a", ["b"]), planned("b")],
    }


def test_the_report_is_carried_whole():
    """1.7: under `report`, with the plan's scope."""
    event = closed()
    assert told(event) == {
        **envelope("plan.attempt_report", scope=PLANS),
        "report": event.report,
    }


def test_step_events_have_their_fields():
    """The table of 1.8, row by row."""
    artifact = Artifact("out", "/work/out.txt")
    rows: list[tuple[Event, dict[str, Any]]] = [
        (
            StepStarted(**OF_A, seq=1, params={"x": 1}, why=("no success marker",)),
            {**envelope("step.started"), **RUNNING, "seq": 1, "params": {"x": 1}}
            | {"why": ["no success marker"]},
        ),
        (
            StepProgress(**OF_A, seq=2, progress=5.0),
            {**envelope("step.progress"), **RUNNING, "seq": 2, "progress": 5.0, "message": None},
        ),
        (
            StepArtifact(**OF_A, seq=2, artifact=artifact),
            {**envelope("step.artifact"), **RUNNING, "seq": 2, "artifact": MADE},
        ),
        (
            StepEmitted(**OF_A, seq=2, type="hpc.queued", payload={"job": 7}),
            {**envelope("hpc.queued"), **RUNNING, "seq": 2, "job": 7},
        ),
        (
            StepSucceeded(**OF_A, seq=2, artifacts=(artifact,), metrics={"n": 1}, parts={"x": "0"}),
            {**envelope("step.succeeded"), **RUNNING, "seq": 2}
            | {"artifacts": [MADE], "metrics": {"n": 1}, "extra": {}},
        ),
        (
            StepFailed(**OF_A, seq=2, kind="permanent", error="no", error_type="OSError"),
            {**envelope("step.failed"), **RUNNING, "seq": 2, "kind": "permanent", "error": "no"},
        ),
        (
            StepRetryUnimplemented(step_id="a", seq=3, run_id="r1", error="no"),
            {**envelope("step.retry_unimplemented", scope=PLANS), "step_id": "a", "run_id": "r1"}
            | {"seq": 3, "error": "no", "kind": "transient"},
        ),
        (
            StepSkipped(**OF_A, seq=1),
            {**envelope("step.skipped", scope=PLANS), **RUNNING, "seq": 1, "reason": "cache_hit"},
        ),
        (
            StepBlocked("a", 1, ("b",), ("b",)),
            {**envelope("step.blocked"), **NAMED, "seq": 1}
            | {"direct_blockers": ["b"], "failed_ancestors": ["b"]},
        ),
    ]
    for event, expected in rows:
        assert told(event) == expected


def test_code_and_advice_are_for_the_errors_that_have_them():
    """1.8: the permanent and transient types only, there also when they are null."""
    event = StepFailed(
        **OF_A, seq=2, kind="transient", error="no", error_type="TransientStepError", code="E1"
    )
    assert (told(event)["code"], told(event)["advice"]) == ("E1", None)
    other = StepFailed(**OF_A, seq=2, kind="permanent", error="no", error_type="OSError")
    assert not {"code", "advice"} & told(other).keys()


def test_a_step_without_a_scope_of_its_own_has_the_plans():
    """The override counts when it is not empty."""
    event = StepStarted("b", 1, "r1", "f1", {})
    assert told(event)["scope"] == PLANS


def test_a_payload_cannot_forge_who_published_it():
    """case 104: whatever an event of a step's own says, the real identity is shown."""
    forged = {
        **{"execution_id": SECOND, "plan_generation": "g9", "run_token": 9, "plan_id": "q"},
        **{"realm": "x", "scope": {}, "eid": "e", "ts": "now", "type": "step.succeeded"},
        **{"step_id": "b", "seq": 99, "run_id": "r9", "fingerprint": "f9", "step_name": "B"},
    }
    event = StepEmitted(**OF_A, seq=2, type="hpc.queued", payload={**forged, "note": "kept"})
    assert told(event) == {**envelope("hpc.queued"), **RUNNING, "seq": 2, "note": "kept"}


def test_every_step_numbers_its_events_from_one():
    """case 102: executed, reused and blocked ones, and each event has the attempt's identity."""
    log = Log()
    run = Run(log)
    run.start("a")
    run.progress("a", 10)
    run.emit("a", "hpc.queued", job=1)
    run.fail("a", kind="transient")
    run.skip("b")
    run.block("c", ["a"], ["a"])
    run.close()
    events = list(spool(log.events))
    seqs: dict[str, list[int]] = {}
    for event in events:
        if "seq" in event:
            seqs.setdefault(event["step_id"], []).append(event["seq"])
    assert seqs == {"a": [1, 2, 3, 4, 5], "b": [1], "c": [1]}
    identity = ("execution_id", "plan_generation", "run_token", "realm", "plan_id")
    assert {tuple(event[name] for name in identity) for event in events} == {
        (FIRST, "g1", 0, "lab", "p")
    }
    assert len({event["eid"] for event in events}) == len(events)


def test_attempts_are_told_apart_and_other_streams_are_left_out():
    """Each event takes its identity from its own attempt's start."""
    log = Log()
    log.plan(saved(), Approved())
    one, two = Run(log, FIRST), Run(log, SECOND, run_token=1, realm="other")
    one.start("a")
    two.start("a")
    log.attempt("never", Voided())
    told = [(event["type"], event["run_token"], event["realm"]) for event in spool(log.events)]
    assert told == [
        ("plan.attempt_started", 0, "lab"),
        ("plan.attempt_started", 1, "other"),
        ("step.started", 0, "lab"),
        ("step.started", 1, "other"),
        ("plan.attempt_voided", None, None),
    ]


def test_without_a_start_the_report_names_the_request():
    """What is not known is null."""
    log = Log()
    log.attempt(FIRST, closed())
    event = next(spool(log.events))
    assert (event["plan_generation"], event["run_token"], event["realm"]) == ("g1", 0, None)
