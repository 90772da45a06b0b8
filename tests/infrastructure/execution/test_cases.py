"""Cases of plan execution that need a whole coordinator, a store on disk, or several attempts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import Conflict, StoreError
from statelog.domain.event import Recorded
from statelog.domain.execution.attempt_events import StepFailed, StepSkipped
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.faults import OrchestrationError
from statelog.domain.execution.plan import PLAN, Imported, RequestFinished, adopt, finish
from statelog.domain.execution.slot import SLOT, SlotStatus, admit, raise_floor
from statelog.domain.execution.spec import PlanSpec
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.views import Views
from statelog.projections import replay
from statelog.projections.execution import (
    last_finalized,
    plan_document,
    plan_status,
    plan_summary,
)
from tests.infrastructure.execution.lab import Failing, Lab, a_step

BUSY = StoreError("busy", "the store is locked")
FULL = StoreError("full", "the disk is full")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def events_of(lab: Lab, step_id: str) -> list[str]:
    return [name for name in lab.names() if name.endswith(f" {step_id}")]


# --- policies and blocking


def test_a_blocked_step_is_left_exactly_as_it_was(lab: Lab) -> None:
    """Cases 18 and 47: its marker and its outputs, byte for byte, and nothing is said of reuse."""
    output = {"x": "out.txt"}
    plan = (a_step("a"), a_step("b", "write", "a", outputs=output), a_step("new", "ok", "b"))
    lab.go(*plan[:2])
    before = files(lab.work / "p" / "b")
    assert set(before) == {"out.txt", "success.fingerprint"}
    resolved = lab.go(a_step("a", "bad", params={"v": 2}), *plan[1:])
    assert resolved.report is not None
    assert resolved.report["step_outcomes"] == {"a": "failed", "b": "blocked", "new": "blocked"}
    assert files(lab.work / "p" / "b") == before
    assert not (lab.work / "p" / "new").exists()
    assert events_of(lab, "b")[-1:] == ["blocked b"]
    assert not [e for e in lab.events() if isinstance(e.event, StepSkipped)]


def test_every_failure_mode_of_a_step_reaches_its_report(lab: Lab) -> None:
    """Cases 14 and 15 under continue: kind, code, advice and class of each."""
    resolved = lab.go(a_step("p", "bad"), a_step("t", "flaky"), a_step("c", "crash"), a_step("z"))
    assert resolved.report is not None
    shown = {
        step_id: (failure["kind"], failure["code"], failure["advice"], failure["error_type"])
        for step_id, failure in resolved.report["failures"].items()
    }
    assert shown == {
        "p": ("permanent", "broken", "mend it", "PermanentStepError"),
        "t": ("transient", "line", None, "TransientStepError"),
        "c": ("permanent", None, None, "KeyError"),
    }
    assert events_of(lab, "t") == ["started t", "failed t", "retry_unimplemented t"]


# --- preflight


@pytest.mark.parametrize(
    "module",
    [
        "import absent_package",
        "int('x')",
        "import os\nos.absent",
        "raise RuntimeError('no')",
    ],
)
@pytest.mark.parametrize("policy", ["fail_fast", "continue_independent"])
def test_a_module_that_breaks_is_no_rejection(lab: Lab, module: str, policy: str) -> None:
    """Cases 28 and 29: an infrastructure abort under both policies, and the request stays open."""
    lab.module("broken", module)
    resolved = lab.run(a_step("ok"), a_step("a", "broken:f"), policy=policy)
    assert resolved.termination_reason == "orchestration_error"
    assert resolved.resolution is Resolution.UNFINISHED
    assert lab.plan.open
    assert lab.ran() == []
    assert not lab.work.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"outputs": ["x"]}, {"outputs": {"x": ""}}, {"fn": "steps:"}, {"fn": "nothing"}),
        *({"fn": "steps:absent"}, {"fn": "steps:Path"}, {"params": {"no": 1}}),
        *(
            {"deps": ["nowhere"]},
            {"step_id": "a/../b"},
            {"step_id": "plan.json"},
            {"step_id": "OK"},
        ),
    ],
    ids=repr,
)
def test_a_definitive_defect_is_recorded_under_continue_only(
    lab: Lab, wrong: dict[str, Any]
) -> None:
    """Cases 21, 25 to 27, 30, 31 and 75: nothing of the plan runs, and nothing is written."""
    fn = wrong.pop("fn", "write")
    entry = {**a_step("a", fn if ":" in fn else f"steps:{fn}"), **wrong}
    if fn == "nothing":
        entry["fn_ref"] = fn
    resolved = lab.run(a_step("ok"), entry)
    assert resolved.resolution is Resolution.UNFINISHED
    assert resolved.termination_reason == "preflight_rejected"
    assert lab.plan.open
    resolved = lab.run(a_step("ok"), entry, policy="continue_independent")
    assert resolved.resolution is Resolution.FINALIZED
    assert lab.plan.last["termination_reason"] == "preflight_rejected"
    assert lab.ran() == []
    assert not lab.work.exists()


# --- reuse


def test_a_step_without_its_output_says_so_once(lab: Lab) -> None:
    """Case 40: one failed event with its code, and no success."""
    lab.go(a_step("a", outputs={"x": "nowhere"}), a_step("b", "ok", "a"))
    failed = [e.event for e in lab.events() if isinstance(e.event, StepFailed)]
    assert [(e.step_id, e.kind, e.code) for e in failed] == [
        ("a", "permanent", "missing_required_outputs")
    ]
    assert "succeeded a" not in lab.names()


# --- cancellation


def test_a_cancel_from_another_thread_lets_exactly_the_running_step_finish(lab: Lab) -> None:
    """Case 57: the signal is there before the function is called, and the step still succeeds."""
    with lab.session() as session:

        def cancel(events: Sequence[Recorded]) -> None:
            if events[-1].name.endswith("step_started"):
                thread = threading.Thread(target=session.cancel.set)
                thread.start()
                thread.join()

        lab.on_event = cancel
        resolved = session.run(lab.body(a_step("a"), a_step("b")))
    assert resolved.termination_reason == "cancelled"
    assert lab.ran() == ["a"]
    assert resolved.report is not None
    assert resolved.report["step_outcomes"] == {"a": "succeeded"}
    assert lab.plan.open


@pytest.mark.parametrize("when", ["read", "allocation", "reservation"])
def test_a_cancel_before_the_start_runs_nothing(lab: Lab, when: str) -> None:
    """Case 60: what was reserved is given back, never shown, and orders the next attempt."""
    with lab.session() as session:
        coordinator = session.coordinator
        load, suffix, commit = lab.journal.load, coordinator.suffix, lab.journal.commit

        def reading(aggregate: Any, id: Any, **given: Any) -> Any:
            if aggregate is PLAN and lab.names("plan/p"):
                session.cancel.set()
            return load(aggregate, id, **given)

        def allocating() -> str:
            session.cancel.set()
            return suffix()

        def reserving(*changes: Any, **given: Any) -> Any:
            done = commit(*changes, **given)
            if any(type(event).__name__ == "Held" for event in done.events):
                session.cancel.set()
            return done

        session.prepare("p", lab.body(a_step("a")), adopt=False)
        if when == "read":
            lab.journal.load = reading  # type: ignore[method-assign,assignment]
        elif when == "allocation":
            coordinator.suffix = allocating
        else:
            lab.journal.commit = reserving  # type: ignore[method-assign]
        resolved = coordinator.cycle("p")
        for name in ("load", "commit"):
            lab.journal.__dict__.pop(name, None)
    assert resolved.resolution is Resolution.CANCELLED
    assert lab.names() == []
    assert lab.slot.status is SlotStatus.FREE
    assert replay(plan_status, lab.events("plan/p")) == {}
    floor = lab.slot.floor
    assert floor is not None
    again = lab.run(a_step("a"))
    assert again.execution_id is not None
    assert again.execution_id > floor


# --- admission and recording


def test_a_clock_that_no_execution_id_can_carry_is_an_admission_that_failed(lab: Lab) -> None:
    """6.3: nothing is published and nothing runs; the plan stays eligible."""
    with lab.session(clock=lambda: 253_402_300_800_000_000) as session:
        resolved = session.run(lab.body(a_step("a")))
    assert resolved.resolution is Resolution.ADMISSION_FAILED
    assert lab.slot.status is SlotStatus.FREE
    assert lab.plan.open


def test_a_reservation_that_could_not_be_given_back_is_owed(lab: Lab) -> None:
    """D9: a living process does not keep a plan that it does not run."""
    with lab.session() as session:
        session.prepare("p", lab.body(a_step("a")), adopt=False)
        admit = session.coordinator._admit

        def cancelled(*given: Any) -> Any:
            admitted = admit(*given)
            session.cancel.set()
            return admitted

        session.coordinator._admit = cancelled  # type: ignore[method-assign,assignment]
        with Failing(lab.journal, lambda names: "released" in names, FULL):
            assert session.coordinator.cycle("p").resolution is Resolution.CANCELLED
        assert lab.slot.status is SlotStatus.HELD
        session.cancel.clear()
        session.coordinator._admit = admit  # type: ignore[method-assign]
        assert session.coordinator.cycle("p").succeeded


def test_two_transient_errors_are_waited_out_and_told_once(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 77: waits of 0.5 and 1.0 s, a warning for each failed try, and one success line."""
    caplog.set_level(logging.INFO)
    waits: list[float] = []
    fails = iter([True, True, False])
    with lab.session() as session:
        settler = session.coordinator.settler
        settler.delays_s = (0.5, 1.0)
        settler.interrupt.wait = lambda s: bool(waits.append(s))  # type: ignore[method-assign,func-returns-value,assignment]
        with Failing(lab.journal, lambda n: "request_finished" in n and next(fails), BUSY):
            assert session.run(lab.body(a_step("a"))).succeeded
    assert waits == [0.5, 1.0]
    told = [(r.levelname, r.getMessage()) for r in caplog.records if "settle" in r.name]
    assert [level for level, _ in told] == ["WARNING", "WARNING", "INFO"]
    assert "recorded succeeded" in told[-1][1]


