"""What holds in every history of a plan, by name: for models of it and for audits of a log.

Fold the events of one plan, its slot and its attempts in the order of the log with
`plan_history.evolve`; `broken` names the rules that one more event breaks. The rules say again, in
other words, what decisions and programs are there to keep. Attempts that were imported never had
the slot, and are not for these rules.
"""

from __future__ import annotations

from typing import Final

from statelog.domain.aggregate import changed
from statelog.domain.errors import Invalid
from statelog.domain.event import Event
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.attempt_events import Closed, Started, Voided
from statelog.domain.execution.due import ABANDONED, ANSWERS, MOST_ABANDONED, AttemptFact
from statelog.domain.execution.execution_ids import order_key
from statelog.domain.execution.finalization import Supersession
from statelog.domain.execution.plan import (
    PLAN,
    Adopted,
    Deleted,
    Imported,
    RequestFinished,
    RunRequested,
    Saved,
)
from statelog.domain.execution.plan_history import History, Stage
from statelog.domain.execution.request import eligible, owner_of, present, token
from statelog.domain.execution.slot import (
    SLOT,
    SUPERSEDED,
    FloorRaised,
    Held,
    Released,
    SlotStatus,
)
from statelog.domain.rulebook import Rule, rules_by_event


def broken(
    before: History, event: Event, execution_id: str | None, after: History
) -> tuple[str, ...]:
    """The names of the rules that an event breaks."""
    asked = _BY_EVENT.get(type(event), RULES)
    return tuple(rule.name for rule in asked if not rule.holds(before, event, execution_id, after))


def _one_live(after: History) -> bool:
    live = [life for life in after.lives if life.stage is Stage.RUNNING]
    return len(live) < 2 and all(after.held_by(life.execution_id) for life in live)


def _never_lowers(before: History, event: Event, after: History) -> bool:
    old, new = before.plan, after.plan
    if isinstance(event, Imported) or old.plan_generation != new.plan_generation:
        return True
    try:
        return token(new.executed_run_token) >= token(old.executed_run_token)
    except Invalid:
        return True


def _together(before: History, event: Event, after: History) -> bool:
    old, new = before.plan, after.plan
    if not isinstance(event, RequestFinished):
        same = (old.executed_run_token, old.last) == (new.executed_run_token, new.last)
        return same or isinstance(event, Saved | Imported | Deleted)
    last = new.last or {}
    told = (last.get("execution_id"), last.get("run_token"), last.get("outcome"))
    recorded = (event.execution_id, new.executed_run_token, event.outcome)
    return told == recorded and event.run_token == new.executed_run_token


def _kept(after: History) -> bool:
    waiting = [each for each in after.lives if each.finishes and each.verdict is None]
    in_hand = after.slot.execution_id if after.slot.status is not SlotStatus.FREE else None
    return all(life.execution_id == in_hand for life in waiting)


def _waits(before: History, event: RequestFinished) -> bool:
    life = before.life(event.execution_id)
    return life is not None and life.finishes and life.verdict is None


def _answered(before: History, event: Held) -> list[AttemptFact]:
    """The attempts that concern the very document and request that is admitted."""
    asked = (event.plan_generation, event.run_token)
    concerned = AttemptFact(*asked, event.execution_authority, event.execution_owner)
    return [
        fact
        for fact in before.facts
        if fact.closed_at is not None
        and fact.closed_at >= event.plan_version
        and changed(fact, closed_at=None, ended=None) == concerned
    ]


def _as_it_is(before: History, event: Held) -> bool:
    plan = before.plan
    asked = (event.plan_version, event.plan_generation, event.run_token)
    now = (before.version, plan.plan_generation, token(plan.run_token))
    executor = (plan.execution_authority, owner_of(plan.execution_owner))
    return (
        eligible(plan.status, plan.run_token, plan.executed_run_token)
        and (asked == now)
        and (event.execution_authority, event.execution_owner) == executor
    )


def _good_reason(before: History, event: Released) -> bool:
    life, plan = before.life(event.execution_id), before.plan
    if event.how != SUPERSEDED or life is None:
        return True
    changed_generation = present(plan) and plan.plan_generation != life.fact.plan_generation
    now = (plan.execution_authority, owner_of(plan.execution_owner))
    asked_by = (life.fact.execution_authority, life.fact.execution_owner)
    finished = token(plan.executed_run_token) >= token(life.fact.run_token)
    holds = {
        Supersession.PLAN_MISSING: not present(plan),
        Supersession.GENERATION_CHANGED: changed_generation,
        Supersession.AUTHORITY_CHANGED: now != asked_by,
        Supersession.REQUEST_ALREADY_FINALIZED: finished,
    }
    return holds[Supersession(event.reason)]


