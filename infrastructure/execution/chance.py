"""Clock readings and random parts of ids, injected wherever they are used (D19)."""

from __future__ import annotations

import secrets
import time

from statelog.domain.execution.execution_ids import format_id


def suffix() -> str:
    """Four random lowercase hexadecimal digits, the end of an execution ID."""
    return secrets.token_hex(2)


def run_id(time_us: int) -> str:
    """A fresh run ID: `run_`, the UTC time, and six hexadecimal digits (1.9)."""
    stamp, _, _ = format_id(time_us, "0000").partition("_")
    return f"run_{stamp}_{secrets.token_hex(3)}"


def monotonic_us() -> int:
    """Microseconds of a clock that is never set."""
    return time.monotonic_ns() // 1000
