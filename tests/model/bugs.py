"""Seeded bugs: for each claim of the model at least one part that breaks it.

Each is searched in a world just wide enough: one policy, and nothing happens but what is named.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from statelog.domain.execution import invariants
from statelog.domain.execution.plan import PLAN
from tests.model import wrong
from tests.model.checks import STUCK
from tests.model.world import HEALTHY, LIVING, ORPHANS, Model


@dataclass(frozen=True)
class Bug:
    """What is wrong, the claim that catches it in how many moves, and the world it is in.

    `parts` are wrong parts of the model itself, `programs` wrong programs, `kind` a wrong model.
    """

    what: str
    caught_by: str
    moves: int
    world: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)
    programs: dict[str, Any] = field(default_factory=dict)
    kind: type[Model] = Model

    def model(self) -> Model:
        """The model with the bug in it, to be walked with `programs`."""
        return self.kind(**_narrow(self.world), **self.parts)

    def sound(self) -> Model:
        """The model without it."""
        return Model(**_narrow(self.world))


def _narrow(world: dict[str, Any]) -> dict[str, Any]:
    given = {"policies": ("continue_independent",), **world}
    for kind in ("operations", "faults"):
        given.setdefault(f"most_{kind}", len(given.get(kind, ())))
    return given


ALONE = (("one", "daemon"),)
FAIL_FAST = ("fail_fast",)
GIVEN_AWAY = {"operations": ("gives to the session",), "faults": ("crash",), "processes": ALONE}

BUGS = (
    Bug(
        "a takeover frees the plan and leaves the attempt open",
        invariants.ONE_LIVE,
        7,
        {"faults": ("crash",)},
        programs={"process": wrong.FreesOnly},
    ),
    Bug(
        "one process records what another generation asked",
        invariants.ITS_GENERATION,
        10,
        {"operations": ("regenerates",)},
        parts={"judge": wrong.judge_any_generation, "finish": wrong.finish_anything},
    ),
    Bug(
        "a regeneration keeps its generation",
        invariants.NEVER_LOWERS,
        10,
        {"operations": ("regenerates",), "processes": ALONE},
        parts={"generation": lambda version: "g1"},
    ),
    Bug(
        "a token is finished without its outcome",
        invariants.TOGETHER,
        9,
        {"processes": ALONE},
        parts={"plan": replace(PLAN, evolve=wrong.evolve_token_only)},
    ),
    Bug(
        "a close frees the plan although a result is to be recorded",
        invariants.KEPT,
        7,
        {"processes": ALONE},
        programs={"process": wrong.ReleasesAtOnce},
    ),
    Bug(
        "a result is recorded without a look at who has the slot",
        invariants.ONCE,
        13,
        {"faults": ("lose the lock",)},
        parts={"judge": wrong.judge_nothing, "finish": wrong.finish_anything},
        programs={"process": wrong.RecordsBlindly},
    ),
    Bug(
        "every event of the plan wakes it",
        invariants.NOT_WOKEN,
        9,
        {"policies": FAIL_FAST},
        parts={"due": wrong.due_when_eligible},
    ),
    Bug(
        "a plan is asked for before the slot is read",
        invariants.NOT_WOKEN,
        9,
        {"policies": FAIL_FAST},
        programs={"process": wrong.AsksTooEarly},
    ),
    Bug(
        "abandoned attempts are not counted",
        invariants.THREE_FOLLOW,
        31,
        {"processes": ALONE, "steps": (), "faults": ("crash",), "most_faults": 4},
        parts={"due": wrong.due_after_any_crash},
    ),
    Bug(
        "ids come from a clock that was set back",
        invariants.RISE,
        9,
        {"processes": ALONE, "faults": ("crash",)},
        parts={"next_id": lambda floor: "x1", "admit": wrong.admit_any_id},
    ),
    Bug(
        "the slot is taken whatever became of the plan",
        invariants.AS_IT_IS,
        4,
        {"processes": ALONE, "operations": ("drafts",)},
        programs={"process": wrong.AdmitsWhatItRead},
    ),
    Bug(
        "a takeover does not void an unstarted attempt",
        invariants.NEVER_STARTS,
        7,
        {"faults": ("lose the lock",)},
        programs={"process": wrong.DoesNotVoid},
    ),
    Bug(
        "steps are in streams of their own",
        invariants.FENCED,
        8,
        {"faults": ("lose the lock",)},
        programs={"process": wrong.StepsApart},
    ),
    Bug(
        "only the newest request counts",
        invariants.GOOD_REASON,
        10,
        {"processes": ALONE, "operations": ("raises the token",)},
        parts={"judge": wrong.judge_latest_only},
    ),
    Bug(
        "whatever waits to be recorded counts as pending",
        HEALTHY,
        10,
        {},
        kind=wrong.Impatient,
    ),
    Bug(
        "a process that is stopped counts as dead",
        LIVING,
        7,
        {"policies": FAIL_FAST, "faults": ("stop",)},
        kind=wrong.Lease,
    ),
    Bug(
        "an adoption does not settle first",
        ORPHANS,
        10,
        GIVEN_AWAY,
        programs={"operator": wrong.AdoptsAtOnce},
    ),
    Bug(
        "an adoption does not see that the attempt ended meanwhile",
        ORPHANS,
        10,
        GIVEN_AWAY,
        programs={"operator": wrong.AdoptsUnguarded},
    ),
    Bug(
        "dead holders are looked for among due plans only",
        STUCK,
        5,
        {"operations": ("drafts",), "faults": ("crash",)},
        programs={"process": wrong.LooksAtDuePlansOnly},
    ),
    Bug(
        "a close that failed is forgotten",
        STUCK,
        4,
        {"faults": ("fail to append",)},
        programs={"process": wrong.ForgetsTheClose},
    ),
    Bug(
        "a verdict that could not be said is forgotten",
        STUCK,
        10,
        {"faults": ("fail to append",), "most_faults": 2},
        programs={"faults": wrong.ForgetsTheVerdict},
    ),
)
