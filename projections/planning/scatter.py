"""Candidates as a picture: makespan against cost, the Pareto front as a line. Plain SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any, Final

from statelog.projections.svg import svg_text

Summary = Mapping[str, Any]

WIDTH, HEIGHT = 640, 420
LEFT, RIGHT, TOP, BOTTOM = 76, 616, 44, 356
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Colours that people with colour vision deficiency tell apart."""

_STYLE: Final = (
    "text{font:12px sans-serif;fill:#333}.grid{stroke:#ddd}.axis{stroke:#666}"
    ".front{fill:none;stroke:#666;stroke-dasharray:5 4}.title{font-size:14px;font-weight:bold}"
)


def scatter(session_id: str, candidates: Sequence[Summary]) -> str:
    """An SVG document of candidate summaries; what is not feasible is hollow."""
    plot = _Plot(candidates)
    algorithms = list(dict.fromkeys(str(each["algorithm"]) for each in candidates))
    title = f"Candidates of session {session_id}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{svg_text(title)}</title><style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text class="title" x="{LEFT}" y="22">{svg_text(title)}</text>',
        *plot.axes(),
        *plot.front(),
        *(plot.point(each, algorithms.index(str(each["algorithm"]))) for each in candidates),
        *_legend(algorithms),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


_LOWEST, _HIGHEST = 1e-290, 1e300


class _Plot:
    """The scales of one picture."""

    def __init__(self, candidates: Sequence[Summary]) -> None:
        self._candidates = candidates
        self._x = _bounds(_makespan(each) for each in candidates)
        self._y = _bounds(_cost(each) for each in candidates)

    def axes(self) -> Iterable[str]:
        """Grid, ticks and what the axes are."""
        for value in _ticks(*self._x):
            x = self._across(value)
            yield f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{BOTTOM}"/>'
            yield f'<text x="{x}" y="{BOTTOM + 18}" text-anchor="middle">{value:g}</text>'
        for value in _ticks(*self._y):
            y = self._up(value)
            yield f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{value:g}</text>'
        yield f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>'
        middle = f'x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 38}" text-anchor="middle"'
        yield f"<text {middle}>makespan in seconds</text>"
        turned = f'transform="translate(18 {(TOP + BOTTOM) / 2}) rotate(-90)"'
        yield f'<text {turned} text-anchor="middle">cost</text>'

    def front(self) -> Iterable[str]:
        """The Pareto front, by makespan."""
        best = sorted((_makespan(c), _cost(c)) for c in self._candidates if c["paretoOptimal"])
        if len(best) > 1:
            points = " ".join(f"{self._across(x)},{self._up(y)}" for x, y in best)
            yield f'<polyline class="front" points="{points}"/>'

    def point(self, each: Summary, number: int) -> str:
        """One candidate; pointing at it tells which."""
        colour = COLOURS[number % len(COLOURS)]
        fill = colour if each["feasible"] else "none"
        radius = 6 if each["paretoOptimal"] else 4
        told = f"{each['algorithm']}, rank {each['rank']}: {_makespan(each):g} s, {_cost(each):g}"
        return (
            f'<circle cx="{self._across(_makespan(each))}" cy="{self._up(_cost(each))}" '
            f'r="{radius}" fill="{fill}" stroke="{colour}" stroke-width="1.5">'
            f"<title>{svg_text(told)}</title></circle>"
        )

    def _across(self, value: float) -> float:
        return _place(value, self._x, LEFT, RIGHT)

    def _up(self, value: float) -> float:
        return _place(value, self._y, BOTTOM, TOP)


def _legend(algorithms: Sequence[str]) -> Iterable[str]:
    for at, algorithm in enumerate(algorithms):
        x, colour = LEFT + at * 92, COLOURS[at % len(COLOURS)]
        yield f'<circle cx="{x + 5}" cy="{HEIGHT - 10}" r="4" fill="{colour}"/>'
        yield f'<text x="{x + 14}" y="{HEIGHT - 6}">{svg_text(algorithm)}</text>'


def _makespan(each: Summary) -> float:
    return _drawable(each["predicted"].get("makespanSeconds", 0.0))


def _cost(each: Summary) -> float:
    return _drawable(each["predicted"].get("cost", 0.0))


def _drawable(value: float) -> float:
    """A value as far as scales can hold it: they add to it, and divide it into parts."""
    return min(float(value), _HIGHEST) if value >= _LOWEST else 0.0


def _bounds(values: Iterable[float]) -> tuple[float, float]:
    """A little more than the range, never empty."""
    given = list(values) or [0.0, 1.0]
    low, high = min(given), max(given)
    room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    return low - room, high + room


def _ticks(low: float, high: float) -> list[float]:
    """About six round values between two bounds."""
    rough = (high - low) / 6
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
    return [round(at * step, 12) for at in range(ceil(low / step), floor(high / step) + 1)]


def _place(value: float, bounds: tuple[float, float], start: float, end: float) -> float:
    low, high = bounds
    return round(start + (value - low) / (high - low) * (end - start), 2)
