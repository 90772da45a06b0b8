"""Whatever a step hands over or raises is told as its own failure, and the attempt still closes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statelog.domain.execution.attempt_events import StepFailed, StepProgress, StepSucceeded
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.slot import SlotStatus
from tests.infrastructure.execution.lab import Lab, a_step


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def run(lab: Lab, body: str, head: str = "") -> Any:
    """Run a step with this body, then one that works, past failures."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    lab.steps(f"{head}\n@step\ndef f(ctx):\n{lines}\n")
    return lab.go(a_step("a", "f"), a_step("b"))


def of(lab: Lab, kind: type) -> Any:
    """The one event of step a of this type."""
    (event,) = [
        e.event for e in lab.events() if isinstance(e.event, kind) and e.event.step_id == "a"
    ]
    return event


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("return StepResult(artifacts=['x'])", "artifacts[0]"),
        ("return StepResult(metrics=[1])", "metrics"),
        ("return StepResult(extra='x')", "extra"),
        ("return StepResult(metrics={1: 2})", "metrics"),
        (
            "deep = {}\nfor _ in range(5000): deep = {'a': deep}\nreturn StepResult(extra=deep)",
            "extra",
        ),
        ("return StepResult(metrics={'n': 2 ** 70})", "metrics.n"),
        ("ctx.emit('x', value={'a': [float('inf')]})", "payload.value.a[0]"),
    ],
)
def test_what_is_not_json_fails_the_step_by_its_place(lab: Lab, body: str, place: str) -> None:
    """D21, case 141: permanent, `unserializable`, and the attempt goes on by its policy."""
    resolved = run(lab, body)
    assert resolved.resolution is Resolution.FINALIZED
    failed = of(lab, StepFailed)
    assert (failed.kind, failed.code) == ("permanent", "unserializable")
    assert failed.error.startswith(f"not JSON: {place}")
    assert "b" in lab.ran()


def test_what_has_a_json_form_is_taken(lab: Lab) -> None:
    """D21: paths become strings, tuples and sets lists, and free text is escaped."""
    head = "from statelog.domain.execution.step import Artifact"
    body = (
        "ctx.artifact('odd', 'x', '\\udcff')\n"
        "mine = [Artifact('k\\udcff', Path('/y'), 5)]\n"
        "metrics = {'p': Path('/p'), 't': (1, 2), 's': {3}}\n"
        "return StepResult(artifacts=mine, metrics=metrics)"
    )
    assert run(lab, body, head).succeeded
    done = of(lab, StepSucceeded)
    (artifact,) = done.artifacts
    assert (artifact.key, artifact.path, artifact.digest) == ("k\\udcff", "/y", "5")
    assert done.metrics == {"p": "/p", "t": [1, 2], "s": [3]}


@pytest.mark.parametrize(
    ("given", "shown"), [("True", 1.0), ("float('nan')", 0.0), ("-3", 0), ("10 ** 400", 100.0)]
)
def test_progress_is_a_number_from_0_to_100(lab: Lab, given: str, shown: float) -> None:
    """1.4: clamped; what is no number is the step's own failure."""
    assert run(lab, f"ctx.progress({given})").succeeded
    assert of(lab, StepProgress).progress == shown


ODD_ERRORS = [
    ("class E(Exception):\n    def __str__(self): raise ValueError('x')", "E()", "E", None),
    ("class E(PermanentStepError):\n    def __init__(self): pass", "E()", "E", None),
    ("class E(PermanentStepError):\n    kind = 'weird\\udcff'", "E('x', code=7)", "x", "7"),
    ("class E(PermanentStepError):\n    kind = 7", "E('bad \\udcff')", "bad \\udcff", None),
]


@pytest.mark.parametrize(("head", "raised", "error", "code"), ODD_ERRORS)
def test_an_odd_exception_is_an_ordinary_failure(
    lab: Lab, head: str, raised: str, error: str, code: str | None
) -> None:
    """1.12: any other ordinary exception of a step is its permanent failure."""
    assert run(lab, f"raise {raised}", head).resolution is Resolution.FINALIZED
    failed = of(lab, StepFailed)
    assert (failed.kind, failed.error, failed.code) == ("permanent", error, code)
    assert "b" in lab.ran()


@pytest.mark.parametrize(
    "body",
    [
        "raise SystemExit('bad \\udcff')",
        "e = KeyboardInterrupt('x')\ne.details = 5\nraise e",
        "class E(BaseException):\n    def __str__(self): raise ValueError\nraise E",
    ],
)
def test_an_odd_interrupt_still_closes_the_attempt(lab: Lab, body: str) -> None:
    """D21, case 58: what it says is escaped, so the report can be published."""
    resolved = run(lab, body)
    assert resolved.resolution is Resolution.CANCELLED
    assert lab.names()[-1] == "closed"
    assert lab.slot.status is SlotStatus.FREE


def test_a_module_that_leaves_at_import_still_closes_the_attempt(lab: Lab) -> None:
    lab.module("leaves", "import sys\nsys.exit('\\udcff')\n")
    assert lab.go(a_step("a", "leaves:f")).resolution is Resolution.CANCELLED
    assert lab.slot.status is SlotStatus.FREE


@pytest.mark.parametrize("name", ["OrchestrationError", "Fenced", "PublicationError"])
def test_a_step_that_raises_an_error_of_the_machinery_aborts_and_is_closed(
    lab: Lab, name: str
) -> None:
    """1.12: never contained as a failure; and it does not pass for a takeover."""
    resolved = run(
        lab, f"raise {name}('no')", f"from statelog.domain.execution.faults import {name}"
    )
    assert resolved.termination_reason == "orchestration_error"
    assert lab.slot.status is SlotStatus.FREE
    assert "b" not in lab.ran()


def test_a_work_root_that_is_no_text_can_be_told(lab: Lab) -> None:
    """D21: the paths in reasons and diagnostics are escaped."""
    lab.work = lab.folder / "work\udcff"
    step = a_step("a", "write", outputs={"x": "out.txt"})
    assert lab.run(step).succeeded
    (lab.work / "p" / "a" / "out.txt").unlink()
    assert lab.run(step).succeeded
    (lab.work / "p" / "a" / "success.fingerprint").unlink()
    (lab.work / "p" / "a" / "success.fingerprint").mkdir()
    assert lab.run(step).termination_reason == "orchestration_error"
    assert lab.slot.status is SlotStatus.FREE
