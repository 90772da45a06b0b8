"""The facts behind `due` are collected from the log; the rule itself is tested with the domain."""

from __future__ import annotations

from typing import Any

import pytest

from statelog.domain.event import Event
from statelog.domain.execution.attempt_events import Voided
from statelog.domain.execution.plan import (
    Adopted,
    Approved,
    Deleted,
    GenerationAssigned,
    Imported,
    ReturnedToDraft,
    RunRequested,
    Touched,
)
from statelog.domain.execution.request import Claim
from statelog.domain.execution.slot import Released
from statelog.projections.execution import due
from statelog.projections.projection import fold
from statelog.projections.replay import replay
from tests.projections.execution.stories import FIRST, SECOND, Run, closed, held, record, saved
from tests.projections.recorded import Log

IDS = [f"20260101T1{hour}0000000000Z_0001" for hour in range(6)]


def answer(log: Log) -> Any:
    return replay(due, log.events)["p"]["due"]


def tried(log: Log, execution_id: str = FIRST, how: str = "cancelled", token: int = 0) -> None:
    """An attempt that held the slot and ended in this way."""
    log.slot(held(execution_id, token))
    run = Run(log, execution_id, run_token=token)
    if how == "open":
        return
    run.close("orchestration_error" if how == "abandoned" else how)
    log.slot(Released(execution_id, "unfinished", "abandoned" if how == "abandoned" else None))


def approved() -> Log:
    log = Log()
    log.plan(saved(), Approved())
    return log


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((), "no"),
        ((Approved(),), "yes"),
        ((Approved(), ReturnedToDraft()), "no"),
        ((Approved(), Adopted("run_once", "run_once:1")), "yes"),
        ((Approved(), Adopted("run_once", None)), "no"),
    ],
)
def test_a_plan_is_due_when_it_is_eligible(events: tuple[Event, ...], expected: str):
    """For whom its document names."""
    log = Log()
    log.plan(saved(), *events)
    assert answer(log) == expected


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("open", "no"),
        ("failed_fast", "no"),
        ("preflight_rejected", "no"),
        ("cancelled", "at_start"),
        ("orchestration_error", "at_start"),
        ("abandoned", "yes"),
    ],
)
def test_how_the_last_attempt_ended_decides(how: str, expected: str):
    """Answered, to be tried at start, or at once (D11)."""
    log = approved()
    tried(log, how=how)
    assert answer(log) == expected


@pytest.mark.parametrize("change", [Touched(), Approved(), RunRequested(1)])
def test_a_document_change_asks_again(change: Event):
    """cases 67, 131: also without a new token."""
    log = approved()
    tried(log, how="failed_fast")
    log.plan(change)
    assert answer(log) == "yes"


def test_an_attempt_answers_the_versions_up_to_its_close():
    """A touch while it runs is answered by it."""
    log = approved()
    log.slot(held(FIRST))
    run = Run(log)
    log.plan(Touched())
    run.close("failed_fast")
    log.slot(Released(FIRST, "unfinished"))
    assert answer(log) == "no"


def test_a_token_raised_meanwhile_is_not_answered():
    """case 68: the newer request runs."""
    log = approved()
    log.slot(held(FIRST))
    run = Run(log)
    log.plan(RunRequested(1))
    run.close("failed_fast")
    assert answer(log) == "yes"


def test_a_recorded_request_is_not_due():
    """Nothing more happens by itself."""
    log = approved()
    log.slot(held(FIRST))
    run = Run(log)
    for step in "abc":
        run.succeed(step)
    record(log, run.close())
    assert answer(log) == "no"
    log.plan(RunRequested(1))
    assert answer(log) == "yes"


def test_three_attempts_follow_an_abandoned_one():
    """case 128: four in all, then it counts as answered until the document changes."""
    log = approved()
    for execution_id in IDS[:3]:
        tried(log, execution_id, "abandoned")
        assert answer(log) == "yes"
    tried(log, IDS[3], "abandoned")
    row = replay(due, log.events)["p"]
    assert (row["due"], row["abandoned"], row["given_up"]) == ("no", 4, True)
    log.plan(Touched())
    row = replay(due, log.events)["p"]
    assert (row["due"], row["abandoned"], row["given_up"]) == ("yes", 0, False)


def test_a_reservation_that_never_started_is_no_attempt():
    """Held, voided, or given back."""
    log = approved()
    log.slot(held(FIRST))
    assert answer(log) == "yes"
    log.attempt(FIRST, Voided())
    log.slot(Released(FIRST, "voided"), held(SECOND), Released(SECOND, "not_started"))
    assert answer(log) == "yes"
    assert fold(due, log.events)["p"].attempts == {}


def test_imported_attempts_are_history():
    """They never held the slot: an open one holds nothing up, a closed one answers nothing."""
    log = approved()
    Run(log, FIRST)
    log.attempt(SECOND, closed(SECOND, termination_reason="failed_fast"))
    assert answer(log) == "yes"


def test_an_imported_document_is_judged_as_it_came():
    """Numeric strings are tokens; without a generation it is due all the same (2.9)."""
    log = Log()
    document = {"_id": "p", "execution_authority": "daemon", "run_token": "3"}
    log.plan(Imported({**document, "executed_run_token": "2"}), Approved())
    assert answer(log) == "yes"
    log.plan(GenerationAssigned("g1"))
    assert answer(log) == "yes"
    log.plan(Imported({**document, "executed_run_token": 3}), Approved())
    assert answer(log) == "no"


def test_a_deleted_plan_is_not_shown():
    """And its attempts are not forgotten while they are open."""
    log = approved()
    log.slot(held(FIRST))
    Run(log)
    log.plan(Deleted())
    assert replay(due, log.events) == {}
    log.plan(saved("g2"), Approved())
    assert answer(log) == "yes"


def test_only_attempts_at_the_current_version_are_kept():
    """The row does not grow with the history."""
    log = approved()
    for at, execution_id in enumerate(IDS):
        tried(log, execution_id, "failed_fast", at)
        log.plan(RunRequested(at + 1))
    assert fold(due, log.events)["p"].attempts == {}


def test_another_caller_may_ask():
    """The view's row answers for whom the document names; its state for anybody."""
    log = approved()
    state = fold(due, log.events)["p"]
    assert state.asked_by(Claim("daemon")).value == "yes"
    assert state.asked_by(Claim("run_once", "run_once:1")).value == "no"
