"""The plan: one stored document, its approval, its run requests and their results (D3 to D5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, assert_never

from statelog.domain.aggregate import Aggregate, changed
from statelog.domain.errors import Invalid, Refused
from statelog.domain.event import Event
from statelog.domain.execution.request import (
    AUTHORITIES,
    DAEMON,
    request_state,
    token,
)
from statelog.domain.execution.request import (
    generation as usable_generation,
)
from statelog.domain.execution.spec import Json, PlanSpec, path_part
from statelog.domain.lifecycle import SAME, Lifecycle


class Saved(Event, name="execution.plan.saved"):
    """A plan was saved, or regenerated: tokens are reset, the last result is dropped."""

    plan_id: str
    realm: str
    scope: Mapping[str, Any]
    plan: Mapping[str, Any]
    preview: Mapping[str, Any]
    plan_generation: str
    run_token: int
    executed_run_token: int
    execution_authority: str
    execution_owner: str | None
    source_doc_id: str | None = None
    source_doc_rev: str | None = None
    notes: str | None = None


class Approved(Event, name="execution.plan.approved"):
    """Somebody allowed the plan to run, or asked to look at its open request again (D4)."""


class ReturnedToDraft(Event, name="execution.plan.returned_to_draft"):
    """Somebody took the permission to run back."""


class RunRequested(Event, name="execution.plan.run_requested"):
    """Another run was asked for: the token was raised to this value."""

    run_token: int


class Touched(Event, name="execution.plan.touched"):
    """Somebody asked to look at the plan again; nothing else changed."""


class Adopted(Event, name="execution.plan.adopted"):
    """The plan may from now on be executed by another authority or owner."""

    execution_authority: str
    execution_owner: str | None


class RequestFinished(Event, name="execution.plan.request_finished"):
    """A result was recorded together with its token; the report stands in the attempt's stream."""

    execution_id: str
    plan_generation: str
    run_token: int
    failure_policy: str
    outcome: str
    termination_reason: str


class Deleted(Event, name="execution.plan.deleted"):
    """The document was deleted; a later save starts a new generation."""


class Imported(Event, name="execution.plan.imported"):
    """A document came in from elsewhere and is kept verbatim (D20)."""

    document: Mapping[str, Any]


class GenerationAssigned(Event, name="execution.plan.generation_assigned"):
    """A document without a usable generation was given one before its first run (2.9)."""

    plan_generation: str


class PlanStatus(Enum):
    """Permission to run."""

    ABSENT, DRAFT, APPROVED = "absent", "draft", "approved"


@dataclass(frozen=True)
class Plan:
    """What decisions about a plan need. Values of an imported document are kept as they came."""

    status: PlanStatus = PlanStatus.ABSENT
    plan_id: Json = None
    realm: Json = None
    body: Json = None
    plan_generation: Json = None
    run_token: Json = 0
    executed_run_token: Json = -1
    execution_authority: Json = None
    execution_owner: Json = None
    last: Mapping[str, Any] | None = field(default=None)

    @property
    def open(self) -> bool:
        """Whether a run is asked for and not finished, approved or not."""
        return request_state("approved", self.run_token, self.executed_run_token) == "open"


PlanEvent = (
    Saved
    | Approved
    | ReturnedToDraft
    | RunRequested
    | Touched
    | Adopted
    | RequestFinished
    | Deleted
    | Imported
    | GenerationAssigned
)


def evolve(plan: Plan, event: PlanEvent) -> Plan:
    """The plan after an event."""
    match event:
        case Saved():
            return Plan(
                plan.status,
                event.plan_id,
                event.realm,
                event.plan,
                event.plan_generation,
                event.run_token,
                event.executed_run_token,
                event.execution_authority,
                event.execution_owner,
            )
        case Imported(document=document):
            return _imported(plan, document)
        case Approved() | ReturnedToDraft() | Touched():
            return plan
        case RunRequested(run_token=token):
            return changed(plan, run_token=token)
        case Adopted(execution_authority=authority, execution_owner=owner):
            return changed(plan, execution_authority=authority, execution_owner=owner)
        case RequestFinished():
            return changed(plan, executed_run_token=event.run_token, last=identity(event))
        case Deleted():
            return Plan(plan.status)
        case GenerationAssigned(plan_generation=generation):
            return changed(plan, plan_generation=generation)
        case _:
            assert_never(event)


def identity(finished: RequestFinished) -> dict[str, Any]:
    """The completion's identity without the plan's id (1.10)."""
    return {
        "execution_id": finished.execution_id,
        "plan_generation": finished.plan_generation,
        "run_token": finished.run_token,
        "failure_policy": finished.failure_policy,
        "outcome": finished.outcome,
        "termination_reason": finished.termination_reason,
    }


def _imported(plan: Plan, document: Mapping[str, Any]) -> Plan:
    last = document.get("last_finalized_execution")
    return Plan(
        plan.status,
        document.get("_id"),
        document.get("realm"),
        document.get("plan"),
        document.get("plan_generation"),
        document.get("run_token", 0),
        document.get("executed_run_token", -1),
        document.get("execution_authority"),
        document.get("execution_owner"),
        last if isinstance(last, Mapping) else None,
    )


_DRAFT, _APPROVED, _ABSENT = PlanStatus.DRAFT, PlanStatus.APPROVED, PlanStatus.ABSENT

