"""The `due` view: which plans should be executed now, by whom (D11).

It collects what the log says about a plan and the attempts at its current document version.
Only attempts that held the plan's slot count: imported ones are history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.aggregate import changed
from statelog.domain.errors import Invalid
from statelog.domain.event import Event, Recorded
from statelog.domain.execution import due as rules
from statelog.domain.execution.attempt_events import Closed, Started
from statelog.domain.execution.due import ABANDONED, AttemptFact, Due
from statelog.domain.execution.execution_ids import order_key
from statelog.domain.execution.plan import (
    Adopted,
    Approved,
    Deleted,
    GenerationAssigned,
    Imported,
    RequestFinished,
    ReturnedToDraft,
    RunRequested,
    Saved,
)
from statelog.domain.execution.request import DAEMON, RUN_ONCE, Claim
from statelog.domain.execution.slot import Held, Released
from statelog.projections.execution.document import PLAN_EVENTS
from statelog.projections.execution.streams import attempt_of, plan_of, stream_of
from statelog.projections.projection import Projection

ABSENT: Final = "absent"


@dataclass(frozen=True)
class Tried:
    """One attempt that held the slot, and whether it ever started."""

    fact: AttemptFact
    started: bool = False


@dataclass(frozen=True)
class DueFacts:
    """What `due` asks of a plan's document, without its body, and the attempts that may matter.

    `version` is that of the plan's stream; `attempts` are by execution ID.
    """

    status: str = ABSENT
    plan_id: Any = None
    body: Any = None
    plan_generation: Any = None
    run_token: Any = 0
    executed_run_token: Any = -1
    execution_authority: Any = None
    execution_owner: Any = None
    last: Mapping[str, Any] | None = None
    version: int = 0
    attempts: Mapping[str, Tried] = field(default_factory=dict)

    @property
    def facts(self) -> tuple[AttemptFact, ...]:
        """The attempts that started, in the order of their execution IDs."""
        ids = sorted(self.attempts, key=order_key)
        return tuple(self.attempts[id].fact for id in ids if self.attempts[id].started)

    def asked_by(self, claim: Claim) -> Due:
        """Whether this caller should execute the plan now."""
        return rules.due(self, self.version, self.facts, claim)

    @property
    def given_up(self) -> bool:
        """Whether so many attempts were abandoned that no further one follows."""
        return rules.gave_up(self, self.version, self.facts)


def evolve(state: DueFacts, recorded: Recorded) -> DueFacts:
    """The facts after an event of the plan, its slot or an attempt."""
    event, execution_id = recorded.event, attempt_of(recorded)
    if isinstance(event, PLAN_EVENTS):
        return _forget(changed(_document(state, event), version=recorded.version))
    if isinstance(event, Held):
        return _held(state, event)
    if isinstance(event, Released):
        return _released(state, event)
    if execution_id is None or execution_id not in state.attempts:
        return state
    return _attempt(state, event, execution_id)


def _document(state: DueFacts, event: Event) -> DueFacts:
    match event:
        case Saved():
            return _saved(state, event)
        case Imported(document=document):
            return _imported(state, document)
        case Approved():
            return changed(state, status="approved")
        case ReturnedToDraft():
            return changed(state, status="draft")
        case RunRequested(run_token=token):
            return changed(state, run_token=token)
        case Adopted(execution_authority=authority, execution_owner=owner):
            return changed(state, execution_authority=authority, execution_owner=owner)
        case GenerationAssigned(plan_generation=generation):
            return changed(state, plan_generation=generation)
        case RequestFinished(run_token=token):
            return changed(state, executed_run_token=token)
        case Deleted():
            return DueFacts(attempts=state.attempts)
        case _:
            return state


def _saved(state: DueFacts, event: Saved) -> DueFacts:
    return changed(
        state,
        status="draft",
        plan_id=event.plan_id,
        plan_generation=event.plan_generation,
        run_token=event.run_token,
        executed_run_token=event.executed_run_token,
        execution_authority=event.execution_authority,
        execution_owner=event.execution_owner,
    )


def _imported(state: DueFacts, document: Mapping[str, Any]) -> DueFacts:
    return changed(
        state,
        status="draft",
        plan_id=document.get("_id"),
        plan_generation=document.get("plan_generation"),
        run_token=document.get("run_token", 0),
        executed_run_token=document.get("executed_run_token", -1),
        execution_authority=document.get("execution_authority"),
        execution_owner=document.get("execution_owner"),
    )


def _held(state: DueFacts, event: Held) -> DueFacts:
    fact = AttemptFact(
        event.plan_generation, event.run_token, event.execution_authority, event.execution_owner
    )
    return _put(state, event.execution_id, Tried(fact))


def _released(state: DueFacts, event: Released) -> DueFacts:
    """A reservation that never started is no attempt; an abandoned one says so here."""
    tried = state.attempts.get(event.execution_id)
    if tried is None:
        return state
    if not tried.started:
        others = {id: t for id, t in state.attempts.items() if id != event.execution_id}
        return changed(state, attempts=others)
    if event.reason != ABANDONED:
        return state
    return _put(state, event.execution_id, _ended(tried, state.version, ABANDONED))


def _attempt(state: DueFacts, event: Event, execution_id: str) -> DueFacts:
    tried = state.attempts[execution_id]
    if isinstance(event, Started):
        return _put(state, execution_id, changed(tried, started=True))
    if isinstance(event, Closed) and tried.fact.closed_at is None:
        reason = event.report.get("termination_reason")
        return _put(state, execution_id, _ended(tried, state.version, str(reason)))
    return state


def _ended(tried: Tried, version: int, ended: str) -> Tried:
    return changed(tried, fact=changed(tried.fact, closed_at=version, ended=ended))


def _put(state: DueFacts, execution_id: str, tried: Tried) -> DueFacts:
    return changed(state, attempts={**state.attempts, execution_id: tried})


def _forget(state: DueFacts) -> DueFacts:
    """An attempt that closed before the current document version can never matter again."""
    kept = {
        id: tried
        for id, tried in state.attempts.items()
        if tried.fact.closed_at is None or tried.fact.closed_at >= state.version
    }
    return state if len(kept) == len(state.attempts) else changed(state, attempts=kept)


def show(plan_id: str, state: DueFacts) -> dict[str, Any] | None:
    """Whether the plan is due for whom its document names: `no`, `yes` or `at_start`."""
    if state.status == ABSENT:
        return None
    return {
        "plan_id": plan_id,
        "due": _for_its_own(state).value,
        "execution_authority": state.execution_authority,
        "execution_owner": state.execution_owner,
        "version": state.version,
        "abandoned": rules.abandoned(state.facts),
        "given_up": state.given_up,
    }


def _for_its_own(state: DueFacts) -> Due:
    authority, owner = state.execution_authority, state.execution_owner
    try:
        claim = Claim(DAEMON) if authority == DAEMON else Claim(RUN_ONCE, owner)
    except Invalid:
        return Due.NO
    return state.asked_by(claim)


def _field(name: str) -> Any:
    return lambda document: document[name]


due: Final = Projection(
    "due",
    DueFacts(),
    evolve,
    key=plan_of,
    below=stream_of,
    events=(*PLAN_EVENTS, Held, Released, Started, Closed),
    show=show,
    columns={
        name: _field(name) for name in ("due", "execution_authority", "execution_owner", "given_up")
    },
)
"""Which plans are due, and for whom."""