ONE_LIVE: Final = "at most one live attempt per plan"
ITS_GENERATION: Final = "no result on another generation"
NEVER_LOWERS: Final = "the executed token never lowers"
TOGETHER: Final = "outcome and token together"
KEPT: Final = "a report is never lost"
ONCE: Final = "nothing finished twice"
NOT_WOKEN: Final = "no plan woken by its own attempt"
THREE_FOLLOW: Final = "an abandoned attempt is followed at most three times"
RISE: Final = "execution ids only rise"
AS_IT_IS: Final = "only what is asked for now is admitted"
NEVER_STARTS: Final = "a voided reservation never starts"
FENCED: Final = "a fenced writer writes nothing"
GOOD_REASON: Final = "a result is dropped only for a reason that holds"

_WRITTEN = tuple(
    kind for kind in ATTEMPT.lifecycle.events if kind is not Started and kind is not Voided
)
CHANGING: Final = (*PLAN.lifecycle.events, *SLOT.lifecycle.events, Started, Closed)
"""The events that a history is made of; all others leave it as it was."""

RULES: Final = (
    Rule(
        ITS_GENERATION,
        lambda before, event, _, __: event.plan_generation == before.plan.plan_generation,
        "a result was recorded for another generation than the plan has",
        (RequestFinished,),
        (Saved, Held),
    ),
    Rule(
        NEVER_LOWERS,
        lambda before, event, _, after: _never_lowers(before, event, after),
        "the executed run token became lower within one generation",
        PLAN.lifecycle.events,
        (RequestFinished,),
    ),
    Rule(
        TOGETHER,
        lambda before, event, _, after: _together(before, event, after),
        "the executed run token and the last result were not changed as one",
        PLAN.lifecycle.events,
        (RequestFinished,),
    ),
    Rule(
        ONCE,
        lambda before, event, _, __: _waits(before, event),
        "a result was recorded of an attempt that has none to record, or had it recorded already",
        (RequestFinished,),
        (Closed, RequestFinished),
    ),
    Rule(
        KEPT,
        lambda _, __, ___, after: _kept(after),
        "the plan was freed while a report that finishes its request was neither recorded nor "
        "superseded",
        CHANGING,
        (Closed, Released),
    ),
    Rule(
        RISE,
        lambda before, event, _, __: (
            before.slot.floor is None
            or order_key(event.execution_id) > order_key(before.slot.floor)
        ),
        "the execution id does not order after the ones before it",
        (Held,),
        (Held, FloorRaised),
    ),
    Rule(
        AS_IT_IS,
        lambda before, event, _, __: _as_it_is(before, event),
        "the plan was admitted with a version, generation, token or executor that it did not have, "
        "or while nobody asked for a run",
        (Held,),
        (Saved, RunRequested, Adopted, RequestFinished),
    ),
    Rule(
        NOT_WOKEN,
        lambda before, event, _, __: all(
            fact.ended not in ANSWERS for fact in _answered(before, event)
        ),
        "the plan was admitted again though an attempt had answered this very document",
        (Held,),
        (Held, Closed),
    ),
    Rule(
        THREE_FOLLOW,
        lambda before, event, _, __: (
            sum(fact.ended == ABANDONED for fact in _answered(before, event)) < MOST_ABANDONED
        ),
        f"the plan was admitted again after {MOST_ABANDONED} abandoned attempts at this document",
        (Held,),
        (Held, Released),
    ),
    Rule(
        NEVER_STARTS,
        lambda before, _, id, __: before.held_by(id),
        "an attempt started that does not have the plan",
        (Started,),
        (Held, Released),
    ),
    Rule(
        FENCED,
        lambda before, _, id, __: (
            before.held_by(id)
            and (life := before.life(id)) is not None
            and life.stage is Stage.RUNNING
        ),
        "an attempt was written to that does not have the plan, or is not running",
        _WRITTEN,
        (Held, Started, Closed, Released),
    ),
    Rule(
        ONE_LIVE,
        lambda _, __, ___, after: _one_live(after),
        "an attempt runs that does not have the plan, or two run at once",
        CHANGING,
        (Held, Started, Released),
    ),
    Rule(
        GOOD_REASON,
        lambda before, event, _, __: _good_reason(before, event),
        "a result was dropped as superseded for a reason that does not hold",
        (Released,),
        (Saved, Adopted, RequestFinished, Closed),
    ),
)

_BY_EVENT = rules_by_event(RULES, {*CHANGING, *ATTEMPT.lifecycle.events})
