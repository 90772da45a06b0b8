"""A success is reused while its fingerprint and outputs hold, and never otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from statelog.domain.execution.attempt_events import StepStarted
from statelog.domain.execution.endings import Resolution
from tests.infrastructure.execution.lab import Lab, a_step


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def why(lab: Lab, step_id: str) -> tuple[str, ...]:
    """Why the step last started."""
    events = [recorded.event for recorded in lab.events()]
    return [e for e in events if isinstance(e, StepStarted) and e.step_id == step_id][-1].why


CHAIN = (a_step("a"), a_step("b", "ok", "a"), a_step("c", "ok", "b"))


def test_a_second_identical_attempt_reuses_every_step_in_order(lab: Lab) -> None:
    """Case 33."""
    assert lab.run(*CHAIN).succeeded
    ran = lab.ran()
    resolved = lab.run(*CHAIN)
    assert resolved.succeeded
    assert resolved.run_token == 1
    assert lab.ran() == ran
    assert lab.names()[-5:] == ["started", "skipped a", "skipped b", "skipped c", "closed"]
    assert resolved.report is not None
    assert resolved.report["counts"]["reused"] == 3


def test_changed_params_run_the_step_again_and_say_which(lab: Lab) -> None:
    """Case 34."""
    lab.run(a_step("a", params={"depth": 1, "same": 2}), a_step("b"))
    lab.run(a_step("a", params={"depth": 9, "same": 2}), a_step("b"))
    assert lab.ran() == ["a", "b", "a"]
    assert why(lab, "a") == ("params.depth differs",)


def test_a_changed_output_declaration_runs_only_that_step_again(lab: Lab) -> None:
    """Case 35."""
    lab.run(a_step("a", "write", outputs={"x": "out.txt"}), a_step("b"))
    resolved = lab.run(a_step("a", "write", outputs={"y": "out.txt"}), a_step("b"))
    assert resolved.report is not None
    assert resolved.report["step_outcomes"] == {"a": "succeeded", "b": "reused"}
    assert why(lab, "a") == ("outputs.x differs", "outputs.y differs")


def test_a_deleted_output_runs_the_producer_and_not_its_consumer(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 36."""
    plan = (a_step("a", "write", outputs={"x": "out.txt"}), a_step("b", "ok", "a"))
    lab.run(*plan)
    out = lab.work / "p" / "a" / "out.txt"
    out.unlink()
    resolved = lab.run(*plan)
    assert resolved.report is not None
    assert resolved.report["step_outcomes"] == {"a": "succeeded", "b": "reused"}
    assert str(out) in caplog.text
    assert str(out) in why(lab, "a")[0]


def test_a_removed_marker_and_a_raised_token_run_only_that_step(lab: Lab) -> None:
    """Case 138."""
    lab.run(*CHAIN)
    lab.marker("b").unlink()
    resolved = lab.run(*CHAIN)
    assert resolved.report is not None
    assert resolved.report["step_outcomes"] == {"a": "reused", "b": "succeeded", "c": "reused"}
    assert why(lab, "b") == ("no success marker",)


