"""Lists of definitions from their views, the newest first."""

from __future__ import annotations

from typing import Any

from statelog.infrastructure.views import Views


def newest_first(views: Views, name: str) -> list[dict[str, Any]]:
    """The lines of one view of `WORKFLOW_VIEWS`, the one registered last first."""
    lines = sorted((line for _, line in views.rows(name)), key=_position, reverse=True)
    return [_shown(line) for line in lines]


def all_resources(views: Views) -> list[dict[str, Any]]:
    """Every resource: those registered last first, of one environment version in its order."""
    rows = sorted((row for _, row in views.rows("resources")), key=_position, reverse=True)
    return [resource for row in rows for resource in row["resources"]]


def _position(line: dict[str, Any]) -> int:
    return int(line["position"])


def _shown(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != "position"}
