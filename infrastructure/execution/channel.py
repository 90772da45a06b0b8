"""How a running step reaches the log: custom events, artifacts and coalesced progress."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from statelog.domain.aggregate import Change
from statelog.domain.errors import Invalid
from statelog.domain.execution import attempt as decisions
from statelog.domain.execution.attempt import Attempt
from statelog.domain.execution.faults import OrchestrationError
from statelog.domain.execution.step import Artifact, PermanentStepError
from statelog.infrastructure.codec import escaped
from statelog.infrastructure.execution.storable import storable, storable_artifact
from statelog.infrastructure.execution.workdir import digest
from statelog.infrastructure.execution.writer import AttemptWriter

PROGRESS_INTERVAL_US = 500_000


class StepChannel:
    """The engine's side of a `StepContext`, usable from any thread of the step.

    Progress inside half a second of the last published one is held back and published with the
    step's next event (D16). A failed append is remembered in `fault`, so that a step that swallows
    it does not pass for an ordinary outcome.
    """

    def __init__(
        self, writer: AttemptWriter, step_id: str, monotonic_us: Callable[[], int]
    ) -> None:
        self._writer = writer
        self._step_id = step_id
        self._monotonic_us = monotonic_us
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._held: tuple[float, str | None] | None = None
        self._published_at: int | None = None
        self._closed = False
        self.artifacts: list[Artifact] = []
        self.fault: OrchestrationError | None = None

    def emit(self, type: str, payload: Mapping[str, Any]) -> None:
        """Publish a custom event. Raises `PermanentStepError` for what is not JSON."""
        if not isinstance(type, str):
            raise PermanentStepError("the type of an event is a string", code="invalid_event")
        plain = storable(payload, "payload")
        try:
            self._publish(decisions.emit, step_id=self._step_id, type=escaped(type), payload=plain)
        except Invalid as error:
            raise PermanentStepError(str(error), code="invalid_event") from error

    def artifact(self, key: str, path: Path, given: str | None) -> Artifact:
        """Publish an artifact and keep it as the step's default result."""
        found = digest(path) if given is None else given
        artifact = storable_artifact(Artifact(key, str(path), found))
        self._publish(decisions.register_artifact, step_id=self._step_id, artifact=artifact)
        self.artifacts.append(artifact)
        return artifact

    def progress(self, percent: float, message: str | None) -> None:
        """Publish progress now, or hold it back for the step's next event."""
        self._only_here()
        with self._lock:
            self._held = (percent, None if message is None else escaped(message))
            now = self._monotonic_us()
            if self._published_at is None or now - self._published_at >= PROGRESS_INTERVAL_US:
                self._publish(None)

    def close(self) -> Change[Attempt]:
        """Stop accepting events; the change that publishes what was held back, if anything."""
        with self._lock:
            self._closed = True
            return self._with_held()

    def _with_held(self) -> Change[Attempt]:
        change = self._writer.attempt.guard()
        if self._held is not None:
            percent, message = self._held
            self._held, self._published_at = None, self._monotonic_us()
            change = change.then(
                decisions.report_progress,
                step_id=self._step_id,
                progress=percent,
                message=message,
            )
        return change

    def _only_here(self) -> None:
        """Events of a forked child would fence its parent. Raises `PermanentStepError`."""
        if os.getpid() != self._pid:
            raise PermanentStepError(
                "a forked child cannot publish events of its step",
                code="forked",
                advice="Publish in the process that runs the step.",
            )

    def _publish(self, decision: Callable[..., Any] | None, **given: Any) -> None:
        self._only_here()
        with self._lock:
            if self.fault is not None:
                raise self.fault
            if self._closed:
                raise PermanentStepError("the step has ended", code="step_ended")
            change = self._with_held()
            if decision is not None:
                change = change.then(decision, **given)
            try:
                self._writer.commit(change)
            except OrchestrationError as error:
                self.fault = error
                raise
