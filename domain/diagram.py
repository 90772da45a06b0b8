"""A lifecycle drawn as SVG: statuses below each other, and beside each the events that leave it.

Every row of the table is a line of text, so nothing overlaps however many there are. Its arrow
goes to the right, along a lane that all rows between the same two statuses share, and back to the
status that follows. Statuses stand in the order of their distance from the first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from statelog.domain.describe import Notes
from statelog.domain.lifecycle import AnyLifecycle, Row

_LINE, _CHAR, _MARGIN, _LANE, _GAP = 20, 7.3, 24, 18, 26
_COLOURS: Final = ("#0b6e99", "#b3541e", "#3d7a33", "#7b3fa0", "#a3304f", "#5b6470", "#8a6d00")
_STYLE: Final = (
    "text{font:12px ui-monospace,'DejaVu Sans Mono',monospace;fill:#1d2733}"
    ".name{font-weight:bold;font-size:13px}.note{fill:#52606d}.unused{fill:#9aa5b1}"
)


@dataclass
class _Box:
    """A status: its place, and the lines of text in it and beside it."""

    status: Enum
    notes: list[str]
    rows: list[Row[Enum]]
    top: int = 0

    @property
    def lines(self) -> int:
        """How many lines high it is; the first one is where arrows come in."""
        return max(1 + len(self.notes), 1 + len(self.rows))

    @property
    def height(self) -> int:
        """In pixels."""
        return self.lines * _LINE + 10

    def line(self, at: int) -> int:
        """The middle of a line."""
        return self.top + 5 + at * _LINE + _LINE // 2


@dataclass
class _Lane:
    """The way of all rows from one status to another."""

    source: Enum
    target: Enum
    low: int
    high: int
    colour: str
    at: int = 0


def svg(lifecycle: AnyLifecycle, notes: Notes | None = None) -> str:
    """The diagram as the text of an SVG file; `notes` stand beside rows and in statuses."""
    return _Drawing(lifecycle, notes or Notes({}, {})).text()


class _Drawing:
    def __init__(self, lifecycle: AnyLifecycle, notes: Notes) -> None:
        self.lifecycle, self.notes = lifecycle, notes
        self.boxes = {
            status: _Box(
                status,
                list(notes.statuses.get(status.name, ())),
                [row for row in lifecycle.rows if row.source is status],
            )
            for status in _in_layers(lifecycle)
        }
        top = _MARGIN + 2 * _LINE
        for box in self.boxes.values():
            box.top = top
            top += box.height + _GAP
        self.height = top - _GAP + _MARGIN
        self.lanes = self._lanes()
        boxes = self.boxes.values()
        texts = [text for box in boxes for text in (self._name(box.status), *box.notes)]
        self.left = _MARGIN + 20
        self.right = self.left + int(max(map(len, texts)) * _CHAR * 1.1) + 28
        labels = [self._label(row) for row in lifecycle.rows]
        self.beside = self.right + 26 + int(max(map(len, labels), default=0) * _CHAR)
        most = max((lane.at for lane in self.lanes.values()), default=0)
        self.width = self.beside + (most + 1) * _LANE + _MARGIN

    def text(self) -> str:
        """All of it."""
        size = f'width="{self.width}" height="{self.height}"'
        box = f'viewBox="0 0 {self.width} {self.height}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img">',
                f"<title>Lifecycle {escape(self.lifecycle.name)}</title>",
                f"<style>{_STYLE}</style>",
                '<rect width="100%" height="100%" fill="#ffffff"/>',
                _text(self.left, _MARGIN + 4, self.lifecycle.name, "name"),
                *self._arrows(),
                *(line for each in self.boxes.values() for line in self._box(each)),
                "</svg>",
                "",
            ]
        )

    def _name(self, status: Enum) -> str:
        return status.name + (" (reserved)" if status in self.lifecycle.reserved else "")

    def _label(self, row: Row[Enum]) -> str:
        note = self.notes.rows.get((row.source.name, row.event.__name__), "")
        retired = " (retired)" if row.retired else ""
        same = "\N{CLOCKWISE OPEN CIRCLE ARROW} " if row.source is row.target else ""
        return f"{same}{row.event.__name__}{retired}  {note}".rstrip()

    def _unused(self, row: Row[Enum]) -> bool:
        """Whether the notes say that nothing took a row."""
        return self.notes.rows.get((row.source.name, row.event.__name__), "").startswith("0 ")

    def _lanes(self) -> dict[tuple[Enum, Enum], _Lane]:
        """One for each pair of statuses; short ways near the boxes, none on top of another."""
        found: dict[tuple[Enum, Enum], _Lane] = {}
        for row in self.lifecycle.rows:
            pair = (row.source, row.target)
            if row.source is row.target or pair in found:
                continue
            ends = [self.boxes[each] for each in pair]
            low = min(box.top for box in ends)
            high = max(box.top + box.height for box in ends)
            found[pair] = _Lane(*pair, low, high, _COLOURS[len(found) % len(_COLOURS)])
        placed: list[_Lane] = []
        for lane in sorted(found.values(), key=lambda lane: lane.high - lane.low):
            taken = {each.at for each in placed if each.low < lane.high and lane.low < each.high}
            lane.at = next(at for at in range(len(found)) if at not in taken)
            placed.append(lane)
        return found

    def _arrows(self) -> Iterator[str]:
        for lane in self.lanes.values():
            x = self.beside + lane.at * _LANE + _LANE // 2
            source, target = self.boxes[lane.source], self.boxes[lane.target]
            end = target.line(0) + (2 * lane.at - len(self.lanes)) % 9 - 4
            line = f'fill="none" stroke="{lane.colour}" stroke-width="1.4"'
            for at, row in enumerate(source.rows, 1):
                if row.target is lane.target:
                    y, begin = source.line(at), self.right + 20 + len(self._label(row)) * _CHAR
                    way = f"M{begin:.0f} {y}H{x}V{end}H{self.right + 7}"
                    pale = ' stroke-opacity="0.35"' if self._unused(row) else ""
                    yield f'<path d="{way}" {line}{pale}/>'
            tip = f"{self.right},{end} {self.right + 8},{end - 4} {self.right + 8},{end + 4}"
            yield f'<polygon points="{tip}" fill="{lane.colour}"/>'

    def _box(self, box: _Box) -> Iterator[str]:
        wide, first = self.right - self.left, box.status is self.lifecycle.new
        place = f'x="{self.left}" y="{box.top}" width="{wide}" height="{box.height}" rx="8"'
        yield f'<rect {place} fill="#eef4f8" stroke="#33475b" stroke-width="1.4"/>'
        if box.status in self.lifecycle.final:
            inner = f'x="{self.left + 3}" y="{box.top + 3}" width="{wide - 6}"'
            inner += f' height="{box.height - 6}" rx="6"'
            yield f'<rect {inner} fill="none" stroke="#33475b"/>'
        if first:
            y = box.line(0)
            yield f'<circle cx="{_MARGIN - 6}" cy="{y}" r="5" fill="#33475b"/>'
            yield f'<path d="M{_MARGIN} {y}H{self.left}" stroke="#33475b" stroke-width="1.4"/>'
        yield _text(self.left + 12, box.line(0) + 4, self._name(box.status), "name")
        for at, note in enumerate(box.notes, 1):
            yield _text(self.left + 12, box.line(at) + 4, note, "note")
        for at, row in enumerate(box.rows, 1):
            kind = "unused" if self._unused(row) else ""
            yield _text(self.right + 14, box.line(at) + 4, self._label(row), kind)


def _text(x: int, y: int, text: str, kind: str) -> str:
    named = f" class={quoteattr(kind)}" if kind else ""
    return f'<text x="{x}" y="{y}"{named} xml:space="preserve">{escape(text)}</text>'


def _in_layers(lifecycle: AnyLifecycle) -> list[Enum]:
    """Statuses by how many rows they are from the first one; those that none leads to last."""
    layers: list[Enum] = [lifecycle.new]
    for status in layers:
        targets = (row.target for row in lifecycle.rows if row.source is status)
        layers += [each for each in dict.fromkeys(targets) if each not in layers]
    return layers + [each for each in lifecycle.statuses if each not in layers]
