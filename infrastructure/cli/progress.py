"""What a running attempt looks like: one line an event on stderr, a table of steps at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from statelog.domain.event import Recorded
from statelog.domain.execution.attempt_events import (
    Started,
    StepBlocked,
    StepFailed,
    StepProgress,
    StepSkipped,
    StepStarted,
    StepSucceeded,
)
from statelog.domain.times import iso_seconds
from statelog.infrastructure.cli.output import tell
from statelog.infrastructure.cli.tables import table
from statelog.projections.execution.streams import plan_of

REUSED = "nothing it depends on changed"


@dataclass
class Seen:
    """One step as its events told it; times in microseconds."""

    name: str
    state: str = "unreached"
    started: int | None = None
    ended: int | None = None
    why: str = ""
    note: str = ""

    @property
    def seconds(self) -> str:
        """How long it ran, for people."""
        if self.started is None or self.ended is None:
            return ""
        return f"{(self.ended - self.started) / 1e6:.2f} s"


class RunProgress:
    """Listens to the events of one attempt after another.

    `quiet` keeps the lines back, not the table; `named` puts the plan into each line.
    """

    def __init__(self, *, quiet: bool = False, named: bool = False) -> None:
        self._quiet = quiet
        self._named = named
        self._execution_id: str | None = None
        self.steps: dict[str, Seen] = {}

    def __call__(self, events: Sequence[Recorded]) -> None:
        """Take events as they are committed."""
        for recorded in events:
            self._one(recorded)

    def _one(self, recorded: Recorded) -> None:
        match recorded.event:
            case Started(execution_id=execution_id, steps=steps):
                self._execution_id = execution_id
                self.steps = {str(s["step_id"]): Seen(str(s["step_name"])) for s in steps}
            case StepStarted(step_id=step_id, why=why):
                seen = self._seen(step_id)
                seen.state, seen.started, seen.why = "running", recorded.time, "; ".join(why)
                self.say(recorded, step_id, "started", seen.why)
            case StepProgress(step_id=step_id, progress=percent, message=message):
                self.say(recorded, step_id, f"{percent:.0f} %", message or "")
            case StepSucceeded(step_id=step_id):
                seen = self._ended(recorded, step_id, "succeeded")
                self.say(recorded, step_id, "succeeded", seen.seconds)
            case StepSkipped(step_id=step_id):
                self._ended(recorded, step_id, "reused").note = REUSED
                self.say(recorded, step_id, "reused", "")
            case StepFailed(step_id=step_id) as failed:
                note = _failure(vars(failed))
                self._ended(recorded, step_id, "failed").note = note
                self.say(recorded, step_id, "failed", note)
            case StepBlocked(step_id=step_id, failed_ancestors=ancestors):
                note = f"by {', '.join(ancestors)}"
                self._ended(recorded, step_id, "blocked").note = note
                self.say(recorded, step_id, "blocked", note)

    def has_seen(self, execution_id: str | None) -> bool:
        """Whether these are the steps of that attempt."""
        return bool(self.steps) and execution_id == self._execution_id

    def table(self, report: Mapping[str, Any] | None) -> str:
        """The steps of the attempt: state, time, and why."""
        rows = []
        for step_id, seen in self.steps.items():
            told = seen if report is None else _settled(step_id, seen, report)
            rows.append([step_id, told.state, told.seconds, told.note or told.why])
        return table(["step", "state", "time", "note"], rows)

    def _seen(self, step_id: str) -> Seen:
        return self.steps.setdefault(step_id, Seen(step_id))

    def _ended(self, recorded: Recorded, step_id: str, state: str) -> Seen:
        seen = self._seen(step_id)
        seen.state, seen.ended = state, recorded.time
        return seen

    def say(self, recorded: Recorded, step_id: str, word: str, note: str) -> None:
        """Tell one thing that happened to a step."""
        if not self._quiet:
            clock = iso_seconds(recorded.time)[11:19]
            plan = f"{plan_of(recorded)}  " if self._named else ""
            tell(f"{clock}  {plan}{step_id}  {word}{f'  {note}' if note else ''}")


def _settled(step_id: str, seen: Seen, report: Mapping[str, Any]) -> Seen:
    """What the report says wins; a step that was running without an outcome is interrupted."""
    outcome = report["step_outcomes"].get(step_id)
    blockers = report["failed_ancestors"].get(step_id)
    if outcome is None:
        return replace(seen, state="unreached" if seen.started is None else "interrupted", note="")
    return replace(seen, state=outcome, note=f"by {', '.join(blockers)}" if blockers else seen.note)


def shown_state(entry: Mapping[str, Any]) -> str:
    """The state of a snapshot's step in a word."""
    live = {"step.started", "step.progress", "step.artifact"}
    state = str(entry["state"])
    return str(entry["outcome"] or ("running" if state in live else state.removeprefix("step.")))


def note_of(entry: Mapping[str, Any], seen: Seen | None) -> str:
    """Why a snapshot's step is as it is: its failure, its blockers, or why it was not reused."""
    if entry["error"]:
        return _failure(entry["error"])
    if entry["failed_ancestors"]:
        return f"by {', '.join(entry['failed_ancestors'])}"
    if entry["outcome"] == "reused":
        return REUSED
    return seen.why if seen else ""


def _failure(error: Mapping[str, Any]) -> str:
    code = f" ({error['code']})" if error.get("code") else ""
    advice = f"; {error['advice']}" if error.get("advice") else ""
    return f"{error['error']}{code}{advice}"
