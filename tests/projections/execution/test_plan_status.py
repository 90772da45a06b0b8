"""The snapshot shows one attempt: the newest that was observed, and what the log says of it."""

from __future__ import annotations

from typing import Any

import pytest

from statelog.domain.execution.attempt_events import (
    StepBlocked,
    StepProgress,
    StepStarted,
    StepSucceeded,
    Voided,
)
from statelog.domain.execution.plan import Approved, RunRequested
from statelog.domain.execution.slot import GaveUp, Released, Reporting
from statelog.domain.times import iso
from statelog.projections.execution import plan_document, plan_status
from statelog.projections.execution.plan_status import attempts_of, snapshot_of
from statelog.projections.projection import fold
from statelog.projections.replay import replay
from tests.projections.execution.stories import (
    FIRST,
    SECOND,
    THIRD,
    Run,
    closed,
    held,
    planned,
    record,
    saved,
    started,
)
from tests.projections.recorded import Log


def snapshot(log: Log) -> dict[str, Any]:
    return replay(plan_status, log.events)["p"]


def test_a_newer_attempt_leaves_nothing_of_the_old_one():
    """case 105: an old success, then a newer failing attempt."""
    log = Log()
    old = Run(log, FIRST)
    old.succeed("a", metrics={"reads": 7})
    old.close("cancelled")
    new = Run(log, SECOND)
    new.start("a", run_id="run_new")
    new.fail("a")
    new.close("failed_fast")
    shown = snapshot(log)
    assert shown["attempt"]["execution_id"] == SECOND
    assert shown["steps"]["a"]["run_id"] == "run_new"
    assert shown["steps"]["a"]["state"] == "step.failed"
    assert shown["steps"]["a"]["metrics"] == {}
    assert {shown["steps"][step]["run_id"] for step in "bc"} == {None}


def test_a_newer_running_attempt_is_shown_as_running():
    """case 106: the steps it has not reached are pending."""
    log = Log()
    old = Run(log, FIRST)
    for step in "abc":
        old.succeed(step)
    old.close()
    Run(log, SECOND).start("a")
    shown = snapshot(log)
    assert shown["attempt"]["state"] == "running"
    assert [entry["state"] for entry in shown["steps"].values()] == [
        *("step.started", "pending", "pending")
    ]
    nothing_yet = ("ended_at", "termination_reason", "outcome", "is_drained", "counts")
    assert {shown["attempt"][name] for name in nothing_yet} == {None}


def test_a_regenerated_plan_still_shows_its_newest_attempt():
    """case 111: generations and tokens order nothing, execution ids do."""
    log = Log()
    Run(log, FIRST, plan_generation="zz", run_token=5).close("cancelled")
    Run(log, SECOND, plan_generation="aa", run_token=0)
    assert snapshot(log)["attempt"]["plan_generation"] == "aa"


def test_two_attempts_of_one_request_are_kept_apart():
    """case 112: each is there to be seen, and neither lends the other anything."""
    log = Log()
    first = Run(log, FIRST)
    first.succeed("a")
    first.close("cancelled")
    second = Run(log, SECOND)
    second.skip("a")
    second.succeed("b")
    one, two = (snapshot_of(log.events, id) for id in (FIRST, SECOND))
    assert one is not None
    assert two is not None
    assert [entry["state"] for entry in one["steps"].values()] == [
        *("step.succeeded", "unreached", "unreached")
    ]
    assert [entry["state"] for entry in two["steps"].values()] == [
        *("step.skipped", "step.succeeded", "pending")
    ]
    assert two == snapshot(log)


