"""Plan candidates: immutable options of a session, no lifecycle on purpose (1.4, 3.7)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from statelog.domain.planning.fingerprint import fingerprint, placement_hash
from statelog.domain.planning.ranking import feasible
from statelog.domain.workflows.schedule_plan import Predicted, SchedulePlan


@dataclass(frozen=True)
class PlanCandidate:
    """One plan an algorithm run emitted.

    Rank and flags are 0 and false until the session completes. `placement_hash` is equal for two
    algorithms that found the same placement; `fingerprint` is not. `created_at` is text, RFC 3339.
    """

    id: str
    planning_session_id: str
    algorithm_run_id: str
    algorithm: str
    objective: str
    plan: SchedulePlan
    fingerprint: str
    placement_hash: str
    predicted: Predicted
    feasible: bool
    rank: int = 0
    pareto_optimal: bool = False
    dominated: bool = False
    created_at: str = ""


def candidate(
    plan: SchedulePlan,
    *,
    session_id: str,
    run_id: str,
    algorithm: str,
    objective: str,
    deadline_seconds: float = 0.0,
    budget: float = 0.0,
    created_at: str = "",
) -> PlanCandidate:
    """The candidate of a valid plan: within the limits or not, its plan with ids of its own.

    Id `candidate-` and 20 hex characters of the fingerprint, plan id `<session>-` and 12.
    """
    placement = placement_hash(plan)
    mark = fingerprint(run_id, placement)
    promised = plan.predicted
    able = feasible(promised.makespan_seconds, promised.cost, deadline_seconds, budget)
    predicted = replace(promised, feasible=able)
    named = reidentified(plan, f"{session_id}-{mark[:12]}")
    return PlanCandidate(
        id=f"candidate-{mark[:20]}",
        planning_session_id=session_id,
        algorithm_run_id=run_id,
        algorithm=algorithm,
        objective=objective,
        plan=replace(named, predicted=predicted, deadline_seconds=deadline_seconds, budget=budget),
        fingerprint=mark,
        placement_hash=placement,
        predicted=predicted,
        feasible=able,
        created_at=created_at,
    )


def reidentified(plan: SchedulePlan, plan_id: str) -> SchedulePlan:
    """The plan under another id, with its assignments, lifecycle actions and what these need.

    Assignments become `<plan>-<activity>`, actions `<plan>-lifecycle-<1..n>` (3.7).
    """
    assignments = tuple(
        replace(a, id=f"{plan_id}-{a.activity_id}", plan_id=plan_id) for a in plan.assignments
    )
    actions = [f"{plan_id}-lifecycle-{n}" for n in range(1, 1 + len(plan.lifecycle_actions))]
    new = {before.id: after.id for before, after in zip(plan.assignments, assignments, strict=True)}
    new |= {a.id: id for a, id in zip(plan.lifecycle_actions, actions, strict=True)}
    return replace(
        plan,
        id=plan_id,
        assignments=assignments,
        lifecycle_actions=tuple(
            replace(
                action,
                id=new[action.id],
                schedule_plan_id=plan_id,
                depends_on=tuple(new.get(id, id) for id in action.depends_on),
            )
            for action in plan.lifecycle_actions
        ),
    )
