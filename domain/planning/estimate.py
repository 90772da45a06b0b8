"""How long planning will take, before it starts (3.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, isnan
from typing import Any

from statelog.domain.planning.problem import Problem
from statelog.domain.workflows.durations import fits, lane_count
from statelog.domain.workflows.graph import edges, levels
from statelog.domain.workflows.resources import Resource

CALIBRATED = "calibrated"
OPTION_COUNT = 25
MOST_OPTIONS = 1000
MOST_STATES = 2**63 - 1
"""What the field holds, an int64."""


@dataclass(frozen=True)
class Estimate:
    """Seconds of planning, and what they are computed from."""

    duration_seconds: float = 0.0
    expanded_states: int = 0
    activity_count: int = 0
    dependency_count: int = 0
    compatible_resources: int = 0
    beam_width: int = 0
    ready_branch_limit: int = 0
    confidence: str = CALIBRATED


@dataclass(frozen=True)
class Rates:
    """Seconds of planning: a base, and those of a state and of a dependency."""

    base: float
    state: float
    dependency: float


HEFT = Rates(base=0.05, state=5.5e-7, dependency=1e-6)
"""Of the documented table, whose states are activities times lanes."""

OURS: Mapping[str, Rates] = {
    "cpop": Rates(base=0.05, state=8e-6, dependency=1e-5),
    "min-min": Rates(base=0.05, state=2.5e-7, dependency=2e-5),
    "max-min": Rates(base=0.05, state=2.5e-7, dependency=2e-5),
    "moheft": Rates(base=0.05, state=1e-5, dependency=2e-5),
}
"""Measured on graphs of 10,000 activities and four resources."""


def estimate(
    algorithm_id: str, problem: Problem, configuration: Mapping[str, Any] | None = None
) -> Estimate:
    """The estimate of one algorithm run; `configuration` is that of its selection.

    An algorithm that is not ours is estimated as `heft` is.
    """
    usable = [r for r in problem.schedulable if _compatible(r, problem)]
    activities = len(problem.workflow.activities)
    dependencies = len(edges(problem.workflow))
    rates = OURS.get(algorithm_id, HEFT)
    breadth = max(1, _breadth(algorithm_id, problem, usable, configuration or {}))
    states = min(activities * breadth, MOST_STATES)
    seconds = rates.base + states * rates.state + dependencies * rates.dependency
    return Estimate(
        duration_seconds=rounded(seconds),
        expanded_states=states,
        activity_count=activities,
        dependency_count=dependencies,
        compatible_resources=len(usable),
    )


def _breadth(
    algorithm_id: str,
    problem: Problem,
    usable: Sequence[Resource],
    configuration: Mapping[str, Any],
) -> int:
    """How many states an activity stands for: what the algorithm looks at to place it."""
    match algorithm_id:
        case "cpop":
            return len(usable)
        case "min-min" | "max-min":
            return max(map(len, levels(problem.workflow)), default=0)
        case "moheft":
            return max(1, len(usable)) * option_count(configuration)
    return sum(lane_count(resource) for resource in usable)


def option_count(configuration: Mapping[str, Any]) -> int:
    """How many trade-offs `moheft` keeps: `optionCount`, 1 to 1000; 25 when it is no number."""
    given = configuration.get("optionCount")
    if isinstance(given, bool) or not isinstance(given, int | float):
        return OPTION_COUNT
    if isinstance(given, float) and isnan(given):
        return OPTION_COUNT
    return int(min(MOST_OPTIONS, max(1, given)))


def rounded(seconds: float) -> float:
    """Seconds to a tenth, half away from zero."""
    return floor(seconds * 10 + 0.5) / 10


def _compatible(resource: Resource, problem: Problem) -> bool:
    return resource.execution_target == "batch" or all(
        fits(activity, resource) for activity in problem.workflow.activities
    )
