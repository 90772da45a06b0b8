"""A clock for tests: it stands still until somebody moves it."""

from __future__ import annotations

from itertools import count

NEW_YEAR = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z in microseconds since the Unix epoch."""


class FakeClock:
    """Callable as a journal's clock: microseconds since the Unix epoch, UTC."""

    def __init__(self, now: int = NEW_YEAR) -> None:
        self.now = now

    def __call__(self) -> int:
        """The time."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += round(seconds * 1_000_000)


class FakeIds:
    """Callable as a journal's source of ids: `id-1`, `id-2` and so on."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> str:
        """The next id."""
        return f"id-{next(self._numbers)}"
