"""Limits of cores and memory as people write them (section 6)."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from statelog.domain.errors import Invalid, Malformed

_UNITS: Final = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|)")
_CPU = re.compile(r"(\d+(?:\.\d+)?)(m?)")


def cores(limit: Any, where: str) -> float:
    """Cores of a limit: 2, `0.5` or `250m`. Raises `Malformed`, and `Invalid` for other text."""
    parts = _CPU.fullmatch(_limit(limit, where))
    if parts is None:
        raise Invalid(where, f"{limit!r} is not a number of cores such as 2, 0.5 or 250m")
    return float(Decimal(parts[1]) / (1000 if parts[2] else 1))


def size(limit: Any, where: str) -> int:
    """Bytes of a limit: 1024, `16Mi` or `1.5Gi`. Raises `Malformed`, `Invalid` for other text."""
    parts = _MEMORY.fullmatch(_limit(limit, where))
    if parts is None:
        raise Invalid(where, f"{limit!r} is not a number of bytes such as 1048576, 16Mi or 1.5Gi")
    amount = int(Decimal(parts[1]) * _UNITS[parts[2]])
    if amount >= 2**63:
        raise Invalid(where, "is more than 8 EiB")
    return amount


def _limit(limit: Any, where: str) -> str:
    if type(limit) is str:
        return limit
    if type(limit) not in (int, float):
        raise Malformed(where, "must be text or a number")
    try:
        return format(Decimal(str(limit)), "f")
    except InvalidOperation:
        raise Malformed(where, f"is {limit}") from None
