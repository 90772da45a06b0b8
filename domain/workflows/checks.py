"""Rules of definitions before they are registered (1.13); `validate` has those of plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.workflows.graph import topological_order
from statelog.domain.workflows.resources import (
    EnvironmentVersion,
    Link,
    Resource,
    Scope,
    Topology,
)
from statelog.domain.workflows.shape import camel
from statelog.domain.workflows.workflow import Activity, WorkflowVersion

LONGEST_ID: Final = 255
"""Characters an id may have."""

KINDS: Final = ("task", "service", "interactive")
CAPABILITIES: Final = ("real", "simulation", "interactive")
TARGETS: Final = ("batch", "direct", "provisioned")
TYPES: Final = (
    *("cluster", "node_pool", "kubernetes_machine", "hpc_partition", "hpc_machine", "cloud_vm"),
    *("fog_device", "local_machine", "serverless_platform", "serverless_function", "batch_queue"),
    *("kubernetes_namespace", "slurm_reservation"),
)
DRIVERS: Final = ("slurm", "kubernetes", "ssh", "local", "serverless", "simgrid", "cloud")
MODES: Final = ("execution", "simulation")


def check_workflow(workflow: WorkflowVersion) -> None:
    """Raise `Invalid` for a workflow version that cannot be registered.

    Activities have distinct ids, edges join them without a cycle (P13), sizes are above 0.
    """
    check_id(workflow.id, "id")
    _at_least(workflow, "", 1, "version")
    if not workflow.activities:
        raise Invalid("activities", "must not be empty")
    for at, activity in enumerate(workflow.activities):
        _check_activity(activity, f"activities[{at}]", workflow.id)
    for at, data in enumerate(workflow.data_dependencies):
        _at_least(data, f"dataDependencies[{at}]", 1, "size_bytes")
    topological_order(workflow)


def _check_activity(activity: Activity, where: str, workflow_id: str) -> None:
    check_id(activity.id, f"{where}.id")
    _owned(activity.workflow_version_id, workflow_id, f"{where}.workflowVersionId")
    _one_of(activity.kind, KINDS, f"{where}.kind")
    for at, capability in enumerate(activity.capabilities):
        _one_of(capability, CAPABILITIES, f"{where}.capabilities[{at}]")
    _at_least(
        activity.resources,
        f"{where}.resources",
        0,
        *("cpu", "memory_bytes", "storage_bytes", "gpu"),
    )
    policy = ("timeout_seconds", "max_attempts", "retry_delay_seconds")
    _at_least(activity.policy, f"{where}.policy", 0, *policy)
    if activity.simulation is not None:
        _at_least(activity.simulation, f"{where}.simulation", 0, "duration_seconds", "flops")


def check_environment(environment: EnvironmentVersion) -> None:
    """Raise `Invalid` for an environment version that cannot be registered.

    Ids are distinct, every part belongs to it, bindings name its resources and runtimes, and there
    is one profile for each type, resource and model version.
    """
    check_id(environment.id, "version.id")
    for at, resource in enumerate(environment.resources):
        check_resource(resource, f"resources[{at}]", environment.id)
    _distinct([r.id for r in environment.resources], "resources", "id")
    for at, runtime in enumerate(environment.runtimes):
        where = f"runtimes[{at}]"
        check_id(runtime.id, f"{where}.id")
        _owned(runtime.environment_version_id, environment.id, f"{where}.environmentVersionId")
        _one_of(runtime.driver, DRIVERS, f"{where}.driver")
        _one_of(runtime.mode, MODES, f"{where}.mode")
    _distinct([r.id for r in environment.runtimes], "runtimes", "id")
    _check_bindings(environment)
    _check_profiles(environment)


def _check_bindings(environment: EnvironmentVersion) -> None:
    resources = {resource.id for resource in environment.resources}
    runtimes = {runtime.id for runtime in environment.runtimes}
    bindings = environment.resource_runtime_bindings
    for at, binding in enumerate(bindings):
        where = f"resourceRuntimeBindings[{at}]"
        _known(binding.resource_id, resources, f"{where}.resourceId", "resource")
        _known(binding.runtime_id, runtimes, f"{where}.runtimeId", "runtime")
    pairs = [(each.resource_id, each.runtime_id) for each in bindings]
    _distinct(pairs, "resourceRuntimeBindings", "runtimeId")


def _check_profiles(environment: EnvironmentVersion) -> None:
    """A profile may be of a resource of another environment version of the same scope."""
    profiles = environment.activity_resource_profiles
    for at, profile in enumerate(profiles):
        where = f"activityResourceProfiles[{at}]"
        check_id(profile.activity_type_id, f"{where}.activityTypeId")
        check_id(profile.resource_id, f"{where}.resourceId")
        _at_least(
            profile, where, 0, "runtime_seconds", "runtime_std_dev_seconds", "peak_memory_bytes"
        )
    keys = [(p.activity_type_id, p.resource_id, p.model_version) for p in profiles]
    _distinct(keys, "activityResourceProfiles", "resourceId")


def check_resource(resource: Resource, where: str, environment_id: str) -> None:
    """Raise `Invalid` for a resource that cannot be part of an environment version."""
    dot = f"{where}." if where else ""
    check_id(resource.id, f"{dot}id")
    _owned(resource.environment_version_id, environment_id, f"{dot}environmentVersionId")
    _one_of(resource.execution_target, TARGETS, f"{dot}executionTarget")
    _one_of(resource.type, TYPES, f"{dot}type")
    _at_least(
        resource,
        where,
        0,
        *("cpu_cores", "cpu_capacity", "memory_bytes", "storage_bytes", "compute_speedup"),
        *("price_per_second", "boot_overhead_seconds", "container_overhead_seconds"),
    )


def check_scope(scope: Scope, resources: Mapping[str, Iterable[str]]) -> None:
    """Raise `Invalid` for a scope that cannot be registered.

    `resources` are the resource ids of each environment version that is known. A scope names at
    least one of those, none twice, and no two that have a resource of the same id.
    """
    check_id(scope.id, "id")
    if not scope.environment_version_ids:
        raise Invalid("environmentVersionIds", "must not be empty")
    _distinct(scope.environment_version_ids, "environmentVersionIds", "")
    owners: dict[str, str] = {}
    for at, version_id in enumerate(scope.environment_version_ids):
        where = f"environmentVersionIds[{at}]"
        _known(version_id, resources, where, "environment version")
        for resource_id in resources[version_id]:
            if owners.setdefault(resource_id, version_id) != version_id:
                raise Invalid(
                    where, f"has a resource {resource_id!r}, as {owners[resource_id]!r} has"
                )


def check_topology(topology: Topology, scopes: Iterable[str]) -> None:
    """Raise `Invalid` for a topology that cannot be registered (1.13).

    Its scope is one of `scopes`. Whether the ends of links are in the scope is not checked.
    """
    check_id(topology.id, "id")
    _at_least(topology, "", 1, "version")
    _known(topology.execution_scope_id, scopes, "executionScopeId", "execution scope")
    for at, link in enumerate(topology.links):
        _check_link(link, f"links[{at}]", topology.id)
    pairs = [(link.source_resource_id, link.target_resource_id) for link in topology.links]
    _distinct(pairs, "links", "targetResourceId")
    named = [link.id or None for link in topology.links]
    _distinct(named, "links", "id")


def _check_link(link: Link, where: str, topology_id: str) -> None:
    _owned(link.topology_id, topology_id, f"{where}.topologyId")
    check_id(link.source_resource_id, f"{where}.sourceResourceId")
    check_id(link.target_resource_id, f"{where}.targetResourceId")
    if link.source_resource_id == link.target_resource_id:
        raise Invalid(f"{where}.targetResourceId", "is the resource the link comes from")
    if link.bandwidth_bits_per_second <= 0:
        raise Invalid(f"{where}.bandwidthBitsPerSecond", "must be above 0")
    _at_least(link, where, 0, "latency_seconds", "price_per_byte", "max_concurrent_transfers")


def check_id(id: str, field: str) -> None:
    """Raise `Invalid` for an id that is empty or longer than `LONGEST_ID`."""
    if not id:
        raise Invalid(field, "must not be empty")
    if len(id) > LONGEST_ID:
        raise Invalid(field, f"has more than {LONGEST_ID} characters")


def _owned(owner: str, id: str, field: str) -> None:
    if owner not in ("", id):
        raise Invalid(field, f"is {owner!r}, but it is part of {id!r}")


def _one_of(value: str, known: tuple[str, ...], field: str) -> None:
    if value not in known:
        raise Invalid(field, f"is {value!r}, not one of {', '.join(known)}")


def _known(id: str, known: Iterable[str], field: str, kind: str) -> None:
    if id not in known:
        raise Invalid(field, f"no {kind} {id!r}")


def _distinct(values: Iterable[Any], field: str, key: str) -> None:
    """None stands for a value that was not given, and may be there often."""
    seen: Counter[Any] = Counter()
    for at, value in enumerate(values):
        seen[value] += 1
        if value is not None and seen[value] > 1:
            raise Invalid(
                f"{field}[{at}]{'.' if key else ''}{key}", f"{_said(value)} is there twice"
            )


def _said(value: Any) -> str:
    return " and ".join(map(repr, value)) if isinstance(value, tuple) else repr(value)


def _at_least(record: Any, where: str, least: int, *names: str) -> None:
    for name in names:
        if getattr(record, name) < least:
            dot = f"{where}." if where else ""
            raise Invalid(f"{dot}{camel(name)}", f"must be {least} or more")
