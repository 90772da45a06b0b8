"""Standard logging as text or as JSON lines, with the fields of plan execution."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

FIELDS: Final = ("plan", "execution", "step", "resolution")
"""Extra fields of a record: which plan, attempt and step it is of, and a resolution."""

FORMATS: Final = ("text", "json")


def about(
    plan: str | None = None,
    execution: str | None = None,
    *,
    step: str | None = None,
    resolution: str | None = None,
) -> dict[str, Any]:
    """The extra fields of a record, as `extra` takes them."""
    return dict(zip(FIELDS, (plan, execution, step, resolution), strict=True))


def shortened(text: str, most: int = 500) -> str:
    """The text for people to read: cut, with its length, when it is longer than `most`."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def printable(text: str) -> str:
    """The text on one line, with control characters written out, so that none steers a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return " " if character in "\n\t" else character.encode("unicode_escape").decode()


class JsonLines(logging.Formatter):
    """One JSON object a record: `time`, `level`, `logger`, `message`, and the fields it has."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{name: getattr(record, name) for name in FIELDS if getattr(record, name, None)},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextLines(logging.Formatter):
    """`2026-01-31T09:30:00.000125Z INFO statelog.execution: message`.

    What steps said is written out where it could steer a terminal; a traceback keeps its lines.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line = f"{_time(record)} {record.levelname} {record.name}: {printable(record.getMessage())}"
        if not record.exc_info:
            return line
        trace = map(printable, self.formatException(record.exc_info).split("\n"))
        return "\n".join((line, *trace))


class _Stderr(logging.StreamHandler[TextIO]):
    """Stderr as it is when a line is written; one that cannot be written to is no failure."""

    def __init__(self, log_format: str) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(JsonLines() if log_format == "json" else TextLines())

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr

    def handleError(self, record: logging.LogRecord) -> None:
        """Say nothing."""


def configure(log_format: str = "text", level: str = "INFO") -> None:
    """Send logs to stderr for the life of the process, in place of what was configured before.

    `level` is that of the package; others, such as step modules, are heard from WARNING on.
    """
    logging.getLogger().handlers[:] = [_Stderr(log_format)]
    logging.getLogger("statelog").setLevel(level)


@contextmanager
def logged(log_format: str = "text", level: str = "INFO") -> Iterator[None]:
    """Send logs to stderr for a while, beside what was configured before."""
    root, ours = logging.getLogger(), logging.getLogger("statelog")
    handler, before = _Stderr(log_format), ours.level
    root.addHandler(handler)
    ours.setLevel(level)
    try:
        yield
    finally:
        ours.setLevel(before)
        root.removeHandler(handler)


def _time(record: logging.LogRecord) -> str:
    from statelog.domain.times import iso

    return iso(int(record.created * 1_000_000))
