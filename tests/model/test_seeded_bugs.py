"""Each claim of the model is caught broken, by its very name and the shortest story."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from statelog.infrastructure.testing import Violation
from tests.model.bugs import BUGS, Bug
from tests.model.checks import NAMES, STUCK, story, walk

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "model.md"


def caught(bug: Bug) -> Violation:
    """What the model finds when this bug is in it."""
    with pytest.raises(Violation) as found:
        walk(bug.model(), **bug.programs)
    return found.value


def told(what: str) -> str:
    """The story of the bug with this description."""
    return story(caught(next(bug for bug in BUGS if bug.what == what))) + "\n"


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what)
def test_a_seeded_bug_is_caught_by_name(bug: Bug):
    """By the claim it breaks, and no other, in as many moves as it takes."""
    violation = caught(bug)
    claim = "never stuck" if bug.caught_by == STUCK else "always"
    assert violation.invariant == f"{claim} {bug.caught_by}"
    assert len(violation.story) == bug.moves, story(violation)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what)
def test_without_its_bug_the_same_model_is_sound(bug: Bug):
    """It is the changed part that is caught, not the model around it."""
    assert walk(bug.sound()).complete


def test_every_claim_has_its_bug():
    assert {bug.caught_by for bug in BUGS} == {*NAMES, STUCK}


def test_steps_in_streams_of_their_own():
    """A step of a dead holder starts after its plan was taken over."""
    assert told("steps are in streams of their own") == dedent("""\
        always a fenced writer writes nothing, broken after 8 moves:
          1. operator saves a continue_independent plan -> plan Saved, Approved
          2. one looks
          3. one admits the plan -> slot Held
          4. one starts the attempt -> attempt/x1 Started
          5. one loses its lock
          6. two looks
          7. two takes over -> attempt/x1 Closed; slot Released
          8. one starts a step -> attempt/x1/step/a StepStarted
        """)


def test_waking_on_every_event_of_the_plan():
    """A plan that failed runs for ever."""
    assert told("every event of the plan wakes it") == dedent("""\
        always no plan woken by its own attempt, broken after 9 moves:
          1. operator saves a fail_fast plan -> plan Saved, Approved
          2. one looks
          3. one admits the plan -> slot Held
          4. one starts the attempt -> attempt/x1 Started
          5. one starts a step -> attempt/x1 StepStarted
          6. one sees its step fail -> attempt/x1 StepFailed
          7. one closes the attempt -> attempt/x1 Closed; slot Released
          8. one looks
          9. one admits the plan -> slot Held
        """)


def test_a_takeover_that_does_not_void():
    """The attempt of a dead holder starts while the plan is free for others."""
    assert told("a takeover does not void an unstarted attempt") == dedent("""\
        always a voided reservation never starts, broken after 7 moves:
          1. operator saves a continue_independent plan -> plan Saved, Approved
          2. one looks
          3. one admits the plan -> slot Held
          4. one loses its lock
          5. two looks
          6. two takes over -> slot Released
          7. one starts the attempt -> attempt/x1 Started
        """)


def test_recording_what_another_generation_asked():
    """The result of the old plan is recorded on the new one."""
    assert told("one process records what another generation asked") == dedent("""\
        always no result on another generation, broken after 10 moves:
          1. operator saves a continue_independent plan -> plan Saved, Approved
          2. one looks
          3. one admits the plan -> slot Held
          4. operator regenerates -> plan Saved, Approved
          5. one starts the attempt -> attempt/x1 Started
          6. one starts a step -> attempt/x1 StepStarted
          7. one sees its step succeed -> attempt/x1 StepSucceeded
          8. one closes the attempt -> attempt/x1 Closed; slot Reporting
          9. one reads what to judge
         10. one records -> plan RequestFinished; slot Released
        """)


def test_the_page_shows_a_story_as_it_is_told():
    """docs/explanation/model.md shows what the model prints of the bug it names."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.search(r"^Seeded bug: \*(.+?)\*\.\n\n```text\n(.+?)```$", page, re.M | re.S)
    assert found is not None
    assert told(found[1]) == found[2]
