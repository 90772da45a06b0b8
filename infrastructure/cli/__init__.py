"""The command line `statelog`: commands import what is heavy only when they run."""

from __future__ import annotations

from statelog.infrastructure.cli.app import main

__all__ = ["main"]
