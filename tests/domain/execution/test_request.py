"""Tokens, eligibility, claims and the order of admission (2.2, 2.8, 3)."""

from __future__ import annotations

from typing import Any

import pytest

from statelog.domain.errors import Invalid
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.plan import PlanStatus
from statelog.domain.execution.request import (
    Claim,
    admit,
    eligible,
    latest_request_succeeded,
    may_execute,
    owner_of,
    present,
    request_state,
    token,
)
from statelog.domain.execution.spec import PlanSpec
from tests.domain.execution.documents import BODY, document

DAEMON = Claim("daemon")
MINE = Claim("run_once", "session-1")
UNREADABLE: list[Any] = [
    None,
    "",
    "one",
    "1.5",
    "0x1",
    "1_0",
    "\u0661",
    True,
    False,
    1.5,
    [],
    {},
    2**63,
]


@pytest.mark.parametrize(
    ("value", "number"),
    [(0, 0), (-1, -1), ("3", 3), (" +4\n", 4), ("-1", -1), (2.0, 2), (2**63 - 1, 2**63 - 1)],
)
def test_integers_whole_numbers_and_numeric_strings_are_tokens(value: Any, number: int):
    """Imported documents hold numeric strings."""
    assert token(value) == number


@pytest.mark.parametrize("value", UNREADABLE, ids=repr)
def test_what_is_no_number_is_no_token(value: Any):
    """Booleans neither: 1 and true are different things in JSON."""
    with pytest.raises(Invalid, match="executed"):
        token(value, "executed")


@pytest.mark.parametrize("value", UNREADABLE, ids=repr)
def test_an_unreadable_token_makes_a_plan_ineligible(value: Any):
    """case 73, for either token."""
    assert not eligible("approved", value, -1)
    assert not eligible("approved", 1, value)
    assert request_state("approved", value, -1) is None
    for changes in ({"run_token": value}, {"executed_run_token": value}):
        assert admit(document(**changes), DAEMON).resolution is Resolution.NOT_ELIGIBLE


@pytest.mark.parametrize(
    ("status", "run", "executed", "state"),
    [
        ("approved", 0, -1, "open"),
        ("approved", "10", "9", "open"),
        ("draft", 0, -1, "parked"),
        ("something", 0, -1, "parked"),
        ("approved", 0, 0, "finished"),
        ("approved", 0, 1, "finished"),
        ("draft", 0, 0, "finished"),
    ],
)
def test_the_state_of_a_request(status: str, run: Any, executed: Any, state: str):
    """2.2; only an open one is eligible, and numbers are compared as numbers."""
    assert request_state(status, run, executed) == state
    assert eligible(status, run, executed) == (state == "open")


def test_success_of_the_latest_request_needs_all_three_checks():
    """Equal tokens with a failed or an older result are no success (case 137)."""
    won = {"run_token": 1, "outcome": "succeeded"}
    assert latest_request_succeeded(1, 1, won)
    assert latest_request_succeeded("1", 1, won)
    assert not latest_request_succeeded(1, 1, {"run_token": 1, "outcome": "failed"})
    assert not latest_request_succeeded(2, 2, won)
    assert not latest_request_succeeded(2, 1, won)
    assert not latest_request_succeeded(1, 1, None)
    assert not latest_request_succeeded("x", 1, won)
    assert not latest_request_succeeded(1, 1, {"outcome": "succeeded"})


@pytest.mark.parametrize(
    ("claim", "authority", "owner", "allowed"),
    [
        (DAEMON, "daemon", None, True),
        (DAEMON, "daemon", "anybody", True),
        (DAEMON, "Daemon", None, False),
        (DAEMON, "run_once", None, False),
        (DAEMON, None, None, False),
        (MINE, "run_once", "session-1", True),
        (MINE, "run_once", "session-2", False),
        (MINE, "run_once", None, False),
        (MINE, "daemon", "session-1", False),
        (MINE, None, "session-1", False),
    ],
)
def test_a_claim_covers_its_own(claim: Claim, authority: Any, owner: Any, allowed: bool):
    """2.8; a missing authority may be executed by nobody."""
    assert may_execute(claim, authority, owner) is allowed