PLAN = Aggregate(
    "plan",
    Plan(),
    evolve,
    Lifecycle(
        _ABSENT,
        [
            # event              from       to
            (Saved, _ABSENT, _DRAFT),
            (Saved, _DRAFT, SAME),
            (Saved, _APPROVED, _DRAFT),
            (Imported, _ABSENT, _DRAFT),
            (Imported, _DRAFT, SAME),
            (Imported, _APPROVED, _DRAFT),
            (Approved, _DRAFT, _APPROVED),
            (Approved, _APPROVED, SAME),
            (ReturnedToDraft, _APPROVED, _DRAFT),
            (RunRequested, _DRAFT, SAME),
            (RunRequested, _APPROVED, SAME),
            (Touched, _DRAFT, SAME),
            (Touched, _APPROVED, SAME),
            (Adopted, _DRAFT, SAME),
            (Adopted, _APPROVED, SAME),
            (GenerationAssigned, _DRAFT, SAME),
            (GenerationAssigned, _APPROVED, SAME),
            (RequestFinished, _DRAFT, SAME),
            (RequestFinished, _APPROVED, SAME),
            (Deleted, _DRAFT, _ABSENT),
            (Deleted, _APPROVED, _ABSENT),
        ],
        name="plan",
    ),
)


def _token(value: Json, field: str, least: int) -> int:
    if type(value) is not int or value < least:
        raise Invalid(field, f"must be an integer of at least {least}, not {value!r}")
    return value


def save(
    plan: Plan,
    *,
    body: Json,
    generation: str,
    authority: str = DAEMON,
    owner: str | None = None,
    approved: bool = False,
    preview: Mapping[str, Any] | None = None,
    run_token: int = 0,
    executed_run_token: int = -1,
    source_doc_id: str | None = None,
    source_doc_rev: str | None = None,
    notes: str | None = None,
) -> list[Saved | Approved]:
    """Save a body as a new generation, approved or as a draft.

    Raises `Invalid` for a body that is not a plan body, an id or realm that is not one path part,
    an unknown authority or a token below its initial value.
    """
    spec = PlanSpec.from_json(body)
    if authority not in AUTHORITIES:
        raise Invalid("execution_authority", f"must be one of {', '.join(AUTHORITIES)}")
    if not generation:
        raise Invalid("plan_generation", "must not be empty")
    saved = Saved(
        plan_id=path_part(spec.plan_id, "plan.plan_id"),
        realm=path_part(spec.realm, "plan.realm"),
        scope=spec.scope,
        plan=body,
        preview=preview or {},
        plan_generation=generation,
        run_token=_token(run_token, "run_token", 0),
        executed_run_token=_token(executed_run_token, "executed_run_token", -1),
        execution_authority=authority,
        execution_owner=owner,
        source_doc_id=source_doc_id or None,
        source_doc_rev=source_doc_rev or None,
        notes=notes or None,
    )
    return [saved, Approved()] if approved else [saved]


def _exists(plan: Plan) -> None:
    if plan.status is _ABSENT:
        raise Refused("there is no such plan", rule="plan_exists")


def approve(plan: Plan) -> list[Approved]:
    """Allow the plan to run; of an approved one, look at its open request again (D4)."""
    _exists(plan)
    return [Approved()] if plan.status is _DRAFT or plan.open else []


def return_to_draft(plan: Plan) -> list[ReturnedToDraft]:
    """Take the permission back; nothing if it is a draft."""
    _exists(plan)
    return [ReturnedToDraft()] if plan.status is _APPROVED else []


def request(plan: Plan) -> list[RunRequested]:
    """Ask for another run. Raises `Invalid` when the stored token is not a number."""
    _exists(plan)
    return [RunRequested(run_token=token(plan.run_token) + 1)]


def touch(plan: Plan) -> list[Touched]:
    """Ask to look at the plan again."""
    _exists(plan)
    return [Touched()]


def adopt(plan: Plan, *, authority: str, owner: str | None = None) -> list[Adopted]:
    """Give the plan to another authority and owner; nothing if it is theirs already."""
    _exists(plan)
    if authority not in AUTHORITIES:
        raise Invalid("execution_authority", f"must be one of {', '.join(AUTHORITIES)}")
    if (plan.execution_authority, plan.execution_owner) == (authority, owner):
        return []
    return [Adopted(execution_authority=authority, execution_owner=owner)]


def delete(plan: Plan) -> list[Deleted]:
    """Delete the document."""
    _exists(plan)
    return [Deleted()]


def assign_generation(plan: Plan, *, generation: str) -> list[GenerationAssigned]:
    """Give a document without a usable generation one; nothing if it has one (2.9)."""
    _exists(plan)
    if usable_generation(plan.plan_generation) is not None:
        return []
    return [GenerationAssigned(plan_generation=generation)]


def finish(plan: Plan, *, result: RequestFinished) -> list[RequestFinished]:
    """Record a judged result (2.6).

    Raises `Refused` for another generation or a token that is not above the executed one, and
    `Invalid` when the executed token cannot be read.
    """
    _exists(plan)
    if result.plan_generation != plan.plan_generation:
        raise Refused("the plan has another generation", rule="generation_changed")
    if result.run_token <= token(plan.executed_run_token, "executed_run_token"):
        raise Refused("the request is finished already", rule="request_already_finalized")
    return [result]
