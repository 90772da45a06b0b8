"""The system clock, and ids that sort by it."""

from __future__ import annotations

import os
import time


def now() -> int:
    """Microseconds since the Unix epoch, UTC."""
    return time.time_ns() // 1000


def unique_id() -> str:
    """A UUID of version 7 (RFC 9562): ids made later sort later, which keeps indexes dense."""
    random = int.from_bytes(os.urandom(10), "big")
    bits = (time.time_ns() // 1_000_000) << 80 | random
    bits = bits & ~(0xF << 76) | 0x7 << 76
    bits = bits & ~(0x3 << 62) | 0x2 << 62
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
