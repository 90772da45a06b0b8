"""Small problems, plans and candidates for tests of planning."""

from __future__ import annotations

from dataclasses import replace

from statelog.domain.planning.candidate import PlanCandidate, candidate
from statelog.domain.planning.problem import Problem, resolve
from statelog.domain.workflows.resources import EnvironmentVersion, Link, Resource, Scope, Topology
from statelog.domain.workflows.schedule_plan import Assignment, Predicted, SchedulePlan
from statelog.domain.workflows.workflow import (
    Activity,
    DataDependency,
    Dependency,
    Simulation,
    WorkflowVersion,
)

EDGE = Resource(
    "edge",
    "lab-v1",
    cpu_cores=2,
    cpu_capacity=2.0,
    memory_bytes=2**31,
    compute_speedup=1.0,
    container_overhead_seconds=0.1,
    schedulable=True,
)
CLOUD = Resource(
    "cloud",
    "lab-v1",
    type="cloud_vm",
    cpu_cores=8,
    cpu_capacity=8.0,
    memory_bytes=2**34,
    compute_speedup=4.0,
    price_per_second=0.001,
    boot_overhead_seconds=0.5,
    container_overhead_seconds=0.2,
    schedulable=True,
)
ENVIRONMENT = EnvironmentVersion(
    "lab-v1",
    environment={"id": "lab", "name": "Lab"},
    version={"id": "lab-v1", "environmentId": "lab", "version": 1},
    resources=(EDGE, CLOUD),
)
SCOPE = Scope("lab", "Lab", "wire", ("lab-v1",))
TOPOLOGY = Topology(
    "wire",
    "Wire",
    1,
    "lab",
    (
        Link(
            "edge",
            "cloud",
            id="edge-cloud",
            topology_id="wire",
            bandwidth_bits_per_second=1e8,
            latency_seconds=0.05,
            price_per_byte=1e-10,
            bidirectional=True,
        ),
    ),
)
SECONDS = {"prepare": 4.0, "analyze": 12.0, "summarize": 2.0}


def activity(name: str, seconds: float) -> Activity:
    """One that is simulated."""
    return Activity(
        name,
        "chain-v1",
        activity_type_id="chain-activity",
        name=name,
        capabilities=("simulation",),
        simulation=Simulation("fixed", seconds),
    )


WORKFLOW = WorkflowVersion(
    "chain-v1",
    "chain",
    1,
    activities=tuple(activity(name, seconds) for name, seconds in SECONDS.items()),
    dependencies=(Dependency("analyze", "prepare"), Dependency("summarize", "analyze")),
    data_dependencies=(
        DataDependency("prepare", "analyze", "raw", 100_000_000),
        DataDependency("analyze", "summarize", "table", 20_000_000),
    ),
    name="chain",
    namespace="lab",
)


def problem(deadline: float = 0.0, budget: float = 0.0) -> Problem:
    """The example of 4.2 as a session freezes it."""
    return resolve(
        WORKFLOW, SCOPE, TOPOLOGY, (ENVIRONMENT,), deadline_seconds=deadline, budget=budget
    )


def placed(resource: str = "cloud", lane: int = 1, algorithm: str = "heft") -> SchedulePlan:
    """The chain on one lane of one resource, one activity after another."""
    finish, assignments = 0.0, []
    for order, (name, seconds) in enumerate(SECONDS.items()):
        start, finish = finish, finish + seconds
        assignments.append(
            Assignment(
                name,
                resource,
                core_id=f"{resource}-core-{lane}",
                order_on_resource=order,
                predicted_start_at=start,
                predicted_finish_at=finish,
                predicted_runtime_seconds=seconds,
            )
        )
    return SchedulePlan(
        f"{algorithm}-1",
        "chain-v1",
        "lab",
        "wire",
        algorithm=algorithm,
        predicted=Predicted(finish, 1.0, True),
        assignments=tuple(assignments),
    )


def promising(makespan: float, cost: float, lane: int = 1, resource: str = "cloud") -> SchedulePlan:
    """A valid plan that promises this."""
    return replace(placed(resource, lane), predicted=Predicted(makespan, cost, True))


def found(
    plan: SchedulePlan | None = None,
    session_id: str = "s",
    algorithm: str = "heft",
    **limits: float,
) -> PlanCandidate:
    """The candidate that a run of a session makes of a plan."""
    return candidate(
        plan or placed(),
        session_id=session_id,
        run_id=f"{session_id}-{algorithm}",
        algorithm=algorithm,
        objective="time",
        **limits,
    )
