"""Standard logging as text or as JSON lines, with the fields of plan execution."""

from __future__ import annotations

import json
import logging
import sys
from typing import Final

from statelog.domain.times import iso

FIELDS: Final = ("plan", "execution", "step", "resolution")
"""Extra fields of a record: which plan, attempt and step it is of, and a resolution."""

FORMATS: Final = ("text", "json")


class JsonLines(logging.Formatter):
    """One JSON object a record: `time`, `level`, `logger`, `message`, and the fields it has."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line = {
            "time": iso(int(record.created * 1_000_000)),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{name: getattr(record, name) for name in FIELDS if getattr(record, name, None)},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    """`2026-01-31T09:30:00.000125Z INFO statelog.execution: message`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        time = iso(int(record.created * 1_000_000))
        line = f"{time} {record.levelname} {record.name}: {record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure(log_format: str = "text", level: str = "INFO") -> None:
    """Send the package's log to stderr, in place of what was configured before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    logger = logging.getLogger("statelog")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
