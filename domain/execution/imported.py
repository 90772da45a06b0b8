"""What comes in from elsewhere: plan documents, and the floor that imported attempts set (D20)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.execution.execution_ids import order_key, timestamp_of
from statelog.domain.execution.plan import Approved, Imported, Plan
from statelog.domain.execution.spec import path_part

IMPORTED: Final = "imported"
"""The metadata of events that came in from elsewhere: such attempts never had the slot."""

UNCORRELATED: Final = "~uncorrelated"
"""In place of an execution ID: a plan's history from before there were any (6.7).

It orders below every attempt, and is shown only while the plan has none.
"""


def shown_order(execution_id: str) -> tuple[bool, bool, str]:
    """Sort key, highest for the attempt that is shown: any is above a history without any."""
    return (execution_id != UNCORRELATED, *order_key(execution_id))


def take_document(plan: Plan, *, document: Mapping[str, Any]) -> list[Imported | Approved]:
    """Keep a document verbatim; one that is approved stays so.

    What makes it one that nobody can execute is found when it is read, not here.
    """
    taken: list[Imported | Approved] = [Imported(document)]
    return [*taken, Approved()] if document.get("status") == "approved" else taken


def plan_named_by(document: object) -> str:
    """The plan that a document is of. Raises `Invalid` for what is no document with an ID."""
    if not isinstance(document, Mapping):
        raise Invalid("document", "must be an object")
    if document.get("_deleted") is True:
        raise Invalid("_deleted", "says that the document is gone")
    return path_part(document.get("_id"), "_id")


def comparable(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a document says, without what the store computes: equal for equal documents."""
    computed = ("_rev", "latest_request_succeeded")
    own = {name: value for name, value in document.items() if name not in computed}
    return {"execution_authority": None, **own}


def highest(execution_ids: Iterable[str], now_us: int) -> tuple[str | None, list[str]]:
    """The highest canonical ID that is not later than now, and those that are (6.3).

    IDs that are not canonical set no floor. `now_us` is in microseconds since 1970 UTC.
    """
    dated = [(at, id) for id in execution_ids if (at := timestamp_of(id)) is not None]
    later = sorted(id for at, id in dated if at > now_us)
    return max((id for at, id in dated if at <= now_us), default=None), later
