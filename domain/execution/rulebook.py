"""What an audit checks of plan execution: what decisions keep, and what holds between streams.

The rules between streams are those of the coordinator's model (`invariants`), and two about what
an attempt and a result say of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.execution import invariants
from statelog.domain.execution.attempt import ATTEMPT, Attempt
from statelog.domain.execution.attempt_events import (
    Closed,
    Started,
    StepEvent,
    StepSkipped,
    StepStarted,
)
from statelog.domain.execution.execution_ids import order_key
from statelog.domain.execution.imported import IMPORTED
from statelog.domain.execution.plan import (
    PLAN,
    GenerationAssigned,
    Plan,
    RequestFinished,
    RunRequested,
    Saved,
)
from statelog.domain.execution.plan_history import History, evolve
from statelog.domain.execution.request import generation, owner_of, token
from statelog.domain.execution.slot import (
    RECORDED,
    SLOT,
    SUPERSEDED,
    FloorRaised,
    GaveUp,
    Held,
    Released,
    Reporting,
    Slot,
    SlotStatus,
)
from statelog.domain.execution.step_lifecycle import SATISFIED, STEP
from statelog.domain.rulebook import Audited, Entity, Family, Ids, Rule, Rulebook

ITS_PLAN: Final = "a plan is saved in its own stream"
BY_ONE: Final = "a run token rises by one"
ONE_GENERATION: Final = "a generation is assigned only where there is none"
ITS_EXECUTION: Final = "the slot moves for the execution that has it"
AS_IT_STANDS: Final = "a slot is freed as its state allows"
FLOOR: Final = "the floor of execution ids only rises"
ITS_ATTEMPT: Final = "an attempt is started in its own stream"
NUMBERED: Final = "the events of a step are numbered without a gap"
ONE_STEP: Final = "one step runs at a time"
NEEDED: Final = "a step begins after the steps it needs"
OWN_REPORT: Final = "an attempt closes with its own report"
AS_TOLD: Final = "a report says what the events say"
AS_HELD: Final = "an attempt starts as it was admitted"
AS_REPORTED: Final = "a result is recorded as it was reported"

_STEP_EVENTS: Final = StepEvent.__args__


def _by_one(before: Plan, event: RunRequested) -> bool:
    try:
        return event.run_token == token(before.run_token) + 1
    except Invalid:
        return False


def _as_it_stands(before: Slot, event: Released) -> bool:
    reporting = before.status is SlotStatus.REPORTING
    return reporting is (event.how in (RECORDED, SUPERSEDED))


def _floor(before: Slot, event: FloorRaised) -> bool:
    return before.floor is None or order_key(event.execution_id) > order_key(before.floor)


def _needed(before: Attempt, event: StepStarted | StepSkipped) -> bool:
    deps = before.deps.get(event.step_id, ())
    steps = (before.steps.get(dep) for dep in deps)
    return all(step is not None and step.status in SATISFIED for step in steps)


def _numbered(before: Attempt, event: Any) -> bool:
    step = before.steps.get(event.step_id)
    return step is not None and bool(event.seq == step.seq + 1)


_IDENTITY: Final = ("execution_id", "plan_id", "plan_generation", "run_token", "failure_policy")


def _own_report(before: Attempt, event: Closed) -> bool:
    start = before.start
    return start is not None and all(
        event.report.get(name) == getattr(start, name) for name in _IDENTITY
    )


def _as_told(before: Attempt, event: Closed) -> bool:
    """An interrupted step may have had its outcome already, and has none in the report."""
    told, known = event.report.get("step_outcomes"), before.outcomes
    if not isinstance(told, dict):
        return False
    return told.items() <= known.items() and len(known) - len(told) <= 1


def _as_held(before: History, event: Started, execution_id: str | None) -> bool:
    life = before.life(execution_id)
    if life is None:
        return True
    fact = life.fact
    started = (event.plan_generation, event.run_token, event.execution_authority)
    admitted = (fact.plan_generation, fact.run_token, fact.execution_authority)
    return started == admitted and owner_of(event.execution_owner) == fact.execution_owner


def _as_reported(before: History, event: RequestFinished) -> bool:
    life = before.life(event.execution_id)
    if life is None or life.told is None:
        return True
    return life.told == (event.outcome, event.termination_reason, event.failure_policy)


def _in(place: int, field: str) -> Callable[[Any, Any, Ids, Any], bool]:
    """The event names the part of its stream's name at this place."""
    return lambda _, event, ids, __: bool(getattr(event, field) == ids[place])


