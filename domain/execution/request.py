"""Run requests: tokens, eligibility, who may execute, and admission (2.2, 2.8, 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from statelog.domain.errors import Invalid
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.spec import Json, PlanSpec, path_part

DAEMON: Final = "daemon"
RUN_ONCE: Final = "run_once"
AUTHORITIES: Final = (DAEMON, RUN_ONCE)

OPEN: Final = "open"
PARKED: Final = "parked"
FINISHED: Final = "finished"

_NUMERAL = re.compile(r"\s*[+-]?[0-9]{1,19}\s*", re.ASCII)


class Document(Protocol):
    """The plan's state as admission and recording read it; imported values come as they are (1.2).

    `status` is the word or an enumeration member with that value; a token that the document does
    not have reads as its initial value, 0 or -1. `last` is the record of 1.10, whose `plan_id` may
    be left out.
    """

    @property
    def status(self) -> Any: ...  # noqa: D102
    @property
    def plan_id(self) -> Json: ...  # noqa: D102
    @property
    def body(self) -> Json: ...  # noqa: D102
    @property
    def plan_generation(self) -> Json: ...  # noqa: D102
    @property
    def run_token(self) -> Json: ...  # noqa: D102
    @property
    def executed_run_token(self) -> Json: ...  # noqa: D102
    @property
    def execution_authority(self) -> Json: ...  # noqa: D102
    @property
    def execution_owner(self) -> Json: ...  # noqa: D102
    @property
    def last(self) -> Mapping[str, Any] | None: ...  # noqa: D102


def present(document: Document | None) -> bool:
    """Whether there is such a document: neither missing nor deleted."""
    return document is not None and _word(document.status) != "absent"


def token(value: Json, field: str = "run_token") -> int:
    """A run token as an integer of 64 bits: integers, whole numbers and decimal strings.

    Booleans are not numbers here, as nowhere else in an event (7.4). Raises `Invalid` for
    anything else.
    """
    number = _number(value)
    if number is None or not -(2**63) <= number < 2**63:
        raise Invalid(field, f"{value!r} is not an integer")
    return number


def _number(value: Json) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    whole = whole or (isinstance(value, float) and value.is_integer())
    numeral = isinstance(value, str) and _NUMERAL.fullmatch(value) is not None
    return int(value) if whole or numeral else None


def generation(value: Json) -> str | None:
    """A usable generation: a non-empty string; anything else counts as none (2.9)."""
    return value if isinstance(value, str) and value else None


def request_state(status: Any, run_token: Json, executed: Json) -> str | None:
    """`open`, `parked` or `finished` (2.2); none when a token is not a number."""
    try:
        asked = token(run_token) > token(executed)
    except Invalid:
        return None
    if not asked:
        return FINISHED
    return OPEN if _word(status) == "approved" else PARKED


def eligible(status: Any, run_token: Json, executed: Json) -> bool:
    """Whether a plan is approved and its latest request unfinished (3); authority is apart."""
    return request_state(status, run_token, executed) == OPEN


def latest_request_succeeded(
    run_token: Json, executed: Json, last: Mapping[str, Any] | None
) -> bool:
    """Whether the latest request is finished, and it is its own result that says succeeded (2.2).

    Equal tokens alone do not say so.
    """
    if last is None or last.get("outcome") != "succeeded":
        return False
    try:
        return token(run_token) == token(executed) == token(last.get("run_token"))
    except Invalid:
        return False


@dataclass(frozen=True)
class Claim:
    """What a caller is allowed to execute; a run-once session names its own token (2.8)."""

    authority: str
    owner: str | None = None

    def __post_init__(self) -> None:
        if self.authority not in AUTHORITIES:
            raise Invalid("authority", f"must be one of {', '.join(AUTHORITIES)}")
        if self.authority == RUN_ONCE and not self.owner:
            raise Invalid("owner", "a run-once session has a token of its own")


def may_execute(claim: Claim, authority: Json, owner: Json) -> bool:
    """Whether a claim covers a document: the daemon's whoever owns it, a session's own (2.8)."""
    if claim.authority == DAEMON:
        return bool(authority == DAEMON)
    return bool(authority == RUN_ONCE and owner == claim.owner)


@dataclass(frozen=True)
class RunRequest:
    """One request as captured from one read: everything the attempt goes by (3)."""

    plan: PlanSpec
    plan_generation: str
    run_token: int
    execution_authority: str
    execution_owner: str | None


@dataclass(frozen=True)
class AdmissionVerdict:
    """Whether a plan may be given the slot.

    Either `request`, or the `resolution` that says no, with its reason. `needs_generation`: only
    the generation is missing; assign one under the plan's version read, and ask again (2.9).
    """

    request: RunRequest | None = None
    resolution: Resolution | None = None
    reason: str = ""
    needs_generation: bool = False


def admit(document: Document | None, claim: Claim) -> AdmissionVerdict:
    """Judge one fresh read, in the order of 3: found, authorized, eligible, valid.

    Whether somebody runs the plan already, and the execution ID, are the slot's business.
    """
    if document is None or not present(document):
        return _no(Resolution.NOT_FOUND, "there is no such plan")
    authority, owner = document.execution_authority, document.execution_owner
    if not may_execute(claim, authority, owner):
        return _no(Resolution.NOT_AUTHORIZED, f"authority {authority!r}, owner {owner!r}")
    if not eligible(document.status, document.run_token, document.executed_run_token):
        return _no(Resolution.NOT_ELIGIBLE, _why_not_eligible(document))
    try:
        plan = PlanSpec.from_json(document.body)
        path_part(plan.plan_id, "plan.plan_id")
        path_part(plan.realm, "plan.realm")
    except Invalid as error:
        return _no(Resolution.INVALID_DOCUMENT, str(error))
    if plan.plan_id != document.plan_id:
        return _no(Resolution.INVALID_DOCUMENT, f"the body is of plan {plan.plan_id!r}")
    known = generation(document.plan_generation)
    if known is None:
        reason = "the plan has no generation"
        return AdmissionVerdict(None, Resolution.INVALID_DOCUMENT, reason, needs_generation=True)
    return AdmissionVerdict(
        RunRequest(plan, known, token(document.run_token), authority, owner_of(owner))
    )


def owner_of(value: Json) -> str | None:
    """An owner as it is compared: a string, anything else is nobody."""
    return value if isinstance(value, str) else None


def _no(resolution: Resolution, reason: str) -> AdmissionVerdict:
    return AdmissionVerdict(None, resolution, reason)


def _why_not_eligible(document: Document) -> str:
    tokens = f"run token {document.run_token!r}, executed {document.executed_run_token!r}"
    return f"status {_word(document.status)!r}, {tokens}"


def _word(status: Any) -> Any:
    return getattr(status, "value", status)
