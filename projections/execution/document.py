"""How one event of a plan's stream changes its stored document (1.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from statelog.domain.event import Event, Recorded
from statelog.domain.execution.imported import IMPORTED
from statelog.domain.execution.plan import (
    Adopted,
    Approved,
    Deleted,
    GenerationAssigned,
    Imported,
    RequestFinished,
    ReturnedToDraft,
    RunRequested,
    Saved,
    Touched,
)
from statelog.domain.times import iso_seconds
from statelog.projections.execution.filed_reports import FiledReports, completion
from statelog.projections.execution.streams import plan_of

Fields = dict[str, Any]

PLAN_EVENTS: Final = (
    Saved,
    Approved,
    ReturnedToDraft,
    RunRequested,
    Touched,
    Adopted,
    RequestFinished,
    Deleted,
    Imported,
    GenerationAssigned,
)

_GIVEN: Final = ("source_doc_id", "source_doc_rev", "notes")


def changed_document(
    before: Mapping[str, Any], recorded: Recorded, filed: FiledReports
) -> Fields | None:
    """The document after an event of the plan's stream; None once it is deleted.

    `before` is empty when there is no document, and then only a save or an import makes one.
    """
    event = recorded.event
    if isinstance(event, Deleted):
        return None
    if isinstance(event, Saved):
        after = _saved(event, recorded.time, before)
    elif isinstance(event, Imported):
        after = {"_id": plan_of(recorded), "execution_authority": None, **event.document}
    elif not before:
        return None
    else:
        after = {**before, **_changes(event, recorded, filed)}
    return {**after, "_rev": str(recorded.version)}


def _saved(event: Saved, at: int, before: Mapping[str, Any]) -> Fields:
    now = iso_seconds(at)
    return {
        "_id": event.plan_id,
        "_rev": "",
        "realm": event.realm,
        "scope": event.scope,
        "status": "draft",
        "plan": event.plan,
        "preview": event.preview,
        "plan_generation": event.plan_generation,
        "run_token": event.run_token,
        "executed_run_token": event.executed_run_token,
        "execution_authority": event.execution_authority,
        "execution_owner": event.execution_owner,
        "created_at": before.get("created_at") or now,
        "updated_at": now,
        **{name: value for name in _GIVEN if (value := getattr(event, name))},
    }


def _changes(event: Event, recorded: Recorded, filed: FiledReports) -> Fields:
    now = iso_seconds(recorded.time)
    match event:
        case Approved() if IMPORTED in (recorded.meta or {}):
            return {"status": "approved"}
        case Approved():
            return {"status": "approved", "approved_at": now, "approved_by": recorded.actor}
        case ReturnedToDraft():
            return {"status": "draft"}
        case RunRequested(run_token=token):
            asked = {"run_requested_at": now, "run_requested_by": recorded.actor}
            return {"run_token": token, **asked}
        case Adopted(execution_authority=authority, execution_owner=owner):
            return {"execution_authority": authority, "execution_owner": owner}
        case GenerationAssigned(plan_generation=generation):
            return {"plan_generation": generation}
        case RequestFinished(run_token=token):
            record = completion(plan_of(recorded) or "", event, recorded.time, filed)
            return {
                "executed_run_token": token,
                "last_finalized_execution": record,
                "last_executed_at": now,
                "updated_at": now,
            }
        case _:
            return {}