def test_decoys_elsewhere_do_not_satisfy_a_declaration(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 37: plan folder, work root, another step and the current directory."""
    lab.run(a_step("other", "write"))
    cwd = lab.folder / "cwd"
    cwd.mkdir()
    monkeypatch.chdir(cwd)
    for folder in (lab.path, lab.work, lab.work / "p", cwd):
        (folder / "out.txt").write_text("decoy")
    resolved = lab.go(a_step("other", "write"), a_step("a", outputs={"x": "out.txt"}))
    assert resolved.report is not None
    assert resolved.report["failures"]["a"]["code"] == "missing_required_outputs"


def test_two_steps_with_the_same_relative_output_do_not_share_it(lab: Lab) -> None:
    """Case 38."""
    out = {"x": "out.txt"}
    resolved = lab.go(a_step("a", "write", outputs=out), a_step("b", "ok", outputs=out))
    assert resolved.report is not None
    assert resolved.report["step_outcomes"] == {"a": "succeeded", "b": "failed"}


def test_an_empty_directory_is_an_output(lab: Lab) -> None:
    """Case 39."""
    lab.steps("""
        @step
        def make(ctx: StepContext) -> None:
            (ctx.workdir / "d").mkdir(exist_ok=True)
    """)
    plan = a_step("a", "make", outputs={"d": "d"})
    assert lab.run(plan).succeeded
    resolved = lab.run(plan)
    assert resolved.report is not None
    assert resolved.report["step_outcomes"] == {"a": "reused"}


def test_a_step_without_its_output_fails_once_and_blocks(lab: Lab) -> None:
    """Case 40."""
    resolved = lab.go(a_step("a", outputs={"x": "nowhere"}), a_step("b", "ok", "a"))
    assert lab.names() == ["started", "started a", "emitted a", "failed a", "blocked b", "closed"]
    assert not lab.marker("a").exists()
    assert resolved.report is not None
    assert resolved.report["step_outcomes"] == {"a": "failed", "b": "blocked"}


def test_half_an_output_and_a_failure_leave_no_marker(lab: Lab) -> None:
    """Case 41."""
    lab.steps("""
        @step
        def half(ctx: StepContext, fail: bool = False) -> None:
            (ctx.workdir / "out.txt").write_text("half")
            ctx.emit("ran", step=ctx.step_id)
            if (ctx.workdir / "fail").exists():
                raise PermanentStepError("half way")
    """)
    plan = a_step("a", "half", outputs={"x": "out.txt"})
    lab.run(plan)
    (lab.work / "p" / "a" / "fail").touch()
    (lab.work / "p" / "a" / "out.txt").unlink()
    assert not lab.run(plan).succeeded
    assert not lab.marker("a").exists()
    (lab.work / "p" / "a" / "fail").unlink()
    assert lab.run(plan).succeeded
    assert lab.ran() == ["a", "a", "a"]


def test_a_success_before_a_failed_other_version_is_not_reused(lab: Lab) -> None:
    """Case 42."""
    lab.steps("""
        @step
        def versioned(ctx: StepContext, version: int) -> None:
            ctx.emit("ran", step=ctx.step_id)
            if version == 2:
                raise PermanentStepError("two")
    """)
    lab.run(a_step("a", "versioned", params={"version": 1}))
    lab.run(a_step("a", "versioned", params={"version": 2}))
    lab.run(a_step("a", "versioned", params={"version": 1}))
    assert lab.ran() == ["a", "a", "a"]


@pytest.mark.parametrize("when", ["reuse", "after the body"])
def test_an_output_that_cannot_be_looked_at_aborts(
    lab: Lab, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 43: the marker survives a failed look for reuse, and does not exist after the body."""
    plan = (a_step("a", "write", outputs={"x": "out.txt"}), a_step("b"))
    if when == "reuse":
        lab.run(*plan)
    stat = Path.stat

    def denied(self: Path, **kwargs: bool) -> os.stat_result:
        if self.name == "out.txt" and (when == "reuse" or self.parent.joinpath("out.txt") in made):
            raise PermissionError(13, "Permission denied", str(self))
        return stat(self, **kwargs)

    made: set[Path] = set()
    write_text = Path.write_text

    def noted(self: Path, *args: str, **kwargs: str) -> int:
        written = write_text(self, *args, **kwargs)  # type: ignore[arg-type]
        made.add(self)
        return written

    monkeypatch.setattr(Path, "write_text", noted)
    monkeypatch.setattr(Path, "stat", denied)
    resolved = lab.go(*plan)
    monkeypatch.undo()
    assert resolved.termination_reason == "orchestration_error"
    assert lab.marker("a").exists() is (when == "reuse")


def test_when_the_marker_cannot_be_deleted_the_body_is_not_called(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 44."""
    lab.run(a_step("a", params={"v": 1}))
    unlink = os.unlink

    def denied(path: str, **kwargs: int) -> None:
        if Path(path).name == "success.fingerprint":
            raise PermissionError(13, "Permission denied", path)
        unlink(path, **kwargs)

    monkeypatch.setattr(os, "unlink", denied)
    resolved = lab.run(a_step("a", params={"v": 2}))
    assert resolved.termination_reason == "orchestration_error"
    assert lab.ran() == ["a"]


def test_a_marker_that_is_a_directory_aborts(lab: Lab) -> None:
    """Case 45."""
    lab.marker("a").mkdir(parents=True)
    assert lab.run(a_step("a")).termination_reason == "orchestration_error"


def test_a_step_whose_inputs_cannot_be_hashed_fails_and_says_so(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 46, D23."""
    secret = lab.folder / "secret"
    secret.write_text("x")
    opened = Path.open

    def denied(self: Path, *args: str, **kwargs: str):
        if self == secret:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", denied)
    resolved = lab.go(a_step("a", inputs={"s": str(secret)}), a_step("b"))
    assert lab.names()[:2] == ["started", "failed a"]
    assert resolved.report is not None
    assert resolved.report["step_outcomes"] == {"a": "failed", "b": "succeeded"}


def test_a_blocked_step_with_a_matching_marker_is_neither_run_nor_reused(lab: Lab) -> None:
    """Case 47."""
    lab.go(a_step("a"), a_step("b", "ok", "a"))
    resolved = lab.go(a_step("a", "bad", params={"v": 2}), a_step("b", "ok", "a"))
    assert resolved.report is not None
    assert resolved.report["step_outcomes"] == {"a": "failed", "b": "blocked"}


def test_a_changed_input_runs_the_step_again(lab: Lab) -> None:
    """5.3: the content of declared inputs, and of parameters annotated In."""
    lab.steps("""
        @step
        def reads(ctx: StepContext, source: Annotated[Path, In]) -> None:
            assert isinstance(source, Path)
            ctx.emit("ran", step=ctx.step_id)
    """)
    data = lab.folder / "data.txt"
    data.write_text("one")
    plan = a_step("a", "reads", params={"source": str(data)})
    lab.run(plan)
    lab.run(plan)
    data.write_text("two")
    lab.run(plan)
    assert lab.ran() == ["a", "a"]
    assert why(lab, "a") == ("inputs.source differs",)


def test_a_finished_plan_whose_marker_write_fails_aborts_and_is_open(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5.2, step 8: no marker remains, the success is in the log, the attempt aborts."""
    replace = os.replace

    def denied(source: str, target: Path) -> None:
        if Path(target).name == "success.fingerprint":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", denied)
    resolved = lab.run(a_step("a"), a_step("b"))
    monkeypatch.undo()
    assert resolved.resolution is Resolution.UNFINISHED
    assert resolved.termination_reason == "orchestration_error"
    assert [p.name for p in (lab.work / "p" / "a").iterdir()] == []
