"""Execution runs at work: submission, the simulator, the supervisor of real activities."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statelog.infrastructure.runs.awaiting import work_until_ended
    from statelog.infrastructure.runs.runs import Runs

_HOMES = {
    "Runs": "runs",
    "work_until_ended": "awaiting",
}

__all__ = ["Runs", "work_until_ended"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: what lies behind takes time to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
