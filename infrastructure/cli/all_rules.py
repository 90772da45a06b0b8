"""The rulebooks of every domain: the one place that puts them together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from statelog.infrastructure.audit.rules import Rules

RULEBOOKS: Final = (
    "statelog.domain.execution.rulebook:RULEBOOK",
    "statelog.domain.workflows.rulebook:RULEBOOK",
    "statelog.domain.queue.rulebook:RULEBOOK",
    "statelog.domain.planning.rulebook:RULEBOOK",
    "statelog.domain.runs.rulebook:RULEBOOK",
    "statelog.domain.erasure:RULEBOOK",
)
"""Where they are declared; a domain adds a line. Imported when they are asked for."""

WITH: Final = click.option(
    "--with",
    "more",
    multiple=True,
    metavar="MODULE:NAME",
    help="An Aggregate or Rulebook of your own whose streams are in the log. Repeatable.",
)


def folders_of(folders: Sequence[Path]) -> list[str]:
    """Where modules are found first: the folders named, else the current one."""
    return [str(folder.resolve()) for folder in folders or [Path()]]


def all_rules(more: Sequence[str] = (), folders: Sequence[Path] = ()) -> Rules:
    """What is known of streams: of this program's own domains, and of `more`. Raises `Invalid`."""
    from statelog.infrastructure.audit.rules import load

    return load((*RULEBOOKS, *more), folders_of(folders) if more else ())
