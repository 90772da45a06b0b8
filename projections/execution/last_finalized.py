"""The `last_finalized` view: the newest recorded result of each plan (1.10).

A regeneration drops it, as it drops the field of the document; so does deleting the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.aggregate import changed
from statelog.domain.event import Recorded
from statelog.domain.execution.plan import Deleted, Imported, RequestFinished, Saved
from statelog.projections.execution.filed_reports import (
    REPORT_EVENTS,
    FiledReports,
    completion,
    file_recorded,
)
from statelog.projections.execution.streams import plan_of, stream_of
from statelog.projections.projection import Projection


@dataclass(frozen=True)
class LastFinalized:
    """The record, if there is one, and reports that may yet be recorded."""

    record: Mapping[str, Any] | None = None
    filed: FiledReports = field(default_factory=FiledReports)


def evolve(state: LastFinalized, recorded: Recorded) -> LastFinalized | None:
    """The state after an event of the plan, its slot or an attempt."""
    event = recorded.event
    match event:
        case Deleted():
            return None
        case Saved():
            return changed(state, record=None)
        case Imported(document=document):
            last = document.get("last_finalized_execution")
            return changed(state, record=last if isinstance(last, Mapping) else None)
        case RequestFinished():
            plan_id = plan_of(recorded) or ""
            return LastFinalized(completion(plan_id, event, recorded.time, state.filed))
        case _:
            return changed(state, filed=file_recorded(state.filed, recorded))


def show(plan_id: str, state: LastFinalized) -> Mapping[str, Any] | None:
    """The record (1.10); None while no request of this generation was finished."""
    return state.record


def _field(name: str) -> Any:
    return lambda record: record.get(name)


last_finalized: Final = Projection(
    "last_finalized",
    LastFinalized(),
    evolve,
    key=plan_of,
    below=stream_of,
    events=(Saved, Imported, Deleted, RequestFinished, *REPORT_EVENTS),
    show=show,
    columns={
        name: _field(name)
        for name in (
            "execution_id",
            "plan_generation",
            "run_token",
            "outcome",
            "termination_reason",
            "finalized_at",
        )
    },
)
"""The newest recorded result of each plan's current generation."""
