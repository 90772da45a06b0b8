"""The system clock, and ids that sort by it."""

from __future__ import annotations

import os
import time
from collections import deque

_SPARES = 64
_spare: deque[str] = deque()
os.register_at_fork(after_in_child=_spare.clear)


def now() -> int:
    """Microseconds since the Unix epoch, UTC."""
    return time.time_ns() // 1000


def random_hex() -> str:
    """18 random hexadecimal digits. The system is asked for many at once, and never twice used."""
    try:
        return _spare.pop()
    except IndexError:
        fresh = os.urandom(9 * _SPARES).hex()
        _spare.extend(fresh[at : at + 18] for at in range(18, len(fresh), 18))
        return fresh[:18]


def unique_id() -> str:
    """A UUID of version 7 (RFC 9562): ids made later sort later, which keeps indexes dense."""
    nanoseconds = time.time_ns()
    moment = f"{nanoseconds // 1_000_000:012x}"
    random = random_hex()
    variant = "89ab"[nanoseconds & 3]
    return f"{moment[:8]}-{moment[8:]}-7{random[:3]}-{variant}{random[3:6]}-{random[6:]}"
