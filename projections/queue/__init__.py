"""Views of queue jobs."""

from __future__ import annotations

from typing import Any, Final

from statelog.projections.projection import Projection
from statelog.projections.queue.jobs import jobs

QUEUE_VIEWS: Final[tuple[Projection[Any], ...]] = (jobs,)
"""Every view of the queue."""
