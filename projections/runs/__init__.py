"""Views of execution runs."""

from __future__ import annotations

from typing import Any, Final

from statelog.projections.projection import Projection
from statelog.projections.runs.comparison import run_comparison
from statelog.projections.runs.run_page import run_page
from statelog.projections.runs.run_summary import run_summary

RUN_VIEWS: Final[tuple[Projection[Any], ...]] = (run_page, run_summary, run_comparison)
"""Every view of execution runs."""
