"""One line of each definition, without what makes it large; `position` tells which is newer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.event import Event, Recorded
from statelog.domain.ids import stream_name, stream_parts
from statelog.domain.times import iso
from statelog.domain.workflows.definitions import (
    EnvironmentRegistered,
    Registered,
    SchedulePlanRegistered,
    ScopeRegistered,
    ScopeRemoved,
    TopologyRegistered,
    WorkflowRegistered,
)
from statelog.projections.projection import Projection

Line = Mapping[str, Any]
Shorten = Callable[[Mapping[str, Any]], dict[str, Any]]


def _view(
    name: str,
    word: str,
    shorten: Shorten,
    events: tuple[type[Event], ...],
    columns: tuple[str, ...] = (),
) -> Projection[Line]:
    """The view of one kind, whose streams begin with `word`; a removal takes its line away."""

    def evolve(_: Line, recorded: Recorded) -> Line | None:
        event = recorded.event
        if not isinstance(event, Registered):
            return None
        line = shorten(event.definition)
        return {**line, "registeredAt": iso(recorded.time), "position": recorded.position}

    def key(recorded: Recorded) -> str | None:
        return id_in(recorded.stream, word)

    return Projection(
        name,
        {},
        evolve,
        key=key,
        below=lambda id: stream_of(word, id),
        events=events,
        columns={"id": _field("id"), **{_snake(each): _field(each) for each in columns}},
    )


def stream_of(word: str, id: str) -> str | None:
    """The stream `<word>/<id>`; None for what cannot be an id."""
    try:
        return stream_name(f"{word}/{{}}", id)
    except Invalid:
        return None


def id_in(stream: str, word: str) -> str | None:
    """The id in a stream's name `<word>/<id>`; None for other streams."""
    match stream_parts(stream):
        case (first, id) if first == word:
            return id
        case _:
            return None


def _field(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda line: line.get(name)


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _without(document: Mapping[str, Any], **counts: str) -> dict[str, Any]:
    """A document with the length of some lists in place of the lists."""
    line = {key: value for key, value in document.items() if key not in counts.values()}
    return {**line, **{name: len(document.get(key, ())) for name, key in counts.items()}}


def _environment(document: Mapping[str, Any]) -> dict[str, Any]:
    line = _without(
        document,
        runtimeCount="runtimes",
        resourceCount="resources",
        profileCount="activityResourceProfiles",
    )
    heavy = ("storages", "connections", "resourceRuntimeBindings")
    return {key: value for key, value in line.items() if key not in heavy}


def _workflow(document: Mapping[str, Any]) -> dict[str, Any]:
    return _without(
        document,
        activityCount="activities",
        dependencyCount="dependencies",
        dataDependencyCount="dataDependencies",
    )


def _schedule_plan(document: Mapping[str, Any]) -> dict[str, Any]:
    line = _without(document, assignmentCount="assignments")
    line.pop("lifecycleActions", None)
    return line


environments: Final = _view("environments", "environment", _environment, (EnvironmentRegistered,))
"""Environment versions, as they were published: counts in place of what they own."""

scopes: Final = _view("execution_scopes", "scope", dict, (ScopeRegistered, ScopeRemoved))
"""Execution scopes that were not removed."""

topologies: Final = _view(
    "network_topologies",
    "topology",
    lambda document: _without(document, linkCount="links"),
    (TopologyRegistered,),
    ("executionScopeId",),
)
"""Network topologies without their links."""

workflows: Final = _view(
    "workflow_versions", "workflow", _workflow, (WorkflowRegistered,), ("workflowId", "version")
)
"""Workflow versions without their graph."""

schedule_plans: Final = _view(
    "schedule_plans",
    "schedule-plan",
    _schedule_plan,
    (SchedulePlanRegistered,),
    ("workflowVersionId", "executionScopeId", "algorithm"),
)
"""Schedule plans with `assignmentCount`, without assignments (5)."""
