"""A problem as algorithms compute with it: activities and resources by number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum, inf, isfinite
from typing import NamedTuple

from statelog.domain.errors import Invalid
from statelog.domain.planning.algorithms.board import Board
from statelog.domain.planning.problem import Problem
from statelog.domain.planning.ranking import feasible
from statelog.domain.workflows.durations import Profiles, duration, fits, profile_table, selector
from statelog.domain.workflows.durations import lane as lane_ids
from statelog.domain.workflows.graph import (
    bytes_between,
    predecessors,
    successors,
    topological_order,
)
from statelog.domain.workflows.resources import Resource
from statelog.domain.workflows.schedule_plan import Assignment, Predicted, SchedulePlan
from statelog.domain.workflows.workflow import Activity


class Placement(NamedTuple):
    """One activity on one lane; numbers of the setting, and seconds from the plan's start."""

    activity: int
    resource: int
    lane: int
    ready: float
    start: float
    finish: float
    transfer: float


@dataclass(frozen=True)
class Setting:
    """Activities in topological order and schedulable resources by id, each known by its number.

    `before` holds (predecessor, bytes), `seconds[activity][resource]` durations, and `places` the
    resources an activity may be on.
    """

    problem: Problem
    activities: tuple[Activity, ...]
    resources: tuple[Resource, ...]
    before: tuple[tuple[tuple[int, int], ...], ...]
    after: tuple[tuple[int, ...], ...]
    seconds: tuple[tuple[float, ...], ...]
    places: tuple[tuple[int, ...], ...]

    def cost(self, activity: int, resource: int) -> float:
        """The price of the seconds an activity takes on a resource."""
        return self.seconds[activity][resource] * self.resources[resource].price_per_second

    def boards(self) -> list[Board]:
        """The lanes of each resource, all unused."""
        return [Board(resource, len(self.activities)) for resource in self.resources]


def total(numbers: Iterable[float]) -> float:
    """The sum, rounded once: the same in whatever order, so that equal plans cost the same."""
    try:
        return fsum(numbers)
    except OverflowError:
        return inf


def setting(problem: Problem) -> Setting:
    """Number a problem. Raises `Invalid` for a cycle, or when nothing can hold an activity."""
    resources = problem.schedulable
    if not resources:
        raise Invalid("resources", f"none in scope {problem.scope.id!r} is schedulable")
    for resource in resources:
        if not all(map(isfinite, _figures(resource))):
            raise Invalid(
                "resources", f"{resource.id!r} has an overhead or price that is not finite"
            )
    order = topological_order(problem.workflow)
    by_id = {activity.id: activity for activity in problem.workflow.activities}
    number = {activity_id: at for at, activity_id in enumerate(order)}
    before, after = predecessors(problem.workflow), successors(problem.workflow)
    sizes = bytes_between(problem.workflow)
    profiles = profile_table(problem.profiles)
    activities = tuple(by_id[activity_id] for activity_id in order)
    return Setting(
        problem=problem,
        activities=activities,
        resources=resources,
        before=tuple(
            tuple((number[above], sizes.get((above, here), 0)) for above in before[here])
            for here in order
        ),
        after=tuple(tuple(number[below] for below in after[here]) for here in order),
        seconds=tuple(tuple(_seconds(a, r, profiles) for r in resources) for a in activities),
        places=tuple(_places(activity, resources) for activity in activities),
    )


def _figures(resource: Resource) -> tuple[float, ...]:
    overheads = (resource.boot_overhead_seconds, resource.container_overhead_seconds)
    return (*overheads, resource.price_per_second)


def _seconds(activity: Activity, resource: Resource, profiles: Profiles) -> float:
    taken = duration(activity, resource, profiles)
    if not isfinite(taken):
        raise Invalid("activities", f"{activity.id!r} takes no finite time on {resource.id!r}")
    return taken


def _places(activity: Activity, resources: tuple[Resource, ...]) -> tuple[int, ...]:
    wanted = selector(activity)
    found = tuple(
        at
        for at, resource in enumerate(resources)
        if fits(activity, resource) and wanted in ("", resource.id)
    )
    if not found:
        raise Invalid("activities", f"{activity.id!r} fits no schedulable resource of the scope")
    return found


def plan(
    given: Setting,
    algorithm: str,
    objective: str,
    placements: Iterable[Placement],
    *,
    version: str = "1",
    number: int = 1,
    warnings: Iterable[str] = (),
) -> SchedulePlan:
    """The plan of placements in the order in which lanes were filled; cost is that of runtimes."""
    problem = given.problem
    plan_id = f"{algorithm}-{number}"
    assignments = _assignments(given, plan_id, placements)
    makespan = max((a.predicted_finish_at for a in assignments), default=0.0)
    cost = total(a.predicted_cost for a in assignments)
    if not (isfinite(makespan) and isfinite(cost)):
        raise Invalid("workflow", "its makespan or cost is not finite on these resources")
    within = feasible(makespan, cost, problem.deadline_seconds, problem.budget)
    told = list(warnings)
    return SchedulePlan(
        id=plan_id,
        workflow_version_id=problem.workflow.id,
        execution_scope_id=problem.scope.id,
        network_topology_id=problem.topology.id,
        algorithm=algorithm,
        algorithm_version=version,
        objective=objective,
        deadline_seconds=problem.deadline_seconds,
        budget=problem.budget,
        predicted=Predicted(makespan, cost, within),
        assignments=assignments,
        metadata={"warnings": told} if told else {},
    )


def _assignments(
    given: Setting, plan_id: str, placements: Iterable[Placement]
) -> tuple[Assignment, ...]:
    orders: dict[tuple[int, int], int] = {}
    assignments = []
    for placed in placements:
        activity = given.activities[placed.activity]
        lane = (placed.resource, placed.lane)
        core, slot = lane_ids(given.resources[placed.resource], placed.lane)
        assignments.append(
            Assignment(
                activity_id=activity.id,
                resource_id=given.resources[placed.resource].id,
                id=f"{plan_id}-{activity.id}",
                plan_id=plan_id,
                core_id=core,
                slot_id=slot,
                order_on_resource=orders.get(lane, 0),
                priority=activity.priority,
                predicted_ready_at=placed.ready,
                predicted_start_at=placed.start,
                predicted_finish_at=placed.finish,
                predicted_runtime_seconds=given.seconds[placed.activity][placed.resource],
                predicted_transfer_seconds=placed.transfer,
                predicted_cost=given.cost(placed.activity, placed.resource),
            )
        )
        orders[lane] = orders.get(lane, 0) + 1
    return tuple(assignments)
