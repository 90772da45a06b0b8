"""The engine runs plans in order, contains failures by policy, and closes one report."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest

from statelog.domain.errors import StoreError
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.faults import OrchestrationError, PublicationError
from statelog.domain.execution.graph import Scheduler
from statelog.domain.execution.slot import SlotStatus
from statelog.domain.execution.spec import PlanSpec
from statelog.domain.execution.step import PermanentStepError, TransientStepError
from tests.infrastructure.execution.lab import Failing, Lab, a_step

FULL = StoreError("full", "the disk is full")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


# --- order


def test_a_chain_listed_in_reverse_runs_in_dependency_order(lab: Lab) -> None:
    """Case 1."""
    lab.run(a_step("c", "ok", "b"), a_step("b", "ok", "a"), a_step("a"))
    assert lab.ran() == ["a", "b", "c"]


def test_a_consumer_listed_first_sees_its_producers_output(lab: Lab) -> None:
    """Case 2."""
    lab.steps("""
        @step
        def read(ctx: StepContext, source: str) -> StepResult:
            return StepResult(metrics={"text": (ctx.workdir / source).read_text()})
    """)
    resolved = lab.run(
        a_step("use", "read", "make", params={"source": "../make/out.txt"}),
        a_step("make", "write", params={"text": "hello"}, outputs={"text": "out.txt"}),
    )
    assert resolved.succeeded
    (read,) = [e.event for e in lab.events() if e.name.endswith("step_succeeded")][1:]
    assert read.metrics == {"text": "hello"}


def test_the_runnable_step_earliest_in_the_plan_runs_next(lab: Lab) -> None:
    """Case 3."""
    lab.run(a_step("late", "ok", "a"), a_step("a"), a_step("b"))
    assert lab.ran() == ["a", "late", "b"]


def test_a_diamond_runs_each_step_once_and_the_join_last(lab: Lab) -> None:
    """Cases 4 and 5: a repeated dependency is one."""
    lab.run(
        a_step("join", "ok", "left", "right", "right"),
        a_step("left", "ok", "top"),
        a_step("right", "ok", "top"),
        a_step("top"),
    )
    assert lab.ran() == ["top", "left", "right", "join"]


def test_a_graph_that_stalls_is_an_orchestration_error(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 6: an engine defect never passes as completed."""
    monkeypatch.setattr(Scheduler, "satisfied", lambda self, step_id: None)
    resolved = lab.run(a_step("a"), a_step("b", "ok", "a"))
    assert resolved.resolution is Resolution.UNFINISHED
    assert resolved.termination_reason == "orchestration_error"


def test_two_plans_on_one_engine_do_not_mix(lab: Lab) -> None:
    """Case 7."""
    with lab.session() as session:
        first = session.run(lab.body(a_step("a"), a_step("same", "bad")))
        second = session.run(lab.body(a_step("b"), a_step("same"), plan_id="q"))
    assert first.report is not None
    assert second.report is not None
    assert first.report["step_outcomes"] == {"a": "succeeded", "same": "failed"}
    assert second.report["step_outcomes"] == {"b": "succeeded", "same": "succeeded"}


# --- policies and blocking


def test_a_failed_branch_blocks_its_descendants_and_the_others_finish(lab: Lab) -> None:
    """Cases 8 and 18."""
    resolved = lab.go(
        a_step("one"),
        a_step("two", "bad"),
        a_step("after", "ok", "two"),
        a_step("three"),
    )
    assert resolved.report is not None
    assert resolved.report["step_outcomes"] == {
        "one": "succeeded",
        "two": "failed",
        "after": "blocked",
        "three": "succeeded",
    }
    assert resolved.report["is_drained"]
    assert resolved.outcome == "failed"
    assert not (lab.work / "p" / "after").exists()


def test_a_join_is_blocked_by_the_failed_dependency_only(lab: Lab) -> None:
    """Case 9."""
    resolved = lab.go(a_step("good"), a_step("x", "bad"), a_step("join", "ok", "good", "x"))
    assert resolved.report is not None
    assert resolved.report["direct_blockers"] == {"join": ["x"]}


