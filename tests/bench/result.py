"""What is measured against what, and the table that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.bench.rounds import Times, micros, ratio


@dataclass(frozen=True)
class Line:
    """One comparison. `reached` is None where there is no goal, or nothing to measure.

    Times are microseconds a unit; `figure` is what the goal is about, a ratio or a count. `limit`
    is the figure that the raw baseline of the same work has against a peer: what can be reached.
    """

    goal: str
    work: str
    other: str
    wanted: str
    figure: float | None
    reached: bool | None
    ours_us: float | None = None
    other_us: float | None = None
    limit: float | None = None
    note: str = ""


def at_most(goal: str, work: str, times: Times, other: str, limit: float) -> Line:
    """We take at most `limit` times as long as the other one."""
    figure = ratio(times, "statelog", other)
    return _line(goal, work, times, other, f"<= {limit} x", figure, figure <= limit)


def faster(goal: str, work: str, times: Times, other: str, factor: float, raw: str) -> Line:
    """The other one takes at least `factor` times as long as we do."""
    figure = ratio(times, other, "statelog")
    line = _line(goal, work, times, other, f">= {factor} x", figure, figure >= factor)
    return replace(line, limit=ratio(times, other, raw))


def compared(goal: str, work: str, times: Times, other: str) -> Line:
    """How many times as long we take as the other one; no goal says anything about it."""
    figure = ratio(times, "statelog", other)
    return _line(goal, work, times, other, "no goal", figure, None)


def absent(goal: str, work: str, other: str, wanted: str, why: str) -> Line:
    """A comparison that cannot be made here, and why."""
    return Line(goal, work, other, wanted, None, None, note=why)


def _line(
    goal: str, work: str, times: Times, other: str, wanted: str, figure: float, reached: bool | None
) -> Line:
    ours, theirs = micros(times, "statelog"), micros(times, other)
    return Line(goal, work, other, wanted, figure, reached, ours, theirs)


HEAD = ("", "work", "statelog", "beside it", "", "figure", "limit", "goal", "reached")


def table(lines: Sequence[Line]) -> str:
    """The lines as aligned text, times in microseconds."""
    cells = [HEAD, *map(_cells, lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def _cells(line: Line) -> tuple[str, ...]:
    figure = line.note if line.figure is None else f"{line.figure:.2f}"
    reached = {None: "-", True: "yes", False: "NO"}[line.reached]
    ours, theirs = _time(line.ours_us), _time(line.other_us)
    limit = "" if line.limit is None else f"{line.limit:.2f}"
    return (line.goal, line.work, ours, line.other, theirs, figure, limit, line.wanted, reached)


def _time(micros: float | None) -> str:
    return "" if micros is None else f"{micros:.1f} us"
