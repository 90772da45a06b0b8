"""The `resources` view: what each environment version was published with, and what was added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from statelog.domain.event import Recorded
from statelog.domain.workflows.definitions import (
    EnvironmentRegistered,
    Registered,
    ResourceRegistered,
)
from statelog.projections.projection import Projection
from statelog.projections.workflows.lines import id_in

Held = Mapping[str, Any]


def evolve(_: Held, recorded: Recorded) -> Held:
    """The resources that an event registered."""
    event = recorded.event
    assert isinstance(event, Registered)
    given = event.definition
    held = [given] if isinstance(event, ResourceRegistered) else list(given.get("resources", ()))
    return {"resources": held, "position": recorded.position}


def key(recorded: Recorded) -> str | None:
    """The stream: one row for all that one event registered."""
    known = id_in(recorded.stream, "environment") or id_in(recorded.stream, "resource")
    return recorded.stream if known else None


def _itself(stream: str) -> str:
    return stream


resources: Final[Projection[Held]] = Projection(
    "resources",
    {},
    evolve,
    key=key,
    below=_itself,
    events=(EnvironmentRegistered, ResourceRegistered),
)
"""Resources, in a row for each stream that registered some."""
