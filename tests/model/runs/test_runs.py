"""Real runs, explored: failures, interruptions, crashes and redelivery, in every order."""

from __future__ import annotations

import re

import pytest

from statelog.infrastructure.testing import Violation
from tests.amounts import amount
from tests.house.repo import ROOT
from tests.model.runs.bugs import BUGS, Bug
from tests.model.runs.checks import NAMES_OF_CLAIMS, STUCK, walk
from tests.model.runs.world import Chance, Model


def test_every_world_keeps_every_claim():
    """And all that is worth seeing is seen; what comes too late is refused."""
    model = Model(chance=Chance(1, 1, 1, 1, 0))
    found = walk(model, goals=True)
    assert found.complete
    assert found.refused.keys() >= {"run_ended", "no_handle", "task_ended", "live_handles"}
    assert {action.name for action in model.actions()} - found.fired.keys() == {
        "a late worker reports",
        "the worker misses an output",
    }


def test_a_missing_output_is_a_failure_like_others():
    """planning case 61: together with a crash at any moment."""
    found = walk(Model(chance=Chance(1, 0, 0, 0, 1)))
    assert found.complete
    assert found.fired["the worker misses an output"]


WIDER = [Chance(2, 1, 2, 1, 1), Chance(2, 2, 1, 1, 0)]


@pytest.mark.long
@pytest.mark.parametrize("chance", amount(WIDER, WIDER[:1]))
def test_wider_worlds(chance: Chance):
    """More goes wrong, some of it twice; half a minute each."""
    assert walk(Model(chance=chance)).complete


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what)
def test_a_seeded_bug_is_caught_by_name(bug: Bug):
    """By the claim it breaks, and no other."""
    with pytest.raises(Violation) as caught:
        walk(bug.model())
    kinds = ("never stuck",) if bug.caught_by == STUCK else ("always", "each move")
    assert caught.value.invariant in {f"{kind} {bug.caught_by}" for kind in kinds}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what)
def test_without_its_bug_the_same_model_is_sound(bug: Bug):
    """It is the changed part that is caught, not the model around it."""
    assert walk(bug.sound()).complete


def test_the_page_says_every_claim():
    """docs/explanation/execution-runs.md, by the names that violations have."""
    page = (ROOT / "docs" / "explanation" / "execution-runs.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.M)) == NAMES_OF_CLAIMS


def test_every_claim_has_its_bug():
    assert {bug.caught_by for bug in BUGS} == set(NAMES_OF_CLAIMS)
