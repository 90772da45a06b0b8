"""What of plans, slots and attempts may be erased, and what is kept for later decisions."""

from __future__ import annotations

from typing import Final

from statelog.domain.aggregate import changed
from statelog.domain.erasure import Erasable
from statelog.domain.errors import Invalid
from statelog.domain.execution.attempt import ATTEMPT, Attempt
from statelog.domain.execution.plan import PLAN, Plan, PlanStatus
from statelog.domain.execution.request import token
from statelog.domain.execution.slot import SLOT, Slot, SlotStatus
from statelog.domain.pmap import PMap


def _requested(plan: Plan) -> str | None:
    """A plan is finished once it is no longer asked for; it may be asked for again."""
    if plan.status is not PlanStatus.APPROVED:
        return None
    try:
        waits = token(plan.run_token) > token(plan.executed_run_token)
    except Invalid:
        return None
    return "its request is not finished" if waits else None


def _taken(slot: Slot) -> str | None:
    if slot.status is SlotStatus.FREE:
        return None
    return f"execution {slot.execution_id} has it ({slot.status.value})"


def _closed(attempt: Attempt) -> Attempt:
    """Nothing follows a close: that it was closed is all that anybody asks."""
    return changed(attempt, start=None, report=None, steps=PMap(), deps={})


_SLOT: Final = Erasable(SLOT, _taken)

ERASABLE: Final = (
    Erasable(PLAN, _requested, beside=(_SLOT,)),
    _SLOT,
    Erasable(ATTEMPT, remains=_closed, beside=(_SLOT,)),
)
"""Plans that nobody asks to run, slots that are free, attempts that are closed."""
