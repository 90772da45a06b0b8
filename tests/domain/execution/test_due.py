"""Whether a plan is due, from what the log says and nothing else (D11)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from statelog.domain.execution.due import ABANDONED, AttemptFact, Due, due, gave_up
from statelog.domain.execution.plan import Plan, PlanStatus
from statelog.domain.execution.request import Claim
from tests.domain.execution.documents import document

DAEMON = Claim("daemon")
VERSION = 2
"""Saved and approved: two events."""

OPEN_ATTEMPT = AttemptFact("g1", 0, "daemon", None)
REASONS = ("completed", "failed_fast", "preflight_rejected", "cancelled", "orchestration_error")


def ended(how: str, closed_at: int = VERSION, **changes: Any) -> AttemptFact:
    """An attempt for the document's request that ended so, when the plan had that version."""
    return replace(OPEN_ATTEMPT, closed_at=closed_at, ended=how, **changes)


def answer(*attempts: AttemptFact, version: int = VERSION, plan: Plan | None = None) -> Due:
    return due(plan or document(), version, attempts, DAEMON)


def test_an_eligible_plan_without_an_attempt_is_due():
    """case 95: found by the log alone, whatever position was saved."""
    assert answer() is Due.YES


@pytest.mark.parametrize(
    "plan",
    [
        None,
        document(status=PlanStatus.ABSENT),
        document(status=PlanStatus.DRAFT),
        document(executed_run_token=0),
        document(run_token="x"),
        document(execution_authority="run_once", execution_owner="s1"),
        document(execution_authority=None),
    ],
)
def test_a_plan_that_may_not_run_is_not_due(plan: Plan | None):
    """Deleted, draft, finished, unreadable (cases 73, 94), or somebody else's."""
    assert due(plan, VERSION, [], DAEMON) is Due.NO
    assert not gave_up(plan, VERSION, [])


def test_a_session_is_told_of_its_own_plan():
    """The claim decides, as in admission."""
    mine = document(execution_authority="run_once", execution_owner="s1")
    assert due(mine, VERSION, [], Claim("run_once", "s1")) is Due.YES
    assert due(mine, VERSION, [], Claim("run_once", "s2")) is Due.NO


@pytest.mark.parametrize("how", ["completed", "failed_fast", "preflight_rejected"])
def test_an_answered_version_is_not_due_even_at_start(how: str):
    """cases 95 and 131: a restart does not run again what failed."""
    assert answer(ended(how)) is Due.NO


@pytest.mark.parametrize("how", ["cancelled", "orchestration_error"])
def test_an_unanswered_ending_is_due_at_start(how: str):
    """case 132: a stopped daemon's attempt runs again when it is started again."""
    assert answer(ended(how)) is Due.AT_START


@pytest.mark.parametrize("how", [*REASONS, ABANDONED])
def test_a_document_change_makes_it_due(how: str):
    """case 131: `touch` moves the version past the close; the token stays the same."""
    assert answer(ended(how), version=VERSION + 1) is Due.YES


def test_several_changes_are_one_question_about_the_latest_state():
    """case 94"""
    assert answer(ended("failed_fast"), version=VERSION + 3) is Due.YES
    assert answer(ended("failed_fast", VERSION + 3), version=VERSION + 3) is Due.NO


def test_an_attempt_answers_what_changed_while_it_ran():
    """Every version up to its close, not only the one it read."""
    assert answer(ended("failed_fast", closed_at=5), version=5) is Due.NO
    assert answer(ended("failed_fast", closed_at=5), version=6) is Due.YES


@pytest.mark.parametrize(
    "other",
    [
        {"run_token": 1},
        {"plan_generation": "g0"},
        {"execution_authority": "run_once"},
        {"execution_owner": "s1"},
    ],
    ids=repr,
)
@pytest.mark.parametrize("how", [*REASONS, ABANDONED, None])
def test_an_attempt_for_another_request_or_executor_answers_nothing(
    other: dict[str, Any], how: str | None
):
    """case 66: a newer token runs afterwards; also while the older attempt is open."""
    fact = replace(OPEN_ATTEMPT, closed_at=VERSION if how else None, ended=how, **other)
    assert answer(fact) is Due.YES


def test_an_open_attempt_is_waited_for():
    """Its end decides; nothing runs alongside."""
    assert answer(OPEN_ATTEMPT) is Due.NO
    assert answer(OPEN_ATTEMPT, version=9) is Due.NO


def test_events_of_attempts_and_slots_wake_nothing():
    """case 96: they do not move the plan's version, and an ended attempt is never due by itself."""
    for how in REASONS:
        assert answer(ended(how)) is not Due.YES


def test_an_abandoned_attempt_is_followed_three_times_and_no_more():
    """case 128: four attempts in all, and whoever closes the fourth knows."""
    facts: list[AttemptFact] = []
    runs = 0
    while answer(*facts) is Due.YES:
        runs += 1
        facts.append(ended(ABANDONED))
        assert gave_up(document(), VERSION, facts) == (runs == 4)
    assert runs == 4
    assert answer(*facts, version=VERSION + 1) is Due.YES
    assert not gave_up(document(), VERSION + 1, facts)


def test_three_follow_ups_are_counted_per_document_version():
    """Attempts closed before the last change do not count."""
    before = [ended(ABANDONED)] * 3
    after = [ended(ABANDONED, VERSION + 1)] * 3
    assert answer(*before, *after, version=VERSION + 1) is Due.YES
    assert answer(*before, *after, after[0], version=VERSION + 1) is Due.NO


def test_the_last_attempt_says_how_it_goes_on():
    """Abandoned and then cancelled waits for a start; cancelled and then abandoned does not."""
    assert answer(ended(ABANDONED), ended("cancelled")) is Due.AT_START
    assert answer(ended("cancelled"), ended(ABANDONED)) is Due.YES
    assert answer(ended("failed_fast"), ended("cancelled")) is Due.NO


def test_four_abandoned_attempts_count_as_an_answer_whatever_came_between():
    """A cancelled one among them does not start the count again, nor does one after them."""
    four = [ended(ABANDONED)] * 4
    assert answer(*four[:2], ended("cancelled"), *four[2:]) is Due.NO
    assert answer(*four, ended("cancelled")) is Due.NO
    assert not gave_up(document(), VERSION, [*four, ended("cancelled")])


def test_every_pair_of_endings_has_one_answer():
    """The whole table of two attempts at one version."""
    for first, second in product((*REASONS, ABANDONED), repeat=2):
        answered = {first, second} & {"completed", "failed_fast", "preflight_rejected"}
        expected = Due.YES if second == ABANDONED else Due.AT_START
        assert answer(ended(first), ended(second)) is (Due.NO if answered else expected)


def test_gave_up_of_an_unreadable_document_is_no():
    """The question is asked after every close, so it never raises."""
    assert not gave_up(document(run_token=None), VERSION, [ended(ABANDONED)] * 4)