@pytest.mark.parametrize(
    ("authority", "owner"), [("run_once", None), ("run_once", ""), ("me", "x")]
)
def test_a_claim_names_a_known_authority_and_its_session(authority: str, owner: str | None):
    """A claim for nobody's plans would match plans without an owner."""
    with pytest.raises(Invalid):
        Claim(authority, owner)


def test_an_admitted_request_is_captured_from_the_one_read():
    """Policy, generation, token, authority and owner come from the document judged (case 64)."""
    newer = {**BODY, "failure_policy": "continue_independent"}
    request = admit(document(body=newer, plan_generation="g2", run_token="3"), DAEMON).request
    assert request is not None
    assert request.plan == PlanSpec.from_json(newer)
    assert (request.plan_generation, request.run_token) == ("g2", 3)
    assert (request.execution_authority, request.execution_owner) == ("daemon", None)


def test_a_draft_is_not_eligible_whatever_an_event_said():
    """case 65"""
    assert admit(document(status=PlanStatus.DRAFT), DAEMON).resolution is Resolution.NOT_ELIGIBLE


@pytest.mark.parametrize("claim", [DAEMON, MINE], ids=lambda claim: claim.authority)
def test_others_plans_are_not_authorized(claim: Claim):
    """case 70, and it is said before anything else about the document."""
    theirs = document(
        execution_authority="run_once", execution_owner="session-2", body=None, run_token=None
    )
    assert admit(theirs, claim).resolution is Resolution.NOT_AUTHORIZED


def test_an_absent_plan_is_not_found():
    """case 71, whether it never was or was deleted."""
    assert not present(None)
    for missing in (None, document(status=PlanStatus.ABSENT)):
        assert admit(missing, DAEMON).resolution is Resolution.NOT_FOUND


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        [],
        {**BODY, "plan_id": "q"},
        {"plan_id": "p"},
        {**BODY, "steps": {}},
        {**BODY, "steps": [1]},
        {**BODY, "steps": [{"step_id": "s", "name": "s", "fn_ref": "m:f"}]},
    ],
    ids=repr,
)
def test_a_body_that_cannot_be_read_or_is_of_another_plan_is_an_invalid_document(body: Any):
    """case 71; it is said of an eligible plan only."""
    verdict = admit(document(body=body), DAEMON)
    assert verdict.resolution is Resolution.INVALID_DOCUMENT
    assert verdict.request is None
    assert not verdict.needs_generation
    parked = document(body=body, status=PlanStatus.DRAFT)
    assert admit(parked, DAEMON).resolution is Resolution.NOT_ELIGIBLE


@pytest.mark.parametrize("odd", ["a/b", "..", "", "a\0", "x" * 256, "\ud800", None, 7], ids=repr)
@pytest.mark.parametrize("field", ["plan_id", "realm"])
def test_an_imported_id_that_is_not_one_path_part_is_an_invalid_document(field: str, odd: Any):
    """D5: a plan `a/b` would share the work directories of step `b` of plan `a`."""
    body = {**BODY, field: odd}
    verdict = admit(document(plan_id=body["plan_id"], body=body), DAEMON)
    assert verdict.resolution is Resolution.INVALID_DOCUMENT
    assert f"plan.{field}" in verdict.reason


@pytest.mark.parametrize("value", [None, "", 7, ["g"]], ids=repr)
def test_only_a_missing_generation_asks_for_one(value: Any):
    """case 72: with one assigned the same read is admitted."""
    verdict = admit(document(plan_generation=value), DAEMON)
    assert verdict.needs_generation
    assert verdict.resolution is Resolution.INVALID_DOCUMENT
    assert admit(document(plan_generation="new"), DAEMON).request is not None


def test_an_owner_that_is_no_string_is_nobody():
    """Imported documents are kept verbatim."""
    assert (owner_of("x"), owner_of(7), owner_of(None)) == ("x", None, None)
    request = admit(document(execution_owner=7), DAEMON).request
    assert request is not None
    assert request.execution_owner is None
