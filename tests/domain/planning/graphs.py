"""Generated workflows of any size, and places to plan them on."""

from __future__ import annotations

from random import Random

from statelog.domain.planning.problem import Problem
from statelog.domain.workflows.resources import Link, Profile, Resource, Scope, Topology
from statelog.domain.workflows.workflow import (
    Activity,
    DataDependency,
    Dependency,
    Simulation,
    WorkflowVersion,
)

SCOPE = Scope("lab-scope", environment_version_ids=("lab-v1",))
BYTES = 2_000_000


def activity(name: str, seconds: float, **given) -> Activity:
    return Activity(
        id=name,
        activity_type_id=given.pop("type", name),
        simulation=Simulation(duration_seconds=seconds) if seconds else None,
        **given,
    )


def workflow(seconds: dict[str, float], edges, data=(), name: str = "flow-v1") -> WorkflowVersion:
    """Activities with durations, control edges (before, after), and data of (from, to, bytes)."""
    return WorkflowVersion(
        id=name,
        activities=tuple(activity(id, taken) for id, taken in seconds.items()),
        dependencies=tuple(Dependency(after, before) for before, after in edges),
        data_dependencies=tuple(DataDependency(a, b, f"{a}.out", size) for a, b, size in data),
    )


def resource(name: str, cores: int = 1, **given) -> Resource:
    return Resource(
        id=name,
        environment_version_id=given.pop("environment", "lab-v1"),
        cpu_cores=cores,
        cpu_capacity=float(cores),
        memory_bytes=given.pop("memory_bytes", 8 << 30),
        schedulable=given.pop("schedulable", True),
        **given,
    )


def mesh(names, seconds: float = 0.01, megabits: float = 1000.0) -> Topology:
    """A link between every two resources, each of its own speed."""
    pairs = [(a, b) for at, a in enumerate(names) for b in names[at + 1 :]]
    links = tuple(
        Link(
            source_resource_id=a,
            target_resource_id=b,
            id=f"{a}-{b}",
            bandwidth_bits_per_second=megabits * 1e6 / (1 + at % 3),
            latency_seconds=seconds * (1 + at % 2),
            price_per_byte=1e-11,
            bidirectional=True,
        )
        for at, (a, b) in enumerate(pairs)
    )
    return Topology("net-v1", execution_scope_id=SCOPE.id, links=links)


def machines(count: int = 4, cores: int = 8) -> tuple[Resource, ...]:
    """Machines of rising speed and price; every second one has to boot."""
    return tuple(
        resource(
            f"machine-{n}",
            cores,
            compute_speedup=1.0 + n / 2,
            price_per_second=0.001 * n * n,
            boot_overhead_seconds=0.5 * (n % 2),
            container_overhead_seconds=0.1,
        )
        for n in range(count)
    )


def problem(
    flow: WorkflowVersion,
    resources: tuple[Resource, ...] | None = None,
    topology: Topology | None = None,
    profiles: tuple[Profile, ...] = (),
    **limits,
) -> Problem:
    places = machines() if resources is None else resources
    return Problem(
        workflow=flow,
        scope=SCOPE,
        topology=mesh([place.id for place in places]) if topology is None else topology,
        resources=places,
        profiles=profiles,
        **limits,
    )


def diamond() -> WorkflowVersion:
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    data = [(before, after, BYTES) for before, after in edges]
    return workflow({"a": 6, "b": 20, "c": 9, "d": 3}, edges, data)


def fork_join(size: int, width: int = 50) -> WorkflowVersion:
    """Forks of `width` activities that join in one, one after the other."""
    seconds: dict[str, float] = {}
    edges: list[tuple[str, str]] = []
    join = ""
    for n in range(size):
        name = f"t{n:06}"
        seconds[name] = 1.0 + n * 7 % 11
        if n % (width + 1) == width:
            edges += [(f"t{k:06}", name) for k in range(n - width, n)]
            join = name
        elif join:
            edges.append((join, name))
    return _with_data(seconds, edges)


def montage_like(size: int) -> WorkflowVersion:
    """Projections, differences of neighbours, one fit, a background for each, and a mosaic."""
    wide = max(2, size // 4)
    seconds = {f"project-{n:06}": 10.0 + n % 5 for n in range(wide)}
    edges: list[tuple[str, str]] = []
    for n in range(size - 2 * wide - 2):
        name = f"diff-{n:06}"
        seconds[name] = 2.0 + n % 3
        edges += [(f"project-{(n + k) % wide:06}", name) for k in (0, 1 + n // wide)]
        edges.append((name, "fit"))
    seconds["fit"] = 20.0
    for n in range(wide):
        name = f"back-{n:06}"
        seconds[name] = 1.0 + n % 4
        edges += [("fit", name), (f"project-{n:06}", name), (name, "mosaic")]
    seconds["mosaic"] = 30.0
    return _with_data(seconds, edges)


def random_graph(size: int, seed: int = 1, most: int = 4) -> WorkflowVersion:
    """Each activity waits for up to `most` of the hundred before it."""
    chance = Random(seed)
    names = [f"n{n:06}" for n in range(size)]
    edges = []
    for n, name in enumerate(names):
        near = names[max(0, n - 100) : n]
        for before in chance.sample(near, min(len(near), chance.randrange(most + 1))):
            edges.append((before, name))
    return _with_data({name: chance.uniform(0.5, 20.0) for name in names}, edges)


def _with_data(seconds: dict[str, float], edges: list[tuple[str, str]]) -> WorkflowVersion:
    return workflow(seconds, edges, [(a, b, BYTES) for a, b in edges])


SHAPES = {"fork-join": fork_join, "montage": montage_like, "random": random_graph}
