"""What log output and exports leave out unless they are asked for it (P22)."""

from __future__ import annotations

from typing import Any

from statelog.domain.queue.job import Published


def without_payload(name: str, data: Any) -> Any:
    """The data of an event of this stored name, as everybody may see it: no payload of a job."""
    if name != Published.stored_name or not isinstance(data, dict):
        return data
    return {field: value for field, value in data.items() if field != "payload"}
