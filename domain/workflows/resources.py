"""Where workflows can run: resources, environment versions, scopes, network topologies (1.13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Resource:
    """A place with cores. Price is per second, overheads are seconds, speedup 0 counts as 1."""

    id: str
    environment_version_id: str = ""
    execution_target: str = "batch"
    type: str = "local_machine"
    name: str = ""
    provider_id: str = ""
    cpu_cores: int = 0
    cpu_capacity: float = 0.0
    memory_bytes: int = 0
    storage_bytes: int = 0
    compute_speedup: float = 0.0
    price_per_second: float = 0.0
    boot_overhead_seconds: float = 0.0
    container_overhead_seconds: float = 0.0
    schedulable: bool = False
    metadata: Object = field(default_factory=dict)


@dataclass(frozen=True)
class Profile:
    """How long activities of a type took on a resource, in seconds."""

    activity_type_id: str
    resource_id: str
    runtime_seconds: float = 0.0
    runtime_std_dev_seconds: float = 0.0
    cpu_utilization: float = 0.0
    peak_memory_bytes: int = 0
    source: str = ""
    sample_size: int = 0
    model_version: str = ""
    metadata: Object = field(default_factory=dict)


@dataclass(frozen=True)
class Runtime:
    """How a resource executes (mode `execution`) or simulates (mode `simulation`)."""

    id: str
    environment_version_id: str = ""
    name: str = ""
    driver: str = ""
    mode: str = ""
    role: str = ""
    configuration: Object = field(default_factory=dict)
    capabilities: Object = field(default_factory=dict)


@dataclass(frozen=True)
class RuntimeBinding:
    """A resource has a runtime."""

    resource_id: str
    runtime_id: str
    enabled: bool = False
    configuration: Object = field(default_factory=dict)


@dataclass(frozen=True)
class EnvironmentVersion:
    """A published snapshot of infrastructure; it owns resources, runtimes and profiles.

    `environment` and `version` are kept as they were given; `id` is that of the version.
    """

    id: str
    environment: Object = field(default_factory=dict)
    version: Object = field(default_factory=dict)
    runtimes: tuple[Runtime, ...] = ()
    resources: tuple[Resource, ...] = ()
    storages: tuple[Object, ...] = ()
    connections: tuple[Object, ...] = ()
    activity_resource_profiles: tuple[Profile, ...] = ()
    resource_runtime_bindings: tuple[RuntimeBinding, ...] = ()


@dataclass(frozen=True)
class Scope:
    """The environment versions that planning and runs may use."""

    id: str
    name: str = ""
    network_topology_id: str = ""
    environment_version_ids: tuple[str, ...] = ()
    metadata: Object = field(default_factory=dict)


@dataclass(frozen=True)
class Link:
    """A network link: bits per second, seconds, price per byte."""

    source_resource_id: str
    target_resource_id: str
    id: str = ""
    topology_id: str = ""
    bandwidth_bits_per_second: float = 0.0
    latency_seconds: float = 0.0
    price_per_byte: float = 0.0
    bidirectional: bool = False
    sharing_policy: str = ""
    max_concurrent_transfers: int = 0
    metadata: Object = field(default_factory=dict)


@dataclass(frozen=True)
class Topology:
    """The links of one scope."""

    id: str
    name: str = ""
    version: int = 1
    execution_scope_id: str = ""
    links: tuple[Link, ...] = ()
    metadata: Object = field(default_factory=dict)
