"""What a running attempt looks like: one line an event on stderr, a table of steps at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

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
from statelog.infrastructure.cli.tables import table


@dataclass
class Seen:
    """One step as its events told it; times in microseconds."""

    name: str
    state: str = "unreached"
    started: int | None = None
    ended: int | None = None
    note: str = ""

    @property
    def seconds(self) -> str:
        """How long it ran, for people."""
        if self.started is None or self.ended is None:
            return ""
        return f"{(self.ended - self.started) / 1e6:.2f} s"


class RunProgress:
    """Listens to an attempt's events; `quiet` keeps the lines back, not the table."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self.steps: dict[str, Seen] = {}

    def __call__(self, events: Sequence[Recorded]) -> None:
        """Take events as they are committed."""
        for recorded in events:
            self._one(recorded)

    def _one(self, recorded: Recorded) -> None:
        match recorded.event:
            case Started(steps=steps):
                self.steps = {str(s["step_id"]): Seen(str(s["step_name"])) for s in steps}
            case StepStarted(step_id=step_id, why=why):
                seen = self._seen(step_id)
                seen.state, seen.started, seen.note = "running", recorded.time, "; ".join(why)
                self._say(recorded, step_id, "started", seen.note)
            case StepProgress(step_id=step_id, progress=percent, message=message):
                self._say(recorded, step_id, f"{percent:.0f} %", message or "")
            case StepSucceeded(step_id=step_id):
                seen = self._ended(recorded, step_id, "succeeded")
                self._say(recorded, step_id, "succeeded", seen.seconds)
            case StepSkipped(step_id=step_id):
                self._ended(recorded, step_id, "reused").note = "nothing it depends on changed"
                self._say(recorded, step_id, "reused", "")
            case StepFailed(step_id=step_id) as failed:
                code = f" ({failed.code})" if failed.code else ""
                note = f"{failed.error}{code}"
                self._ended(recorded, step_id, "failed").note = note
                self._say(recorded, step_id, "failed", note)
                if failed.advice:
                    self._say(recorded, step_id, "advice", failed.advice)
            case StepBlocked(step_id=step_id, failed_ancestors=ancestors):
                self._ended(recorded, step_id, "blocked").note = f"by {', '.join(ancestors)}"
                self._say(recorded, step_id, "blocked", f"by {', '.join(ancestors)}")

    def table(self, report: Mapping[str, Any] | None) -> str:
        """The steps of the attempt: state, time, and why."""
        self._settle(report)
        rows = [[id, seen.state, seen.seconds, seen.note] for id, seen in self.steps.items()]
        return table(["step", "state", "time", "note"], rows)

    def _settle(self, report: Mapping[str, Any] | None) -> None:
        """What the report says wins; a step that was running without an outcome is interrupted."""
        if report is None:
            return
        for step_id, seen in self.steps.items():
            outcome = report["step_outcomes"].get(step_id)
            if outcome is None and seen.state == "running":
                seen.state = "interrupted"
            elif outcome is not None:
                seen.state = outcome
            blockers = report["failed_ancestors"].get(step_id)
            if blockers:
                seen.note = f"by {', '.join(blockers)}"

    def _seen(self, step_id: str) -> Seen:
        return self.steps.setdefault(step_id, Seen(step_id))

    def _ended(self, recorded: Recorded, step_id: str, state: str) -> Seen:
        seen = self._seen(step_id)
        seen.state, seen.ended = state, recorded.time
        return seen

    def _say(self, recorded: Recorded, step_id: str, word: str, note: str) -> None:
        if not self._quiet:
            clock = iso_seconds(recorded.time)[11:19]
            line = f"{clock}  {step_id}  {word}{f'  {note}' if note else ''}"
            click.echo("".join(c if c.isprintable() else " " for c in line), err=True)
