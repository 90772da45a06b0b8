"""How much the tests marked `long` do: `make test-long SHORT=1` asks for less."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")


def amount(full: T, short: T) -> T:
    """What a long test does, and what its short form does."""
    return short if os.environ.get("STATELOG_SHORT") else full