def test_the_snapshot_and_the_record_may_be_of_two_requests():
    """case 136: execution id, generation and token tell them apart."""
    log = Log()
    log.plan(saved(), Approved())
    good = Run(log, FIRST, failure_policy="fail_fast")
    for step in "abc":
        good.succeed(step)
    record(log, good.close())
    log.plan(RunRequested(1))
    bad = Run(log, SECOND, run_token=1, failure_policy="fail_fast")
    bad.fail("a")
    bad.close("failed_fast")
    attempt = snapshot(log)["attempt"]
    document = replay(plan_document, log.events)["p"]
    last = document["last_finalized_execution"]
    assert (attempt["outcome"], attempt["execution_id"]) == ("failed", SECOND)
    assert (last["outcome"], last["execution_id"]) == ("succeeded", FIRST)
    assert (attempt["run_token"], last["run_token"]) == (1, 0)
    assert attempt["plan_generation"] == last["plan_generation"]
    assert document["latest_request_succeeded"] is False


@pytest.mark.parametrize("never", ["reserved", "voided"])
def test_an_attempt_that_never_started_is_never_shown(never: str):
    """Neither by itself nor instead of an older one (D6, D9)."""
    log = Log()
    log.slot(held(FIRST))
    if never == "voided":
        log.attempt(FIRST, Voided())
        log.slot(Released(FIRST, "voided"))
    assert replay(plan_status, log.events) == {}
    assert attempts_of(log.events) == []
    assert snapshot_of(log.events, FIRST) is None
    Run(log, SECOND)
    log.slot(held(THIRD))
    log.attempt(THIRD, Voided())
    assert snapshot(log)["attempt"]["execution_id"] == SECOND


def test_events_of_an_older_attempt_change_nothing():
    """Late arrivals move neither the shown attempt nor the time of the snapshot."""
    log = Log()
    Run(log, SECOND).start("a")
    before = snapshot(log)
    late = Run(log, FIRST)
    late.succeed("a")
    late.close("cancelled")
    assert snapshot(log) == before


def test_an_attempt_is_shown_with_what_came_before_its_start():
    """As an import may bring it: step events first, then only the report."""
    log = Log()
    log.attempt(SECOND, StepStarted("a", 1, "r", "f", {}), StepProgress("a", 2, "r", "f", 40.0))
    assert replay(plan_status, log.events) == {}
    log.attempt(SECOND, closed(SECOND))
    shown = snapshot(log)
    assert shown["steps"]["a"]["state"] == "interrupted"
    assert shown["steps"]["a"]["progress"] == 40
    assert shown["steps"]["a"]["step_name"] == ""
    assert list(shown["steps"]) == ["a", "b", "c"]
    assert (shown["scope"], shown["realm"]) == (None, None)
    assert shown["attempt"]["execution_authority"] is None
    assert shown["attempt"]["started_at"] == "2026-01-01T10:00:00Z"


def test_what_nobody_observed_is_kept_only_while_it_may_be_shown():
    """Events without a start, of attempts that a newer one has put out of sight."""
    log = Log()
    for execution_id in (FIRST, THIRD):
        log.attempt(execution_id, StepStarted("a", 1, "r", "f", {}))
    Run(log, SECOND)
    assert list(fold(plan_status, log.events)["p"].unobserved) == [THIRD]


def test_without_start_and_inventory_the_steps_are_those_that_left_events():
    """The last resort of 7.2."""
    log = Log()
    log.attempt(FIRST, StepStarted("z", 1, "r", "f", {}), closed(step_ids=None))
    assert list(snapshot(log)["steps"]) == ["z"]


def test_planned_steps_are_shown_once_in_planned_order():
    """Duplicate ids collapse, ids that are no strings are dropped, unplanned ones not read."""
    log = Log()
    steps = [planned("z"), planned(7), planned("a"), planned(None)]
    steps.append(planned("z") | {"step_name": "another"})
    log.attempt(FIRST, started(FIRST, steps=tuple(steps)))
    log.attempt(FIRST, StepStarted("stray", 1, "r", "f", {}))
    assert list(snapshot(log)["steps"]) == ["z", "a"]
    assert snapshot(log)["steps"]["z"]["step_name"] == "Step z"


