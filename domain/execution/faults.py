"""Failures of the system's own machinery, never contained as a step's failure (1.12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

RUNNING: Final = "running_step_id"
"""The detail of an attempt-level failure that names the step which got no outcome by it."""


class OrchestrationError(Exception):
    """Nobody can reliably say what ran; ends the attempt as `orchestration_error`."""

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})


class PublicationError(OrchestrationError):
    """An append to the attempt's stream failed (D1)."""


class AttemptCancelled(Exception):
    """The attempt was cancelled between two steps, or interrupted inside one."""


class Fenced(OrchestrationError):
    """Another process closed this attempt; its late writer writes nothing more (D2, D9)."""


class PreflightRejected(ValueError):
    """The plan is definitively malformed (4.4); `check` is the number of the finding."""

    def __init__(self, message: str, check: str) -> None:
        super().__init__(message)
        self.check = check
        self.details = {"check": check}
