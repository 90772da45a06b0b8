"""Contestants measured in turns, so that a drifting machine is the same for all of them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import monotonic

Turn = Callable[[], float]
"""Does a fixed piece of work and answers the seconds that one unit of it took."""

Times = dict[str, list[float]]


@dataclass(frozen=True)
class Effort:
    """How long to measure: `rounds`, but no new one after `seconds`, unless fewer than `least`.

    The limit is for slow disks; where twice that time is spent, one round has to do.
    """

    rounds: int
    seconds: float
    least: int = 3

    def enough(self, done: int, spent: float) -> bool:
        """Whether to stop after so many rounds and seconds."""
        least = 1 if spent > self.seconds * 2 else self.least
        return done >= self.rounds or (spent > self.seconds and done >= least)


def interleaved(contestants: Mapping[str, Turn], effort: Effort) -> Times:
    """Seconds a unit by contestant and round, after one round that only warms up.

    Every round takes each contestant once, beginning with another one each time. Garbage is
    collected before a turn, and collection is on during it, for all alike.
    """
    names = list(contestants)
    times: Times = {name: [] for name in names}
    start, number = monotonic(), -1
    while not effort.enough(number, monotonic() - start):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            gc.collect()
            seconds = contestants[name]()
            if number >= 0:
                times[name].append(seconds)
        number += 1
    return times


def ratio(times: Times, above: str, below: str) -> float:
    """The median over all rounds of one contestant's time divided by another's."""
    pairs = zip(times[above], times[below], strict=True)
    return median(a / b for a, b in pairs)


def micros(times: Times, name: str) -> float:
    """The median time of a contestant in microseconds."""
    return median(times[name]) * 1e6
