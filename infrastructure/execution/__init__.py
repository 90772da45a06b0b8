"""Running plans: documents, workers, coordinator, engine and work directories."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statelog.infrastructure.execution.daemon import Daemon
    from statelog.infrastructure.execution.plans import Plans
    from statelog.infrastructure.execution.worker import Worker

_HOMES = {"Daemon": "daemon", "Plans": "plans", "Worker": "worker"}

__all__ = ["Daemon", "Plans", "Worker"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: what lies behind takes time to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
