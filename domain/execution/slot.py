"""The slot: at most one attempt of a plan at a time, across processes (D6, D7, D10)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from statelog.domain.aggregate import Aggregate, changed
from statelog.domain.errors import Refused
from statelog.domain.event import Event
from statelog.domain.execution.execution_ids import order_key
from statelog.domain.lifecycle import SAME, Lifecycle

UNFINISHED = "unfinished"
RECORDED = "recorded"
SUPERSEDED = "superseded"
VOIDED = "voided"
NOT_STARTED = "not_started"


class Held(Event, name="execution.slot.held"):
    """The plan was admitted for execution: this is the reservation of an execution ID."""

    execution_id: str
    holder: str
    plan_version: int
    plan_generation: str
    run_token: int
    execution_authority: str
    execution_owner: str | None


class Reporting(Event, name="execution.slot.report_filed"):
    """The attempt closed with a result that finishes the request and is yet to be recorded."""

    execution_id: str


class GaveUp(Event, name="execution.slot.gave_up"):
    """The holder could not record the result; anybody may settle it."""

    execution_id: str
    reason: str


class Released(Event, name="execution.slot.released"):
    """The plan is free again: unfinished, recorded, superseded (why), voided or not_started."""

    execution_id: str
    how: str
    reason: str | None = None


class FloorRaised(Event, name="execution.slot.floor_raised"):
    """Later execution IDs order after this one."""

    execution_id: str


class SlotStatus(Enum):
    """Who may write for the plan now: nobody, the attempt's holder, whoever records."""

    FREE, HELD, REPORTING = "free", "held", "reporting"


@dataclass(frozen=True)
class Slot:
    """The current or last reservation, and the floor of execution IDs."""

    status: SlotStatus = SlotStatus.FREE
    execution_id: str | None = None
    holder: str | None = None
    plan_version: int = 0
    plan_generation: str = ""
    run_token: int = 0
    execution_authority: str = ""
    execution_owner: str | None = None
    gave_up: str | None = None
    floor: str | None = None


SlotEvent = Held | Reporting | GaveUp | Released | FloorRaised


def evolve(slot: Slot, event: SlotEvent) -> Slot:
    """The slot after an event."""
    match event:
        case Held():
            return Slot(
                slot.status,
                event.execution_id,
                event.holder,
                event.plan_version,
                event.plan_generation,
                event.run_token,
                event.execution_authority,
                event.execution_owner,
                None,
                _later(slot.floor, event.execution_id),
            )
        case Reporting() | Released():
            return changed(slot, gave_up=None)
        case GaveUp(reason=reason):
            return changed(slot, gave_up=reason)
        case FloorRaised(execution_id=execution_id):
            return changed(slot, floor=_later(slot.floor, execution_id))
        case _:
            assert_never(event)


def _later(floor: str | None, execution_id: str) -> str:
    return execution_id if floor is None else max(floor, execution_id, key=order_key)


_FREE, _HELD, _REPORTING = SlotStatus.FREE, SlotStatus.HELD, SlotStatus.REPORTING

SLOT = Aggregate(
    "slot",
    Slot(),
    evolve,
    Lifecycle(
        _FREE,
        [
            # event       from        to
            (Held, _FREE, _HELD),
            (Reporting, _HELD, _REPORTING),
            (GaveUp, _REPORTING, SAME),
            (Released, _HELD, _FREE),
            (Released, _REPORTING, _FREE),
            (FloorRaised, _FREE, SAME),
            (FloorRaised, _HELD, SAME),
            (FloorRaised, _REPORTING, SAME),
        ],
        name="slot",
    ),
    stream="plan/{}/slot",
)


def admit(
    slot: Slot,
    *,
    execution_id: str,
    holder: str,
    plan_version: int,
    plan_generation: str,
    run_token: int,
    execution_authority: str,
    execution_owner: str | None,
) -> list[Held]:
    """Reserve the plan for one attempt.

    Raises `Refused` (rules `slot_free`, `execution_order`) when the slot is taken, or the id does
    not order after the last one.
    """
    if slot.status is not _FREE:
        raise Refused(f"execution {slot.execution_id} has the plan", rule="slot_free")
    if slot.floor is not None and order_key(execution_id) <= order_key(slot.floor):
        raise Refused(f"{execution_id} is not after {slot.floor}", rule="execution_order")
    return [
        Held(
            execution_id,
            holder,
            plan_version,
            plan_generation,
            run_token,
            execution_authority,
            execution_owner,
        )
    ]


def _theirs(slot: Slot, execution_id: str, *statuses: SlotStatus) -> None:
    if slot.status not in statuses or slot.execution_id != execution_id:
        raise Refused(f"execution {execution_id} does not have the plan", rule="slot_owner")


def file_report(slot: Slot, *, execution_id: str) -> list[Reporting]:
    """Say that the attempt closed with a result to record. Raises `Refused` (`slot_owner`)."""
    _theirs(slot, execution_id, _HELD)
    return [Reporting(execution_id)]


def give_up(slot: Slot, *, execution_id: str, reason: str) -> list[GaveUp]:
    """Say that the result could not be recorded. Raises `Refused` (`slot_owner`)."""
    _theirs(slot, execution_id, _REPORTING)
    return [GaveUp(execution_id, reason)]


def release(
    slot: Slot, *, execution_id: str, how: str, reason: str | None = None
) -> list[Released]:
    """Free the plan. Raises `Refused` (`slot_owner`) unless its state is the one `how` needs."""
    needed = _REPORTING if how in (RECORDED, SUPERSEDED) else _HELD
    _theirs(slot, execution_id, needed)
    return [Released(execution_id, how, reason)]


def raise_floor(slot: Slot, *, execution_id: str) -> list[FloorRaised]:
    """Let later execution IDs order after this one; nothing if they do."""
    if slot.floor is not None and order_key(execution_id) <= order_key(slot.floor):
        return []
    return [FloorRaised(execution_id)]
