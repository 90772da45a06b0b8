"""How a step is shown: the derivation table of 7.4, row by row, and the fields of 7.3."""

from __future__ import annotations

from typing import Any

import pytest

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
)
from statelog.domain.execution.step import Artifact
from statelog.domain.times import iso
from statelog.projections.execution import plan_status
from statelog.projections.replay import replay
from tests.projections.execution.stories import FIRST, Run, closed, started
from tests.projections.recorded import Log

RUN = {"step_id": "a", "run_id": "r1", "fingerprint": "f1"}
MADE = Artifact("out", "/work/out.txt", "sha256:00")

STARTED = StepStarted(**RUN, seq=1, params={})
HALF = StepProgress(**RUN, seq=2, progress=50.0)
LATE = StepProgress(**RUN, seq=9, progress=60.0)
REGISTERED = StepArtifact(**RUN, seq=3, artifact=MADE)
GOOD = StepSucceeded(**RUN, seq=4, artifacts=(MADE,), metrics={"reads": 7})
BAD = StepFailed(**RUN, seq=4, kind="permanent", error="no disk", error_type="OSError", code="E1")
WORSE = StepFailed(**RUN, seq=5, kind="transient", error="again", error_type="OSError")
NOTE = StepRetryUnimplemented(step_id="a", seq=5, run_id="r1", error="again")
REUSED = StepSkipped(**RUN, seq=1)
BLOCKED = StepBlocked("a", 1, ("x",), ("y",))
FAILURE = {
    **{"step_id": "a", "error": "no disk", "kind": "permanent"},
    **{"code": "E1", "advice": None, "error_type": "OSError"},
}


def own(type: str, seq: int = 3, **payload: Any) -> StepEmitted:
    return StepEmitted(**RUN, seq=seq, type=type, payload=payload)


def entry(*events: Event, **report: Any) -> dict[str, Any]:
    """Step a after these events, and after a report with these fields if there are any."""
    log = Log()
    log.attempt(FIRST, started(FIRST), *events)
    if report:
        log.attempt(FIRST, closed(**report))
    shown = replay(plan_status, log.events)["p"]["steps"]["a"]
    assert isinstance(shown, dict)
    return shown


def state(*events: Event, **report: Any) -> tuple[str, str | None]:
    shown = entry(*events, **report)
    return shown["state"], shown["outcome"]


def outcome(value: str, **more: Any) -> dict[str, Any]:
    return {"step_outcomes": {"a": value}, **more}


NO_OUTCOME: dict[str, Any] = {"step_outcomes": {}}

WHILE_RUNNING = [
    ((), ("pending", None)),
    ((STARTED,), ("step.started", None)),
    ((STARTED, HALF), ("step.progress", None)),
    ((STARTED, HALF, REGISTERED), ("step.artifact", None)),
    ((STARTED, own("step.mapped")), ("step.mapped", None)),
    ((STARTED, own("data_access.read")), ("step.started", None)),
    ((own("data_access.read"),), ("pending", None)),
    ((STARTED, own("step.failed")), ("step.started", None)),
    ((STARTED, GOOD), ("step.succeeded", "succeeded")),
    ((REUSED,), ("step.skipped", "reused")),
    ((STARTED, BAD), ("step.failed", "failed")),
    ((STARTED, BAD, NOTE), ("step.failed", "failed")),
    ((BLOCKED,), ("step.blocked", "blocked")),
    ((BLOCKED, STARTED), ("step.started", None)),
    ((STARTED, BLOCKED), ("step.started", None)),
    ((STARTED, GOOD, LATE), ("step.succeeded", "succeeded")),
    ((STARTED, BAD, LATE, WORSE), ("step.failed", "failed")),
    ((STARTED, GOOD, BAD), ("step.failed", "failed")),
    ((STARTED, BAD, GOOD), ("step.failed", "failed")),
    ((REUSED, GOOD), ("step.skipped", "reused")),
    ((GOOD, REUSED), ("step.succeeded", "succeeded")),
    ((REUSED, BAD), ("step.failed", "failed")),
]


@pytest.mark.parametrize(("events", "expected"), WHILE_RUNNING)
def test_while_the_attempt_runs_its_events_decide(
    events: tuple[Event, ...], expected: tuple[str, str | None]
):
    """The effective event; only a block event; nothing (7.4, rows 1 to 3; cases 107 and 108)."""
    assert state(*events) == expected


