"""A run as a picture: what was planned on each lane, and below it what was seen. Plain SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any, Final

from statelog.projections.svg import svg_text

Entry = Mapping[str, Any]

WIDTH, LEFT, RIGHT = 960, 168, 936
TOP, BAR, GAP, PAD, FOOT = 104, 20, 3, 9, 44
_WIDE: Final = 6.6
"""Pixels that a character of a label takes, about."""

_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#1f2328}.bg{fill:#fff}.band{fill:#f6f8fa}"
    ".title{font-size:16px;font-weight:600}.soft{fill:#59636e}.grid{stroke:#d8dee4}"
    ".plan{fill:#ddf0ff;stroke:#7ab8e8}g>.plan+text{fill:#0a4a7a}.seen{fill:#1f6fb2}"
    ".critical{fill:#c2500a}.bad{fill:#b3261e}.gone{fill:#6e7781}"
    ".on{fill:#fff}.end{stroke:#59636e;stroke-dasharray:4 3}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bg{fill:#0d1117}.band{fill:#151b23}"
    ".soft{fill:#9198a1}.grid{stroke:#2d333b}.plan{fill:#10253a;stroke:#3d6f9e}"
    "g>.plan+text{fill:#a9d4f5}.seen{fill:#2f81c7}.critical{fill:#c8590f}.on{fill:#fff}"
    ".end{stroke:#9198a1}}"
)


@dataclass(frozen=True)
class Bar:
    """One activity from one second to another, and what it is drawn as."""

    name: str
    start: float
    end: float
    look: str
    told: str


def gantt(comparison: Entry) -> str:
    """An SVG document of a run's comparison: lanes from the top, seconds from the left."""
    lanes = _lanes(comparison)
    chart = _Chart(comparison, lanes)
    height = chart.bottom + FOOT
    title = f"Run {comparison['runId']}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">',
        f"<title>{svg_text(title)}</title><style>{_STYLE}</style>",
        f'<rect class="bg" width="{WIDTH}" height="{height}"/>',
        _text(24, 30, title, "title"),
        _text(24, 52, _summary(comparison), "soft"),
        *_legend({bar.look for row in lanes for track in row.tracks for bar in track}),
        *chart.lines(),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _summary(comparison: Entry) -> str:
    makespan = _said("makespan", comparison["makespanSeconds"], " s")
    cost = _said("cost", comparison["cost"], "")
    return f"{comparison['mode']}, {comparison['status']}; {makespan}; {cost}"


def _said(what: str, both: Entry, unit: str) -> str:
    """What was seen, and what was planned if it was."""
    planned, seen = both.get("planned"), both.get("observed")
    told = f"{what} {seen:.6g}{unit}" if seen is not None else f"{what} not known"
    return f"{told} (planned {planned:.6g}{unit})" if planned else told


def _legend(looks: set[str]) -> Iterator[str]:
    at = 24.0
    for look, name in (
        ("plan", "planned"),
        ("seen", "observed"),
        ("critical", "on the critical path"),
        ("bad", "failed"),
        ("gone", "cancelled"),
    ):
        if look not in looks:
            continue
        yield f'<rect class="{look}" x="{at:.0f}" y="66" width="14" height="12" rx="2"/>'
        yield _text(at + 20, 76, name, "soft")
        at += 44 + _WIDE * len(name)


Lane = tuple[str, str]


@dataclass(frozen=True)
class Row:
    """One lane: its resource, its own name, and its bars on tracks on which none overlap."""

    resource: str
    name: str
    planned: tuple[tuple[Bar, ...], ...]
    seen: tuple[tuple[Bar, ...], ...]

    @property
    def tracks(self) -> tuple[tuple[Bar, ...], ...]:
        """What was planned above what was seen; a plan without predictions has no track."""
        return (*self.planned, *self.seen)

    @property
    def height(self) -> int:
        """In pixels."""
        return len(self.tracks) * (BAR + GAP) - GAP + 2 * PAD


def _lanes(comparison: Entry) -> list[Row]:
    """Every lane that was planned or used, in order of resource and name."""
    critical = {step["activityId"] for step in comparison["criticalPath"]}
    planned: dict[Lane, list[Bar]] = {}
    seen: dict[Lane, list[Bar]] = {}
    for entry in comparison["activities"]:
        where, lane = entry["resourceId"], entry["lane"]
        name = lane["coreId"] or lane["slotId"]
        here = (where["planned"], name)
        there = (where.get("observed", where["planned"]), name)
        planned.setdefault(here, []).extend(_bar(entry, "planned", "plan"))
        seen.setdefault(there, []).extend(_bar(entry, "observed", _look(entry, critical)))
    promised = any(planned.values())
    return [
        Row(
            *lane,
            _tracks(planned.get(lane, [])) if promised else (),
            _tracks(seen.get(lane, [])),
        )
        for lane in sorted(planned.keys() | seen.keys(), key=_natural)
    ]


def _natural(lane: Lane) -> list[tuple[str, int]]:
    """Numbers in names count as numbers: core 2 comes before core 10."""
    parts = re.findall(r"(\D*)(\d*)", "/".join(lane))
    return [(text, int(digits or 0)) for text, digits in parts]


