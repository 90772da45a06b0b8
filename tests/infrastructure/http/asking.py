"""Requests for runs that share no definition with others."""

from __future__ import annotations

import json
from typing import Any

from tests.domain.runs.bundles import activity, bundle, place, resource

_SHARED = ("env-v1", "s1", "n1", "p1", "w1")


def own(document: dict[str, Any], id: str) -> dict[str, Any]:
    """The same request with definitions of its own, as run `id`."""
    text = json.dumps(document)
    for name in _SHARED:
        text = text.replace(f'"{name}"', f'"{name}-{id}"')
    named: dict[str, Any] = json.loads(text)
    named["run"]["id"] = id
    return named


def shell(text: str) -> dict[str, Any]:
    """A command that a shell runs."""
    return {"executable": "/bin/sh", "arguments": ["-c", text]}


def real(id: str, *lines: str, edges: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    """A real run of shell lines called a, b, c ... on one machine."""
    named = dict(zip("abcdef", lines, strict=False))
    document = bundle(
        run={"id": id, "mode": "real"},
        resources=[resource("m", cpuCores=4, cpuCapacity=4)],
        activities=[activity(name, 1, command=shell(line)) for name, line in named.items()],
        places=[place(name, "m", at) for at, name in enumerate(named)],
        edges=edges,
    )
    return own(document, id)
