"""A result and its token are recorded together, once, or told pending or superseded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import Conflict, Refused, StoreError
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.plan import PlanStatus
from statelog.domain.execution.request import DAEMON
from statelog.domain.execution.slot import SlotStatus
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.holders import Holders
from tests.infrastructure.execution.lab import Failing, Lab, a_step

BUSY = StoreError("busy", "the store is locked")
FULL = StoreError("full", "the disk is full")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def recording(names: list[str]) -> bool:
    return "request_finished" in names


@pytest.mark.parametrize("policy", ["fail_fast", "continue_independent"])
def test_a_success_is_recorded_with_its_token_in_one_append(lab: Lab, policy: str) -> None:
    """Case 74."""
    lab.run(a_step("a"), policy=policy)
    plan_events = lab.names("plan/p")
    assert plan_events.count("request_finished") == 1
    at = plan_events.index("request_finished")
    assert plan_events[at + 1] == "released"
    finished, released = lab.events("plan/p")[at : at + 2]
    assert finished.command == released.command
    assert lab.plan.status is PlanStatus.APPROVED
    assert lab.plan.executed_run_token == 0


def test_under_continue_a_rejection_is_recorded_with_its_diagnostic(lab: Lab) -> None:
    """Case 75."""
    resolved = lab.go(a_step(""))
    assert resolved.resolution is Resolution.FINALIZED
    assert resolved.report is not None
    assert resolved.report["diagnostic"]["details"]["check"] == "P2"
    assert lab.plan.last["outcome"] == "failed"


def test_a_lost_race_and_transient_errors_are_tried_again(lab: Lab) -> None:
    """Case 77."""
    waits: list[float] = []
    fails = iter([True, True, False])
    with lab.session() as session:
        settler = session.coordinator.settler
        settler.delays_s = (0.5, 1.0)
        settler.interrupt.wait = lambda s: bool(waits.append(s))  # type: ignore[method-assign,func-returns-value,assignment]
        error = Conflict("plan/p", 1, 2)
        with Failing(lab.journal, lambda n: recording(n) and next(fails), error) as failing:
            resolved = session.run(lab.body(a_step("a")))
    assert failing.failed == 2
    assert waits == [0.5, 1.0]
    assert resolved.succeeded


def test_a_plan_regenerated_during_the_run_supersedes_the_result_once(lab: Lab) -> None:
    """Case 78."""
    changed = lab.body(a_step("b"))

    def regenerate(events: Any) -> None:
        if events[-1].name.endswith("step_succeeded"):
            owner = lab.plan.execution_owner
            Plans(lab.journal, "alice").save(
                changed, approve=True, force=True, authority="run_once", owner=owner
            )

    lab.on_event = regenerate
    resolved = lab.run(a_step("a"))
    assert resolved.resolution is Resolution.SUPERSEDED
    assert resolved.reason == "generation_changed"
    assert lab.plan.open
    assert lab.plan.last is None
    assert lab.slot.status is SlotStatus.FREE


def test_after_the_tries_the_result_is_pending_and_the_next_run_settles(lab: Lab) -> None:
    """D10; cases 129 and 88: nothing runs again for it."""
    with Failing(lab.journal, recording, BUSY) as failing:
        resolved = lab.run(a_step("a"))
    assert failing.failed == 3
    assert resolved.resolution is Resolution.FINALIZATION_PENDING
    assert lab.slot.status is SlotStatus.REPORTING
    assert lab.slot.gave_up == "the store is locked"
    settled = lab.run(a_step("a"))
    assert settled.succeeded
    assert settled.execution_id == resolved.execution_id
    assert lab.ran() == ["a"]
    assert lab.plan.last["execution_id"] == resolved.execution_id


def test_an_error_that_cannot_pass_is_tried_once(lab: Lab) -> None:
    """4.6."""
    with Failing(lab.journal, recording, FULL) as failing:
        resolved = lab.run(a_step("a"))
    assert failing.failed == 1
    assert resolved.resolution is Resolution.FINALIZATION_PENDING


def test_the_pending_line_is_word_for_word(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    """D18."""
    with Failing(lab.journal, recording, FULL):
        resolved = lab.run(a_step("a"))
    line = (
        f"Plan 'p' execution '{resolved.execution_id}' succeeded finished, but its result could "
        "not be recorded; keeping it pending, and not executing the plan again until it is "
        "recorded or superseded."
    )
    assert [r.message for r in caplog.records if r.levelname == "ERROR"].count(line) == 1


def test_a_pending_result_of_a_regenerated_plan_is_dropped_and_the_new_one_runs(lab: Lab) -> None:
    """Case 125, settled by the next run."""
    with Failing(lab.journal, recording, BUSY):
        lab.run(a_step("a"))
    resolved = lab.run(a_step("b"))
    assert resolved.succeeded
    assert lab.ran() == ["a", "b"]
    hows = [r.event.how for r in lab.events("plan/p/slot") if r.name.endswith("released")]
    assert hows == ["recorded", "recorded"]


def test_a_plan_regenerated_while_its_result_waits_supersedes_it(lab: Lab) -> None:
    """Case 125."""
    with Failing(lab.journal, recording, BUSY):
        lab.run(a_step("a"))
    owner = lab.plan.execution_owner
    Plans(lab.journal, "alice").save(
        lab.body(a_step("b")), approve=True, force=True, authority="run_once", owner=owner
    )
    assert lab.run(a_step("b")).succeeded
    released = [r.event for r in lab.events("plan/p/slot") if r.name.endswith("released")]
    assert [(e.how, e.reason) for e in released] == [
        ("superseded", "generation_changed"),
        ("recorded", None),
    ]
    assert lab.ran() == ["a", "b"]


def test_a_newer_token_arriving_in_the_run_stays_open(lab: Lab) -> None:
    """Cases 66 and 86: the executed token is the captured one."""

    def raise_token(events: Any) -> None:
        if events[-1].name.endswith("step_started"):
            Plans(lab.journal, "alice").request("p")

    lab.on_event = raise_token
    assert lab.run(a_step("a")).succeeded
    assert (lab.plan.run_token, lab.plan.executed_run_token) == (1, 0)
    assert lab.plan.open


def test_an_adopted_plan_supersedes_the_running_result(lab: Lab) -> None:
    """2.8."""

    def adopt(events: Any) -> None:
        if events[-1].name.endswith("step_started"):
            Plans(lab.journal, "alice").adopt("p")

    lab.on_event = adopt
    resolved = lab.run(a_step("a"))
    assert resolved.resolution is Resolution.SUPERSEDED
    assert resolved.reason == "authority_changed"
    assert lab.plan.execution_authority == DAEMON


def test_adopting_settles_a_pending_result_first(lab: Lab) -> None:
    """Case 127."""
    with Failing(lab.journal, recording, BUSY):
        lab.run(a_step("a"))
    Plans(lab.journal, "alice", Holders.for_journal(lab.journal)).adopt("p")
    assert lab.plan.last["outcome"] == "succeeded"
    assert lab.plan.execution_authority == DAEMON
    words = lab.names("plan/p")
    assert words.index("request_finished") < words.index("adopted")


def test_adopting_is_refused_while_the_result_stays_pending(lab: Lab) -> None:
    with Failing(lab.journal, recording, FULL):
        lab.run(a_step("a"))
        with pytest.raises(Refused, match="pending"):
            Plans(lab.journal, "alice", Holders.for_journal(lab.journal)).adopt("p")
    assert lab.plan.execution_authority == "run_once"


def test_a_crash_between_close_and_recording_is_settled_without_running(lab: Lab) -> None:
    """Case 124: the document shows the result once."""
    with lab.session() as session:
        session.coordinator.settler.record = crash  # type: ignore[method-assign,assignment]
        with pytest.raises(KeyboardInterrupt):
            session.run(lab.body(a_step("a")))
    assert lab.slot.status is SlotStatus.REPORTING
    settled = lab.run(a_step("a"))
    assert settled.succeeded
    assert lab.ran() == ["a"]
    assert lab.names("plan/p").count("request_finished") == 1


def crash(*args: object) -> None:
    raise KeyboardInterrupt
