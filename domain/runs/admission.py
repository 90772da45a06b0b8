"""What is checked before a run begins, and what it takes of its request (2.5, 4.1).

A request that fails here creates no run; only its job says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from statelog.domain.errors import Invalid
from statelog.domain.runs.events import Placed, Started
from statelog.domain.runs.request import NOT_BUILT, RunRequest
from statelog.domain.runs.run import REAL, SIMULATION
from statelog.domain.workflows.graph import predecessors, topological_order
from statelog.domain.workflows.resources import Runtime
from statelog.domain.workflows.schedule_plan import Assignment
from statelog.domain.workflows.workflow import Activity

RUNTIME_MODES: Final[Mapping[str, str]] = {SIMULATION: "simulation", REAL: "execution"}
"""The mode a runtime needs for each mode of a run."""


def admitted(request: RunRequest, *, at: float) -> Started:
    """The event with which the run begins, at `at` (0 in a simulation, else epoch seconds).

    Raises `Invalid` naming the field: not one assignment for each activity, an activity or a
    resource that is not there, no runtime of the right mode, an activity that cannot be run so.
    """
    run, plan, workflow = request.run, request.plan, request.workflow
    before, order = predecessors(workflow), topological_order(workflow)
    assigned = _assigned(request)
    activities = {activity.id: activity for activity in workflow.activities}
    prices = {resource.id: resource.price_per_second for resource in request.resources}
    runtimes = _Runtimes(request)
    return Started(
        mode=run.mode,
        schedule_plan_id=plan.id,
        workflow_version_id=workflow.id,
        activities=tuple(
            _placed(
                activities[each],
                assigned[each],
                before[each],
                runtimes.of(activities[each], assigned[each]),
                prices.get(assigned[each].resource_id, 0.0),
            )
            for each in order
        ),
        seed=run.seed,
        started_at=at,
        predicted_makespan_seconds=plan.predicted.makespan_seconds,
        predicted_cost=plan.predicted.cost,
        deadline_seconds=max(0.0, plan.deadline_seconds),
        budget=max(0.0, plan.budget),
        recovers_run_id=run.recovers_run_id,
    )


def _assigned(request: RunRequest) -> dict[str, Assignment]:
    """The assignment of each activity. Raises `Invalid` unless each has exactly one."""
    known = {activity.id for activity in request.workflow.activities}
    given = request.plan.assignments
    if len(given) != len(known):
        raise Invalid(
            "plan.assignments", f"are {len(given)} for {len(known)} activities; each needs one"
        )
    found: dict[str, Assignment] = {}
    for at, each in enumerate(given):
        if each.activity_id not in known:
            raise Invalid(f"plan.assignments[{at}].activityId", f"no activity {each.activity_id!r}")
        if each.activity_id in found:
            raise Invalid(
                f"plan.assignments[{at}].activityId", f"{each.activity_id!r} is assigned twice"
            )
        found[each.activity_id] = each
    return found


class _Runtimes:
    """Which runtime runs an assignment: the first one bound that has the mode of the run."""

    def __init__(self, request: RunRequest) -> None:
        self._run_mode = request.run.mode
        self._mode = RUNTIME_MODES[request.run.mode]
        self._known = {runtime.id: runtime for runtime in request.runtimes}
        self._bound: dict[str, list[str]] = {}
        for binding in request.runtime_bindings:
            if binding.enabled:
                self._bound.setdefault(binding.resource_id, []).append(binding.runtime_id)

    def of(self, activity: Activity, assignment: Assignment) -> Runtime:
        """The runtime. Raises `Invalid`."""
        self._can(activity)
        wanted = assignment.metadata.get("runtimeId")
        for runtime in self._usable(assignment.resource_id):
            if not wanted or runtime.id == wanted:
                return self._built(runtime)
        named = f" called {wanted!r}" if wanted else ""
        why = f"resource {assignment.resource_id!r} has no enabled runtime{named}"
        raise Invalid("runtimeBindings", f"{why} of mode {self._mode}")

    def _usable(self, resource_id: str) -> Iterator[Runtime]:
        for runtime_id in self._bound.get(resource_id, ()):
            runtime = self._known.get(runtime_id)
            if runtime is not None and runtime.mode == self._mode:
                yield runtime

    def _built(self, runtime: Runtime) -> Runtime:
        """In a simulation the driver is a label (P19)."""
        if self._run_mode == REAL and runtime.driver not in ("", "local"):
            raise Invalid("runtimes", f"driver {runtime.driver} of {runtime.id!r}: {NOT_BUILT}")
        return runtime

    def _can(self, activity: Activity) -> None:
        """A simulation runs nothing, so only what runs for real must be able to (case 66)."""
        if self._run_mode == REAL and activity.capabilities and REAL not in activity.capabilities:
            able = ", ".join(activity.capabilities)
            raise Invalid("workflow.activities", f"{activity.id!r} is for {able} only, not {REAL}")


def _placed(
    activity: Activity,
    assignment: Assignment,
    before: tuple[str, ...],
    runtime: Runtime,
    price_per_second: float,
) -> Placed:
    return Placed(
        activity_id=activity.id,
        resource_id=assignment.resource_id,
        runtime_id=runtime.id,
        assignment_id=assignment.id,
        name=activity.name,
        core_id=assignment.core_id,
        slot_id=assignment.slot_id,
        order_on_resource=assignment.order_on_resource,
        priority=assignment.priority,
        predecessors=before,
        price_per_second=price_per_second,
        predicted_start_at=assignment.predicted_start_at,
        predicted_finish_at=assignment.predicted_finish_at,
        predicted_runtime_seconds=assignment.predicted_runtime_seconds,
        predicted_transfer_seconds=assignment.predicted_transfer_seconds,
        predicted_cost=assignment.predicted_cost,
    )