def test_a_regenerated_plan_is_judged_once(lab: Lab) -> None:
    """Case 78: superseded at the first try, without a wait."""
    waits: list[float] = []

    def regenerate(events: Sequence[Recorded]) -> None:
        if events[-1].name.endswith("step_succeeded"):
            given = {"authority": "run_once", "owner": lab.plan.execution_owner}
            body = lab.body(a_step("b"))
            Plans(lab.journal, "alice").save(body, approve=True, force=True, **given)

    lab.on_event = regenerate
    with lab.session() as session:
        settler = session.coordinator.settler
        settler.interrupt.wait = lambda s: bool(waits.append(s))  # type: ignore[method-assign,func-returns-value,assignment]
        resolved = session.run(lab.body(a_step("a")))
    assert (resolved.resolution, resolved.reason) == (Resolution.SUPERSEDED, "generation_changed")
    assert waits == []
    released = [r.event for r in lab.events("plan/p/slot") if r.name.endswith("released")]
    assert [(e.how, e.reason) for e in released] == [("superseded", "generation_changed")]
    assert lab.plan.open


def finished_by_another(lab: Lab, **identity: Any) -> None:
    """Somebody recorded a result of the plan while the report waits."""
    given = {
        "execution_id": "20990101T000000000000Z_ffff",
        "plan_generation": lab.plan.plan_generation,
        "run_token": 0,
        "failure_policy": "fail_fast",
        "outcome": "succeeded",
        "termination_reason": "completed",
        **identity,
    }
    lab.journal.execute(PLAN, "p", finish, actor="alice", result=RequestFinished(**given))