def test_a_later_failure_adds_blockers_to_the_report_without_a_second_event(lab: Lab) -> None:
    """Cases 10 and 11."""
    resolved = lab.go(
        a_step("x", "bad"),
        a_step("y", "bad"),
        a_step("join", "ok", "x", "y"),
        a_step("after", "ok", "join"),
    )
    assert resolved.report is not None
    assert resolved.report["direct_blockers"] == {"join": ["x", "y"], "after": ["join"]}
    assert resolved.report["failed_ancestors"] == {"join": ["x", "y"], "after": ["x", "y"]}
    blocks = [e.event for e in lab.events() if e.name.endswith("step_blocked")]
    assert [(b.step_id, b.direct_blockers) for b in blocks] == [
        ("join", ("x",)),
        ("after", ("join",)),
    ]


def test_fail_fast_leaves_everything_else_unreached(lab: Lab) -> None:
    """Case 12."""
    resolved = lab.run(a_step("x", "bad"), a_step("after", "ok", "x"), a_step("other"))
    assert resolved.report is not None
    assert resolved.report["unreached_step_ids"] == ["after", "other"]
    assert resolved.resolution is Resolution.UNFINISHED
    assert not [name for name in lab.names() if name.startswith("blocked")]


def test_fail_fast_on_the_last_step_is_not_drained(lab: Lab) -> None:
    """Case 13."""
    resolved = lab.run(a_step("a"), a_step("x", "bad", "a"))
    assert resolved.report is not None
    assert resolved.termination_reason == "failed_fast"
    assert not resolved.report["is_drained"]


def test_a_transient_error_is_told_and_surfaces_as_permanent(lab: Lab) -> None:
    """Case 14."""
    ended = run_engine(lab, a_step("x", "flaky"))
    assert lab.names() == ["started", "started x", "failed x", "retry_unimplemented x", "closed"]
    with pytest.raises(PermanentStepError) as raised:
        ended.result()
    assert isinstance(raised.value.__cause__, TransientStepError)


def test_a_plain_exception_is_permanent_and_keeps_its_class(lab: Lab) -> None:
    """Case 15."""
    resolved = lab.run(a_step("x", "crash"))
    assert resolved.report is not None
    assert resolved.report["failures"]["x"] == {
        "step_id": "x",
        "error": "'missing'",
        "kind": "permanent",
        "code": None,
        "advice": None,
        "error_type": "KeyError",
    }


def test_a_step_raising_the_engines_own_error_types_just_fails(lab: Lab) -> None:
    """Case 16."""
    lab.steps("""
        from statelog.domain.execution.faults import AttemptCancelled, PreflightRejected
        @step
        def cancelled(ctx: StepContext) -> None:
            raise AttemptCancelled("no")
        @step
        def rejected(ctx: StepContext) -> None:
            raise PreflightRejected("no", "P1")
    """)
    resolved = lab.go(a_step("x", "cancelled"), a_step("y", "rejected"), a_step("z"))
    assert resolved.report is not None
    assert resolved.termination_reason == "completed"
    assert resolved.report["step_outcomes"] == {"x": "failed", "y": "failed", "z": "succeeded"}


def test_continue_hands_the_report_back_also_on_success(lab: Lab) -> None:
    """Case 17; under fail_fast a success returns nothing."""
    ended = run_engine(lab, a_step("a"), policy="continue_independent")
    report = ended.result()
    assert report is not None
    assert report["outcome"] == "succeeded"
    other = Lab(lab.folder)
    assert run_engine(other, a_step("a")).result() is None


# --- preflight as the engine sees it


def test_a_rejected_plan_leaves_no_work_root(lab: Lab) -> None:
    """Cases 19 and 75: under fail_fast nothing is recorded."""
    resolved = lab.run(a_step("a"), a_step(""))
    assert resolved.termination_reason == "preflight_rejected"
    assert resolved.resolution is Resolution.UNFINISHED
    assert lab.names() == ["started", "closed"]
    assert not lab.work.exists()


