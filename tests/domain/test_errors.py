"""Errors say what is wrong in one line and survive a trip to another process."""

from __future__ import annotations

import pickle

import pytest

from statelog.domain import errors
from statelog.domain.errors import (
    Conflict,
    IllegalTransition,
    Invalid,
    Malformed,
    NotFound,
    OutcomeUnknown,
    Refused,
    StatelogError,
    StoreError,
    Unreadable,
)

SAID: list[tuple[StatelogError, str]] = [
    (Refused("a ticket is closed with an answer", "answer"), "closed with an answer [answer]"),
    (IllegalTransition("Status", "OPEN", "Opened"), "Status: no transition from OPEN on Opened"),
    (Conflict("ticket/42", 3, 5), "ticket/42: expected version 3, found 5"),
    (OutcomeUnknown("c-1"), "the commit of command c-1 may have landed; look it up"),
    (Unreadable(7, "desk.x", "no such event"), "event 7 (desk.x) cannot be read: no such event"),
    (StoreError("full", "the disk is full"), "the disk is full"),
    (NotFound("plan", "p"), "no plan 'p'"),
    (Invalid("steps[0].name", "is required"), "steps[0].name: is required"),
    (Malformed("plan.rank", "is not a known field"), "plan.rank: is not a known field"),
]


@pytest.mark.parametrize(("error", "text"), SAID, ids=lambda value: type(value).__name__)
def test_an_error_says_what_is_wrong(error: StatelogError, text: str):
    """The text alone is enough to act on."""
    assert str(error).endswith(text)


@pytest.mark.parametrize("error", [error for error, _ in SAID], ids=lambda e: type(e).__name__)
def test_an_error_survives_pickling(error: StatelogError):
    """Test workers and process pools hand errors on; attributes and text stay."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))


def test_every_error_is_in_the_list():
    """A new error joins these tests, and all have one base."""
    declared = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, StatelogError)
    }
    assert declared - {StatelogError} == {type(error) for error, _ in SAID}


def test_only_a_busy_store_is_worth_another_try():
    """The same call may succeed a moment later in this one case."""
    kinds = ("busy", "full", "read-only", "foreign", "newer", "damaged", "closed", "io")
    assert [kind for kind in kinds if StoreError(kind, "").retryable] == ["busy"]
