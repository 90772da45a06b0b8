"""How long an activity takes on a resource, where it fits, and the lanes it runs on (3.2, 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from statelog.domain.workflows.resources import Profile, Resource, Scope
from statelog.domain.workflows.workflow import Activity

MEASURED = "measured"
"""The source of a profile whose runtime was observed, so that 0 seconds are 0 seconds (P20)."""

OPAQUE = frozenset({"batch_queue", "hpc_partition", "slurm_reservation"})
"""Types of batch targets that place work by themselves: one lane, everything fits."""

Profiles = Mapping[tuple[str, str], float]
"""Seconds of (activity type, resource)."""


def profile_table(profiles: Iterable[Profile]) -> dict[tuple[str, str], float]:
    """Seconds of each (activity type, resource) that has a usable profile; the first one counts.

    Usable is a runtime above 0, or of 0 when it was measured.
    """
    table: dict[tuple[str, str], float] = {}
    for profile in profiles:
        measured = profile.runtime_seconds == 0 and profile.source == MEASURED
        if profile.runtime_seconds > 0 or measured:
            table.setdefault(
                (profile.activity_type_id, profile.resource_id), profile.runtime_seconds
            )
    return table


def speedup(resource: Resource) -> float:
    """How much faster than the reference a resource is; 1 when not given."""
    return resource.compute_speedup if resource.compute_speedup > 0 else 1.0


def duration(activity: Activity, resource: Resource, profiles: Profiles) -> float:
    """Planned seconds of an activity on a resource (3.2).

    Its profile as it is; else its simulated duration, else 1 second, divided by the speedup.
    """
    known = profiles.get((activity.activity_type_id, resource.id))
    if known is not None:
        return known
    simulation = activity.simulation
    if simulation is not None and simulation.duration_seconds > 0:
        return simulation.duration_seconds / speedup(resource)
    return 1.0 / speedup(resource)


def opaque(resource: Resource) -> bool:
    """Whether a resource is a batch target that places work by itself."""
    return resource.execution_target == "batch" and resource.type in OPAQUE


def fits(activity: Activity, resource: Resource) -> bool:
    """Whether a resource has the cores and the memory an activity asks for (3.3).

    A capacity of 0 is not known, and is no limit (P20).
    """
    if opaque(resource):
        return True
    wants = activity.resources
    return (resource.cpu_capacity <= 0 or resource.cpu_capacity >= wants.cpu) and (
        resource.memory_bytes <= 0 or resource.memory_bytes >= wants.memory_bytes
    )


def selector(activity: Activity) -> str:
    """The one resource an activity asks for by its id; empty for any."""
    named = activity.metadata.get("resourceSelector", "")
    return named if isinstance(named, str) else ""


def lane_count(resource: Resource) -> int:
    """How many activities a resource runs side by side: one for each core, at least one."""
    return 1 if opaque(resource) else max(1, resource.cpu_cores)


def lanes(resource: Resource) -> tuple[tuple[str, str], ...]:
    """The (core, slot) ids of a resource's lanes; one slot for an opaque batch target."""
    return tuple(lane(resource, number) for number in range(lane_count(resource)))


def lane(resource: Resource, number: int) -> tuple[str, str]:
    """The (core, slot) ids of one lane, counted from 0."""
    if opaque(resource):
        return "", f"{resource.id}-slot"
    return f"{resource.id}-core-{number + 1}", ""


def schedulable(resources: Iterable[Resource], scope: Scope) -> tuple[Resource, ...]:
    """The resources that planning may use: schedulable and in the scope, sorted by id."""
    universe = set(scope.environment_version_ids)
    usable = (r for r in resources if r.schedulable and r.environment_version_id in universe)
    return tuple(sorted(usable, key=lambda resource: resource.id))
