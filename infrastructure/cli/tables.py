"""Text tables for people: aligned columns, coloured states on a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from statelog.infrastructure.cli.output import printable
from statelog.infrastructure.logs import shortened

COLOURS: Final[Mapping[str, str]] = {
    "succeeded": "green",
    "reused": "cyan",
    "finalized": "green",
    "running": "blue",
    "failed": "red",
    "blocked": "yellow",
    "interrupted": "magenta",
    "open": "blue",
    "unreached": "bright_black",
    "pending": "bright_black",
}


_COUNTED: Final = ("succeeded", "reused", "failed", "blocked", "unreached")


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows under headings; a cell may hold any value, None is empty. The last column is not cut."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [
        max([_width(heading), *(_width(row[at]) for row in cells)])
        for at, heading in enumerate(headings)
    ]
    lines = [click.style(_line(headings, widths), bold=True)]
    lines += [_line(row, widths, colour=True) for row in cells]
    return "\n".join(lines)


def facts(values: Mapping[str, Any]) -> str:
    """Names and values, one a line; what is None is left out."""
    shown = {name: _text(value) for name, value in values.items() if value is not None}
    width = max(map(_width, shown), default=0)
    return "\n".join(f"{_padded(name, width)}  {_coloured(text)}" for name, text in shown.items())


def counted(counts: Mapping[str, int] | None) -> str:
    """How many steps ended how, `6 succeeded, 2 reused`; what is zero is left out."""
    known = counts or {}
    return ", ".join(f"{known[name]} {name}" for name in _COUNTED if known.get(name))


def _line(row: Sequence[str], widths: Sequence[int], *, colour: bool = False) -> str:
    last = len(row) - 1
    texts = []
    for at, (text, width) in enumerate(zip(row, widths, strict=True)):
        fill = "" if at == last else " " * (width - _width(text))
        texts.append((_coloured(text) if colour else text) + fill)
    return "  ".join(texts).rstrip()


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _coloured(text: str) -> str:
    colour = COLOURS.get(text)
    return text if colour is None else click.style(text, fg=colour)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return printable(shortened(str(value)))


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    marks = sum(unicodedata.combining(character) > 0 for character in text)
    return len(text) + wide - marks
