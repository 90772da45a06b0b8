"""The deterministic simulation of a plan: when everything happens, and what it costs (4.2, P13).

Lane order is a hard constraint, links are shared without contention, and an activity starts as soon
as its data and its lane are there. Times are seconds since the simulated beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import isfinite
from typing import Any

from statelog.domain.aggregate import changed
from statelog.domain.errors import Invalid
from statelog.domain.runs.events import TransferCompleted
from statelog.domain.runs.trace import Simulated, Trace
from statelog.domain.workflows.durations import Profiles, profile_table
from statelog.domain.workflows.graph import bytes_between, predecessors
from statelog.domain.workflows.network import Network, Route
from statelog.domain.workflows.resources import Profile, Resource, Topology
from statelog.domain.workflows.schedule_plan import Assignment, SchedulePlan
from statelog.domain.workflows.workflow import Activity, WorkflowVersion


def simulate(
    plan: SchedulePlan,
    workflow: WorkflowVersion,
    resources: Iterable[Resource],
    topology: Topology | None,
    profiles: Iterable[Profile] = (),
) -> Trace:
    """Simulate a plan that `validate` accepts.

    Raises `Invalid`: no route for bytes that must move, lane orders and dependencies that wait for
    each other, or figures beyond all measure.
    """
    work = _Simulation(plan, workflow, resources, topology, profiles)
    tasks = tuple(work.task(activity_id) for activity_id in work.order())
    trace = Trace(_with_costs(tasks, work.resources), tuple(work.transfers))
    if not (isfinite(trace.makespan_seconds) and isfinite(trace.cost)):
        raise Invalid("plan", "its makespan or cost is not finite")
    return trace


class _Simulation:
    """The work of one simulation: what each activity waits for, and what was found so far."""

    def __init__(
        self,
        plan: SchedulePlan,
        workflow: WorkflowVersion,
        resources: Iterable[Resource],
        topology: Topology | None,
        profiles: Iterable[Profile],
    ) -> None:
        self.resources = {resource.id: resource for resource in resources}
        self.activities = {activity.id: activity for activity in workflow.activities}
        self.assigned = {each.activity_id: each for each in plan.assignments}
        self.before = predecessors(workflow)
        self.sizes = bytes_between(workflow)
        self.profiles = profile_table(profiles)
        self.network = None if topology is None else Network(topology)
        self.lane_before = _lane_before(plan.assignments)
        self.finished: dict[str, float] = {}
        self.transfers: list[TransferCompleted] = []

    def order(self) -> Iterator[str]:
        """Every activity after all it waits for, its lane included. Raises `Invalid`."""
        waits = {
            each: {*ids, *([self.lane_before[each]] if each in self.lane_before else [])}
            for each, ids in self.before.items()
        }
        after: dict[str, list[str]] = defaultdict(list)
        for each, ids in waits.items():
            for above in ids:
                after[above].append(each)
        left = {each: len(ids) for each, ids in waits.items()}
        ready = [each for each, count in left.items() if not count]
        heapify(ready)
        while ready:
            here = heappop(ready)
            yield here
            del left[here]
            for below in after[here]:
                left[below] -= 1
                if not left[below]:
                    heappush(ready, below)
        if left:
            stuck = ", ".join(sorted(left)[:5])
            why = f"lane orders and dependencies wait for each other: {stuck}"
            raise Invalid("plan.assignments", why)

    def task(self, activity_id: str) -> Simulated:
        """When an activity runs, once all it waits for is known; its transfers are kept."""
        assignment, activity = self.assigned[activity_id], self.activities[activity_id]
        resource = self.resources[assignment.resource_id]
        moved = [self._arrives(above, activity_id) for above in self.before[activity_id]]
        inbound = [each for each in moved if isinstance(each, TransferCompleted)]
        self.transfers += inbound
        ready = max((_time(each) for each in moved), default=0.0)
        lane = self.lane_before.get(activity_id)
        start = ready if lane is None else max(ready, self.finished[lane])
        runtime = _runtime(activity, assignment, resource, self.profiles)
        overhead = _overhead(assignment, resource)
        self.finished[activity_id] = start + runtime + overhead
        return Simulated(
            activity_id,
            resource.id,
            ready,
            start,
            self.finished[activity_id],
            runtime,
            overhead,
            sum(each.duration_seconds for each in inbound),
            sum(each.bytes for each in inbound),
        )

    def _arrives(self, producer: str, consumer: str) -> float | TransferCompleted:
        """The finish of a predecessor, or the transfer of what it left elsewhere."""
        source, target = self.assigned[producer].resource_id, self.assigned[consumer].resource_id
        size, at = self.sizes.get((producer, consumer), 0), self.finished[producer]
        if source == target or size <= 0:
            return at
        route = self._route(source, target, size)
        return TransferCompleted(
            id=f"{producer}:{consumer}",
            producer_activity_id=producer,
            consumer_activity_id=consumer,
            source_resource_id=source,
            target_resource_id=target,
            bytes=size,
            started_at=at,
            finished_at=at + route.seconds,
            duration_seconds=route.seconds,
            cost=route.price,
            route=tuple(link.id for link in route.links),
        )

    def _route(self, source: str, target: str, size: int) -> Route:
        route = None if self.network is None else self.network.route(source, target, size)
        if route is None:
            why = f"no route from {source!r} to {target!r} for {size} bytes"
            raise Invalid("networkTopology.links", why)
        return route


def _time(arrival: float | TransferCompleted) -> float:
    return arrival if isinstance(arrival, float | int) else arrival.finished_at


def _lane_before(assignments: Sequence[Assignment]) -> dict[str, str]:
    """The activity before each on its lane, by order."""
    lanes: dict[tuple[str, str, str], list[Assignment]] = defaultdict(list)
    for each in assignments:
        lanes[each.resource_id, each.core_id, each.slot_id].append(each)
    found = {}
    for lane in lanes.values():
        lane.sort(key=lambda each: each.order_on_resource)
        for earlier, later in pairwise(lane):
            found[later.activity_id] = earlier.activity_id
    return found


def _runtime(
    activity: Activity, assignment: Assignment, resource: Resource, profiles: Profiles
) -> float:
    """Seconds of its own code: the first that is given (4.2, step 4)."""
    faster = resource.compute_speedup
    base = number(activity.metadata, "baseRuntimeSeconds")
    if base is not None and base > 0 and faster > 0:
        return base / faster
    known = profiles.get((activity.activity_type_id, resource.id))
    if known is not None:
        return known
    given = number(assignment.metadata, "executionBaseRuntimeSeconds")
    if given is not None and given > 0:
        return given
    if assignment.predicted_runtime_seconds > 0:
        return assignment.predicted_runtime_seconds
    simulated = activity.simulation.duration_seconds if activity.simulation else 0.0
    return max(0.0, simulated) / (faster if faster > 0 else 1.0)


def _overhead(assignment: Assignment, resource: Resource) -> float:
    """Seconds of machine and container; the machine's count for every activity (step 5)."""
    boot = number(assignment.metadata, "bootOverheadSeconds")
    container = number(assignment.metadata, "containerOverheadSeconds")
    return max(0.0, resource.boot_overhead_seconds if boot is None else boot) + max(
        0.0, resource.container_overhead_seconds if container is None else container
    )


def number(metadata: Mapping[str, Any], key: str) -> float | None:
    """A number of free-form metadata, None when there is none."""
    value = metadata.get(key)
    return float(value) if isinstance(value, int | float) and type(value) is not bool else None


def _with_costs(
    tasks: Sequence[Simulated], resources: Mapping[str, Resource]
) -> tuple[Simulated, ...]:
    """Each resource costs from its first start to its last finish, shared by runtime (step 7)."""
    there: dict[str, list[Simulated]] = defaultdict(list)
    for task in tasks:
        there[task.resource_id].append(task)
    shares: dict[str, float] = {}
    for resource_id, of in there.items():
        window = max(each.finished_at for each in of) - min(each.started_at for each in of)
        cost = window * resources[resource_id].price_per_second
        total = sum(each.runtime_seconds for each in of)
        for each in of:
            part = each.runtime_seconds / total if total > 0 else 1 / len(of)
            shares[each.activity_id] = cost * part
    return tuple(changed(task, cost=shares[task.activity_id]) for task in tasks)
