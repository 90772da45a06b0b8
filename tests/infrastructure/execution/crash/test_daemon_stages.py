"""A plan that is changed at each stage of its attempt, and what becomes of the result."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from statelog.domain.execution.request import RUN_ONCE
from statelog.domain.execution.slot import SLOT, SlotStatus
from tests.infrastructure.execution.crash.arena import until
from tests.infrastructure.execution.crash.fleet import Fleet, fleet_of, stopped
from tests.infrastructure.execution.lab import a_step

STEPS = """
@step
def ok(ctx: StepContext, version: int = 1) -> None:
    ctx.emit("ran", version=version)

@step
def bad(ctx: StepContext) -> None:
    raise PermanentStepError("it is broken")

@step
def stops(ctx: StepContext) -> None:
    raise KeyboardInterrupt
"""

CHANGES: Final[Mapping[str, Callable[[Fleet, str], Any]]] = {
    "regenerated": lambda fleet, id: fleet.save(a_step("a", params={"version": 2}), plan_id=id),
    "re-approved": lambda fleet, id: fleet.plans.approve(id),
    "adopted": lambda fleet, id: fleet.plans.adopt(id, authority=RUN_ONCE, owner="run_once:gone"),
    "deleted": lambda fleet, id: fleet.plans.delete(id),
    "returned": lambda fleet, id: fleet.plans.draft(id),
    "requested": lambda fleet, id: fleet.plans.request(id),
}
"""What is done to a plan, which is named after it."""

RAN: Final = (["recorded"], [[1]], "finalized")
LATE: Final = {
    "regenerated": (["superseded generation_changed", "recorded"], [[1], [2]], "superseded"),
    "re-approved": RAN,
    "adopted": (["superseded authority_changed"], [[1]], "superseded"),
    "deleted": (["superseded plan_missing"], [[1]], "superseded"),
    "returned": RAN,
    "requested": (["recorded", "recorded"], [[1], []], "finalized"),
}
"""Once it is admitted: how its attempts released it, the versions that ran, the first line."""

EARLY: Final = {
    "regenerated": (["recorded"], [[2]], "finalized"),
    "re-approved": RAN,
    "adopted": ([], [], "not_authorized"),
    "deleted": ([], [], "not_found"),
    "returned": ([], [], "not_eligible"),
    "requested": RAN,
}
"""Before that its change is what counts."""

STAGES: Final = {
    "before held": EARLY,
    "after held": LATE,
    "before step_started": LATE,
    "before step_succeeded": LATE,
    "after closed+report_filed": LATE,
}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(tmp_path, STEPS) as fleet:
        yield fleet
        fleet.end()


@pytest.mark.parametrize("stage", STAGES)
def test_a_plan_is_changed_at_a_stage_of_its_attempt(fleet: Fleet, stage: str) -> None:
    """Each plan's attempt stops there, is changed, and goes on: to one ending and one line."""
    for plan_id in CHANGES:
        fleet.save(a_step("a"), plan_id=plan_id)
    many = len(CHANGES)
    daemon = fleet.daemon("--max-plans", many, orders={"stop": stage, "stops": many})
    fleet.passed(stage, many)
    pids = {told.pid for told in fleet.told() if told.word == stage}
    assert len(pids) == many
    for pid in pids:
        until(stopped(pid))
    for plan_id, change in CHANGES.items():
        change(fleet, plan_id)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    for plan_id, expected in STAGES[stage].items():
        until(lambda plan_id=plan_id, expected=expected: seen(fleet, plan_id) == expected[:2])
        until(lambda plan_id=plan_id: lines(daemon.err, plan_id) != [])
        assert lines(daemon.err, plan_id)[0] == expected[2], plan_id
        assert fleet.words(plan_id).count("request_finished") == expected[0].count("recorded")
        assert fleet.journal.load(SLOT, plan_id).state.status is SlotStatus.FREE


def seen(fleet: Fleet, plan_id: str) -> tuple[list[str], list[list[int]]]:
    """How each attempt released the plan, and the versions that each ran."""
    history = fleet.history(plan_id)
    released = [r.event for r in history if r.name.endswith(".released")]
    ran: dict[str, list[int]] = {r.event.execution_id: [] for r in history if _is(r, "held")}
    for recorded in history:
        if _is(recorded, "step_emitted"):
            ran[recorded.stream.rsplit("/", 1)[1]].append(recorded.event.payload["version"])
    return [f"{each.how} {each.reason or ''}".strip() for each in released], list(ran.values())


def _is(recorded: Any, word: str) -> bool:
    return bool(recorded.name.endswith(f".{word}"))


def lines(err: str, plan_id: str) -> list[str]:
    """What the daemon resolved of a plan."""
    start = f" statelog.execution: plan '{plan_id}': "
    return [line.split(start)[1].split()[0] for line in err.splitlines() if start in line]


@pytest.mark.parametrize("change", ["touch", "approve"])
def test_a_change_right_after_the_close_is_not_missed(fleet: Fleet, change: str) -> None:
    """Case 67: though the process of the attempt that it follows has not ended yet."""
    fleet.save(a_step("a", "bad"), policy="fail_fast")
    daemon = fleet.daemon("--verbose", orders={"stop": "after closed+released"})
    attempt = fleet.passed("after closed+released")
    until(stopped(attempt))
    getattr(fleet.plans, change)("p")
    until(lambda: daemon.said("plan 'p' changed"))
    assert fleet.words().count("held") == 1
    os.kill(attempt, signal.SIGCONT)
    until(lambda: len(fleet.reports()) == 2)
    until(lambda: lines(daemon.err, "p") == ["unfinished", "unfinished"])


@pytest.mark.parametrize(("fn", "reason"), [("bad", "failed_fast"), ("stops", "cancelled")])
def test_a_change_before_the_close_is_answered_by_it(fleet: Fleet, fn: str, reason: str) -> None:
    """Case 67: nothing runs again, also where only a change lets it."""
    fleet.save(a_step("a", fn), policy="fail_fast")
    daemon = fleet.daemon("--verbose", orders={"stop": "before closed+released"})
    attempt = fleet.passed("before closed+released")
    until(stopped(attempt))
    fleet.plans.touch("p")
    until(lambda: daemon.said("plan 'p' changed"))
    os.kill(attempt, signal.SIGCONT)
    until(lambda: len(lines(daemon.err, "p")) == 2)
    assert lines(daemon.err, "p")[1] == "duplicate"
    (report,) = fleet.reports()
    assert report["termination_reason"] == reason