WITH_REPORT = [
    ((STARTED, GOOD), outcome("succeeded"), ("step.succeeded", "succeeded")),
    ((), outcome("succeeded"), ("step.succeeded", "succeeded")),
    ((STARTED, BAD), outcome("succeeded"), ("step.succeeded", "succeeded")),
    ((REUSED,), outcome("reused"), ("step.skipped", "reused")),
    ((STARTED, GOOD), outcome("failed"), ("step.failed", "failed")),
    ((), outcome("failed"), ("step.failed", "failed")),
    ((BLOCKED,), outcome("blocked"), ("step.blocked", "blocked")),
    ((), outcome("blocked"), ("step.blocked", "blocked")),
    ((STARTED, GOOD), outcome("no such outcome"), ("interrupted", None)),
    ((STARTED,), NO_OUTCOME, ("interrupted", None)),
    ((STARTED, GOOD), NO_OUTCOME, ("interrupted", None)),
    ((own("data_access.read"),), NO_OUTCOME, ("interrupted", None)),
    ((), {"diagnostic": {"details": {"running_step_id": "a"}}}, ("interrupted", None)),
    ((), {"diagnostic": {"details": {"running_step_id": "b"}}}, ("unreached", None)),
    ((), NO_OUTCOME, ("unreached", None)),
    ((BLOCKED,), NO_OUTCOME, ("unreached", None)),
]


@pytest.mark.parametrize(("events", "report", "expected"), WITH_REPORT)
def test_once_there_is_a_report_it_decides(
    events: tuple[Event, ...], report: dict[str, Any], expected: tuple[str, str | None]
):
    """An outcome; none but some events or the running step; nothing (7.4, rows 4 to 6)."""
    assert state(*events, **report) == expected


def test_late_progress_and_a_second_failure_change_nothing():
    """case 107: still the first failure, and what it said."""
    shown = entry(STARTED, BAD, LATE, WORSE)
    assert (shown["state"], shown["error"]["error"]) == ("step.failed", "no disk")
    assert shown["progress"] == 0


def test_a_failure_replaces_a_success_and_nothing_replaces_a_failure():
    """case 108: nothing of the success is shown either way."""
    for events in ((STARTED, GOOD, BAD), (STARTED, BAD, GOOD)):
        shown = entry(*events)
        assert shown["state"] == "step.failed"
        assert (shown["artifacts"], shown["metrics"]) == ([], {})


def test_an_interrupted_step_shows_its_last_event_that_ended_nothing():
    """A success that the report does not know: no artifacts, progress of the event before it."""
    shown = entry(STARTED, HALF, GOOD, **NO_OUTCOME)
    assert (shown["state"], shown["progress"], shown["artifacts"]) == ("interrupted", 50, [])
    assert shown["metrics"] == {}
    assert (shown["run_id"], shown["fingerprint"]) == ("r1", "f1")


def test_an_interrupted_step_that_has_only_ended_keeps_what_identifies_it():
    """Its run, not its results."""
    shown = entry(GOOD, **NO_OUTCOME)
    assert (shown["state"], shown["run_id"], shown["metrics"]) == ("interrupted", "r1", {})
    assert shown["ts"] is not None


def test_events_of_another_outcome_lend_their_identity_only():
    """A success event, and a report that says failed."""
    shown = entry(STARTED, GOOD, **outcome("failed", failures={"a": FAILURE}))
    assert (shown["artifacts"], shown["metrics"], shown["progress"]) == ([], {}, 0)
    assert (shown["run_id"], shown["fingerprint"]) == ("r1", "f1")
    assert shown["error"] == FAILURE


def test_an_outcome_without_events_has_the_progress_that_fits_it():
    """Only the report survives."""
    assert entry(**outcome("reused"))["progress"] == 100
    assert entry(**outcome("failed"))["progress"] == 0


def test_blockers_are_the_events_until_the_report_settles_them():
    """The report may know more (5.5)."""
    shown = entry(BLOCKED)
    assert (shown["direct_blockers"], shown["failed_ancestors"]) == (["x"], ["y"])
    shown = entry(
        BLOCKED,
        **outcome("blocked", direct_blockers={"a": ["x", "z"]}, failed_ancestors={"a": ["y", "z"]}),
    )
    assert (shown["direct_blockers"], shown["failed_ancestors"]) == (["x", "z"], ["y", "z"])
    assert shown["run_id"] is None
    assert shown["ts"] is not None


def test_a_stray_block_event_lends_nothing():
    """Neither blockers nor a time, to a step that the report calls otherwise."""
    for report in (NO_OUTCOME, outcome("succeeded")):
        shown = entry(BLOCKED, **report)
        assert (shown["direct_blockers"], shown["failed_ancestors"]) == ([], [])
        assert shown["ts"] is None


def test_a_blocked_step_with_a_run_has_the_time_of_the_run():
    """The block identifies a step only when nothing else does."""
    log = Log()
    log.attempt(FIRST, started(FIRST))
    at = log.attempt(FIRST, STARTED).time
    log.attempt(FIRST, BLOCKED, closed(**outcome("blocked")))
    shown = replay(plan_status, log.events)["p"]["steps"]["a"]
    assert (shown["state"], shown["ts"], shown["run_id"]) == ("step.blocked", iso(at), "r1")


