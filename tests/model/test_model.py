"""Every reachable world of plan execution: two processes, an operator, and what goes wrong.

What is modelled, and each claim in a sentence: docs/explanation/model.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from statelog.domain.execution.due import ABANDONED, MOST_ABANDONED
from statelog.infrastructure.testing import sometimes
from tests.model.checks import GOALS, NAMES, STUCK, walk
from tests.model.faults import FAULTS
from tests.model.operator import OPERATIONS
from tests.model.world import Model

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "model.md"
FAIL_FAST, CONTINUE = ("fail_fast",), ("continue_independent",)
MIXED = (("one", "daemon"), ("session", "session"))
TWO_STEPS = (("a", ()), ("b", ("a",)))
SHORT = bool(os.environ.get("STATELOG_SHORT"))
LIMIT = 50_000 if SHORT else 1_000_000


def everything() -> Model:
    """Any one operation and any one fault, at any moment, under both policies."""
    return Model(operations=OPERATIONS, most_operations=1, faults=FAULTS, most_faults=1)


WORLDS: dict[str, Callable[[], Model]] = {
    "any two operations": lambda: Model(
        operations=OPERATIONS, most_operations=2, policies=FAIL_FAST
    ),
    "any two faults": lambda: Model(faults=FAULTS, most_faults=2, policies=FAIL_FAST),
    "two steps": lambda: Model(
        steps=TWO_STEPS,
        operations=("regenerates",),
        most_operations=1,
        faults=("crash", "lose the lock", "fail to append"),
        most_faults=1,
        policies=CONTINUE,
    ),
    "a daemon and a session": lambda: Model(
        processes=MIXED,
        operations=("adopts", "gives to the session"),
        most_operations=2,
        faults=("crash", "lose the lock"),
        most_faults=1,
        policies=CONTINUE,
    ),
}

LONG: dict[str, Callable[[], Model]] = {
    "any two operations, and a crash": lambda: Model(
        operations=OPERATIONS,
        most_operations=2,
        faults=("crash",),
        most_faults=1,
        policies=CONTINUE,
    ),
    "one operation, and two faults": lambda: Model(
        operations=("regenerates", "gives to the session"),
        most_operations=1,
        faults=FAULTS,
        most_faults=2,
        policies=CONTINUE,
    ),
    "a daemon and a session, and any fault": lambda: Model(
        processes=MIXED,
        operations=("adopts", "gives to the session", "raises the token"),
        most_operations=2,
        faults=FAULTS,
        most_faults=1,
        policies=CONTINUE,
    ),
    "three steps": lambda: Model(
        steps=(*TWO_STEPS, ("c", ())),
        operations=("regenerates", "gives to the session"),
        most_operations=1,
        faults=("crash", "lose the lock", "fail to append", "be cancelled"),
        most_faults=1,
    ),
}


def test_every_world_keeps_every_rule():
    """At least 80,000 worlds, and all that is worth seeing happens in some of them."""
    model = everything()
    found = walk(model, goals=GOALS)
    assert found.complete
    assert found.states >= 80_000
    assert model.happened == {
        "a late write is refused",
        "a pending result is settled by another process",
    }
    both = ("takes over", "gives up", "pays its close", "starts again", "goes on")
    moves = {f"{name} {move}" for name in ("one", "two") for move in both}
    # the plan is the daemon's from the start, and only one operation happens
    moves |= {f"operator {name}" for name in OPERATIONS} - {"operator adopts"}
    assert moves <= found.fired.keys()


@pytest.mark.parametrize("name", WORLDS)
def test_narrower_worlds_go_further(name: str):
    """More of one kind, where the other kinds are few."""
    assert walk(WORLDS[name]()).complete


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_wider_worlds(name: str):
    """The same with more at once; in the short form the first 50,000 worlds."""
    assert walk(LONG[name](), limit=LIMIT).complete is not SHORT


def test_a_plan_that_kills_its_process_comes_to_rest():
    """Four attempts at one document version, and four more after a touch."""
    model = Model(
        processes=(("one", "daemon"),),
        steps=(),
        faults=("crash",),
        most_faults=MOST_ABANDONED + 1,
        operations=("touches",),
        most_operations=1,
        policies=FAIL_FAST,
    )

    def given_up(world: Any) -> bool:
        lives = world.memory("log").lives
        ended = [life.fact.ended for life in lives]
        return ended.count(ABANDONED) == MOST_ABANDONED

    assert walk(model, goals=[sometimes("a plan is given up", given_up)]).complete


class Asking(Model):
    """Every decision is asked anew in every world."""

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        return make()


def test_asking_each_decision_once_leaves_nothing_out():
    """The model asks a decision once for all worlds that give it the same; that changes nothing."""
    given: dict[str, Any] = {
        "policies": CONTINUE,
        "operations": ("regenerates", "gives to the session", "adopts"),
        "most_operations": 1,
        "faults": ("lose the lock",),
        "most_faults": 1,
    }
    assert walk(Model(**given)) == walk(Asking(**given))


def test_the_page_names_every_claim():
    """docs/explanation/model.md says each invariant in a sentence, and no other."""
    named = re.findall(r"^\| \*\*(.+?)\*\* \|", PAGE.read_text(encoding="utf-8"), re.M)
    assert named == [*NAMES, STUCK]
