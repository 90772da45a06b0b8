"""Views of registered definitions: one short line each, for lists."""

from __future__ import annotations

from typing import Any, Final

from statelog.projections.projection import Projection
from statelog.projections.workflows.lines import (
    environments,
    schedule_plans,
    scopes,
    topologies,
    workflows,
)
from statelog.projections.workflows.resources import resources

WORKFLOW_VIEWS: Final[tuple[Projection[Any], ...]] = (
    environments,
    resources,
    scopes,
    topologies,
    workflows,
    schedule_plans,
)
"""Every view of registered definitions."""