def _look(entry: Entry, critical: set[str]) -> str:
    if entry["status"] == "failed":
        return "bad"
    if entry["status"] == "cancelled":
        return "gone"
    return "critical" if entry["activityId"] in critical else "seen"


def _bar(entry: Entry, which: str, look: str) -> Iterator[Bar]:
    start, end = entry["startSeconds"].get(which), entry["finishSeconds"].get(which)
    if start is not None and end is not None:
        told = f"{entry['activityId']}: {which} {start:.6g} s to {end:.6g} s, {entry['status']}"
        yield Bar(entry["name"], start, end, look, told)


def _tracks(bars: Sequence[Bar]) -> tuple[tuple[Bar, ...], ...]:
    """Bars on as few tracks as it takes; one empty track for none."""
    tracks: list[list[Bar]] = [[]]
    for bar in sorted(bars, key=lambda each: (each.start, each.end, each.name)):
        for track in tracks:
            if not track or track[-1].end <= bar.start + 1e-9:
                track.append(bar)
                break
        else:
            tracks.append([bar])
    return tuple(map(tuple, tracks))


_SHORTEST = 1e-300
"""Seconds that can be divided into parts; what is shorter is drawn as nothing."""


class _Chart:
    """Everything below the legend."""

    def __init__(self, comparison: Entry, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._makespan = comparison["makespanSeconds"]
        bars = [bar for row in rows for track in row.tracks for bar in track]
        ends = [bar.end for bar in bars] + [value for value in self._makespan.values()]
        last = max(ends, default=0.0)
        self._last = last if last >= _SHORTEST else 1.0
        self.bottom = TOP + sum(row.height for row in rows)

    def lines(self) -> Iterator[str]:
        """Bands, axis, bars, and where plan and run end."""
        top = TOP
        for at, row in enumerate(self._rows):
            if at % 2 == 0:
                yield f'<rect class="band" y="{top}" width="{WIDTH}" height="{row.height}"/>'
            top += row.height
        yield from self._axis()
        top = TOP
        for row in self._rows:
            yield from self._row(row, top)
            top += row.height
        yield from self._ends()

    def _axis(self) -> Iterator[str]:
        step = _step(self._last)
        for count in range(int(self._last / step + 1e-9) + 1):
            x, seconds = self._across(count * step), f"{count * step:g}"
            yield f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{self.bottom}"/>'
            yield _text(x, self.bottom + 18, seconds, "soft", "middle")
        yield _text(RIGHT, self.bottom + 36, "seconds", "soft", "end")

    def _row(self, row: Row, top: int) -> Iterator[str]:
        middle = top + row.height / 2
        yield _text(24, middle - 3, _cut(row.resource, 20), "")
        yield _text(24, middle + 13, _cut(row.name, 20), "soft")
        y = top + PAD
        for track in row.tracks:
            for bar in track:
                yield from self._bar(bar, y)
            y += BAR + GAP

    def _bar(self, bar: Bar, y: int) -> Iterator[str]:
        x, end = self._across(bar.start), self._across(bar.end)
        width = max(1.5, round(end - x, 1))
        yield (
            f'<g><title>{svg_text(bar.told)}</title><rect class="{bar.look}" x="{x}" y="{y}" '
            f'width="{width}" height="{BAR}" rx="3"/>'
        )
        label = _cut(bar.name, int((width - 10) / _WIDE))
        if len(label) > 1 or label == bar.name:
            yield _text(x + 6, y + 14, label, "" if bar.look == "plan" else "on")
        yield "</g>"

    def _ends(self) -> Iterator[str]:
        """The two makespans, named where they do not cover each other."""
        seen = {name: value for name, value in self._makespan.items() if name != "delta" and value}
        for value in dict.fromkeys(seen.values()):
            x = self._across(value)
            yield f'<line class="end" x1="{x}" x2="{x}" y1="{TOP - 4}" y2="{self.bottom}"/>'
        if len(set(seen.values())) > 1:
            low, high = sorted(seen, key=seen.__getitem__)
            near = self._across(seen[high]) - self._across(seen[low]) < 10 * _WIDE
            yield _text(self._across(seen[high]), TOP - 8, high, "soft", "end")
            yield _text(self._across(seen[low]), TOP - (22 if near else 8), low, "soft", "end")

    def _across(self, seconds: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (seconds / self._last), 1)


def _step(last: float) -> float:
    """A round number of seconds that divides the axis into four to ten parts."""
    magnitude = 10.0 ** floor(log10(last / 4))
    for factor in (1, 2, 5):
        if last / (factor * magnitude) <= 10:
            return factor * magnitude
    return 10 * magnitude


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: max(0, most - 1)]}\N{HORIZONTAL ELLIPSIS}" if most > 1 else ""


def _text(x: float, y: float, text: str, look: str, anchor: str = "start") -> str:
    placed = f'x="{x:.1f}" y="{y:.1f}"'
    end = "" if anchor == "start" else f' text-anchor="{anchor}"'
    kind = f' class="{look}"' if look else ""
    return f"<text{kind} {placed}{end}>{svg_text(text)}</text>"
