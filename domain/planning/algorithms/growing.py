"""A schedule as it grows: earliest finishes over routes, for `cpop` and the list schedulers."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from statelog.domain.planning.algorithms.setting import Placement, Setting
from statelog.domain.planning.algorithms.transfers import Transfers, unreachable


class Growing:
    """The lanes of all resources and what is placed on them so far."""

    def __init__(self, given: Setting) -> None:
        self.given = given
        self.transfers = Transfers(given)
        self.boards = given.boards()
        self.placed: list[Placement] = []
        self._done: dict[int, Placement] = {}

    def arrivals(self, activity: int) -> dict[int, tuple[float, float]]:
        """(ready, seconds of transfer) on each resource the activity may be on and can reach.

        All its predecessors are placed. Raises `Invalid` when it can reach none.
        """
        above = [
            (self._done[n].finish, self._done[n].resource, size)
            for n, size in self.given.before[activity]
        ]
        found = {r: self.transfers.arrival(above, r) for r in self.given.places[activity]}
        reached = {r: arrival for r, arrival in found.items() if arrival[0] < inf}
        if not reached:
            raise unreachable(self.given, activity)
        return reached

    def earliest(
        self,
        activity: int,
        arrivals: dict[int, tuple[float, float]],
        among: Iterable[int] | None = None,
    ) -> Placement:
        """Where an activity finishes earliest; of equal finishes the cheaper, then the first."""
        best: tuple[float, float] | None = None
        chosen = Placement(activity, 0, 0, 0.0, 0.0, 0.0, 0.0)
        for r in arrivals if among is None else among:
            ready, transfer = arrivals[r]
            finish, start, lane = self.boards[r].offer(ready, self.given.seconds[activity][r])
            value = (finish, self.given.cost(activity, r))
            if best is None or value < best:
                best = value
                chosen = Placement(activity, r, lane, ready, start, finish, transfer)
        return chosen

    def place(self, placement: Placement) -> None:
        """Put an activity where it was offered a place."""
        self.boards[placement.resource].take(placement.lane, placement.finish)
        self._done[placement.activity] = placement
        self.placed.append(placement)


class Ready:
    """Hands out activities whose predecessors are placed."""

    def __init__(self, given: Setting) -> None:
        self._given = given
        self._waiting = [len(above) for above in given.before]

    def first(self) -> list[int]:
        """The activities that wait for nothing."""
        return [at for at, count in enumerate(self._waiting) if not count]

    def after(self, activity: int) -> list[int]:
        """The activities that waited for this one alone."""
        found = []
        for below in self._given.after[activity]:
            self._waiting[below] -= 1
            if not self._waiting[below]:
                found.append(below)
        return found