@pytest.mark.parametrize("token", [0, 1])
def test_a_request_that_another_execution_finished_is_superseded(lab: Lab, token: int) -> None:
    """Cases 84 and 86: the same token or a newer one; what is recorded stays."""
    with Failing(lab.journal, lambda names: "request_finished" in names, BUSY):
        lab.run(a_step("a"))
    if token:
        Plans(lab.journal, "alice").request("p")
    finished_by_another(lab, run_token=token)
    version = lab.journal.load(PLAN, "p").version
    with lab.session() as session:
        settled = session.coordinator.settle("p")
    assert settled is not None
    assert settled.resolution is Resolution.SUPERSEDED
    assert settled.reason == "request_already_finalized"
    assert lab.journal.load(PLAN, "p").version == version
    assert lab.plan.executed_run_token == token
    assert lab.plan.last["execution_id"] == "20990101T000000000000Z_ffff"
    assert lab.slot.status is SlotStatus.FREE


def test_a_completion_recorded_before_the_authority_changed_stays_committed(lab: Lab) -> None:
    """Case 85: the same execution is already committed, so it is released as recorded."""
    with Failing(lab.journal, lambda names: "request_finished" in names, BUSY):
        resolved = lab.run(a_step("a"))
    finished_by_another(lab, execution_id=resolved.execution_id)
    lab.journal.execute(PLAN, "p", adopt, actor="alice", authority="daemon")
    before = lab.names("plan/p").count("request_finished")
    with lab.session() as session:
        settled = session.coordinator.settle("p")
    assert settled is not None
    assert settled.resolution is Resolution.FINALIZED
    assert lab.names("plan/p").count("request_finished") == before == 1
    assert lab.events("plan/p/slot")[-1].event.how == "recorded"


def test_a_document_without_a_generation_gets_one_and_nothing_else_changes(lab: Lab) -> None:
    """Case 72: the result is recorded against it."""
    with lab.session() as session:
        document = {
            "_id": "p",
            "plan": lab.body(a_step("a")),
            "run_token": "0",
            "execution_authority": "run_once",
            "execution_owner": session.coordinator.holder.id,
        }
        lab.journal.execute(PLAN, "p", lambda plan: [Imported(document)], actor="bob")
        Plans(lab.journal, "bob").approve("p")
        resolved = session.coordinator.cycle("p")
    assert resolved.succeeded
    assert lab.names("plan/p")[:4] == ["imported", "approved", "generation_assigned", "held"]
    assert resolved.plan_generation == lab.plan.plan_generation
    assert lab.plan.last["plan_generation"] == lab.plan.plan_generation


