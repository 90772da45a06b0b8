"""Judging the counts: each check says good, look or poor, and why it says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

GOOD, LOOK, POOR, NONE = "good", "look", "poor", "none"
UNKNOWN = "\N{EN DASH}"
ORDER = (NONE, GOOD, LOOK, POOR)


@dataclass(frozen=True)
class Finding:
    """One row of the table: what was checked, the value of each mate, the verdict, the limits."""

    key: str
    label: str
    r1: str
    r2: str
    verdict: str
    limits: str

    def as_json(self) -> dict[str, str]:
        """The row as JSON values."""
        return asdict(self)


def percent(share: float | None) -> str:
    """A share of 1 as text."""
    return UNKNOWN if share is None else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def number(value: float | None) -> str:
    """A number as text, with at most one decimal."""
    if value is None:
        return UNKNOWN
    return f"{value:,.1f}" if value != int(value) else f"{int(value):,}"


def worst(verdicts: Sequence[str]) -> str:
    """The verdict of the whole: that of its worst part."""
    return max(verdicts, key=ORDER.index, default=NONE)


def limits(good: str, poor: str) -> str:
    """The limits of a check in words, whose numbers stay with their units."""
    return f"good {good}, poor {poor}".replace(" %", "\N{NO-BREAK SPACE}%")


def at_least(value: float | None, good: float, look: float) -> str:
    """The verdict on a value that should be high."""
    if value is None:
        return NONE
    return GOOD if value >= good else LOOK if value >= look else POOR


def at_most(value: float | None, good: float, look: float) -> str:
    """The verdict on a value that should be low."""
    return at_least(None if value is None else -value, -good, -look)


def findings(
    profiles: Sequence[dict[str, Any]], repeats: Sequence[dict[str, Any]], pair: dict[str, Any]
) -> list[Finding]:
    """Every check of a pair of files, in the order of the report."""
    return [
        *_pair_checks(profiles, pair),
        _both(
            "quality",
            "Mean quality",
            values=[profile["quality"]["mean"] for profile in profiles],
            show=number,
            judge=lambda value: at_least(value, 30, 20),
            why=limits("from 30", "below 20"),
        ),
        _both(
            "q30",
            "Bases at Q30 or better",
            values=[profile["quality"]["q30"] for profile in profiles],
            show=percent,
            judge=lambda value: at_least(value, 0.80, 0.60),
            why=limits("from 80 %", "below 60 %"),
        ),
        _both(
            "n",
            "Bases not called (N)",
            values=[profile["n"]["fraction"] for profile in profiles],
            show=percent,
            judge=lambda value: at_most(value, 0.01, 0.05),
            why=limits("up to 1 %", "above 5 %"),
        ),
        _both(
            "duplicates",
            "Duplicate reads",
            values=[repeat["duplicates"]["fraction"] for repeat in repeats],
            show=percent,
            judge=lambda value: at_most(value, 0.20, 0.50),
            why=limits("up to 20 %", "above 50 %"),
        ),
        _both(
            "adapter",
            "Reads with adapter",
            values=[repeat["adapter"]["fraction"] for repeat in repeats],
            show=percent,
            judge=lambda value: at_most(value, 0.05, 0.20),
            why=limits("up to 5 %", "above 20 %"),
        ),
    ]


def _both(
    key: str,
    label: str,
    *,
    values: Sequence[float | None],
    show: Callable[[float | None], str],
    judge: Callable[[float | None], str],
    why: str,
) -> Finding:
    verdict = worst([judge(value) for value in values])
    return Finding(key, label, show(values[0]), show(values[1]), verdict, why)


def _pair_checks(profiles: Sequence[dict[str, Any]], pair: dict[str, Any]) -> list[Finding]:
    records = pair["records"]
    compared = pair["compared"]
    matched = number(compared - pair["mismatched"]) if compared else UNKNOWN
    difference = pair["differences"]["gc"]
    gc = at_most(None if difference is None else abs(difference), 0.02, 0.05)
    overlap = pair["differences"]["length_overlap"]
    return [
        Finding(
            "records",
            "Reads",
            number(records["r1"]),
            number(records["r2"]),
            (GOOD if compared else NONE) if pair["same_count"] else POOR,
            "as many in R1 as in R2",
        ),
        Finding(
            "names",
            "Pairs whose names match",
            matched,
            matched,
            POOR if pair["mismatched"] else GOOD if compared else NONE,
            f"all of {compared:,}",
        ),
        Finding(
            "length",
            "Mean length",
            number(profiles[0]["length"]["mean"]),
            number(profiles[1]["length"]["mean"]),
            at_least(overlap, 0.8, 0.4),
            "overlap of the lengths: " + limits("from 80 %", "below 40 %"),
        ),
        Finding(
            "gc",
            "GC content",
            percent(profiles[0]["gc"]["fraction"]),
            percent(profiles[1]["gc"]["fraction"]),
            gc,
            "R1 minus R2: " + limits("up to 2 points", "above 5"),
        ),
    ]
