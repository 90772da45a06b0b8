"""Workflow versions: a graph of activities, immutable once registered (1.13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Command:
    """What a real activity runs."""

    image: str = ""
    executable: str = ""
    entrypoint: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = ""


@dataclass(frozen=True)
class Demand:
    """What an activity needs of a resource: cores, bytes, bytes, devices."""

    cpu: float = 0.0
    memory_bytes: int = 0
    storage_bytes: int = 0
    gpu: int = 0


@dataclass(frozen=True)
class Simulation:
    """How long an activity takes in a simulation, in seconds at speedup 1."""

    model: str = ""
    duration_seconds: float = 0.0
    flops: float = 0.0
    parameters: Object = field(default_factory=dict)


@dataclass(frozen=True)
class Policy:
    """Limits of one activity, in seconds; 0 is none."""

    timeout_seconds: float = 0.0
    max_attempts: int = 1
    retry_delay_seconds: float = 0.0


@dataclass(frozen=True)
class Activity:
    """A node of the graph. `kind` is task, service or interactive."""

    id: str
    workflow_version_id: str = ""
    activity_type_id: str = ""
    external_id: str = ""
    name: str = ""
    kind: str = "task"
    capabilities: tuple[str, ...] = ()
    command: Command = Command()
    resources: Demand = Demand()
    service: Object | None = None
    simulation: Simulation | None = None
    policy: Policy = Policy()
    priority: int = 0
    metadata: Object = field(default_factory=dict)


@dataclass(frozen=True)
class Dependency:
    """An ordering edge: `activity_id` starts after `depends_on_activity_id`."""

    activity_id: str
    depends_on_activity_id: str
    type: str = "control"


@dataclass(frozen=True)
class DataDependency:
    """Bytes that go from a producer to a consumer; also an ordering edge (P13)."""

    producer_activity_id: str
    consumer_activity_id: str
    logical_name: str = ""
    size_bytes: int = 0


@dataclass(frozen=True)
class WorkflowVersion:
    """One immutable version of a workflow. `definition_hash` is ours (P10)."""

    id: str
    workflow_id: str = ""
    version: int = 1
    definition_hash: str = ""
    activities: tuple[Activity, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    data_dependencies: tuple[DataDependency, ...] = ()
    name: str = ""
    namespace: str = ""
    metadata: Object = field(default_factory=dict)