def test_all_the_fields_of_a_finished_attempt():
    """Every field of 7.2, from the start and the report."""
    log = Log()
    run = Run(log, execution_authority="run_once", execution_owner="run_once:1")
    for step in "abc":
        run.succeed(step)
    report = run.close()
    assert snapshot(log)["attempt"] == {
        "execution_id": FIRST,
        "plan_generation": "g1",
        "run_token": 0,
        "failure_policy": "continue_independent",
        "execution_authority": "run_once",
        "execution_owner": "run_once:1",
        "started_at": "2026-01-01T10:00:00Z",
        "state": "finished",
        "ended_at": report["ended_at"],
        "termination_reason": "completed",
        "outcome": "succeeded",
        "is_drained": True,
        "counts": {"succeeded": 3, "reused": 0, "failed": 0, "blocked": 0, "unreached": 0},
        "diagnostic": None,
    }
    assert {name: snapshot(log)[name] for name in ("type", "realm", "plan_id", "projection")} == {
        "type": "plan_status",
        "realm": "lab",
        "plan_id": "p",
        "projection": "attempt",
    }


def test_the_time_of_a_snapshot_is_that_of_its_last_event():
    """No clock: the recorded time of the last event folded in (D1)."""
    log = Log()
    Run(log).start("a")
    last = log.events[-1].time
    log.plan(saved())
    log.slot(held(SECOND), Released(SECOND, "not_started"))
    assert snapshot(log)["updated_at"] == iso(last)


def test_a_missing_scope_is_null():
    """D1: the plan is shown all the same."""
    log = Log()
    Run(log, scope={}).start("a")
    assert snapshot(log)["scope"] is None


@pytest.mark.parametrize(
    ("told", "scope"),
    [
        ((), None),
        (("skip",), None),
        (("start",), {"lane": 1}),
        (("block",), {"lane": 1}),
    ],
)
def test_a_step_may_give_the_scope(told: tuple[str, ...], scope: object):
    """The first scope of the attempt's own events; a reuse is published with the plan's (1.8)."""
    log = Log()
    run = Run(log, scope={}, steps=(planned("a"), planned("b", scope={"lane": 1})))
    for what in told:
        run.block("b", [], []) if what == "block" else getattr(run, what)("b")
    assert snapshot(log)["scope"] == scope


def test_a_result_is_pending_once_its_holder_gave_up():
    """D10, case 129: never while it is running, recording or recorded."""
    log = Log()
    run = Run(log)
    for step in "abc":
        run.succeed(step)
    run.close()
    log.slot(Reporting(FIRST))
    assert snapshot(log)["pending"] is None
    log.slot(GaveUp(FIRST, "the disk is full"))
    assert snapshot(log)["pending"] == {"execution_id": FIRST, "reason": "the disk is full"}
    assert snapshot_of(log.events, FIRST) == snapshot(log)
    log.slot(Released(FIRST, "superseded", "generation_changed"))
    assert snapshot(log)["pending"] is None


def test_all_attempts_of_a_plan_are_listed_newest_first():
    """Canonical ids above others, whatever the order in the log."""
    log = Log()
    Run(log, SECOND)
    Run(log, "by-hand").close("cancelled")
    Run(log, FIRST).close("preflight_rejected")
    listed = attempts_of(log.events)
    assert [attempt["execution_id"] for attempt in listed] == [SECOND, FIRST, "by-hand"]
    assert [attempt["state"] for attempt in listed] == ["running", "finished", "finished"]
    assert listed[1]["termination_reason"] == "preflight_rejected"
    assert snapshot(log)["attempt"] == listed[0]


def test_replays_do_not_change_a_report():
    """The first start and the first report stand."""
    log = Log()
    log.attempt(FIRST, started(FIRST), StepSucceeded("a", 1, "r", "f"))
    log.attempt(FIRST, closed(step_outcomes={"a": "succeeded"}))
    log.attempt(FIRST, started(FIRST, plan_generation="other"))
    log.attempt(FIRST, closed(step_outcomes={"a": "failed"}), StepBlocked("a", 2, (), ()))
    assert snapshot(log)["steps"]["a"]["outcome"] == "succeeded"
    assert snapshot(log)["attempt"]["plan_generation"] == "g1"
