"""The rules hold of real logs too, and name what is wrong with a forged one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.event import Event
from statelog.domain.execution import invariants
from statelog.domain.execution.attempt_events import Closed, StepStarted
from statelog.domain.execution.plan import RequestFinished
from statelog.domain.execution.slot import Held, Released
from statelog.infrastructure.execution.plans import Plans
from tests.infrastructure.execution.lab import Lab, a_step
from tests.model.audit import Entry, audited


@pytest.fixture
def log(tmp_path: Path) -> list[Entry]:
    """A plan that failed and went on, was left by a dead holder, and ran well."""
    lab = Lab(tmp_path)
    lab.go(a_step("a", "bad"), a_step("b", "ok", "a"))
    with lab.session() as dead:
        dead.prepare("p", lab.body(a_step("a")), adopt=False)
        dead.coordinator._admit("p")
    lab.run(a_step("a"))
    Plans(lab.journal, "alice").request("p")
    lab.run(a_step("a"))
    return [(recorded.stream, recorded.event) for recorded in lab.events("plan/p")]


def the(log: list[Entry], kind: type[Event]) -> int:
    """Where the first event of its kind is."""
    return next(at for at, (_, event) in enumerate(log) if isinstance(event, kind))


def test_a_real_log_breaks_no_rule(log: list[Entry]):
    """Two failures of a step, a takeover, two successes."""
    assert sum(isinstance(event, Held) for _, event in log) >= 3
    assert audited(log) == []


def changed(log: list[Entry], kind: type[Event], **changes: Any) -> list[Entry]:
    at = the(log, kind)
    stream: str = log[at][0]
    event: Any = log[at][1]
    return [*log[:at], (stream, replace(event, **changes)), *log[at + 1 :]]


def test_a_result_of_another_generation_is_named(log: list[Entry]):
    forged = changed(log, RequestFinished, plan_generation="another")
    assert invariants.ITS_GENERATION in audited(forged)


def test_a_result_that_is_recorded_twice_is_named(log: list[Entry]):
    at = the(log, RequestFinished)
    assert invariants.ONCE in audited([*log[: at + 1], *log[at:]])


def test_an_admission_of_what_was_not_asked_is_named(log: list[Entry]):
    assert invariants.AS_IT_IS in audited(changed(log, Held, run_token=7))


def test_a_step_after_the_close_is_named(log: list[Entry]):
    step, close = log[the(log, StepStarted)], the(log, Closed)
    # the step begins anew after the slot was handed on
    at = the(log, Released) + 1
    assert close < at
    assert audited([*log[:at], step, *log[at:]])[0] == invariants.FENCED


def test_a_result_that_is_dropped_without_a_reason_is_named(log: list[Entry]):
    at = the(log, RequestFinished)
    dropped = changed(
        [*log[:at], *log[at + 1 :]], Released, how="superseded", reason="plan_missing"
    )
    assert audited(dropped)[0] == invariants.GOOD_REASON


def test_a_result_that_is_said_to_be_recorded_and_is_not_is_named(log: list[Entry]):
    at = the(log, RequestFinished)
    assert audited([*log[:at], *log[at + 1 :]])[0] == invariants.KEPT
