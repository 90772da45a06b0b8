"""Views of planning: sessions with their runs, and the candidates they found."""

from __future__ import annotations

from typing import Any, Final

from statelog.projections.planning.candidates import planning_candidates
from statelog.projections.planning.session_view import planning_session
from statelog.projections.projection import Projection

PLANNING_VIEWS: Final[tuple[Projection[Any], ...]] = (planning_session, planning_candidates)
"""Every view of planning."""
