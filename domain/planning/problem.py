"""What a session plans: its input, resolved and frozen when it was created (3.1, P3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from statelog.domain.workflows.durations import schedulable
from statelog.domain.workflows.resources import (
    EnvironmentVersion,
    Profile,
    Resource,
    Scope,
    Topology,
)
from statelog.domain.workflows.workflow import WorkflowVersion

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """All that planning reads. Limits <= 0 are none; `configuration` is kept as it was given."""

    workflow: WorkflowVersion
    scope: Scope
    topology: Topology
    resources: tuple[Resource, ...] = ()
    environments: tuple[EnvironmentVersion, ...] = ()
    profiles: tuple[Profile, ...] = ()
    deadline_seconds: float = 0.0
    budget: float = 0.0
    configuration: Object = field(default_factory=dict)

    @property
    def schedulable(self) -> tuple[Resource, ...]:
        """The resources that may be planned on, sorted by id (3.3)."""
        return schedulable(self.resources, self.scope)


def resolve(
    workflow: WorkflowVersion,
    scope: Scope,
    topology: Topology,
    environments: Iterable[EnvironmentVersion],
    resources: Iterable[Resource] = (),
    *,
    deadline_seconds: float = 0.0,
    budget: float = 0.0,
    configuration: Object | None = None,
) -> Problem:
    """The problem of a workflow in a scope (3.1).

    Of `environments` and `resources` (those registered by themselves) it keeps what the scope
    names, sorted by id; the first record with an id counts.
    """
    universe = set(scope.environment_version_ids)
    chosen = {e.id: e for e in reversed([*environments]) if e.id in universe}
    inside = [chosen[id] for id in sorted(chosen)]
    owned = [r for e in inside for r in e.resources]
    known = {
        r.id: r for r in reversed([*owned, *resources]) if r.environment_version_id in universe
    }
    return Problem(
        workflow=workflow,
        scope=scope,
        topology=topology,
        resources=tuple(known[id] for id in sorted(known)),
        environments=tuple(inside),
        profiles=tuple(p for e in inside for p in e.activity_resource_profiles),
        deadline_seconds=deadline_seconds,
        budget=budget,
        configuration=dict(configuration or {}),
    )
