"""Views of plan execution: documents, snapshots, results, and which plans are due."""

from __future__ import annotations

from typing import Any, Final

from statelog.projections.execution.due import due
from statelog.projections.execution.last_finalized import last_finalized
from statelog.projections.execution.plan_document import plan_document
from statelog.projections.execution.plan_status import plan_status
from statelog.projections.execution.plan_summary import plan_summary
from statelog.projections.execution.slots import slots
from statelog.projections.projection import Projection

__all__ = [
    "EXECUTION_VIEWS",
    "due",
    "last_finalized",
    "plan_document",
    "plan_status",
    "plan_summary",
    "slots",
]

EXECUTION_VIEWS: Final[tuple[Projection[Any], ...]] = (
    plan_document,
    plan_summary,
    plan_status,
    last_finalized,
    due,
    slots,
)
"""Every view of plan execution."""
