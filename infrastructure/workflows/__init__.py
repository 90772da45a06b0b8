"""Definitions: registered, imported, read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statelog.infrastructure.workflows.definitions import Definitions
    from statelog.infrastructure.workflows.importing import read_import

_HOMES = {
    "Definitions": "definitions",
    "read_import": "importing",
}

__all__ = ["Definitions", "read_import"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: what lies behind takes time to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
