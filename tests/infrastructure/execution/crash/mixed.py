"""Plans of every outcome, of short steps that prove that nobody else is at work on their plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.infrastructure.execution.lab import a_step

STEPS: Final = """
import fcntl, os, signal, subprocess, time

class Alone:
    def __init__(self, ctx):
        plan = ctx.workdir.parent
        self.ctx, self.story = ctx, plan / "story.log"
        self.lock = os.open(plan / "alone", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.tell("clash")
            raise
        self.tell("begin")
    def tell(self, word):
        story = os.open(self.story, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(story, f"{self.ctx.execution_id} {self.ctx.step_id} {word}\\n".encode())
        os.close(story)
    def end(self, value):
        self.ctx.outputs["out"].write_text(str(value))
        self.tell("end")
        os.close(self.lock)

@step
def work(ctx: StepContext, ms: float, round: int) -> StepResult:
    alone = Alone(ctx)
    ctx.progress(50)
    time.sleep(ms / 1000)
    alone.end(round)
    return StepResult(metrics={"round": round})

@step
def command(ctx: StepContext, ms: float, round: int) -> None:
    alone = Alone(ctx)
    # has the lock too, for ever, when the process of the step is killed
    left = subprocess.Popen(["sleep", "600"], pass_fds=[alone.lock])
    time.sleep(ms / 1000)
    left.kill()
    left.wait()
    alone.end(round)

@step
def fails(ctx: StepContext, ms: float, round: int) -> None:
    Alone(ctx).end(round)
    raise PermanentStepError("it is broken", code="broken")

@step
def dies(ctx: StepContext, ms: float, round: int) -> None:
    alone = Alone(ctx)
    again = ctx.workdir / f"again-{round}"
    if round % 3 == 2 or (round % 3 == 1 and not again.exists()):
        again.touch()
        left = subprocess.Popen(["sleep", "600"], pass_fds=[alone.lock])
        os.kill(os.getpid(), signal.SIGKILL)
    alone.end(round)

@step
def interrupts(ctx: StepContext, ms: float, round: int) -> None:
    Alone(ctx).end(round)
    raise KeyboardInterrupt
"""

Shape = Mapping[str, tuple[str, tuple[str, ...]]]

KINDS: Final[Mapping[str, tuple[str, str | None, Shape]]] = {
    "well": (
        "continue_independent",
        "completed",
        {"a": ("work", ()), "b": ("command", ("a",)), "c": ("work", ("b",))},
    ),
    "contained": (
        "continue_independent",
        "completed",
        {"a": ("fails", ()), "b": ("work", ("a",)), "c": ("work", ())},
    ),
    "fast": ("fail_fast", "failed_fast", {"a": ("work", ()), "b": ("fails", ("a",))}),
    "dies": ("fail_fast", "completed", {"a": ("work", ()), "b": ("dies", ("a",))}),
    "cancels": ("fail_fast", "cancelled", {"a": ("work", ()), "b": ("interrupts", ("a",))}),
}
"""Of each kind of plan: its policy, how it ends when it is left alone, and its steps.

Of each step, the function and what it depends on. The step that dies does so always, once, or not
at all, as the round goes.
"""


def kind_of(plan_id: str) -> str:
    """The kind of a plan is the first word of its id."""
    return plan_id.split("-", maxsplit=1)[0]


def body_of(plan_id: str, ms: float, round: int) -> dict[str, Any]:
    """The body of a plan; every round makes its steps differ."""
    policy, _, shape = KINDS[kind_of(plan_id)]
    steps = [
        a_step(
            step_id, fn, *deps, params={"ms": ms, "round": round}, outputs={"out": "out.txt"}
        )
        for step_id, (fn, deps) in shape.items()
    ]  # fmt: skip
    scope = {"kind": "test", "id": "1"}
    return {
        "plan_id": plan_id,
        "realm": "lab",
        "scope": scope,
        "steps": steps,
        "failure_policy": policy,
    }
