"""Planning sessions at work: creation, the coordinator, selection."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statelog.infrastructure.planning.requests import SessionRequest
    from statelog.infrastructure.planning.sessions import Sessions
    from statelog.infrastructure.planning.waiting import work_until_ended

_HOMES = {
    "SessionRequest": "requests",
    "Sessions": "sessions",
    "work_until_ended": "waiting",
}

__all__ = ["SessionRequest", "Sessions", "work_until_ended"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: what lies behind takes time to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
