"""What is claimed of every world of the model, by name, and how it is explored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from statelog.domain.execution import invariants
from statelog.domain.execution.attempt import ATTEMPT, AttemptStatus
from statelog.domain.execution.due import ABANDONED, Due
from statelog.domain.execution.plan_history import Stage
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.infrastructure.testing import (
    Violation,
    World,
    always,
    explore,
    never_stuck,
    sometimes,
)
from statelog.infrastructure.testing.explore import Exploration
from tests.model.faults import Faults
from tests.model.operator import Operator
from tests.model.processes import Process
from tests.model.world import CLAIMS, HEALTHY, ID, LIVING, ORPHANS, Model, attempt_id, live_part

NAMES = (*(rule.name for rule in invariants.RULES), HEALTHY, LIVING, ORPHANS)
STUCK = "nothing stuck"


def keeps(name: str) -> Any:
    """The last append did not break this rule."""
    return always(name, lambda world: name not in world.memory("log").broken)


def at_rest(model: Model) -> Callable[[World], bool]:
    """Whether everybody is idle and nothing is left to do, but for a result given up by all."""

    def holds(world: World) -> bool:
        slot = world.state(SLOT, ID)
        memories = [world.memory(name) for name, _ in model.processes]
        if any(each is None or each.at != "idle" or each.stopped for each in memories):
            return False
        if slot.status is SlotStatus.REPORTING:
            spent = {each.spent and each.spent[0] for each in memories}
            return spent == {slot.execution_id}
        return slot.status is SlotStatus.FREE and not _is_due(model, world)

    return holds


def _is_due(model: Model, world: World) -> bool:
    plan = world.load(model.plan, ID)
    lives = world.memory("log").lives
    facts = [life.fact for life in lives if life.stage is not Stage.HELD]
    claims = {claim for _, claim in model.processes}
    return any(
        model.due(plan.state, plan.version, facts, CLAIMS[claim]) is Due.YES for claim in claims
    )


def walk(
    model: Model,
    *,
    process: type[Process] = Process,
    operator: type[Operator] = Operator,
    faults: type[Faults] = Faults,
    goals: Sequence[Any] = (),
    limit: int = 1_000_000,
) -> Exploration:
    """Explore every world of the model. Raises `Violation` with the shortest story."""
    actions = operator(model).actions()
    for name, claim in model.processes:
        one = process(model, name, claim)
        actions += [*one.actions(), *faults(model, one).actions()]
    claims = [*map(keeps, NAMES), never_stuck(STUCK, at_rest(model)), *goals]
    return explore(model.start(), actions, claims, same=live_part, limit=limit)


def verdict(name: str) -> Any:
    """Some result is dropped for this reason."""
    return sometimes(
        f"a result is superseded: {name}",
        lambda world: any(life.verdict == name for life in world.memory("log").lives),
    )


def _endings(world: World) -> set[str | None]:
    return {life.fact.ended for life in world.memory("log").lives}


def _voided(world: World) -> bool:
    execution = world.state(SLOT, ID).execution_id
    if execution is None:
        return False
    return world.state(ATTEMPT, attempt_id(execution)).status is AttemptStatus.VOIDED


def _recorded(world: World) -> bool:
    slot = world.state(SLOT, ID)
    return slot.status is SlotStatus.FREE and slot.execution_id is not None


GOALS = (
    *(verdict(name) for name in ("plan_missing", "generation_changed", "authority_changed")),
    verdict("request_already_finalized"),
    sometimes("a result is recorded", _recorded),
    sometimes("an attempt is abandoned", lambda world: ABANDONED in _endings(world)),
    sometimes("an attempt is cancelled", lambda world: "cancelled" in _endings(world)),
    sometimes("an attempt fails fast", lambda world: "failed_fast" in _endings(world)),
    sometimes("a reservation is voided", _voided),
    sometimes("a result is given up", lambda world: world.state(SLOT, ID).gave_up is not None),
)


def story(violation: Violation) -> str:
    """A story as a reader wants it: each move, and the names of what it appended where."""
    lines = [f"{violation.invariant}, broken after {len(violation.story)} moves:"]
    for at, move in enumerate(violation.story, 1):
        written: dict[str, list[str]] = {}
        for stream, event in move.appended:
            where = stream.removeprefix("plan/p").removeprefix("/") or "plan"
            written.setdefault(where, []).append(type(event).__name__)
        told = "; ".join(f"{where} {', '.join(names)}" for where, names in written.items())
        lines.append(f"{at:>3}. {move.action}" + (f" -> {told}" if told else ""))
    return "\n".join(lines)
