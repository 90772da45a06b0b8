"""Which of many (makespan, cost) points to keep: fronts, and how crowded each is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import inf
from typing import Protocol, TypeVar


class Valued(Protocol):
    """Something of two values, of which less is better."""

    @property
    def makespan(self) -> float:
        """Seconds."""

    @property
    def cost(self) -> float:
        """Money."""


V = TypeVar("V", bound=Valued)


def fronts(points: Iterable[V]) -> list[list[V]]:
    """Points by how many times over they are dominated, each front by makespan ascending.

    Of points with equal values only the first one given is kept (Deb et al., 2002, in the n log n
    way two values allow).
    """
    found: list[list[V]] = []
    tails: list[float] = []
    previous: tuple[float, float] | None = None
    for point in sorted(points, key=_values):
        if _values(point) == previous:
            continue
        previous = _values(point)
        at = bisect_right(tails, point.cost)
        if at == len(found):
            found.append([])
            tails.append(inf)
        found[at].append(point)
        tails[at] = point.cost
    return found


def best(points: Iterable[V], keep: int) -> list[V]:
    """So many points, front after front, and of the last one those that are least crowded."""
    chosen: list[V] = []
    for front in fronts(points):
        room = keep - len(chosen)
        if len(front) > room:
            return chosen + _sparse(front, room)
        chosen += front
    return chosen


def crowding(front: Sequence[Valued]) -> list[float]:
    """How far apart the neighbours of each point of a front are; the ends are infinitely far."""
    distances = [inf] * len(front)
    if len(front) > 2:
        seconds = front[-1].makespan - front[0].makespan
        money = front[0].cost - front[-1].cost
        for at, (left, right) in enumerate(zip(front, front[2:], strict=False), start=1):
            wide = (right.makespan - left.makespan) / seconds
            distances[at] = wide + (left.cost - right.cost) / money
    return distances


def _sparse(front: list[V], room: int) -> list[V]:
    distances = crowding(front)
    widest = sorted(range(len(front)), key=lambda at: -distances[at])[:room]
    return [front[at] for at in sorted(widest)]


def _values(point: Valued) -> tuple[float, float]:
    return point.makespan, point.cost
