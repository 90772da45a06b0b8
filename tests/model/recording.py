"""What a process does for the attempt of another: take over, settle; and how it records its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import Conflict
from statelog.domain.execution import attempt as attempts
from statelog.domain.execution import slot as slots
from statelog.domain.execution.attempt import ATTEMPT, Attempt, AttemptStatus
from statelog.domain.execution.due import ABANDONED
from statelog.domain.execution.finalization import Finalization, FinalizationRequest
from statelog.domain.execution.plan import RequestFinished
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.infrastructure.execution.closing import Ending
from statelog.infrastructure.testing import World
from tests.model.attempting import closed
from tests.model.world import ID, Memory, Model, Read, attempt_id

Moves = World | Iterable[World] | None


class Recorder:
    """A process, as far as it takes over and records."""

    def __init__(self, model: Model, name: str) -> None:
        self.model, self.name = model, name

    def _at(self, world: World, me: Memory, at: str, **changes: Any) -> World:
        return world.remember(self.name, me._replace(at=at, starting=False, **changes))

    def _release(
        self, slot: Read, execution: str, how: str, reason: str | None = None
    ) -> Change[Any]:
        return self.model.once(
            ("release", slot, how, reason),
            lambda: slot.loaded.decide(
                slots.release, execution_id=execution, how=how, reason=reason
            ),
        )

    def guards(self, me: Memory) -> list[Change[Any]]:
        """The plan must still be as it was read."""
        return [self.model.once(("guard", me.plan), me.plan.loaded.guard)]

    def reads(self, world: World, me: Memory) -> Moves:
        plan, slot = world.load(self.model.plan, ID), world.load(SLOT, ID)
        return self._at(world, me, "judging", plan=Read(plan), slot=Read(slot))

    def records(self, world: World, me: Memory) -> Moves:
        """Judge the plan as it was read and write under it; a lost race is read again."""
        result = self._result(world, me.execution)
        verdict = self.model.judge(result, me.plan.state)
        changes = self.recording(me, result, verdict)
        if changes is None:
            return self._at(world, me.idle(), "idle")
        try:
            after = self.model.commit(world, self.name, *changes)
        except Conflict:
            return self._at(world, me._replace(plan=None, slot=None), "recording")
        return self._at(after, me.idle()._replace(spent=None), "idle")

    def recording(
        self, me: Memory, result: FinalizationRequest, verdict: Any
    ) -> list[Change[Any]] | None:
        """What a verdict writes; None when the result is no longer this process' to write."""
        slot = me.slot.state
        if slot.status is not SlotStatus.REPORTING or slot.execution_id != me.execution:
            return None
        if verdict.finalization is Finalization.SUPERSEDED:
            reason = verdict.reason.value
            release = self._release(me.slot, me.execution, slots.SUPERSEDED, reason)
            return [release, *self.guards(me)]
        release = self._release(me.slot, me.execution, slots.RECORDED)
        return [self.finish(me, result) if verdict.writes else self.guards(me)[0], release]

    def finish(self, me: Memory, result: FinalizationRequest) -> Change[Any]:
        """The plan's half of a recording."""
        identity = {name: value for name, value in result.identity.items() if name != "plan_id"}
        return self.model.once(
            ("finish", me.plan, id(result)),
            lambda: me.plan.loaded.decide(self.model.finish, result=RequestFinished(**identity)),
        )

    def _result(self, world: World, execution: str) -> FinalizationRequest:
        attempt = world.load(ATTEMPT, attempt_id(execution))
        start = attempt.state.start
        return self.model.once(
            ("result", Read(attempt)),
            lambda: FinalizationRequest.of(
                attempt.state.report, start.execution_authority, start.execution_owner
            ),
        )

    def gives_up(self, world: World, me: Memory) -> Moves:
        """Leave the result to whoever settles it (D10)."""
        slot = world.load(SLOT, ID)
        if slot.state.status is not SlotStatus.REPORTING or slot.state.execution_id != me.execution:
            return self._at(world, me.idle(), "idle")
        given = {"execution_id": me.execution, "reason": "the store failed"}
        change = self.model.once(
            ("give up", Read(slot)), lambda: slot.decide(slots.give_up, **given)
        )
        after = self.model.commit(world, self.name, change)
        ours = me.spent is not None and me.spent[0] == me.execution
        spent = me.spent if ours else (me.execution, slot.state.run_token)
        return self._at(after, me.idle()._replace(spent=spent), "idle")

    # what a dead holder left (D9)

    def takes_over(self, world: World, me: Memory) -> Moves:
        """Close, or void, the attempt of a dead holder and free its plan in one commit."""
        try:
            after = self.model.commit(world, self.name, *self.recovery(me))
        except Conflict:
            after = world
        return self._at(after, me.idle(), "idle")

    def recovery(self, me: Memory) -> list[Change[Any]]:
        slot, attempt = me.slot.loaded, me.attempt.loaded
        execution = slot.state.execution_id
        if attempt.state.status is AttemptStatus.NEW:
            return [self._void(me.attempt), self._release(me.slot, execution, slots.VOIDED)]
        ending = Ending("orchestration_error", {"message": "abandoned", "details": {}})
        close, _ = self._close(attempt, ending)
        return [close, self._release(me.slot, execution, slots.UNFINISHED, ABANDONED)]

    def _void(self, attempt: Read) -> Change[Any]:
        return self.model.once(("void", attempt), lambda: attempt.loaded.decide(attempts.void))

    def _close(
        self, attempt: Loaded[Attempt], ending: Ending, failure: Any = None
    ) -> tuple[Change[Any], dict[str, Any]]:
        return self.model.once(
            ("close", Read(attempt), ending.reason, failure is None),
            lambda: closed(attempt, ending, failure),
        )
