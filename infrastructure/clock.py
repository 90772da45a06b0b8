"""The system clock, and ids that sort by it."""

from __future__ import annotations

import os
import time


def now() -> int:
    """Microseconds since the Unix epoch, UTC."""
    return time.time_ns() // 1000


def unique_id() -> str:
    """A UUID of version 7 (RFC 9562): ids made later sort later, which keeps indexes dense."""
    nanoseconds = time.time_ns()
    moment = f"{nanoseconds // 1_000_000:012x}"
    random = os.urandom(9).hex()
    variant = "89ab"[nanoseconds & 3]
    return f"{moment[:8]}-{moment[8:]}-7{random[:3]}-{variant}{random[3:6]}-{random[6:]}"
