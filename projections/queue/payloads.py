"""What log output and exports leave out unless they are asked for it (P22)."""

from __future__ import annotations

from typing import Any, Final

from statelog.domain.queue.job import Published

PRIVATE: Final = frozenset({Published.stored_name})
"""Stored names of the events that have such payloads."""


def without_payload(name: str, data: Any) -> Any:
    """The data of an event of this stored name, as everybody may see it: no payload of a job."""
    if name not in PRIVATE or not isinstance(data, dict):
        return data
    return {field: value for field, value in data.items() if field != "payload"}
