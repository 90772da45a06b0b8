"""Clock readings and random parts of ids, injected wherever they are used (D19)."""

from __future__ import annotations

import secrets
import time

from statelog.domain.execution.execution_ids import format_instant
from statelog.infrastructure.clock import random_hex


def suffix() -> str:
    """Four random lowercase hexadecimal digits, the end of an execution ID."""
    return secrets.token_hex(2)


def run_id(time_us: int) -> str:
    """A fresh run ID: `run_`, the UTC time, and six hexadecimal digits (1.9)."""
    return f"run_{format_instant(time_us)}_{random_hex()[:6]}"


def monotonic_us() -> int:
    """Microseconds of a clock that is never set."""
    return time.monotonic_ns() // 1000
