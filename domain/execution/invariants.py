"""What holds in every history of a plan, by name: for models of it and for audits of a log.

Fold the events of one plan, its slot and its attempts in the order of the log with
`plan_history.evolve`; `broken` names the rules that one more event breaks. The rules say again, in
other words, what decisions and programs are there to keep. Attempts that were imported never had
the slot, and are not for these rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from statelog.domain.aggregate import changed
from statelog.domain.errors import Invalid
from statelog.domain.event import Event
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.attempt_events import Started, Voided
from statelog.domain.execution.due import ABANDONED, ANSWERS, MOST_ABANDONED, AttemptFact
from statelog.domain.execution.execution_ids import order_key
from statelog.domain.execution.finalization import Supersession
from statelog.domain.execution.plan import Deleted, Imported, RequestFinished, Saved
from statelog.domain.execution.plan_history import History, Stage
from statelog.domain.execution.request import eligible, owner_of, present, token
from statelog.domain.execution.slot import SUPERSEDED, Held, Released, SlotStatus


class Rule(NamedTuple):
    """A named claim about every event: the history before, the event and its attempt, after."""

    name: str
    holds: Callable[[History, Event, str | None, History], bool]


def broken(
    before: History, event: Event, execution_id: str | None, after: History
) -> tuple[str, ...]:
    """The names of the rules that an event breaks."""
    return tuple(rule.name for rule in RULES if not rule.holds(before, event, execution_id, after))


def _on(kind: Any, holds: Callable[[History, Any, str | None, History], bool]) -> Any:
    """A claim about some events only."""
    return lambda before, event, id, after: (
        not isinstance(event, kind) or holds(before, event, id, after)
    )


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

RULES: Final = (
    Rule(
        ITS_GENERATION,
        _on(RequestFinished, lambda b, e, _, __: e.plan_generation == b.plan.plan_generation),
    ),
    Rule(NEVER_LOWERS, lambda before, event, _, after: _never_lowers(before, event, after)),
    Rule(TOGETHER, lambda before, event, _, after: _together(before, event, after)),
    Rule(ONCE, _on(RequestFinished, lambda before, event, _, __: _waits(before, event))),
    Rule(KEPT, lambda _, __, ___, after: _kept(after)),
    Rule(
        RISE,
        _on(
            Held,
            lambda before, event, _, __: (
                before.slot.floor is None
                or order_key(event.execution_id) > order_key(before.slot.floor)
            ),
        ),
    ),
    Rule(AS_IT_IS, _on(Held, lambda before, event, _, __: _as_it_is(before, event))),
    Rule(
        NOT_WOKEN,
        _on(Held, lambda b, e, _, __: all(f.ended not in ANSWERS for f in _answered(b, e))),
    ),
    Rule(
        THREE_FOLLOW,
        _on(
            Held,
            lambda before, event, _, __: (
                sum(fact.ended == ABANDONED for fact in _answered(before, event)) < MOST_ABANDONED
            ),
        ),
    ),
    Rule(NEVER_STARTS, _on(Started, lambda before, _, id, __: before.held_by(id))),
    Rule(
        FENCED,
        _on(
            _WRITTEN,
            lambda before, _, id, __: (
                before.held_by(id)
                and (life := before.life(id)) is not None
                and life.stage is Stage.RUNNING
            ),
        ),
    ),
    Rule(ONE_LIVE, lambda _, __, ___, after: _one_live(after)),
    Rule(GOOD_REASON, _on(Released, lambda before, event, _, __: _good_reason(before, event))),
)
