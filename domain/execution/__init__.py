"""Plans, slots and attempts; and what authors of step functions import."""

from statelog.domain.execution.spec import PlanSpec, StepSpec
from statelog.domain.execution.step import (
    Artifact,
    In,
    Out,
    PermanentStepError,
    StepContext,
    StepResult,
    TransientStepError,
    step,
)

__all__ = [
    "Artifact",
    "In",
    "Out",
    "PermanentStepError",
    "PlanSpec",
    "StepContext",
    "StepResult",
    "StepSpec",
    "TransientStepError",
    "step",
]
