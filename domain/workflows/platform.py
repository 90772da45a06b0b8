"""What a workflow is planned on: an environment version and its links; one is built in (P20)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from statelog.domain.workflows.complete import completed
from statelog.domain.workflows.environments import read_environment
from statelog.domain.workflows.resources import (
    EnvironmentVersion,
    Link,
    Resource,
    Runtime,
    RuntimeBinding,
    Scope,
    Topology,
)
from statelog.domain.workflows.shape import read

GIB: Final = 2**30
SIMULATOR: Final = Runtime("simulator", name="Simulator", driver="simgrid", mode="simulation")


@dataclass(frozen=True)
class Platform:
    """Resources to plan on, and the links between them."""

    environment: EnvironmentVersion
    links: tuple[Link, ...] = ()

    def ground(self, workflow_id: str, *more: str) -> tuple[Scope, Topology]:
        """A scope of this platform and `more` environment versions, and its topology.

        Both are named after the workflow version and the platform.
        """
        id = f"{workflow_id}-on-{self.environment.id}"
        scope = Scope(
            f"{id}-scope", id, f"{id}-network", tuple(dict.fromkeys((self.environment.id, *more)))
        )
        topology = Topology(f"{id}-network", id, execution_scope_id=scope.id, links=self.links)
        return scope, completed(topology)


def read_platform(document: Any, where: str = "") -> Platform:
    """An environment bundle with a list of `links` beside its other parts, or without.

    Raises `Malformed` and `Invalid` as `read_environment` does.
    """
    if type(document) is not dict:
        return Platform(completed(read_environment(document, where)))
    bundle = {key: value for key, value in document.items() if key != "links"}
    field = f"{where}.links" if where else "links"
    links = read(tuple[Link, ...], document.get("links", []), field)
    return Platform(completed(read_environment(bundle, where)), links)


def environment_version(
    id: str, name: str, resources: Iterable[Resource], **parts: Any
) -> EnvironmentVersion:
    """Version 1 of an environment whose resources can all be simulated."""
    machines = tuple(resources)
    made = EnvironmentVersion(
        f"{id}-v1",
        {"id": id, "name": name, "status": "ready"},
        {"id": f"{id}-v1", "environmentId": id, "version": 1, "status": "published"},
        runtimes=(SIMULATOR,),
        resources=machines,
        resource_runtime_bindings=tuple(
            RuntimeBinding(each.id, SIMULATOR.id, enabled=True) for each in machines
        ),
        **parts,
    )
    return completed(made)


def _machine(id: str, kind: str, cores: int, memory: int, **more: Any) -> Resource:
    return Resource(
        id,
        type=kind,
        name=id,
        cpu_cores=cores,
        cpu_capacity=float(cores),
        memory_bytes=memory * GIB,
        schedulable=True,
        **more,
    )


def _link(source: str, target: str, megabits: float, latency: float, price: float = 0.0) -> Link:
    return Link(
        source,
        target,
        id=f"{source}-{target}",
        bandwidth_bits_per_second=megabits * 1e6,
        latency_seconds=latency,
        price_per_byte=price,
        bidirectional=True,
        sharing_policy="shared",
    )


_CLUSTER: Final = {"compute_speedup": 1.5, "price_per_second": 0.0001}
_CLOUD: Final = {
    "compute_speedup": 2.5,
    "price_per_second": 0.0006,
    "boot_overhead_seconds": 5.0,
}

FOUR_MACHINES: Final = Platform(
    environment_version(
        "four-machines",
        "Four machines",
        (
            _machine("workstation", "local_machine", 8, 16, compute_speedup=1.0),
            _machine("cluster-1", "hpc_machine", 16, 64, **_CLUSTER),
            _machine("cluster-2", "hpc_machine", 16, 64, **_CLUSTER),
            _machine("cloud", "cloud_vm", 32, 128, **_CLOUD),
        ),
    ),
    (
        _link("workstation", "cluster-1", 1_000, 0.001),
        _link("workstation", "cluster-2", 1_000, 0.001),
        _link("cluster-1", "cluster-2", 10_000, 0.0001),
        _link("workstation", "cloud", 200, 0.03, 1e-10),
        _link("cluster-1", "cloud", 500, 0.02, 1e-10),
        _link("cluster-2", "cloud", 500, 0.02, 1e-10),
    ),
)
"""The platform of who names none: one free, two cheap and one fast machine, all linked."""
