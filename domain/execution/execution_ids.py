"""Execution IDs: their form, their order, and the next one (6.1 to 6.3)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from statelog.domain.execution.faults import OrchestrationError

_FORM: Final = re.compile(r"([0-9]{8}T[0-9]{12})Z_[0-9a-f]{4}")
_SUFFIX: Final = re.compile(r"[0-9a-f]{4}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LONGEST_NAME: Final = 255


def timestamp_of(execution_id: str) -> int | None:
    """Microseconds since 1970 UTC that a canonical ID carries; None when it is not canonical."""
    found = _FORM.fullmatch(execution_id)
    if found is None:
        return None
    day, clock = found[1].split("T")
    try:
        moment = datetime(
            *(int(day[:4]), int(day[4:6]), int(day[6:])),
            *(int(clock[:2]), int(clock[2:4]), int(clock[4:6]), int(clock[6:])),
            tzinfo=UTC,
        )
    except ValueError:
        return None
    return (moment - _EPOCH) // _MICROSECOND


def is_canonical(execution_id: str) -> bool:
    """Whether the whole text is `YYYYMMDDTHHMMSSffffffZ_hhhh` with a real date and time (6.1)."""
    return timestamp_of(execution_id) is not None


def order_key(execution_id: str) -> tuple[bool, str]:
    """Sort key, highest for the newest; every canonical ID is above all others (6.2)."""
    return is_canonical(execution_id), execution_id


def can_name_attempt(execution_id: object) -> bool:
    """Whether a caller's own ID is one path part of at most 255 UTF-8 bytes (6.4)."""
    if not isinstance(execution_id, str) or execution_id in ("", ".", ".."):
        return False
    if any(sign in execution_id for sign in "/\\\0"):
        return False
    try:
        return len(execution_id.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:
        return False


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970 UTC. Raises `OrchestrationError` for a clock without a time zone."""
    if moment.utcoffset() is None:
        raise OrchestrationError(f"the clock gave a time without a zone: {moment.isoformat()}")
    return (moment - _EPOCH) // _MICROSECOND


def format_id(time_us: int, suffix: object) -> str:
    """The canonical ID of an instant. Raises `OrchestrationError` for a time or suffix without one.

    `time_us` is in microseconds since 1970 UTC, `suffix` four lowercase hexadecimal digits.
    """
    if not isinstance(suffix, str) or not _SUFFIX.fullmatch(suffix):
        raise OrchestrationError(f"suffix {suffix!r} is not four lowercase hexadecimal digits")
    return f"{format_instant(time_us)}_{suffix}"


def format_instant(time_us: int) -> str:
    """`YYYYMMDDTHHMMSSffffffZ`. Raises `OrchestrationError` for what is no time of a calendar."""
    if type(time_us) is not int:
        raise OrchestrationError(f"the clock gave {time_us!r}, not whole microseconds")
    second, fraction = divmod(time_us, 1_000_000)
    try:
        return f"{_second(second)}{fraction:06}Z"
    except OverflowError:
        raise OrchestrationError(f"no execution ID can carry the time {time_us} us") from None


@lru_cache(maxsize=16)
def _second(second: int) -> str:
    moment = _EPOCH + timedelta(seconds=second)
    day = f"{moment.year:04}{moment.month:02}{moment.day:02}"
    return f"{day}T{moment.hour:02}{moment.minute:02}{moment.second:02}"


def next_id(now_us: int, floor: str | None, last: str | None, suffix: str) -> str:
    """The ID of the next attempt: later than `floor` and `last` by a microsecond or more (6.3).

    `floor` is the plan's latest execution ID (the slot's), `last` the one this allocator gave
    last, of whatever plan; one that is not canonical sets no bound. After an ID that was taken,
    pass it as `last`: the timestamp moves, never only the suffix. Raises `OrchestrationError`
    for a bad clock or suffix, and when the last representable instant is used up.
    """
    if type(now_us) is not int:
        raise OrchestrationError(f"the clock gave {now_us!r}, not whole microseconds")
    bounds = (timestamp_of(bound) for bound in (floor, last) if bound is not None)
    return format_id(max([now_us, *(at + 1 for at in bounds if at is not None)]), suffix)
