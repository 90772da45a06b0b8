"""Options that several commands take."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

import click

from statelog.infrastructure.logs import FORMATS


class Seconds(click.FloatRange):
    """Seconds between limits; neither nan nor infinity, which a clock cannot add to a time."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails as any wrong usage does."""
        found = super().convert(value, param, ctx)
        if not isfinite(found):
            self.fail(f"{value} is not a number of seconds", param, ctx)
        return found


WORK_ROOT = click.option(
    "--work-root",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where steps work (default: $STATELOG_WORK_ROOT, else <store>.work).",
)
LOG_FORMAT = click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How log lines on stderr are written.",
)
VERBOSE = click.option("-v", "--verbose", is_flag=True, help="More log lines on stderr.")
