"""What of runs may be erased, and what is kept for later decisions."""

from __future__ import annotations

from typing import Final

from statelog.domain.aggregate import changed
from statelog.domain.erasure import Erasable
from statelog.domain.pmap import PMap
from statelog.domain.runs.run import RUN, Run


def _ended(run: Run) -> Run:
    """Which activities completed, and where, is asked by a run that keeps some of them."""
    return changed(run, start=None, end=None, transfers=PMap())


ERASABLE: Final = (Erasable(RUN, remains=_ended),)
"""Runs that have ended."""
