"""How far planning is: a run by its algorithm, a session by its runs (3.9, P7)."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Final

TOLD_TIMES: Final = 20
"""How often a run tells its progress at most, over all its deliveries."""


def clamped(fraction: float) -> float:
    """A fraction that an algorithm reports as one in [0, 1]; 0 for what is not a number."""
    return min(1.0, max(0.0, float(fraction))) if isfinite(fraction) else 0.0


def worth_telling(told: float, fraction: float) -> bool:
    """Whether a fraction is a whole step beyond the last one that was told."""
    return int(clamped(fraction) * TOLD_TIMES) > int(told * TOLD_TIMES)


def session_progress(runs: Iterable[tuple[bool, float]]) -> float:
    """The share of a session that is done, of (ended, progress) of each of its runs (P7).

    A run that failed has ended too; one that was cancelled has not, and keeps its progress.
    """
    shares = [1.0 if ended else progress for ended, progress in runs]
    return sum(shares) / len(shares) if shares else 0.0
