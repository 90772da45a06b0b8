"""Growth as a small picture: times by the number of events in the store."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import log10

WIDTH, HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 210, 40, 45
_COLOURS = ("#1b6ca8", "#c2571a", "#3d8b40", "#7a3f98")
_HIGHEST = 2.0


def growth(points: Mapping[str, Mapping[int, float]], limit: float) -> str:
    """An SVG of multiples of the time with the fewest events, and of the limit."""
    sizes = sorted({size for line in points.values() for size in line})
    lowest, highest = log10(sizes[0]), log10(sizes[-1])
    across, down = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
    top = max(_HIGHEST, *(value for line in points.values() for value in line.values()))

    def x(size: int) -> float:
        return _LEFT + across * (log10(size) - lowest) / ((highest - lowest) or 1)

    def y(value: float) -> float:
        return _TOP + down * (1 - value / top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="sans-serif" font-size="12" fill="#333">',
        f"<title>Time with {sizes[0]:,} to {sizes[-1]:,} events in the store</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(_LEFT, 20, f"Time as a multiple of that with {sizes[0]:,} events in the store"),
    ]
    for value in (0.0, 0.5, 1.0, 1.5, 2.0):
        parts += [_rule(y(value), "#ddd"), _text(_LEFT - 8, y(value) + 4, f"{value:.1f}", "end")]
    parts += [
        _rule(y(limit), "#b00", ' stroke-dasharray="5 4"'),
        _text(WIDTH - _RIGHT + 8, y(limit) + 4, f"goal: at most {limit}", colour="#b00"),
    ]
    parts += [_text(x(size), HEIGHT - 22, f"{size:,}", "middle") for size in sizes]
    for number, (name, line) in enumerate(points.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [(x(size), y(value)) for size, value in sorted(line.items())]
        path = " ".join(f"{one:.1f},{other:.1f}" for one, other in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{one:.1f}" cy="{other:.1f}" r="3" fill="{colour}"/>'
            for one, other in places
        ]
        parts.append(
            _text(WIDTH - _RIGHT + 8, HEIGHT - _BOTTOM - 20 * (number + 1), name, colour=colour)
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _rule(height: float, colour: str, more: str = "") -> str:
    return (
        f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{height:.1f}" y2="{height:.1f}" '
        f'stroke="{colour}"{more}/>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "#333") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(text)}</text>"
    )
