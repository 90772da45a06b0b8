"""A bench for plans: writes step modules, runs bodies, and reads back what the log says."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from statelog.domain.errors import StatelogError
from statelog.domain.event import Recorded
from statelog.domain.execution.attempt_events import StepEmitted
from statelog.domain.execution.plan import PLAN
from statelog.domain.execution.request import RUN_ONCE, Claim
from statelog.domain.execution.slot import SLOT
from statelog.infrastructure.execution.coordinator import Coordinator
from statelog.infrastructure.execution.engine import Engine
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.execution.resolved import Resolved
from statelog.infrastructure.execution.run_once import RunOnce
from statelog.infrastructure.execution.settle import Settler
from statelog.infrastructure.holders import Holder, Holders
from statelog.infrastructure.journal import Journal

HEAD = """
from pathlib import Path
from typing import Annotated, Any
from statelog.domain.execution import (
    In, Out, PermanentStepError, StepContext, StepResult, TransientStepError, step,
)
"""

STEPS = """
@step
def ok(ctx: StepContext, **params: Any) -> None:
    ctx.emit("ran", step=ctx.step_id)

@step
def bad(ctx: StepContext, **params: Any) -> None:
    raise PermanentStepError("it is broken", code="broken", advice="mend it")

@step
def flaky(ctx: StepContext) -> None:
    raise TransientStepError("the line is down", code="line")

@step
def crash(ctx: StepContext) -> None:
    {}["missing"]

@step
def write(ctx: StepContext, text: str = "x", name: str = "out.txt") -> None:
    (ctx.workdir / name).write_text(text)
"""

Decision = Callable[..., Any]


def a_step(step_id: Any, fn: Any = "ok", *deps: str, **more: Any) -> dict[str, Any]:
    """A step entry; `fn` is a function of the module `steps`."""
    fn_ref = f"steps:{fn}" if isinstance(fn, str) and ":" not in fn else fn
    entry = {"step_id": step_id, "name": f"step {step_id}", "fn_ref": fn_ref, "params": {}}
    return {**entry, **({"deps": list(deps)} if deps else {}), **more}


class Lab:
    """One journal, one folder of step modules, one work root."""

    def __init__(self, folder: Path, journal: Journal | None = None) -> None:
        self.folder = folder
        self.journal = Journal() if journal is None else journal
        self.path = folder / "code"
        self.path.mkdir(exist_ok=True)
        self.work = folder / "work"
        self.told: list[str] = []
        self.seen: list[Recorded] = []
        self.on_event: Callable[[Sequence[Recorded]], None] = self.seen.extend
        self.steps("")

    def steps(self, code: str, module: str = "steps") -> None:
        """Write the step module: the usual functions and these."""
        text = f"{HEAD}{STEPS}{textwrap.dedent(code)}"
        (self.path / f"{module}.py").write_text(text)

    def module(self, name: str, text: str) -> None:
        """Write a module as it is."""
        (self.path / f"{name}.py").write_text(textwrap.dedent(text))

    def body(
        self, *steps: Mapping[str, Any], policy: str = "fail_fast", **more: Any
    ) -> dict[str, Any]:
        """A plan body of these steps."""
        body = {"plan_id": "p", "realm": "lab", "scope": {"kind": "test", "id": "1"}}
        return {**body, "steps": [dict(step) for step in steps], "failure_policy": policy, **more}

    @contextmanager
    def session(self, kind: str = RUN_ONCE, **engine: Any) -> Iterator[RunOnce]:
        """One living run-once session."""
        holders = Holders.for_journal(self.journal)
        with holders.take(kind) as holder:
            yield self.run_once(holders, holder, **engine)

    def run_once(self, holders: Holders, holder: Holder, **engine: Any) -> RunOnce:
        """A session of an already living holder."""
        cancel = threading.Event()
        coordinator = Coordinator(
            engine=self.engine(**engine),
            settler=Settler(
                self.journal, holders, "bob", interrupt=cancel, delays_s=(0.001, 0.001)
            ),
            holder=holder,
            claim=Claim(RUN_ONCE, holder.id),
            cancel=cancel,
        )
        plans = Plans(self.journal, "bob", holders)
        return RunOnce(plans, holders, coordinator, say=self.told.append)

    def engine(self, **given: Any) -> Engine:
        """An engine over the lab's folders."""
        given = {"listener": self._heard, **given}
        return Engine(self.journal, self.work, [self.path], "bob", **given)

    def _heard(self, events: Sequence[Recorded]) -> None:
        self.on_event(events)

    def run(self, *steps: Mapping[str, Any], policy: str = "fail_fast", **more: Any) -> Resolved:
        """Run a body in a session of its own."""
        with self.session() as session:
            return session.run(self.body(*steps, policy=policy, **more))

    def go(self, *steps: Mapping[str, Any], **more: Any) -> Resolved:
        """Run a body that continues past failures."""
        return self.run(*steps, policy="continue_independent", **more)

    def events(self, prefix: str = "plan/p/attempt") -> list[Recorded]:
        """All events below a prefix."""
        return list(self.journal.history(prefix))

    def names(self, prefix: str = "plan/p/attempt") -> list[str]:
        """The last words of their stored names, with the step where there is one."""
        return [_name(recorded) for recorded in self.events(prefix)]

    def ran(self) -> list[str]:
        """Steps whose functions ran, in order, over all attempts."""
        return [
            event.step_id
            for event in (recorded.event for recorded in self.events())
            if isinstance(event, StepEmitted) and event.type == "ran"
        ]

    def marker(self, step_id: str) -> Path:
        """The success marker of a step of plan p."""
        return self.work / "p" / step_id / "success.fingerprint"

    @property
    def plan(self) -> Any:
        """The state of plan p."""
        return self.journal.load(PLAN, "p").state

    @property
    def slot(self) -> Any:
        """The state of the slot of plan p."""
        return self.journal.load(SLOT, "p").state


def _name(recorded: Recorded) -> str:
    word = recorded.name.rsplit(".", 1)[1]
    step_id = getattr(recorded.event, "step_id", None)
    return word if step_id is None else f"{word.removeprefix('step_')} {step_id}"


class Failing:
    """Makes a journal's commits fail: `when(events)` says which ones, `error` is raised."""

    def __init__(
        self, journal: Journal, when: Callable[[list[str]], bool], error: Exception
    ) -> None:
        self.journal, self.when, self.error = journal, when, error
        self._commit = journal.commit
        self.failed = 0

    def __enter__(self) -> Failing:
        self.journal.commit = self.commit  # type: ignore[method-assign]
        return self

    def __exit__(self, *exc: object) -> None:
        self.journal.commit = self._commit  # type: ignore[method-assign]

    def commit(self, *changes: Any, **given: Any) -> Any:
        """Fail in the place of the store, before anything is written."""
        names = [event.stored_name.rsplit(".", 1)[1] for ch in changes for event in ch.events]
        if self.when(names):
            self.failed += 1
            raise self.error
        return self._commit(*changes, **given)


__all__ = ["Failing", "Lab", "StatelogError", "a_step"]
