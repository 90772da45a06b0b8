"""`statelog run`: save or find the plan, make it this session's own, run it here (9, D13)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statelog.domain.aggregate import Loaded
from statelog.domain.errors import Conflict
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.plan import Plan, PlanStatus
from statelog.domain.execution.request import RUN_ONCE, Claim, request_state
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.domain.execution.spec import PlanSpec
from statelog.infrastructure.execution.coordinator import Coordinator
from statelog.infrastructure.execution.engine import Engine
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.execution.resolved import Resolved
from statelog.infrastructure.execution.settle import Settler
from statelog.infrastructure.execution.writer import Listener
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal

Say = Callable[[str], None]

_TRIES = 5
_LOOK_S = 0.2


@contextmanager
def session(
    journal: Journal,
    *,
    actor: str,
    work_root: Path,
    path: Sequence[Path],
    listener: Listener | None = None,
    say: Say = print,
) -> Iterator[RunOnce]:
    """A living run-once session over a journal; its owner token is its holder's id (D8)."""
    holders = Holders.for_journal(journal)
    holders.sweep()
    with holders.take(RUN_ONCE) as holder:
        cancel = threading.Event()
        engine = Engine(journal, work_root, path, actor, clock=journal.clock, listener=listener)
        settler = Settler(journal, holders, actor, clock=journal.clock, interrupt=cancel)
        claim = Claim(RUN_ONCE, holder.id)
        coordinator = Coordinator(engine, settler, holder, claim, cancel)
        yield RunOnce(Plans(journal, actor, holders), holders, coordinator, say)


@dataclass
class RunOnce:
    """Runs plan bodies in this process, as the owner `coordinator.holder`.

    `say` is told in one line each what is done with the plan, before it is done.
    """

    plans: Plans
    holders: Holders
    coordinator: Coordinator
    say: Say = print
    cancel: threading.Event = field(init=False)
    _told_of: dict[str, str | None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.cancel = self.coordinator.cancel

    def run(self, body: Mapping[str, Any], *, adopt: bool = False) -> Resolved:
        """Run a body to a recorded result, or say why not.

        An unchanged plan with a result waiting is settled, and if that recorded it nothing runs;
        an open request is run as it is; of a finished one another run is requested; a changed body
        is saved as a new generation. Raises `Invalid` for a body that cannot be saved.
        """
        plan_id = PlanSpec.from_json(body).plan_id
        while adopt and not self.cancel.is_set() and self.held_by_others(plan_id):
            self.cancel.wait(_LOOK_S)
        prepared = self.prepare(plan_id, body, adopt=adopt)
        return prepared if prepared is not None else self.coordinator.cycle(plan_id)

    def prepare(
        self, plan_id: str, body: Mapping[str, Any], *, adopt: bool, draft: bool = False
    ) -> Resolved | None:
        """Bring the document to an open request of ours; a resolution when that ends it.

        With `draft` what is saved waits to be approved, and so does a draft that is there.
        """
        for _ in range(_TRIES):
            try:
                return self._prepare(plan_id, body, adopt=adopt, draft=draft)
            except Conflict:
                continue
        return Resolved(plan_id, Resolution.ADMISSION_FAILED, "the plan kept changing")

    def _prepare(
        self, plan_id: str, body: Mapping[str, Any], *, adopt: bool, draft: bool
    ) -> Resolved | None:
        plan = self.plans.find(plan_id)
        if plan.state.status is PlanStatus.ABSENT:
            return self._save(body, f"plan {plan_id!r} is new", draft=draft)
        refused = self._not_ours(plan, adopt=adopt)
        if refused is not None:
            return refused
        if self.cancel.is_set():
            return Resolved(plan_id, Resolution.CANCELLED, "interrupted while waiting")
        same = self.plans.same_body(plan.state, body)
        settled = self.coordinator.settle(plan_id)
        if settled is not None and settled.resolution is Resolution.FINALIZATION_PENDING:
            self.say(f"plan {plan_id!r}: a result is still pending, nothing is run")
            return settled
        if settled is not None and same and settled.resolution is Resolution.FINALIZED:
            self.say(f"plan {plan_id!r}: the waiting result was recorded, nothing is run")
            return settled
        if not same:
            return self._save(
                body,
                f"plan {plan_id!r} changed",
                draft=draft,
                rev=self.plans.load(plan_id).version if settled else plan.version,
            )
        return self._request(self.plans.load(plan_id) if settled else plan, draft=draft)

    def _save(
        self, body: Mapping[str, Any], news: str, *, draft: bool, rev: int | None = None
    ) -> Resolved | None:
        self.plans.save(
            body, approve=not draft, rev=rev, authority=RUN_ONCE, owner=self.coordinator.holder.id
        )
        how = "saved as a draft" if draft else "saved and approved"
        self.say(f"{news}: {how}{'' if rev is None else ' as a new generation'}")
        return None

    def _not_ours(self, plan: Loaded[Plan], *, adopt: bool) -> Resolved | None:
        """Why this session may not run the plan, unless it adopts it."""
        state = plan.state
        if adopt or self._mine(state):
            return None
        if state.execution_authority == RUN_ONCE:
            if not self.holders.alive(state.execution_owner):
                return None
            who = self.holders.who(state.execution_owner) or {}
            reason = f"another run has it (pid {who.get('pid', 'unknown')})"
        else:
            reason = f"its authority is {state.execution_authority!r}"
        reason = f"{reason}; take it over with --adopt"
        self.plans.refused(plan, reason, rule=Resolution.NOT_AUTHORIZED.value)
        return Resolved(
            str(plan.id),
            Resolution.NOT_AUTHORIZED,
            reason,
            plan_generation=state.plan_generation,
            run_token=state.run_token,
        )

    def _mine(self, plan: Plan) -> bool:
        owner = self.coordinator.holder.id
        return (plan.execution_authority, plan.execution_owner) == (RUN_ONCE, owner)

    def held_by_others(self, plan_id: str) -> bool:
        """Whether a living holder has the plan: an adopting session waits for it (D13)."""
        slot = self.plans.journal.load(SLOT, plan_id).state
        free = slot.status is SlotStatus.FREE or not self.holders.alive(slot.holder)
        if free or slot.gave_up is not None:
            return False
        if self._told_of.get(plan_id) != slot.execution_id:
            self._told_of[plan_id] = slot.execution_id
            self.say(f"plan {plan_id!r}: waiting for execution {slot.execution_id} to end")
        return True

    def _request(self, plan: Loaded[Plan], *, draft: bool) -> Resolved | None:
        """Own an unchanged plan and see that a request is open."""
        plan_id, state = str(plan.id), plan.state
        approved = state.status is PlanStatus.APPROVED
        if not approved and not draft:
            return Resolved(
                plan_id,
                Resolution.NOT_ELIGIBLE,
                f"it is a draft; allow it to run with `statelog plan approve {plan_id}`",
            )
        if not self._mine(state):
            owner = self.coordinator.holder.id
            self.plans.adopt(plan_id, authority=RUN_ONCE, owner=owner, rev=plan.version)
        if not approved:
            self.say(f"plan {plan_id!r} is unchanged: a draft")
        elif request_state("approved", state.run_token, state.executed_run_token) == "finished":
            token = self.plans.request(plan_id).state.run_token
            self.say(f"plan {plan_id!r} is unchanged: run {token} requested")
        else:
            self.say(f"plan {plan_id!r} is unchanged: its open request {state.run_token} runs")
        return None