def test_the_error_grows_when_the_attempt_ends():
    """Four fields while it runs, the report's six once it has ended (7.3)."""
    four = {name: FAILURE[name] for name in ("error", "kind", "code", "advice")}
    assert entry(STARTED, BAD)["error"] == four
    assert entry(STARTED, BAD, **outcome("failed", failures={"a": FAILURE}))["error"] == FAILURE
    assert entry(STARTED, GOOD)["error"] is None


@pytest.mark.parametrize(
    ("events", "progress"),
    [
        ((), 0),
        ((STARTED,), 0),
        ((STARTED, HALF), 50),
        ((STARTED, HALF, REGISTERED), 0),
        ((STARTED, HALF, own("data_access.read")), 50),
        ((STARTED, own("step.mapped", progress=30)), 30),
        ((STARTED, own("step.mapped", progress=True)), 0),
        ((STARTED, HALF, GOOD), 100),
        ((REUSED,), 100),
        ((STARTED, HALF, BAD), 0),
    ],
)
def test_progress_is_the_effective_events_own(events: tuple[Event, ...], progress: float):
    """Else 100 for success and reuse, else 0: a later event without it falls back to 0."""
    assert entry(*events)["progress"] == progress


def test_results_are_shown_on_success_only():
    """As plain JSON."""
    shown = entry(STARTED, REGISTERED, GOOD)
    made = {"key": "out", "path": "/work/out.txt", "digest": "sha256:00"}
    assert (shown["artifacts"], shown["metrics"]) == ([made], {"reads": 7})
    assert entry(STARTED, own("step.mapped", metrics={"x": 1}))["metrics"] == {}


def test_the_run_is_the_first_that_an_event_names():
    """And none while no event names one."""
    other = StepStarted(step_id="a", seq=2, run_id="r2", fingerprint="f2", params={})
    assert entry(STARTED, other)["run_id"] == "r1"
    unhashed = StepFailed("a", 1, None, None, "permanent", "cannot hash", "OSError")
    assert entry(unhashed, other)["run_id"] == "r2"
    assert entry(unhashed)["fingerprint"] is None


def test_the_job_is_the_latest_that_is_not_empty():
    """From any event with a `job`, up to the effective one (1.4, 7.3)."""
    jobs = [own("hpc.queued", 3, job={"id": 1}), own("hpc.queued", 4, job={"id": 2})]
    mapped = own("step.mapped", 5)
    assert entry(STARTED, *jobs, own("hpc.gone", job=""), mapped)["job"] == {"id": 2}
    assert entry(STARTED, *jobs)["job"] is None
    assert entry(STARTED, jobs[0], GOOD, jobs[1])["job"] == {"id": 1}


def test_the_time_is_that_of_the_effective_event():
    """What is published after it is not read."""
    log = Log()
    log.attempt(FIRST, started(FIRST), STARTED)
    at = log.attempt(FIRST, GOOD).time
    log.attempt(FIRST, LATE)
    assert replay(plan_status, log.events)["p"]["steps"]["a"]["ts"] == iso(at)


def test_every_entry_has_the_fields_of_the_specification():
    """The same thirteen, whatever the state (7.3)."""
    fields = [
        *("step_name", "state", "outcome", "run_id", "fingerprint", "job", "ts", "progress"),
        *("artifacts", "metrics", "error", "direct_blockers", "failed_ancestors"),
    ]
    for events in ((), (STARTED,), (BAD,), (BLOCKED,)):
        assert list(entry(*events)) == fields
        assert list(entry(*events, **NO_OUTCOME)) == fields


def test_the_split_of_steps_without_an_outcome_is_the_snapshots():
    """Counts call both unreached; only the snapshot tells the interrupted one (5.8)."""
    log = Log()
    run = Run(log)
    run.succeed("a")
    run.start("b")
    report = run.close("cancelled", {"message": "", "error_type": "", "details": {}})
    shown = replay(plan_status, log.events)["p"]
    assert [step["state"] for step in shown["steps"].values()] == [
        *("step.succeeded", "interrupted", "unreached")
    ]
    assert shown["attempt"]["counts"]["unreached"] == 2
    assert report["unreached_step_ids"] == ["b", "c"]


def test_a_failure_on_the_last_step_is_not_drained():
    """Nothing is unreached, and yet (5.8)."""
    log = Log()
    run = Run(log, failure_policy="fail_fast")
    run.succeed("a")
    run.succeed("b")
    run.fail("c")
    run.close("failed_fast")
    attempt = replay(plan_status, log.events)["p"]["attempt"]
    assert (attempt["is_drained"], attempt["counts"]["unreached"]) == (False, 0)
