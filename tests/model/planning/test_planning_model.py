"""Every reachable world of planning: sessions, runs, jobs, workers, and what goes wrong.

Named claims hold in each of them, and each claim catches a bug that is seeded for it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from statelog.infrastructure.testing import Violation
from tests.amounts import amount
from tests.model.planning.bugs import BUGS, TWO_SESSIONS, Bug
from tests.model.planning.checks import NAMES, goals, walk
from tests.model.planning.world import Model

EVERY_FAULT = ("crash", "stop", "fail", "stall")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "planning-sessions.md"
WORLDS = {
    "two runs, killed at any moment": Model(),
    "every fault": Model(asked=(("s", ("a",)),), faults=EVERY_FAULT, most_faults=1),
    "progress": Model(operations=(), tells_progress=True),
    "two sessions": Model(**TWO_SESSIONS),
}


@pytest.mark.parametrize("name", WORLDS)
def test_every_claim_holds_in_every_world(name: str):
    """Two workers, an operator, redelivery, cancellation and kills, in every order."""
    model = WORLDS[name]
    seen = walk(model, goals(model) if model.operations else ())
    assert seen.complete
    assert seen.states > 1000


@pytest.mark.long
def test_every_claim_holds_with_two_sessions_and_a_cancellation():
    """The same with more going on at once."""
    wide = {**TWO_SESSIONS, "operations": ("cancels", "selects"), "faults": EVERY_FAULT}
    limit = amount(300_000, 30_000)
    seen = walk(Model(**wide, most_faults=1), limit=limit)
    assert seen.states > limit // 6


def caught(bug: Bug) -> Violation:
    """What the model finds when this bug is in it."""
    with pytest.raises(Violation) as found:
        walk(bug.model())
    return found.value


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what)
def test_a_seeded_bug_is_caught_by_name(bug: Bug):
    """By the claim it breaks, and no other, in as many moves as it takes."""
    violation = caught(bug)
    assert violation.invariant.endswith(f" {bug.caught_by}")
    assert len(violation.story) == bug.moves, violation


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what)
def test_without_its_bug_the_same_model_is_sound(bug: Bug):
    """It is the changed part that is caught, not the model around it."""
    if bug.world is not TWO_SESSIONS:
        assert walk(bug.sound()).complete


def test_every_claim_is_on_the_page():
    """In the order in which they are checked, with a sentence."""
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^\| \*\*(.+?)\*\* \|", text, re.M) == list(NAMES)


def test_every_claim_has_its_bug():
    assert {bug.caught_by for bug in BUGS} == set(NAMES)
