"""Why a step is in its state, from the log alone."""

from __future__ import annotations

from typing import Any

from statelog.projections.execution.explain import explain
from tests.projections.execution.stories import FIRST, SECOND, Run, planned
from tests.projections.recorded import Log

WHY = ("params.threads differs",)


def explained(log: Log, step_id: str, execution_id: str | None = None) -> dict[str, Any]:
    told = explain(log.events, step_id, execution_id)
    assert told is not None
    return told


def twice() -> Log:
    """Step a succeeds, and then again with another parameter; b is reused."""
    log = Log()
    first = Run(log, FIRST)
    for step in "abc":
        first.start(step, why=("no success marker",))
        first.succeed(step, parts={"params.threads": "1", "params.mode": "x"})
    first.close()
    second = Run(log, SECOND)
    second.start("a", why=WHY)
    second.succeed("a", parts={"params.threads": "2", "params.mode": "x"})
    second.skip("b")
    second.fail("c", error="no disk")
    second.close()
    return log


def test_a_step_that_ran_says_why_it_was_not_reused():
    """D15: the reasons of its start, and the fingerprint parts that differ."""
    told = explained(twice(), "a")
    assert told["execution_id"] == SECOND
    assert told["state"] == "step.succeeded"
    assert told["why"] == list(WHY)
    assert told["differ"] == ["params.threads"]
    assert told["last_success"]["execution_id"] == FIRST
    assert [event["type"] for event in told["events"]] == [
        *("plan.attempt_started", "step.started", "step.succeeded", "plan.attempt_report")
    ]


def test_the_first_run_of_a_step_has_nothing_to_differ_from():
    """An older attempt is explained by what was known then."""
    told = explained(twice(), "a", FIRST)
    assert told["why"] == ["no success marker"]
    assert (told["differ"], told["last_success"]) == (None, None)


def test_a_reused_step_names_the_success_it_reuses():
    """Which attempt, which event."""
    told = explained(twice(), "b")
    assert told["state"] == "step.skipped"
    assert told["last_success"]["execution_id"] == FIRST
    assert told["last_success"]["eid"].startswith(f"plan/p/attempt/{FIRST}@")
    assert told["last_success"]["fingerprint"] == told["fingerprint"] == "sha256:b"


def test_a_failed_step_says_how():
    """The failure as the report has it."""
    assert explained(twice(), "c")["error"]["error"] == "no disk"


def test_a_blocked_step_names_what_failed_upstream():
    """Blockers, and what the failed ancestors said."""
    log = Log()
    run = Run(log, steps=(planned("x"), planned("join", ["x"]), planned("after", ["join"])))
    run.fail("x", error="no disk")
    run.block("join", ["x"], ["x"])
    run.block("after", ["join"], ["x"])
    run.close()
    told = explained(log, "after")
    assert (told["direct_blockers"], told["failed_ancestors"]) == (["join"], ["x"])
    assert told["failed_upstream"] == {"x": "no disk"}


def test_a_step_that_was_not_reached_says_how_the_attempt_ended():
    """The attempt's reason and diagnostic."""
    log = Log()
    run = Run(log, failure_policy="fail_fast")
    run.fail("a")
    run.close("failed_fast")
    told = explained(log, "b")
    assert told["state"] == "unreached"
    assert told["attempt"]["termination_reason"] == "failed_fast"


def test_there_is_nothing_to_explain_about_the_unknown():
    """A step that is not planned, an attempt that was not observed, an empty log."""
    log = twice()
    assert explain(log.events, "nope") is None
    assert explain(log.events, "a", "20200101T000000000000Z_0000") is None
    assert explain([], "a") is None
