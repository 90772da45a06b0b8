"""When the lanes of one resource are free; finding a lane costs the logarithm of their number."""

from __future__ import annotations

from math import inf

from statelog.domain.workflows.durations import lane_count
from statelog.domain.workflows.resources import Resource


class Board:
    """The lanes of one resource, each filled at its end, never in gaps.

    The used lanes are the first ones: an unused lane is only ever taken if it is the first of
    them. A tree over them holds the smallest free time below each node.
    """

    __slots__ = ("_boot", "_container", "_count", "_size", "_tree", "_used")

    def __init__(self, resource: Resource, most: int) -> None:
        """At most so many lanes are looked at: those that many activities can use."""
        self._count = min(lane_count(resource), max(1, most))
        self._boot = resource.boot_overhead_seconds
        self._container = resource.container_overhead_seconds
        self._size = 1 << (self._count - 1).bit_length()
        self._tree = [inf] * (2 * self._size)
        self._used = 0

    def copy(self) -> Board:
        """A board that goes its own way from here."""
        twin = object.__new__(Board)
        twin._count, twin._size, twin._used = self._count, self._size, self._used
        twin._boot, twin._container = self._boot, self._container
        twin._tree = self._tree.copy()
        return twin

    @property
    def state(self) -> tuple[float, bool]:
        """What offers depend on: the earliest free used lane, and whether one is unused."""
        return self._tree[1], self._used < self._count

    @property
    def warm(self) -> int:
        """How many lanes have been used, and so have booted."""
        return self._used

    def offer(self, ready: float, seconds: float, within: float = -inf) -> tuple[float, float, int]:
        """(finish, start, lane) of so many seconds of work that is ready then.

        The first lane that finishes by `within`; without one, the first of the lanes that finish
        earliest. An unused lane boots first.
        """
        if not self._used:
            return self._unused(ready, seconds)
        finish = self._start(ready, self._tree[1]) + seconds
        if self._used < self._count and finish > within:
            boots = self._unused(ready, seconds)
            if boots[0] < finish:
                return boots
        lane = self._first(ready, seconds, max(within, finish))
        start = self._start(ready, self._tree[self._size + lane])
        return start + seconds, start, lane

    def start(self, ready: float) -> float:
        """When work that is ready then starts on the lane where it starts first."""
        start = self._start(ready, self._tree[1])
        if self._used < self._count:
            return min(start, self._unused(ready, 0.0)[1])
        return start

    def _start(self, ready: float, free: float) -> float:
        return max(ready, free) + self._container

    def _unused(self, ready: float, seconds: float) -> tuple[float, float, int]:
        start = max(ready, 0.0) + self._boot + self._container
        return start + seconds, start, self._used

    def _first(self, ready: float, seconds: float, within: float) -> int:
        """The first used lane that finishes by `within`; there is one."""
        at = 1
        while at < self._size:
            at *= 2
            if self._start(ready, self._tree[at]) + seconds > within:
                at += 1
        return at - self._size

    def take(self, lane: int, finish: float) -> None:
        """Work fills the lane until then."""
        self._used = max(self._used, lane + 1)
        tree = self._tree
        at = self._size + lane
        tree[at] = finish
        while at > 1:
            at //= 2
            tree[at] = min(tree[2 * at], tree[2 * at + 1])