def test_ids_that_are_no_strings_are_reported_unreached(lab: Lab) -> None:
    """Cases 20 and 75: under continue the rejection is recorded."""
    resolved = lab.go(a_step(7), a_step(None), a_step(["l"]), a_step({"m": 1}), a_step("a"))
    assert resolved.report is not None
    assert resolved.resolution is Resolution.FINALIZED
    assert resolved.report["unreached_step_ids"] == [7, None, ["l"], {"m": 1}, "a"]
    assert lab.plan.last["termination_reason"] == "preflight_rejected"


def test_a_rejection_leaves_the_plan_file_and_markers_as_they_were(lab: Lab) -> None:
    """Case 23."""
    lab.run(a_step("a"))
    before = {p: p.read_bytes() for p in lab.work.rglob("*") if p.is_file()}
    resolved = lab.run(a_step("a"), a_step("a"))
    assert resolved.termination_reason == "preflight_rejected"
    assert {p: p.read_bytes() for p in lab.work.rglob("*") if p.is_file()} == before


def test_an_unknown_policy_is_rejected_and_the_request_stays_open(lab: Lab) -> None:
    """Case 24."""
    resolved = lab.run(a_step("a"), policy="whatever")
    assert resolved.termination_reason == "preflight_rejected"
    assert resolved.resolution is Resolution.UNFINISHED
    assert lab.plan.open


def test_a_broken_import_aborts_and_the_request_stays_open(lab: Lab) -> None:
    """Cases 28 and 29."""
    lab.module("broken", "import nowhere_at_all\n")
    resolved = lab.go(a_step("a", "broken:f"))
    assert resolved.termination_reason == "orchestration_error"
    assert lab.plan.open


# --- infrastructure


def test_when_the_start_cannot_be_published_nothing_runs_and_the_close_is_owed(lab: Lab) -> None:
    """Case 48."""
    with Failing(lab.journal, lambda names: names == ["started"], FULL):
        resolved = lab.run(a_step("a"))
    assert resolved.resolution is Resolution.UNFINISHED
    assert lab.names() == []
    assert not lab.work.exists()
    assert lab.slot.status is SlotStatus.FREE


@pytest.mark.parametrize(
    "failing", ["step_started", "step_progress", "step_succeeded", "step_skipped", "step_blocked"]
)
def test_a_failed_append_aborts_and_the_close_is_owed(lab: Lab, failing: str) -> None:
    """Cases 49 and 54."""
    lab.steps("""
        @step
        def talk(ctx: StepContext) -> None:
            ctx.progress(50)
    """)
    plan = [a_step("a", "talk"), a_step("b", "bad"), a_step("c", "ok", "b"), a_step("z")]
    if failing == "step_skipped":
        lab.go(a_step("a", "talk"))
    with Failing(lab.journal, lambda names: failing in names, RuntimeError("anything")):
        resolved = lab.go(*plan)
    assert resolved.resolution is Resolution.UNFINISHED
    assert "z" not in lab.ran()
    closed = lab.events()[-1].event
    assert closed.report["termination_reason"] == "orchestration_error"
    assert closed.report["publication_failure"] is not None
    assert lab.slot.status is SlotStatus.FREE
    assert lab.plan.open


def test_a_step_that_swallows_a_failed_append_does_not_pass_for_a_success(lab: Lab) -> None:
    lab.steps("""
        @step
        def swallow(ctx: StepContext) -> None:
            try:
                ctx.emit("note", text="x")
            except Exception:
                pass
    """)
    with Failing(lab.journal, lambda names: "step_emitted" in names, FULL):
        resolved = lab.go(a_step("a", "swallow"), a_step("b"))
    assert resolved.termination_reason == "orchestration_error"
    assert "b" not in lab.ran()


