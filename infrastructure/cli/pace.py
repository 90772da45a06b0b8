"""Progress of long work on stderr: how far, how fast, how long it may take yet."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic

from statelog.infrastructure.cli.output import tell

EVERY_S = 1.0


class Pace:
    """Is told of progress, and says once a second and at the end how it goes.

    The rate is that since the beginning; the time left takes it to stay so.
    """

    def __init__(
        self, clock: Callable[[], float] = monotonic, say: Callable[[str], None] = tell
    ) -> None:
        self._clock = clock
        self._say = say
        self._begin = self._last = clock()

    def __call__(self, what: str, done: int, size: int) -> None:
        """Hear of progress: `done` of `size` events."""
        now = self._clock()
        if done < size and now - self._last < EVERY_S:
            return
        self._last = now
        took = max(now - self._begin, 1e-9)
        rate = done / took
        if done < size:
            rest = f"{_duration((size - done) / rate)} left" if done else "unknown time left"
        else:
            rest = f"took {_duration(took)}"
        self._say(f"{what}: {done:,} of {size:,} events, {_rounded(rate):,}/s, {rest}")


def watching(what: str) -> Callable[[int, int], None]:
    """A pace of one thing: told how far it is and how far it goes."""
    return partial(Pace(), what)


def _rounded(rate: float) -> int:
    """Two digits: more would only flicker."""
    whole = int(rate)
    unit: int = 10 ** max(0, len(str(whole)) - 2)
    return whole // unit * unit


def _duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
