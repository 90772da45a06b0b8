"""The `plan_summary` view: one line of each plan (7.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from statelog.domain.event import Recorded
from statelog.domain.execution.request import DAEMON, generation
from statelog.projections.execution.document import PLAN_EVENTS, changed_document
from statelog.projections.execution.filed_reports import FiledReports
from statelog.projections.execution.streams import plan_of, stream_of
from statelog.projections.projection import Projection

Fields = Mapping[str, Any]

_KEPT: Final = (
    "status",
    "execution_authority",
    "execution_owner",
    "created_at",
    "updated_at",
    "realm",
    "run_token",
    "executed_run_token",
    "plan_generation",
)


def evolve(state: Fields, recorded: Recorded) -> Fields | None:
    """The few fields of the document after an event; no row without a document."""
    document = changed_document(state, recorded, FiledReports())
    if document is None:
        return None
    last = document.get("last_finalized_execution")
    return {
        **{name: document[name] for name in _KEPT if name in document},
        "last_finalized_execution": {"outcome": last.get("outcome")}
        if isinstance(last, Mapping)
        else None,
    }


def show(plan_id: str, state: Fields) -> dict[str, Any]:
    """The line, with what is displayed for fields that a document does not have."""
    return {
        "plan_id": plan_id,
        "status": state.get("status") or "unknown",
        "execution_authority": state.get("execution_authority") or DAEMON,
        "execution_owner": state.get("execution_owner"),
        "updated_at": state.get("updated_at"),
        "realm": state.get("realm"),
        "run_token": state.get("run_token", 0),
        "executed_run_token": state.get("executed_run_token", -1),
        "plan_generation": generation(state.get("plan_generation")),
        "last_finalized_outcome": (state["last_finalized_execution"] or {}).get("outcome"),
    }


def _field(name: str) -> Any:
    return lambda line: line[name]


plan_summary: Final[Projection[Fields]] = Projection(
    "plan_summary",
    {},
    evolve,
    key=plan_of,
    below=stream_of,
    events=PLAN_EVENTS,
    show=show,
    columns={
        name: _field(name)
        for name in (
            "realm",
            "status",
            "execution_authority",
            "run_token",
            "executed_run_token",
            "last_finalized_outcome",
            "updated_at",
        )
    },
)
"""One line of each plan."""