_PLAN_RULES: Final = (
    Rule(ITS_PLAN, _in(0, "plan_id"), "the plan that was saved has another id", (Saved,)),
    Rule(
        BY_ONE,
        lambda before, event, _, __: _by_one(before, event),
        "the run token that was asked for is not the one before and one more",
        (RunRequested,),
    ),
    Rule(
        ONE_GENERATION,
        lambda before, _, __, ___: generation(before.plan_generation) is None,
        "the document had a generation already",
        (GenerationAssigned,),
    ),
)
_SLOT_RULES: Final = (
    Rule(
        ITS_EXECUTION,
        lambda before, event, _, __: bool(before.execution_id == event.execution_id),
        "another execution has the slot",
        (Reporting, GaveUp, Released),
    ),
    Rule(
        AS_IT_STANDS,
        lambda before, event, _, __: _as_it_stands(before, event),
        "a result is recorded or superseded only once its report was filed, and only then",
        (Released,),
    ),
    Rule(
        FLOOR,
        lambda before, event, _, __: _floor(before, event),
        "the floor was there already, or higher",
        (FloorRaised,),
    ),
)
_ATTEMPT_RULES: Final = (
    Rule(
        ITS_ATTEMPT,
        lambda _, event, ids, __: bool((event.plan_id, event.execution_id) == ids),
        "the attempt that started has another plan or execution id",
        (Started,),
    ),
    Rule(
        NUMBERED,
        lambda before, event, _, __: _numbered(before, event),
        "an event of this step is missing, or there is one too many",
        _STEP_EVENTS,
    ),
    Rule(
        ONE_STEP,
        lambda before, _, __, ___: before.running is None,
        "another step was running",
        (StepStarted, StepSkipped),
    ),
    Rule(
        NEEDED,
        lambda before, event, _, __: _needed(before, event),
        "a step that it depends on had neither succeeded nor been reused",
        (StepStarted, StepSkipped),
    ),
    Rule(
        OWN_REPORT,
        lambda before, event, _, __: _own_report(before, event),
        "the report is of another attempt, plan or request",
        (Closed,),
    ),
    Rule(
        AS_TOLD,
        lambda before, event, _, __: _as_told(before, event),
        "the report's outcomes are not those of the steps",
        (Closed,),
    ),
)
_BETWEEN: Final = (
    Rule(
        AS_HELD,
        lambda before, event, execution_id, __: _as_held(before, event, execution_id),
        "it started with a generation, token or executor that it was not admitted with",
        (Started,),
        (Held,),
    ),
    Rule(
        AS_REPORTED,
        lambda before, event, _, __: _as_reported(before, event),
        "its outcome, ending or policy is not that of the report",
        (RequestFinished,),
        (Closed,),
    ),
)


def _execution_of(ids: Ids) -> str | None:
    return ids[1] if len(ids) > 1 else None


RULEBOOK: Final = Rulebook(
    (
        Audited(PLAN, _PLAN_RULES),
        Audited(SLOT, _SLOT_RULES),
        Audited(
            ATTEMPT,
            _ATTEMPT_RULES,
            (Entity(STEP, lambda event: str(event.step_id)),),
            spares=lambda meta: IMPORTED in meta,
        ),
    ),
    (
        Family(
            "plan/{}",
            History(),
            evolve,
            (*invariants.RULES, *_BETWEEN),
            invariants.CHANGING,
            _execution_of,
        ),
    ),
)
"""Plans, their slots and their attempts."""
