"""Which candidates are worth a look: limits, domination, Pareto flags and ranks (3.6, 3.8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from statelog.domain.workflows.schedule_plan import Predicted


class Rankable(Protocol):
    """What ranking reads of a candidate."""

    @property
    def id(self) -> str:
        """The candidate's id."""

    @property
    def predicted(self) -> Predicted:
        """Makespan and cost."""

    @property
    def feasible(self) -> bool:
        """Whether the plan is valid and within the limits."""


@dataclass(frozen=True)
class Ranked:
    """The place of one candidate among all of its session; ranks count from 1."""

    id: str
    rank: int
    pareto_optimal: bool
    dominated: bool


def feasible(makespan: float, cost: float, deadline: float, budget: float) -> bool:
    """Whether seconds and money are within the limits; a limit <= 0 is none."""
    return (deadline <= 0 or makespan <= deadline) and (budget <= 0 or cost <= budget)


def dominates(left: Rankable, right: Rankable) -> bool:
    """Whether left is feasible, and right is not or is nowhere better and somewhere worse."""
    if not left.feasible:
        return False
    if not right.feasible:
        return True
    a, b = _point(left), _point(right)
    return a != b and a[0] <= b[0] and a[1] <= b[1]


def rank(candidates: Iterable[Rankable]) -> tuple[Ranked, ...]:
    """Ranks and flags in rank order.

    Feasible first, then Pareto optimal, then by makespan, cost and the order given.
    """
    given = tuple(candidates)
    best = _front(given)
    able = bool(best)

    def place(candidate: Rankable) -> tuple[bool, bool, float, float]:
        return (not candidate.feasible, not _optimal(candidate, best), *_point(candidate))

    return tuple(
        Ranked(
            id=candidate.id,
            rank=at,
            pareto_optimal=_optimal(candidate, best),
            dominated=able and not _optimal(candidate, best),
        )
        for at, candidate in enumerate(sorted(given, key=place), start=1)
    )


def _point(candidate: Rankable) -> tuple[float, float]:
    return candidate.predicted.makespan_seconds, candidate.predicted.cost


def _optimal(candidate: Rankable, best: set[tuple[float, float]]) -> bool:
    return candidate.feasible and _point(candidate) in best


def _front(candidates: Sequence[Rankable]) -> set[tuple[float, float]]:
    """The (makespan, cost) points of feasible candidates that none dominates."""
    front: set[tuple[float, float]] = set()
    cheapest = float("inf")
    for point in sorted({_point(c) for c in candidates if c.feasible}):
        if not front or point[1] < cheapest:
            front.add(point)
            cheapest = point[1]
    return front
