"""The rulebooks of every domain: the one place that puts them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from statelog.infrastructure.audit.rules import Rules

RULEBOOKS: Final = ("statelog.domain.execution.rulebook:RULEBOOK",)
"""Where they are declared; a domain adds a line. Imported when they are asked for."""


def all_rules() -> Rules:
    """What is known of the streams of this program's own domains."""
    from statelog.infrastructure.audit.rules import load

    return load(RULEBOOKS)
