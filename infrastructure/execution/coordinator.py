"""One cycle of one plan: read, settle, admit, execute, interpret, record (2.5, 3)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from statelog.domain.aggregate import Loaded
from statelog.domain.errors import Conflict, OutcomeUnknown, StatelogError
from statelog.domain.execution import plan as plans
from statelog.domain.execution import slot as slots
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.due import Due
from statelog.domain.execution.endings import (
    Resolution,
    finishes_request,
    resolution_of,
)
from statelog.domain.execution.execution_ids import next_id
from statelog.domain.execution.faults import OrchestrationError
from statelog.domain.execution.plan import PLAN, Plan
from statelog.domain.execution.request import Claim, RunRequest, admit
from statelog.domain.execution.slot import SLOT, Slot, SlotStatus
from statelog.infrastructure.execution.chance import suffix
from statelog.infrastructure.execution.closing import text_of
from statelog.infrastructure.execution.engine import Ended, Engine
from statelog.infrastructure.execution.owed import Owed
from statelog.infrastructure.execution.plans import new_generation
from statelog.infrastructure.execution.resolved import Resolved, tell
from statelog.infrastructure.execution.settle import Recorded, Settler
from statelog.infrastructure.holders import Holder
from statelog.infrastructure.logs import about
from statelog.projections.execution import due
from statelog.projections.projection import fold

log = logging.getLogger("statelog.execution")

_TRIES = 5


@dataclass
class Coordinator:
    """Executes plans that a claim covers, one at a time, as one living holder."""

    engine: Engine
    settler: Settler
    holder: Holder
    claim: Claim
    cancel: threading.Event = field(default_factory=threading.Event)
    new_generation: Callable[[], str] = field(default=new_generation)
    suffix: Callable[[], str] = field(default=suffix)
    _last_id: str | None = field(default=None, init=False)
    _owed: dict[str, Owed] = field(default_factory=dict, init=False)

    def cycle(
        self,
        plan_id: str,
        *,
        when: Collection[Due] | None = None,
        attempted: tuple[str, int] | None = None,
    ) -> Resolved:
        """Take one plan as far as it goes now; never raises for what a resolution can say.

        `when` are the answers of D11 that let it run; None runs any eligible plan, because a
        person asked for it. A plan whose request is the one `attempted` is a duplicate (2.5),
        unless its document changed, or others freed it, after the end of that attempt.
        """
        try:
            resolved = self._cycle(plan_id, when, attempted)
        except (StatelogError, OrchestrationError) as error:
            resolved = Resolved(plan_id, Resolution.ADMISSION_FAILED, str(error))
        tell(resolved)
        return resolved

    def settle(self, plan_id: str) -> Resolved | None:
        """Recover what is left of an earlier attempt; what became of a waiting result, if any."""
        settled = self.settler.recover(plan_id)
        return None if settled is None else _settled(plan_id, settled)

    @property
    def owes(self) -> bool:
        """Whether a close, a release or a verdict of this process is yet to be written."""
        return bool(self._owed) or self.settler.owes

    def pay(self) -> None:
        """Try again to append what failed (D9)."""
        self.settler.pay()
        for plan_id, owed in list(self._owed.items()):
            if owed.pay():
                del self._owed[plan_id]

    def _cycle(
        self, plan_id: str, when: Collection[Due] | None, attempted: tuple[str, int] | None
    ) -> Resolved:
        self.pay()
        if self.cancel.is_set():
            return Resolved(plan_id, Resolution.CANCELLED, "cancelled before the plan was read")
        settled = self.settle(plan_id)
        if settled is not None and settled.resolution is Resolution.FINALIZATION_PENDING:
            return settled
        for _ in range(_TRIES):
            try:
                admitted = self._admit(plan_id, when, attempted)
            except Conflict as conflict:
                log.info(
                    "plan %r changed while it was admitted: %s",
                    plan_id,
                    conflict,
                    extra=about(plan_id),
                )
                continue
            return admitted if isinstance(admitted, Resolved) else self._execute(*admitted)
        return Resolved(plan_id, Resolution.ADMISSION_FAILED, "the plan kept changing")

    def _admit(
        self,
        plan_id: str,
        when: Collection[Due] | None = None,
        attempted: tuple[str, int] | None = None,
    ) -> Resolved | tuple[RunRequest, Loaded[Slot]]:
        """Judge one fresh read and take the slot under it. Raises `Conflict` when it moved.

        The end of any attempt moves the slot, so what `due` answers holds when the commit lands.
        """
        judged = self._judge(plan_id, when, attempted)
        if isinstance(judged, Resolved):
            return judged
        request, plan, slot = judged
        held = slot.decide(
            slots.admit,
            execution_id=self._allocate(plan_id, slot.state.floor),
            holder=self.holder.id,
            plan_version=plan.version,
            plan_generation=request.plan_generation,
            run_token=request.run_token,
            execution_authority=request.execution_authority,
            execution_owner=request.execution_owner,
        )
        try:
            self._journal.commit(
                held,
                plan.guard(),
                actor=self.engine.actor,
                correlation=held.after.state.execution_id,
                cause=f"{plan.stream}@{plan.version}",
            )
        except OutcomeUnknown:
            self._owe_release(held.after)
            raise
        return request, held.after

    def refusal(
        self,
        plan_id: str,
        when: Collection[Due] | None = None,
        attempted: tuple[str, int] | None = None,
    ) -> Resolved | None:
        """Why a cycle would not run the plan now; None when it would."""
        judged = self._judge(plan_id, when, attempted)
        return judged if isinstance(judged, Resolved) else None

    def _judge(
        self, plan_id: str, when: Collection[Due] | None, attempted: tuple[str, int] | None
    ) -> Resolved | tuple[RunRequest, Loaded[Plan], Loaded[Slot]]:
        """Judge one fresh read in the order of 3."""
        plan, slot = self._journal.load(PLAN, plan_id), self._journal.load(SLOT, plan_id)
        verdict = admit(plan.state, self.claim)
        if verdict.needs_generation:
            plan = self._with_generation(plan)
            verdict = admit(plan.state, self.claim)
        if verdict.request is None:
            resolution = verdict.resolution or Resolution.INVALID_DOCUMENT
            return Resolved(plan_id, resolution, verdict.reason)
        request = verdict.request
        if slot.state.status is not SlotStatus.FREE:
            reason = f"execution {slot.state.execution_id} has the plan"
            return Resolved(plan_id, Resolution.DUPLICATE, reason)
        answer = Due.YES if when is None else self._due(plan_id)
        again = attempted == (request.plan_generation, request.run_token)
        if again and (when is None or answer is not Due.YES):
            return Resolved(plan_id, Resolution.DUPLICATE, "this request was just attempted")
        if when is not None and answer not in when:
            reason = f"due: {answer.value}; its latest attempt has answered this version"
            return Resolved(plan_id, Resolution.NOT_ELIGIBLE, reason)
        return request, plan, slot

    def _due(self, plan_id: str) -> Due:
        prefix = PLAN.stream_of(plan_id)
        rows = fold(due, self._journal.history(prefix, names=due.names))
        return rows[plan_id].asked_by(self.claim) if plan_id in rows else Due.NO

    def _with_generation(self, plan: Loaded[Plan]) -> Loaded[Plan]:
        change = plan.decide(plans.assign_generation, generation=self.new_generation())
        cause = f"{plan.stream}@{plan.version}"
        self._journal.commit(change, actor=self.engine.actor, cause=cause)
        return change.after

    def _allocate(self, plan_id: str, floor: str | None) -> str:
        """The next execution ID; one that an attempt has already moves the time on (6.3)."""
        for _ in range(3):
            candidate = next_id(self.engine.clock(), floor, self._last_id, self.suffix())
            self._last_id = candidate
            if not self._journal.load(ATTEMPT, (plan_id, candidate)).version:
                return candidate
        raise OrchestrationError("no execution ID is free")

    def _execute(self, request: RunRequest, slot: Loaded[Slot]) -> Resolved:
        plan_id, execution_id = request.plan.plan_id, slot.state.execution_id or ""
        known: dict[str, Any] = {
            "plan_generation": request.plan_generation,
            "run_token": request.run_token,
            "execution_id": execution_id,
        }
        if self.cancel.is_set():
            self._owe_release(slot)
            self.pay()
            return Resolved(plan_id, Resolution.CANCELLED, "cancelled before the start", **known)
        try:
            ended = self.engine.attempt(request.plan, slot, self.cancel)
        except (StatelogError, OrchestrationError):
            self._owe_release(slot)
            self.pay()
            raise
        return self._interpret(plan_id, ended, known)

    def _interpret(self, plan_id: str, ended: Ended, known: Mapping[str, Any]) -> Resolved:
        report, reason = ended.report, "" if ended.error is None else text_of(ended.error)
        published = ended.published
        if not published and not ended.fenced:
            owed = self._owed[plan_id] = Owed(self.engine, ended)
            self.pay()
            filed = None if plan_id in self._owed else owed.filed()
            published, report = filed is not None, filed or report
        if not published or not finishes_request(report):
            return Resolved(plan_id, resolution_of(report), reason, **known, report=report)
        recorded = self.settler.record(plan_id, known["execution_id"])
        return Resolved(
            plan_id,
            resolution_of(report, recorded.recording),
            recorded.reason or (reason if ended.published else ""),
            **known,
            report=report,
        )

    def _owe_release(self, slot: Loaded[Slot]) -> None:
        """Owe the release of a reservation whose attempt did not start."""
        plan_id = str(slot.id)
        attempt = ATTEMPT.blank_of((plan_id, slot.state.execution_id or ""))
        self._owed[plan_id] = Owed(self.engine, Ended(None, False, attempt, slot))

    @property
    def _journal(self) -> Any:
        return self.engine.journal


def _settled(plan_id: str, settled: Recorded) -> Resolved:
    report = settled.report
    return Resolved(
        plan_id,
        resolution_of(report, settled.recording),
        settled.reason or "",
        report["plan_generation"],
        report["run_token"],
        report["execution_id"],
        report,
    )
