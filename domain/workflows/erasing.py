"""What of definitions may be erased: those that nothing in the log refers to."""

from __future__ import annotations

from typing import Any, Final

from statelog.domain.erasure import Erasable
from statelog.domain.workflows.definitions import KINDS, RESOURCE


def _part(_: Any) -> str | None:
    return "it belongs to an environment version"


def _settled(_: Any) -> str | None:
    return None


ERASABLE: Final = tuple(
    Erasable(kind.aggregate, _part if kind.aggregate is RESOURCE else _settled, mentioned=True)
    for kind in KINDS.values()
)
"""Definitions of every kind; what they say stays readable."""
