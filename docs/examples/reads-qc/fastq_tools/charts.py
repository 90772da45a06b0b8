"""Charts as inline SVG: axes, lines, bands and bars, with a title a screen reader can say."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Final

WIDTH: Final = 440
HEIGHT: Final = 250
LEFT, RIGHT, TOP, BOTTOM = 66, 428, 10, 208

Points = Sequence[tuple[float, float | None]]


def plain(value: float) -> str:
    """A tick label: no decimals that say nothing."""
    return f"{value:,.10g}"


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values between two bounds, about so many."""
    if high <= low:
        return [low]
    rough = (high - low) / about
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]


class Chart:
    """One chart, drawn from back to front; coordinates are data, clamped to the axes."""

    def __init__(
        self,
        title: str,
        summary: str,
        *,
        x: tuple[float, float],
        y: tuple[float, float],
        x_label: str,
        y_label: str,
        x_names: Sequence[str] = (),
        y_show: Callable[[float], str] = plain,
    ) -> None:
        self.title, self.summary = title, summary
        self.x, self.y = x, y
        self.x_label, self.y_label = x_label, y_label
        self.x_names, self.y_show = x_names, y_show
        self.marks: list[str] = []
        self.zones: list[str] = []

    def zone(self, low: float, high: float, css: str) -> None:
        """Tint a range of the y axis."""
        top, bottom = self._y(high), self._y(low)
        self.zones.append(_rect((LEFT, top), (RIGHT - LEFT, bottom - top), css))

    def line(self, points: Points, css: str, name: str = "") -> None:
        """Join points; a gap (None) breaks the line, a single point becomes a dot."""
        for run in _runs(points):
            if len(run) == 1:
                self.marks.append(
                    f'<circle class="dot {css}" cx="{self._x(run[0][0])}" '
                    f'cy="{self._y(run[0][1])}" r="2.5">{_title(name)}</circle>'
                )
                continue
            path = " ".join(f"{self._x(x)},{self._y(y)}" for x, y in run)
            self.marks.append(f'<polyline class="line {css}" points="{path}">{_title(name)}')
            self.marks.append("</polyline>")

    def band(self, low: Points, high: Points, css: str, name: str = "") -> None:
        """Fill the area between two lines over the same x values."""
        for lower, upper in zip(_runs(low), _runs(high), strict=True):
            edge = [*upper, *reversed(lower)]
            path = " ".join(f"{self._x(x)},{self._y(y)}" for x, y in edge)
            self.marks.append(f'<polygon class="band {css}" points="{path}">{_title(name)}')
            self.marks.append("</polygon>")

    def bar(self, low: float, high: float, value: float, css: str, name: str) -> None:
        """A bar from the x axis up, between two x values."""
        left, right = self._x(low), self._x(high)
        top = self._y(value)
        if top < BOTTOM:
            width = max(right - left, 1)
            self.marks.append(_rect((left, top), (width, BOTTOM - top), f"bar {css}", name))

    def svg(self) -> str:
        """The chart as an SVG element."""
        ident = re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")
        empty = "" if self.marks else f'<text class="none" x="{WIDTH / 2}" y="115">no reads</text>'
        return "\n".join(
            [
                f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
                f' aria-labelledby="{ident}-t {ident}-d">',
                f'<title id="{ident}-t">{escape(self.title)}</title>',
                f'<desc id="{ident}-d">{escape(self.summary)}</desc>',
                *self.zones,
                *self._grid(),
                *self.marks,
                empty,
                "</svg>",
            ]
        )

    def _grid(self) -> Iterable[str]:
        for value in ticks(*self.y):
            y = self._y(value)
            yield f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}"/>'
            text = escape(self.y_show(value))
            yield f'<text class="tick end" x="{LEFT - 6}" y="{round(y + 3.5, 1)}">{text}</text>'
        yield f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>'
        named = [(float(at), name) for at, name in enumerate(self.x_names)]
        whole = [value for value in ticks(*self.x, 6) if value == int(value)]
        for value, name in named or [(value, plain(value)) for value in whole]:
            yield f'<text class="tick mid" x="{self._x(value)}" y="223">{escape(name)}</text>'
        yield f'<text class="label mid" x="{(LEFT + RIGHT) / 2}" y="243">{self.x_label}</text>'
        middle = (TOP + BOTTOM) / 2
        yield (
            f'<text class="label mid" transform="translate(11 {middle}) rotate(-90)">'
            f"{self.y_label}</text>"
        )

    def _x(self, value: float) -> float:
        return _place(value, self.x, LEFT, RIGHT)

    def _y(self, value: float) -> float:
        return _place(value, self.y, BOTTOM, TOP)


def _place(value: float, bounds: tuple[float, float], start: float, end: float) -> float:
    low, high = bounds
    share = (value - low) / (high - low) if high > low else 0.5
    return round(start + min(1.0, max(0.0, share)) * (end - start), 1)


def _rect(at: tuple[float, float], size: tuple[float, float], css: str, name: str = "") -> str:
    shape = f'x="{at[0]}" y="{at[1]}" width="{round(size[0], 1)}" height="{round(size[1], 1)}"'
    return f'<rect class="{css}" {shape}>{_title(name)}</rect>'


def _title(name: str) -> str:
    return f"<title>{escape(name)}</title>" if name else ""


def _runs(points: Points) -> list[list[tuple[float, float]]]:
    """The stretches of points without a gap."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is None:
            runs.append([])
        else:
            runs[-1].append((x, y))
    return [run for run in runs if run]
