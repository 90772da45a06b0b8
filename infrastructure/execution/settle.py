"""Recording results, and recovering what a dead process left behind (D7 to D10)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from statelog.domain.aggregate import Loaded
from statelog.domain.errors import Conflict, OutcomeUnknown, Refused, StatelogError, StoreError
from statelog.domain.event import Event
from statelog.domain.execution import attempt as attempts
from statelog.domain.execution import plan as plans
from statelog.domain.execution import slot as slots
from statelog.domain.execution.attempt import ATTEMPT, AttemptStatus
from statelog.domain.execution.attempt_events import Closed, Started
from statelog.domain.execution.due import ABANDONED, MOST_ABANDONED
from statelog.domain.execution.endings import Recording, pending_line
from statelog.domain.execution.faults import Fenced
from statelog.domain.execution.finalization import Finalization, FinalizationRequest, judge
from statelog.domain.execution.plan import PLAN, RequestFinished
from statelog.domain.execution.slot import SLOT, Slot, SlotStatus
from statelog.domain.times import iso
from statelog.infrastructure.clock import now
from statelog.infrastructure.codec import escaped
from statelog.infrastructure.execution.closing import Ending, close
from statelog.infrastructure.execution.fence import end_marked
from statelog.infrastructure.execution.writer import AttemptWriter
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.logs import about
from statelog.projections.execution import due
from statelog.projections.projection import fold

log = logging.getLogger("statelog.execution.settle")

E = TypeVar("E", bound=Event)

DELAYS_S: Final = (0.5, 1.0)
"""Waits between the three tries of one bounded round (4.6)."""


@dataclass(frozen=True)
class Recorded:
    """What became of a result: recorded, superseded (why) or pending (why), and its report."""

    recording: Recording
    report: Mapping[str, Any]
    reason: str | None = None


@dataclass
class Settler:
    """Records and recovers on one journal. `interrupt` cuts the waits of a round short."""

    journal: Journal
    holders: Holders
    actor: str
    clock: Callable[[], int] = now
    interrupt: threading.Event = field(default_factory=threading.Event)
    delays_s: tuple[float, ...] = DELAYS_S
    _spent: dict[str, int] = field(default_factory=dict, init=False)
    _unsaid: dict[str, tuple[str, str]] = field(default_factory=dict, init=False)

    def recover(self, plan_id: str) -> Recorded | None:
        """Do what the table of D9 says about a slot that is not free.

        Answers what became of a result that was waiting; None when there was none, or a living
        holder has the plan. Raises `Conflict` when others keep moving the plan.
        """
        for _ in range(8):
            slot = self.journal.load(SLOT, plan_id)
            try:
                if slot.state.status is SlotStatus.REPORTING:
                    return self._waiting(slot)
                if slot.state.status is SlotStatus.HELD and not self._alive(slot.state):
                    self._abandon(slot)
                return None
            except (Conflict, Fenced):
                continue
        raise Conflict(slot.stream, slot.version, self.journal.load(SLOT, plan_id).version)

    def pending(self, slot: Slot) -> bool:
        """Whether a result waits and nobody healthy is about to record it (D10)."""
        if slot.status is not SlotStatus.REPORTING:
            return False
        ours = slot.execution_id in self._unsaid
        return ours or slot.gave_up is not None or not self._alive(slot)

    def record(self, plan_id: str, execution_id: str) -> Recorded:
        """One bounded round of recording: three tries, each with a fresh read (4.6)."""
        report = self._report(plan_id, execution_id)
        reason, extra = "no try was made", about(plan_id, execution_id)
        for at in range(len(self.delays_s) + 1):
            if at:
                self.interrupt.wait(self.delays_s[at - 1])
            try:
                return self._record_once(plan_id, report)
            except (Conflict, OutcomeUnknown, StoreError) as error:
                reason = str(error)
                if isinstance(error, StoreError) and not error.retryable:
                    log.error(
                        "plan %r: recording cannot be tried again: %s", plan_id, error, extra=extra
                    )
                    break
                log.warning(
                    "plan %r: recording try %d failed: %s", plan_id, at + 1, error, extra=extra
                )
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                log.exception("plan %r: recording failed", plan_id, extra=extra)
                break
        return self._give_up(plan_id, report, reason)

    def _alive(self, slot: Slot) -> bool:
        return self.holders.alive(slot.holder)

    def _waiting(self, slot: Loaded[Slot]) -> Recorded | None:
        """Settle a pending result, or leave it to its healthy holder."""
        if not self.pending(slot.state):
            return None
        plan_id, execution_id = str(slot.id), slot.state.execution_id or ""
        report = self._report(plan_id, execution_id)
        if self._may_try(slot.state, plan_id) or not self._would_write(plan_id, report):
            self.spend(execution_id, self._requested(plan_id))
            return self.record(plan_id, execution_id)
        _, unsaid = self._unsaid.get(execution_id, ("", None))
        return Recorded(Recording.PENDING, report, slot.state.gave_up or unsaid)

    def _may_try(self, slot: Slot, plan_id: str) -> bool:
        """A round is bought by a newer token; the first one of another process is free (2.7)."""
        spent = self._spent.get(slot.execution_id or "")
        if spent is None:
            return True
        token = self.journal.load(PLAN, plan_id).state.run_token
        return isinstance(token, int) and token > spent

    def _would_write(self, plan_id: str, report: Mapping[str, Any]) -> bool:
        plan = self.journal.load(PLAN, plan_id)
        try:
            return judge(self._request(plan_id, report), plan.state).writes
        except StatelogError:
            return True

    def _report(self, plan_id: str, execution_id: str) -> Mapping[str, Any]:
        closed = self._event(plan_id, execution_id, Closed)
        if closed is None:
            raise StoreError("damaged", f"execution {execution_id} has filed no report")
        return closed.report

    def _request(self, plan_id: str, report: Mapping[str, Any]) -> FinalizationRequest:
        started = self._event(plan_id, report["execution_id"], Started)
        assert started is not None
        authority = started.execution_authority or ""
        return FinalizationRequest.of(report, authority, started.execution_owner)

    def _event(self, plan_id: str, execution_id: str, kind: type[E]) -> E | None:
        """The one event of its kind in an attempt, which is found without folding the others."""
        stream = ATTEMPT.stream_of((plan_id, execution_id))
        found = next(self.journal.latest(stream, kind.stored_name), None)
        return None if found is None else cast("E", found.event)

    def _record_once(self, plan_id: str, report: Mapping[str, Any]) -> Recorded:
        """Read, judge, and write conditionally on what was read (2.6)."""
        plan, slot = self.journal.load(PLAN, plan_id), self.journal.load(SLOT, plan_id)
        request = self._request(plan_id, report)
        verdict = judge(request, plan.state)
        ours = (
            slot.state.status is SlotStatus.REPORTING
            and slot.state.execution_id == request.execution_id
        )
        superseded = verdict.finalization is Finalization.SUPERSEDED
        reason = verdict.reason.value if verdict.reason is not None else None
        if not ours and not superseded and verdict.writes:
            raise Conflict(slot.stream, slot.version, slot.version)
        changes: list[Any] = []
        if verdict.writes:
            result = RequestFinished(
                request.execution_id,
                request.plan_generation,
                request.run_token,
                request.failure_policy,
                request.outcome,
                request.termination_reason,
            )
            changes.append(plan.decide(plans.finish, result=result))
        if ours:
            how = slots.SUPERSEDED if superseded else slots.RECORDED
            changes.append(
                slot.decide(
                    slots.release, execution_id=request.execution_id, how=how, reason=reason
                )
            )
        if changes:
            self.journal.commit(
                *changes,
                *([] if verdict.writes else [plan.guard()]),
                actor=self.actor,
                correlation=request.execution_id,
                cause=f"{slot.stream}@{slot.version}",
            )
        self._told(plan_id, request, reason if superseded else None)
        self._spent.pop(request.execution_id, None)
        self._unsaid.pop(request.execution_id, None)
        recording = Recording.SUPERSEDED if superseded else Recording.RECORDED
        return Recorded(recording, report, reason)

    def _told(self, plan_id: str, request: FinalizationRequest, superseded: str | None) -> None:
        if superseded is not None:
            log.warning(
                "plan %r execution %r: the result is superseded (%s)",
                plan_id,
                request.execution_id,
                superseded,
                extra=about(plan_id, request.execution_id),
            )
        else:
            log.info(
                "plan %r execution %r: recorded %s for token %d",
                plan_id,
                request.execution_id,
                request.outcome,
                request.run_token,
                extra=about(plan_id, request.execution_id),
            )

    def _give_up(self, plan_id: str, report: Mapping[str, Any], reason: str) -> Recorded:
        """Leave the result pending, in the log if the log takes it (D10)."""
        execution_id = report["execution_id"]
        line = pending_line(plan_id, execution_id, report["outcome"])
        log.error("%s", line, extra=about(plan_id, execution_id))
        self.spend(execution_id, report["run_token"])
        self._say(plan_id, execution_id, reason)
        return Recorded(Recording.PENDING, report, reason)

    def _say(self, plan_id: str, execution_id: str, reason: str) -> None:
        """Append the verdict that a result is pending; it is owed when the log does not take it."""
        try:
            slot = self.journal.load(SLOT, plan_id)
            if slot.state.status is SlotStatus.REPORTING and slot.state.gave_up != escaped(reason):
                self.journal.commit(
                    slot.decide(slots.give_up, execution_id=execution_id, reason=escaped(reason)),
                    actor=self.actor,
                    correlation=execution_id,
                    cause=f"{slot.stream}@{slot.version}",
                )
            self._unsaid.pop(execution_id, None)
        except (Conflict, Refused):
            self._unsaid.pop(execution_id, None)
        except StatelogError as error:
            self._unsaid[execution_id] = (plan_id, reason)
            log.error(
                "plan %r: giving up could not be recorded either: %s",
                plan_id,
                error,
                extra=about(plan_id, execution_id),
            )

    def pay(self) -> None:
        """Try again to append the verdicts that failed (D9)."""
        for execution_id, (plan_id, reason) in list(self._unsaid.items()):
            self._say(plan_id, execution_id, reason)

    @property
    def owes(self) -> bool:
        """Whether a verdict of this process is yet to be written."""
        return bool(self._unsaid)

    def _requested(self, plan_id: str) -> int:
        try:
            token = self.journal.load(PLAN, plan_id).state.run_token
        except StatelogError:
            return -1
        return token if isinstance(token, int) else -1

    def _abandon(self, slot: Loaded[Slot]) -> None:
        """Close, or void, the attempt of a dead holder and free its plan in one commit (D9)."""
        plan_id, execution_id = str(slot.id), slot.state.execution_id or ""
        ended = end_marked(execution_id)
        attempt = self.journal.load(ATTEMPT, (plan_id, execution_id))
        writer = AttemptWriter(self.journal, attempt, slot, actor=self.actor)
        if attempt.state.status is AttemptStatus.NEW:
            release = slot.decide(slots.release, execution_id=execution_id, how=slots.VOIDED)
            writer.commit(attempt.decide(attempts.void), release)
        elif attempt.state.status is AttemptStatus.RUNNING:
            ending = Ending(
                "orchestration_error", self._abandonment(slot.state, attempt.state.running)
            )
            close(writer, ending, iso(self.clock()), released_because=ABANDONED)
            self._tell_if_given_up(plan_id)
        else:
            release = slot.decide(slots.release, execution_id=execution_id, how=slots.UNFINISHED)
            writer.commit(attempt.guard(), release)
        log.warning(
            "plan %r: took over from execution %r, whose process is gone%s",
            plan_id,
            execution_id,
            f"; ended its commands {ended}" if ended else "",
            extra=about(plan_id, execution_id),
        )

    def _tell_if_given_up(self, plan_id: str) -> None:
        """One line when no further attempt will follow by itself (D11)."""
        prefix = PLAN.stream_of(plan_id)
        rows = fold(due, self.journal.history(prefix, names=due.names))
        if plan_id in rows and rows[plan_id].given_up:
            log.error(
                "plan %r: %d attempts in a row died with their process; it is left until the "
                "document changes",
                plan_id,
                MOST_ABANDONED,
                extra=about(plan_id),
            )

    def spend(self, execution_id: str, run_token: int) -> None:
        """Say that a child of this process gave up: only a newer token buys another round (2.7)."""
        self._spent[execution_id] = max(run_token, self._spent.get(execution_id, -1))

    def waits(self, slot: Slot, plan_id: str) -> bool:
        """Whether a result is pending that this process may not try to record again by itself."""
        return self.pending(slot) and not self._may_try(slot, plan_id)

    def _abandonment(self, slot: Slot, running: str | None) -> dict[str, Any]:
        details: dict[str, Any] = {"abandoned": True, "holder": slot.holder}
        if running is not None:
            details["running_step_id"] = running
        return {
            "message": "the attempt was abandoned: the process that ran it is gone",
            "error_type": "Abandoned",
            "details": details,
        }
