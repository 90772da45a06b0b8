"""The fixed words of steps and attempts, as they are stored and shown (1.11)."""

from __future__ import annotations

from typing import Final

SUCCEEDED: Final = "succeeded"
REUSED: Final = "reused"
FAILED: Final = "failed"
BLOCKED: Final = "blocked"
UNREACHED: Final = "unreached"
"""Not an outcome: how reports count a step without one."""

STEP_OUTCOMES: Final = (SUCCEEDED, REUSED, FAILED, BLOCKED)
SATISFYING: Final = frozenset({SUCCEEDED, REUSED})
"""Outcomes that satisfy a dependency."""

COMPLETED: Final = "completed"
FAILED_FAST: Final = "failed_fast"
CANCELLED: Final = "cancelled"
PREFLIGHT_REJECTED: Final = "preflight_rejected"
ORCHESTRATION_ERROR: Final = "orchestration_error"
TERMINATION_REASONS: Final = (
    COMPLETED,
    FAILED_FAST,
    CANCELLED,
    PREFLIGHT_REJECTED,
    ORCHESTRATION_ERROR,
)
