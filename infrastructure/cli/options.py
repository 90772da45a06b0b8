"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path

import click

from statelog.infrastructure.logs import FORMATS

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