def test_when_a_failure_cannot_be_published_the_error_still_names_it(lab: Lab) -> None:
    """Case 50."""
    with Failing(lab.journal, lambda names: "step_failed" in names, FULL):
        ended = run_engine(lab, a_step("x", "bad"))
    assert isinstance(ended.error, PublicationError)
    assert "it is broken" in str(ended.error)
    causes = []
    error: BaseException | None = ended.error
    while error is not None:
        causes.append(type(error).__name__)
        error = error.__cause__ or error.__context__
    assert "StoreError" in causes
    assert "PermanentStepError" in causes


def test_a_context_that_cannot_be_built_aborts_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 51: not one failure for each step."""

    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("no context")

    monkeypatch.setattr("statelog.infrastructure.execution.stepping.StepContext", broken)
    resolved = lab.go(a_step("a"), a_step("b"))
    assert resolved.termination_reason == "orchestration_error"
    assert resolved.report is not None
    assert resolved.report["failures"] == {}
    assert lab.names() == ["started", "closed"]


def test_a_report_that_cannot_be_published_after_full_success_leaves_the_request_open(
    lab: Lab,
) -> None:
    """Case 52."""
    with Failing(lab.journal, lambda names: "closed" in names, FULL) as failing:
        resolved = lab.go(a_step("a"))
    assert failing.failed == 2
    assert resolved.report is not None
    assert resolved.resolution is Resolution.UNFINISHED
    assert resolved.report["step_outcomes"] == {"a": "succeeded"}
    details = resolved.report["publication_failure"]["details"]
    assert details["superseded_reason"] == "completed"
    assert lab.plan.open


def test_a_rejection_whose_report_cannot_be_published_does_not_finish_the_request(
    lab: Lab,
) -> None:
    """Case 53."""
    with Failing(lab.journal, lambda names: "closed" in names, FULL):
        resolved = lab.go(a_step(""))
    assert resolved.resolution is Resolution.UNFINISHED
    assert lab.plan.open


def test_an_owed_close_lands_when_the_store_takes_it_again(lab: Lab) -> None:
    """The close lands as orchestration_error, the outcomes kept (D9)."""
    with lab.session() as session:
        with Failing(lab.journal, lambda names: "closed" in names, FULL):
            session.run(lab.body(a_step("a")))
        assert lab.slot.status is SlotStatus.HELD
        session.coordinator.pay()
    assert lab.slot.status is SlotStatus.FREE
    report = lab.events()[-1].event.report
    assert report["termination_reason"] == "orchestration_error"
    assert report["step_outcomes"] == {"a": "succeeded"}


def test_a_listener_that_fails_changes_nothing(lab: Lab) -> None:
    """What is committed stays so, whatever becomes of telling it."""

    def broken(events: object) -> None:
        raise BrokenPipeError

    lab.on_event = broken
    assert lab.run(a_step("a")).succeeded


def test_an_attempt_that_exists_is_refused_and_left_alone(lab: Lab) -> None:
    """Cases 55 and 101."""
    ended = run_engine(lab, a_step("a"))
    before = lab.names("plan/p")
    held = ended.slot.aggregate.blank_of("p")
    foreign = PlanSpec.from_json(lab.body(a_step("a"), plan_id="q"))
    with pytest.raises(OrchestrationError):
        lab.engine().attempt(PlanSpec.from_json(lab.body(a_step("a"))), ended.slot)
    with pytest.raises(OrchestrationError):
        lab.engine().attempt(foreign, held)
    assert lab.names("plan/p") == before


# --- cancellation


def test_a_cancel_between_steps_keeps_what_was_reached(lab: Lab) -> None:
    """Case 56."""
    with lab.session() as session:
        lab.on_event = cancel_at(session.cancel, "step_started", "three")
        resolved = session.run(
            lab.body(
                a_step("one", "bad"),
                a_step("two", "ok", "one"),
                a_step("three"),
                a_step("four"),
                policy="continue_independent",
            )
        )
    assert resolved.report is not None
    assert resolved.resolution is Resolution.CANCELLED
    assert resolved.report["step_outcomes"] == {
        "one": "failed",
        "two": "blocked",
        "three": "succeeded",
    }
    assert resolved.report["unreached_step_ids"] == ["four"]


def test_a_cancel_during_the_last_step_changes_nothing(lab: Lab) -> None:
    """2.3: a signal after the last step still records the result."""
    with lab.session() as session:
        lab.on_event = cancel_at(session.cancel, "step_started", "a")
        resolved = session.run(lab.body(a_step("a")))
    assert resolved.succeeded
    assert lab.plan.last["outcome"] == "succeeded"


@pytest.mark.parametrize("interrupt", ["KeyboardInterrupt", "SystemExit", "asyncio.CancelledError"])
def test_an_interrupt_in_a_step_cancels_without_a_failed_event(lab: Lab, interrupt: str) -> None:
    """Case 58."""
    lab.steps(f"""
        import asyncio
        @step
        def stop(ctx: StepContext) -> None:
            raise {interrupt}()
    """)
    resolved = lab.go(a_step("a", "stop"), a_step("b"))
    assert resolved.report is not None
    assert resolved.resolution is Resolution.CANCELLED
    assert resolved.report["diagnostic"]["details"]["running_step_id"] == "a"
    assert lab.names() == ["started", "started a", "closed"]


def test_cancelled_before_the_start_nothing_runs(lab: Lab) -> None:
    """Case 60, during the read."""
    with lab.session() as session:
        session.cancel.set()
        resolved = session.coordinator.cycle("p")
    assert resolved.resolution is Resolution.CANCELLED
    assert lab.names("plan/p") == []


def test_a_cancel_while_the_result_is_recorded_does_not_lose_it(lab: Lab) -> None:
    """Case 61, and 62: the wait between two tries is cut short."""
    with lab.session() as session:
        session.coordinator.settler.delays_s = (600.0, 600.0)

        def cancel_once(names: list[str]) -> bool:
            if "request_finished" not in names or session.cancel.is_set():
                return False
            session.cancel.set()
            return True

        with Failing(lab.journal, cancel_once, StoreError("busy", "locked")):
            resolved = session.run(lab.body(a_step("a")))
    assert resolved.succeeded


def test_a_cancelled_attempt_whose_report_is_lost_stays_cancelled(lab: Lab) -> None:
    """2.3: it keeps its own exception and only gets a note."""
    with lab.session() as session:
        lab.on_event = cancel_at(session.cancel, "step_started", "a")
        with Failing(lab.journal, lambda names: "closed" in names, FULL):
            resolved = session.run(lab.body(a_step("a"), a_step("b")))
    assert resolved.resolution is Resolution.CANCELLED
    assert resolved.report is not None
    assert resolved.report["termination_reason"] == "cancelled"


# --- events


def test_each_steps_events_are_numbered_from_one_and_carry_the_attempt(lab: Lab) -> None:
    """Case 102."""
    lab.go(a_step("a"), a_step("x", "bad"), a_step("y", "ok", "x"))
    lab.go(a_step("a"), a_step("x", "bad"), a_step("y", "ok", "x"), plan_id="p")
    by_step: dict[tuple[str, str], list[int]] = {}
    for recorded in lab.events():
        assert recorded.correlation == recorded.stream.rsplit("/", 1)[1]
        if hasattr(recorded.event, "seq"):
            key = (recorded.stream, recorded.event.step_id)
            by_step.setdefault(key, []).append(recorded.event.seq)
    assert by_step
    assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in by_step.values())


def test_progress_is_held_back_within_half_a_second(lab: Lab) -> None:
    """D16: the last word is published with the step's next event."""
    lab.steps("""
        @step
        def talk(ctx: StepContext) -> None:
            for percent in range(0, 101, 10):
                ctx.progress(percent)
            ctx.progress(1000, "done")
    """)
    lab.run(a_step("a", "talk"))
    progress = [e.event for e in lab.events() if e.name.endswith("step_progress")]
    assert [(p.progress, p.message) for p in progress] == [(0.0, None), (100.0, "done")]


