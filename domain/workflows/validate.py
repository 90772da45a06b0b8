"""Whether a plan may be stored and run (3.6): who is where, in an order that can be kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite

from statelog.domain.errors import Invalid
from statelog.domain.workflows.durations import selector
from statelog.domain.workflows.graph import edges, topological_order
from statelog.domain.workflows.resources import Resource, Scope, Topology
from statelog.domain.workflows.schedule_plan import Assignment, SchedulePlan
from statelog.domain.workflows.workflow import Activity, WorkflowVersion

_OVERRIDE = "resourceSelectorOverride"


def validate(
    plan: SchedulePlan,
    workflow: WorkflowVersion,
    resources: Iterable[Resource],
    scope: Scope,
    topology: Topology | None,
) -> None:
    """Raise `Invalid` naming the first field of the plan that breaks a rule (3.6).

    Data dependencies order activities too (P13). Not checked: whether activities fit, overlap in
    time, or can reach each other over a link.
    """
    _identities(plan, workflow, scope, topology)
    topological_order(workflow)
    _assignments(plan, workflow, {resource.id: resource for resource in resources}, scope)
    _orders(plan, workflow)


def _identities(
    plan: SchedulePlan, workflow: WorkflowVersion, scope: Scope, topology: Topology | None
) -> None:
    _same("workflowVersionId", plan.workflow_version_id, workflow.id, "the workflow version is")
    if not plan.execution_scope_id:
        raise Invalid("executionScopeId", "must not be empty")
    _same("executionScopeId", plan.execution_scope_id, scope.id, "the scope is")
    if topology is not None:
        owner = topology.execution_scope_id
        _same("executionScopeId", plan.execution_scope_id, owner, "the topology belongs to")
    if plan.network_topology_id:
        known = topology.id if topology is not None else ""
        _same("networkTopologyId", plan.network_topology_id, known, "the topology is")


def _same(field: str, given: str, known: str, what: str) -> None:
    if given != known:
        raise Invalid(field, f"is {given!r}, but {what} {known!r}")


def _assignments(
    plan: SchedulePlan, workflow: WorkflowVersion, resources: Mapping[str, Resource], scope: Scope
) -> None:
    activities = {activity.id: activity for activity in workflow.activities}
    assigned: set[str] = set()
    for at, assignment in enumerate(plan.assignments):
        where = f"assignments[{at}]"
        activity = activities.get(assignment.activity_id)
        if activity is None:
            raise Invalid(f"{where}.activityId", f"no activity {assignment.activity_id!r}")
        if activity.id in assigned:
            raise Invalid(f"{where}.activityId", f"activity {activity.id!r} is assigned twice")
        assigned.add(activity.id)
        _resource(where, assignment, activity, resources.get(assignment.resource_id), scope)
        _times(where, assignment)
    for activity_id in activities:
        if activity_id not in assigned:
            raise Invalid("assignments", f"activity {activity_id!r} is not assigned")


def _resource(
    where: str,
    assignment: Assignment,
    activity: Activity,
    resource: Resource | None,
    scope: Scope,
) -> None:
    field = f"{where}.resourceId"
    if resource is None:
        raise Invalid(field, f"no resource {assignment.resource_id!r}")
    if resource.environment_version_id not in scope.environment_version_ids:
        raise Invalid(field, f"resource {resource.id!r} is not in scope {scope.id!r}")
    if not resource.schedulable:
        raise Invalid(field, f"resource {resource.id!r} is not schedulable")
    wanted = selector(activity)
    if wanted and wanted != resource.id and assignment.metadata.get(_OVERRIDE) is not True:
        raise Invalid(field, f"activity {activity.id!r} asks for resource {wanted!r}")


def _times(where: str, assignment: Assignment) -> None:
    start, finish = assignment.predicted_start_at, assignment.predicted_finish_at
    for field, seconds in (("predictedStartAt", start), ("predictedFinishAt", finish)):
        if not isfinite(seconds):
            raise Invalid(f"{where}.{field}", "must be a finite number of seconds")
    if finish < start:
        raise Invalid(f"{where}.predictedFinishAt", f"{finish} is before the start at {start}")


def _orders(plan: SchedulePlan, workflow: WorkflowVersion) -> None:
    place: dict[str, tuple[tuple[str, str, str], int]] = {}
    taken: dict[tuple[tuple[str, str, str], int], str] = {}
    for at, a in enumerate(plan.assignments):
        spot = ((a.resource_id, a.core_id, a.slot_id), a.order_on_resource)
        if spot in taken:
            raise Invalid(
                f"assignments[{at}].orderOnResource",
                f"{a.order_on_resource} is also that of activity {taken[spot]!r} on this lane",
            )
        taken[spot] = a.activity_id
        place[a.activity_id] = spot
    for producer, consumer in edges(workflow):
        (lane, first), (other, second) = place[producer], place[consumer]
        if lane == other and second <= first:
            raise Invalid(
                "assignments", f"activity {consumer!r} must come after {producer!r} on its lane"
            )