def test_a_floor_that_is_raised_during_an_attempt_does_not_fence_it(lab: Lab) -> None:
    """D20 raises the floor of a slot that is held: nobody took the plan over."""

    def raised(events: Sequence[Recorded]) -> None:
        if events[-1].name.endswith("step_started"):
            floor = "20990101T000000000000Z_ffff"
            lab.journal.execute(SLOT, "p", raise_floor, actor="alice", execution_id=floor)

    lab.on_event = raised
    resolved = lab.run(a_step("a"))
    assert resolved.succeeded
    assert lab.slot.status is SlotStatus.FREE


@pytest.mark.parametrize("execution_id", ["a/b", "..", "x" * 256, "a\\b"])
def test_an_execution_id_that_names_no_attempt_is_refused(lab: Lab, execution_id: str) -> None:
    """1.5, case 55: nothing is published and nothing runs."""
    body = lab.body(a_step("a"))
    given = {"execution_authority": "daemon", "execution_owner": None}
    held = lab.journal.execute(
        SLOT,
        "p",
        admit,
        actor="bob",
        execution_id=execution_id,
        holder="h",
        plan_version=0,
        plan_generation="g",
        run_token=0,
        **given,
    )
    with pytest.raises(OrchestrationError, match="path part"):
        lab.engine().attempt(PlanSpec.from_json(body), held.loaded[0])
    assert lab.names() == []


# --- events


def test_every_event_that_no_person_caused_says_what_did(lab: Lab) -> None:
    """D19: its cause is the event that was read, and its correlation the execution."""
    with Failing(lab.journal, lambda names: "request_finished" in names, BUSY):
        lab.go(a_step("a"), a_step("x", "bad"), a_step("y", "ok", "x"))
    lab.go(a_step("a"), a_step("x", "bad"), a_step("y", "ok", "x"))
    events = lab.events("plan/p")
    known = {f"{recorded.stream}@{recorded.version}" for recorded in events}
    by_people = {"saved", "approved", "run_requested", "adopted"}
    ours = [r for r in events if r.name.rsplit(".")[-1] not in by_people]
    assert {"gave_up", "request_finished", "held"} <= {r.name.rsplit(".")[-1] for r in ours}
    for recorded in ours:
        assert recorded.cause in known, recorded.name
        assert recorded.correlation is not None, recorded.name
    assert {(recorded.actor, bool(recorded.command)) for recorded in events} == {("bob", True)}


def test_progress_that_was_held_back_starts_the_half_second_anew(lab: Lab) -> None:
    """D16: what is published with another event counts towards two a second."""
    lab.steps("""
        @step
        def talk(ctx: StepContext) -> None:
            ctx.progress(1)
            ctx.progress(2)
            ctx.emit("note")
            ctx.progress(3)
            ctx.progress(4)
    """)
    times = iter(range(0, 10_000_000, 300_000))
    with lab.session(monotonic_us=lambda: next(times)) as session:
        session.run(lab.body(a_step("a", "talk")))
    told = [e for e in lab.events() if e.name.endswith(("step_progress", "step_emitted"))]
    shown = [getattr(recorded.event, "progress", "note") for recorded in told]
    # the clock is read once a call and once a publication: 3 comes 0.3 s after 2 was published
    assert shown == [1, 2, "note", 4]


# --- secrets


def test_a_value_from_the_environment_is_in_no_file(
    tmp_path: Path, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 142: neither in the log, nor in a view, a refusal, the plan file or a marker."""
    monkeypatch.setenv("LAB_SECRET", "hunter2-very-secret")
    with Journal(store_path) as journal:
        lab = Lab(tmp_path, journal)
        lab.steps("""
            @step
            def secret(ctx: StepContext, key: str, more: list) -> None:
                assert (key, more) == ("hunter2-very-secret", ["hunter2-very-secret"])
        """)
        reference = {"$env": "LAB_SECRET"}
        params = {"key": reference, "more": [reference]}
        assert lab.run(a_step("a", "secret", params=params)).succeeded
        with Views(journal, (plan_document, plan_status, last_finalized, plan_summary)) as views:
            views.catch_up()
    found = files(store_path.parent)
    assert {"work/p/plan.json", "work/p/a/success.fingerprint", store_path.name} <= set(found)
    holding = [name for name, data in found.items() if b"hunter2" in data]
    assert holding == ["code/steps.py"]
    assert any(b"LAB_SECRET" in data for data in found.values())


def test_a_conflict_in_admission_is_decided_again(lab: Lab) -> None:
    """3: the plan moved between the read and the reservation, so it is read again."""
    tries = iter([True, False])
    error = Conflict("plan/p", 2, 3)
    with Failing(lab.journal, lambda names: "held" in names and next(tries), error) as failing:
        assert lab.run(a_step("a")).succeeded
    assert failing.failed == 1