def test_a_metric_that_is_nan_fails_the_step_by_its_path(lab: Lab) -> None:
    """Case 141."""
    lab.steps("""
        @step
        def nan(ctx: StepContext) -> StepResult:
            return StepResult(metrics={"gc": [0.5, float("nan")]})
        @step
        def emits(ctx: StepContext) -> None:
            ctx.emit("x", value={1: 2})
    """)
    resolved = lab.go(a_step("a", "nan"), a_step("b", "emits"), a_step("c"))
    assert resolved.report is not None
    failure = resolved.report["failures"]["a"]
    assert failure["code"] == "unserializable"
    assert "metrics.gc[1]" in failure["error"]
    assert resolved.report["failures"]["b"]["code"] == "unserializable"
    assert resolved.report["step_outcomes"]["c"] == "succeeded"


def test_an_environment_reference_is_resolved_and_never_stored(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 142."""
    monkeypatch.setenv("LAB_SECRET", "hunter2-very-secret")
    lab.steps("""
        @step
        def secret(ctx: StepContext, key: str) -> None:
            assert key == "hunter2-very-secret"
    """)
    caplog.set_level("DEBUG")
    assert lab.run(a_step("a", "secret", params={"key": {"$env": "LAB_SECRET"}})).succeeded
    stored = b"".join(recorded.data or b"" for recorded in lab.journal.read())
    assert b"hunter2" not in stored
    assert "hunter2" not in caplog.text
    assert all(b"hunter2" not in p.read_bytes() for p in lab.work.rglob("*") if p.is_file())
    monkeypatch.delenv("LAB_SECRET")
    lab.marker("a").unlink()
    resolved = lab.go(a_step("a", "secret", params={"key": {"$env": "LAB_SECRET"}}))
    assert resolved.report is not None
    assert resolved.report["failures"]["a"]["code"] == "missing_env"


def test_free_text_is_escaped_and_never_refused(lab: Lab) -> None:
    """D21."""
    lab.steps("""
        @step
        def odd(ctx: StepContext) -> None:
            raise ValueError("bad \\udcff byte")
    """)
    resolved = lab.go(a_step("a", "odd"))
    assert resolved.report is not None
    assert resolved.report["failures"]["a"]["error"] == "bad \\udcff byte"


def test_an_artifact_gets_its_digest(lab: Lab) -> None:
    lab.steps("""
        @step
        def make(ctx: StepContext) -> None:
            (ctx.workdir / "f").write_text("x")
            ctx.artifact("f", ctx.workdir / "f")
            ctx.artifact("none", ctx.workdir / "none")
    """)
    lab.run(a_step("a", "make"))
    done = next(e.event for e in lab.events() if e.name.endswith("step_succeeded"))
    digests = [(artifact.key, (artifact.digest or "")[:7]) for artifact in done.artifacts]
    assert digests == [("f", "sha256:"), ("none", "")]


def run_engine(lab: Lab, *steps, policy: str = "fail_fast"):
    """Admit a plan by hand and run the bare engine."""
    with lab.session() as session:
        body = lab.body(*steps, policy=policy)
        session.prepare("p", body, adopt=False)
        request, slot = session.coordinator._admit("p")  # type: ignore[misc]
        return lab.engine().attempt(request.plan, slot)


def cancel_at(cancel: threading.Event, name: str, step_id: str):
    """A listener that asks for cancellation when it sees an event."""

    def listen(events) -> None:
        for recorded in events:
            if recorded.name.endswith(name) and recorded.event.step_id == step_id:
                cancel.set()

    return listen


def test_an_ended_attempt_holds_none_of_its_modules(lab: Lab) -> None:
    """A service that runs for weeks keeps nothing of the modules it imported."""
    lab.steps("""
        class OnlyHere: ...
        HELD = OnlyHere()
        @step
        def uses(ctx: StepContext, x: int = 0, where: Path | None = None) -> None:
            assert HELD
    """)
    lab.run(a_step("a", "uses", params={"x": 1}))
    gc.collect()
    assert not [held for held in gc.get_objects() if type(held).__name__ == "OnlyHere"]
