"""What the log says of one plan, as rules about it ask: document, slot, and who had the slot."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from statelog.domain.aggregate import Aggregate, changed
from statelog.domain.event import Event
from statelog.domain.execution.attempt_events import Closed, Started
from statelog.domain.execution.due import ABANDONED, AttemptFact
from statelog.domain.execution.endings import finishes_request
from statelog.domain.execution.plan import PLAN, Plan, RequestFinished
from statelog.domain.execution.slot import (
    RECORDED,
    SLOT,
    SUPERSEDED,
    Held,
    Released,
    Slot,
    SlotStatus,
)


class Stage(Enum):
    """How far a reservation came."""

    HELD, RUNNING, CLOSED = "held", "running", "closed"


@dataclass(frozen=True)
class Life:
    """A reservation and the attempt that came of it.

    `finishes`: its report finishes its request. `verdict` is what became of that report:
    `recorded`, or why it was superseded. `told` is what the report says that a result repeats:
    outcome, termination reason and failure policy.
    """

    execution_id: str
    fact: AttemptFact
    stage: Stage = Stage.HELD
    finishes: bool = False
    verdict: str | None = None
    told: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class History:
    """A plan, the version of its stream, its slot, and the reservations that can still matter."""

    plan: Plan = PLAN.blank
    version: int = 0
    slot: Slot = SLOT.blank
    lives: tuple[Life, ...] = ()

    def life(self, execution_id: str | None) -> Life | None:
        """The reservation with this execution ID, unless it can matter no more."""
        return next((life for life in self.lives if life.execution_id == execution_id), None)

    def held_by(self, execution_id: str | None) -> bool:
        """Whether this execution has the plan to run it."""
        return self.slot.status is SlotStatus.HELD and self.slot.execution_id == execution_id

    @property
    def facts(self) -> tuple[AttemptFact, ...]:
        """The attempts that started, as `due` asks for them."""
        return tuple(life.fact for life in self.lives if life.stage is not Stage.HELD)


def evolve(
    history: History,
    event: Event,
    execution_id: str | None = None,
    *,
    plan: Aggregate[Plan] = PLAN,
) -> History:
    """The history after an event; `execution_id` is that of the attempt whose stream it is on."""
    if isinstance(event, plan.lifecycle.events):
        new = changed(history, plan=plan.apply(history.plan, event), version=history.version + 1)
        if isinstance(event, RequestFinished):
            new = _with(new, event.execution_id, verdict=RECORDED)
        return changed(new, lives=tuple(life for life in new.lives if _matters(life, new.version)))
    if isinstance(event, SLOT.lifecycle.events):
        return _slot(changed(history, slot=SLOT.apply(history.slot, event)), event)
    if isinstance(event, Started):
        return _with(history, execution_id, stage=Stage.RUNNING)
    if isinstance(event, Closed):
        return _closed(history, execution_id, event)
    return history


def _slot(history: History, event: Event) -> History:
    if isinstance(event, Held):
        asked = (event.plan_generation, event.run_token)
        fact = AttemptFact(*asked, event.execution_authority, event.execution_owner)
        return changed(history, lives=(*history.lives, Life(event.execution_id, fact)))
    life = history.life(event.execution_id) if isinstance(event, Released) else None
    if life is None or not isinstance(event, Released):
        return history
    if life.stage is Stage.HELD:
        others = tuple(other for other in history.lives if other is not life)
        return changed(history, lives=others)
    if event.reason == ABANDONED:
        return _with(history, life.execution_id, fact=changed(life.fact, ended=ABANDONED))
    recorded = (history.plan.last or {}).get("execution_id") == life.execution_id
    if event.how == SUPERSEDED or (event.how == RECORDED and recorded):
        return _with(history, life.execution_id, verdict=event.reason or RECORDED)
    return history


def _closed(history: History, execution_id: str | None, event: Closed) -> History:
    life = history.life(execution_id)
    if life is None:
        return history
    ended = str(event.report.get("termination_reason"))
    fact = changed(life.fact, closed_at=history.version, ended=ended)
    finishes = finishes_request(event.report)
    told = tuple(map(event.report.get, ("outcome", "termination_reason", "failure_policy")))
    return _with(history, execution_id, stage=Stage.CLOSED, fact=fact, finishes=finishes, told=told)


def _with(history: History, execution_id: str | None, **changes: Any) -> History:
    lives = (
        changed(life, **changes) if life.execution_id == execution_id else life
        for life in history.lives
    )
    return changed(history, lives=tuple(lives))


def _matters(life: Life, version: int) -> bool:
    """Whether an event may still concern it: it goes on, waits, or answers this document."""
    waits = life.finishes and life.verdict is None
    closed_at = life.fact.closed_at
    return closed_at is None or closed_at >= version or waits
