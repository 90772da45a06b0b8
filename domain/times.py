"""Times as people read them. No clock here: a time is always an argument."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(time: int) -> str:
    """ISO-8601 UTC with microseconds, `2026-01-31T09:30:00.000125Z`.

    `time` is in microseconds since the Unix epoch.
    """
    second, fraction = divmod(time, 1_000_000)
    return f"{_second(second)}.{fraction:06}Z"


@lru_cache(maxsize=64)
def _second(second: int) -> str:
    """Events come close after each other, and formatting a date takes longer than the rest."""
    return f"{_EPOCH + timedelta(seconds=second):%Y-%m-%dT%H:%M:%S}"


def iso_seconds(time: int) -> str:
    """ISO-8601 UTC in whole seconds, `2026-01-31T09:30:00Z`, cut and not rounded."""
    return f"{_EPOCH + timedelta(microseconds=time):%Y-%m-%dT%H:%M:%S}Z"
