"""Commands on plan documents, for services and the command line (D3, D4, D10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from statelog.domain.aggregate import Loaded
from statelog.domain.errors import Conflict, NotFound, Refused, StoreError
from statelog.domain.execution import plan as decisions
from statelog.domain.execution.endings import Recording
from statelog.domain.execution.plan import PLAN, Plan, PlanStatus
from statelog.domain.execution.request import DAEMON
from statelog.domain.execution.slot import SLOT
from statelog.domain.execution.spec import PlanSpec, path_part
from statelog.infrastructure.codec import dump
from statelog.infrastructure.execution.settle import Settler
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Committed, Journal

_TRIES: Final = 5


def new_generation() -> str:
    """A fresh generation: 32 random hexadecimal digits."""
    return uuid4().hex


def checked_body(body: Any) -> PlanSpec:
    """The spec of a body that can be saved: its shape, its id and its realm (1.3, D5).

    Raises `Invalid` naming the field; what preflight checks is not looked at.
    """
    spec = PlanSpec.from_json(body)
    path_part(spec.plan_id, "plan.plan_id")
    path_part(spec.realm, "plan.realm")
    return spec


@dataclass
class Plans:
    """The plan documents of one journal.

    `save`, `delete` and `adopt` are conditional on the revision they read, or the one given, and
    never decided again; the others are read and decided again unless a revision is given. All
    raise `NotFound` for a plan that is not there, `Conflict` when the revision is not met, and
    `Invalid` for bad input.
    """

    journal: Journal
    actor: str
    holders: Holders | None = None
    new_generation: Callable[[], str] = field(default=new_generation)

    def load(self, plan_id: str) -> Loaded[Plan]:
        """The plan as decisions see it. Raises `NotFound`."""
        loaded = self.find(plan_id)
        if loaded.state.status is PlanStatus.ABSENT:
            raise NotFound("plan", plan_id)
        return loaded

    def find(self, plan_id: str) -> Loaded[Plan]:
        """The plan as decisions see it, absent or not."""
        return self.journal.load(PLAN, path_part(plan_id, "plan_id"))

    def save(
        self,
        body: Any,
        *,
        approve: bool = False,
        force: bool = False,
        rev: int | None = None,
        **given: Any,
    ) -> Committed[Plan]:
        """Save a body as a new plan, or over an existing one with `force` or its revision.

        `given` are further fields of the document: `authority`, `owner`, `preview`, `notes` ...
        Raises `Refused` (`plan_exists`) when the plan is there and neither is given.
        """
        plan_id = checked_body(body).plan_id
        found = self.find(plan_id)
        if found.state.status is not PlanStatus.ABSENT and not force and rev is None:
            raise self.refused(
                found,
                f"plan {plan_id!r} exists at revision {found.version}: "
                "save over it with --force or --rev",
                rule="plan_exists",
            )
        return self.journal.execute(
            PLAN,
            plan_id,
            decisions.save,
            actor=self.actor,
            expect=found.version if rev is None else rev,
            body=body,
            generation=self.new_generation(),
            approved=approve,
            **given,
        )

    def approve(self, plan_id: str, *, rev: int | None = None) -> Committed[Plan]:
        """Allow the plan to run, or look at its open request again."""
        return self._execute(plan_id, decisions.approve, rev)

    def draft(self, plan_id: str, *, rev: int | None = None) -> Committed[Plan]:
        """Take the permission to run back."""
        return self._execute(plan_id, decisions.return_to_draft, rev)

    def request(self, plan_id: str, *, rev: int | None = None) -> Committed[Plan]:
        """Ask for another run."""
        return self._execute(plan_id, decisions.request, rev)

    def touch(self, plan_id: str, *, rev: int | None = None) -> Committed[Plan]:
        """Look at the plan again."""
        return self._execute(plan_id, decisions.touch, rev)

    def delete(self, plan_id: str, *, rev: int | None = None) -> Committed[Plan]:
        """Delete the document."""
        found = self.load(plan_id)
        return self._execute(plan_id, decisions.delete, found.version if rev is None else rev)

    def adopt(
        self,
        plan_id: str,
        *,
        authority: str = DAEMON,
        owner: str | None = None,
        rev: int | None = None,
    ) -> Committed[Plan]:
        """Give the plan to another authority, after a pending result is settled (D10, D13).

        Raises `Refused` (`result_pending`) when that result could not be recorded.
        """
        found = self.load(plan_id)
        if rev not in (None, found.version):
            return self._execute(plan_id, decisions.adopt, rev, authority=authority, owner=owner)
        for tries_left in reversed(range(_TRIES)):
            slot = self.journal.load(SLOT, plan_id)
            if self._settle(plan_id):
                found = self.load(plan_id)
                continue
            change = found.decide(decisions.adopt, authority=authority, owner=owner)
            if not change.events:
                return Committed((), (found,), self.journal.head())
            try:
                # an attempt that ends meanwhile may leave a result to settle first
                return self.journal.commit(change, slot.guard(), actor=self.actor)
            except Conflict as conflict:
                if conflict.stream != slot.stream or not tries_left:
                    raise
        raise Conflict(found.stream, found.version, self.find(plan_id).version)

    def same_body(self, plan: Plan, body: Mapping[str, Any]) -> bool:
        """Whether a body says what the stored one says, defaults written out or not."""
        try:
            stored = PlanSpec.from_json(plan.body)
        except Exception:
            return False
        return dump(stored.to_json()) == dump(PlanSpec.from_json(body).to_json())

    def _settle(self, plan_id: str) -> bool:
        """Recover what a dead holder left; whether a result was settled."""
        holders = self.holders or Holders.for_journal(self.journal)
        settled = Settler(self.journal, holders, self.actor).recover(plan_id)
        if settled is not None and settled.recording is Recording.PENDING:
            reason = f"a result of plan {plan_id!r} is pending: {settled.reason}"
            raise self.refused(self.find(plan_id), reason, rule="result_pending")
        return settled is not None

    def refused(self, plan: Loaded[Plan], reason: str, rule: str) -> Refused:
        """The error that says no, once it is kept as evidence if the store takes it (D12)."""
        with suppress(StoreError):
            self.journal.refuse(
                actor=self.actor,
                stream=plan.stream,
                version=plan.version,
                command=None,
                rule=rule,
                reason=reason,
            )
        return Refused(reason, rule)

    def _execute(
        self, plan_id: str, decision: Callable[..., Any], rev: int | None, **given: Any
    ) -> Committed[Plan]:
        self.load(plan_id)
        return self.journal.execute(PLAN, plan_id, decision, actor=self.actor, expect=rev, **given)
