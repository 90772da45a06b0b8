"""The `plan_document` view: the stored document of each plan (1.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.event import Recorded
from statelog.domain.execution.plan import RequestFinished
from statelog.domain.execution.request import latest_request_succeeded
from statelog.projections.execution.document import PLAN_EVENTS, changed_document
from statelog.projections.execution.filed_reports import (
    REPORT_EVENTS,
    FiledReports,
    file_recorded,
)
from statelog.projections.execution.streams import plan_of, stream_of
from statelog.projections.projection import Projection

_ORDER: Final = (
    *("_id", "_rev", "realm", "scope", "status", "plan", "preview", "plan_generation"),
    *("run_token", "executed_run_token", "execution_authority", "execution_owner"),
    *("last_finalized_execution", "last_executed_at", "created_at", "updated_at"),
    *("source_doc_id", "source_doc_rev", "notes"),
    *("approved_at", "approved_by", "run_requested_at", "run_requested_by"),
)


@dataclass(frozen=True)
class StoredDocument:
    """The document, and reports that it may yet record."""

    document: Mapping[str, Any] = field(default_factory=dict)
    filed: FiledReports = field(default_factory=FiledReports)


def evolve(state: StoredDocument, recorded: Recorded) -> StoredDocument | None:
    """The state after an event; no row without a document."""
    event = recorded.event
    if isinstance(event, REPORT_EVENTS):
        filed = file_recorded(state.filed, recorded)
        return StoredDocument(state.document, filed) if state.document else None
    document = changed_document(state.document, recorded, state.filed)
    if document is None:
        return None
    recording = isinstance(event, RequestFinished)
    return StoredDocument(document, FiledReports() if recording else state.filed)


def show(plan_id: str, state: StoredDocument) -> dict[str, Any]:
    """The document in the order of 1.2, with the computed `latest_request_succeeded` (2.2)."""
    known = {name: state.document[name] for name in _ORDER if name in state.document}
    document = {**known, **state.document}
    last = document.get("last_finalized_execution")
    document["latest_request_succeeded"] = latest_request_succeeded(
        document.get("run_token", 0),
        document.get("executed_run_token", -1),
        last if isinstance(last, Mapping) else None,
    )
    return document


def _field(name: str) -> Any:
    return lambda document: document.get(name)


plan_document: Final = Projection(
    "plan_document",
    StoredDocument(),
    evolve,
    key=plan_of,
    below=stream_of,
    events=(*PLAN_EVENTS, *REPORT_EVENTS),
    show=show,
    columns={
        name: _field(name)
        for name in (
            "realm",
            "status",
            "plan_generation",
            "run_token",
            "executed_run_token",
            "latest_request_succeeded",
            "execution_authority",
            "execution_owner",
            "updated_at",
        )
    },
)
"""The document of each plan; a deleted plan has none."""
