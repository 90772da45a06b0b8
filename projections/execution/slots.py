"""The `slots` view: who has each plan now, and what its holder said last (D6)."""

from __future__ import annotations

from typing import Any

from statelog.domain.aggregate import changed
from statelog.domain.event import Recorded
from statelog.domain.execution.slot import SLOT, Held, Released, Reporting, Slot, SlotStatus
from statelog.projections.execution.streams import plan_of, stream_of
from statelog.projections.projection import Projection

_LEADS_TO = {
    Held: SlotStatus.HELD,
    Reporting: SlotStatus.REPORTING,
    Released: SlotStatus.FREE,
}


def evolve(state: Slot, recorded: Recorded) -> Slot:
    """The slot after an event of it. A view shows what was recorded, legal or not."""
    event = recorded.event
    status = _LEADS_TO.get(type(event), state.status)
    return changed(SLOT.evolve(state, event), status=status)


def show(plan_id: str, state: Slot) -> dict[str, Any]:
    """The current or last reservation of a plan."""
    return {
        "plan_id": plan_id,
        "status": state.status.value,
        "execution_id": state.execution_id,
        "holder": state.holder,
        "plan_generation": state.plan_generation,
        "run_token": state.run_token,
        "gave_up": state.gave_up,
        "floor": state.floor,
    }


slots: Projection[Slot] = Projection(
    "slots",
    SLOT.blank,
    evolve,
    key=plan_of,
    below=stream_of,
    events=SLOT.lifecycle.events,
    show=show,
    columns={"status": lambda row: row["status"], "holder": lambda row: row["holder"]},
)
"""One row a plan that was ever reserved."""
