"""Times as people read them. No clock here: a time is always an argument."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(time: int) -> str:
    """ISO-8601 UTC with microseconds, `2026-01-31T09:30:00.000125Z`.

    `time` is in microseconds since the Unix epoch.
    """
    moment = _EPOCH + timedelta(microseconds=time)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06}Z"


def iso_seconds(time: int) -> str:
    """ISO-8601 UTC in whole seconds, `2026-01-31T09:30:00Z`, cut and not rounded."""
    return f"{_EPOCH + timedelta(microseconds=time):%Y-%m-%dT%H:%M:%S}Z"
