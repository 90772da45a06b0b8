"""The views of every domain: the one place that puts them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statelog.projections.projection import Projection


def all_views() -> tuple[Projection[Any], ...]:
    """Every view this program keeps; a domain adds a line. Imported when it is asked for."""
    from statelog.projections.execution import EXECUTION_VIEWS
    from statelog.projections.planning import PLANNING_VIEWS
    from statelog.projections.queue import QUEUE_VIEWS
    from statelog.projections.runs import RUN_VIEWS
    from statelog.projections.workflows import WORKFLOW_VIEWS

    return (*EXECUTION_VIEWS, *PLANNING_VIEWS, *QUEUE_VIEWS, *WORKFLOW_VIEWS, *RUN_VIEWS)
