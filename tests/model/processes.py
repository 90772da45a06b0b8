"""The program of a process that executes plans, one commit a move.

read -> take over or settle -> admit -> start -> steps -> close -> judge -> record or give up. The
decisions are the real ones; what is written together is what D7 says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import Conflict
from statelog.domain.execution import attempt as attempts
from statelog.domain.execution import slot as slots
from statelog.domain.execution.attempt import ATTEMPT, Attempt, AttemptStatus
from statelog.domain.execution.due import Due
from statelog.domain.execution.endings import finishes_request
from statelog.domain.execution.finalization import Finalization
from statelog.domain.execution.plan_history import Stage
from statelog.domain.execution.request import admit
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.domain.execution.spec import PlanSpec
from statelog.infrastructure.execution.closing import Ending
from statelog.infrastructure.testing import Action, World
from tests.model.attempting import NOW, ending, next_step, to_block
from tests.model.recording import Moves, Recorder
from tests.model.world import CLAIMS, ID, Memory, Model, Read, attempt_id

Program = Callable[[World, Memory], Moves]


class Process(Recorder):
    """One process: its name, what it may execute, and its moves."""

    def __init__(self, model: Model, name: str, claim: str) -> None:
        super().__init__(model, name)
        self.claim = CLAIMS[claim]
        self._seen: World | None = None
        self._memory = Memory()

    def actions(self) -> list[Action]:
        """Every move it may make, each possible at one place of its program."""
        moves: list[tuple[str, str, Program]] = [
            ("looks", "idle", self.looks),
            ("takes over", "taking over", self.takes_over),
            ("admits the plan", "admitting", self.admits),
            ("starts the attempt", "starting", self.starts),
            ("starts a step", "running", self.starts_step),
            ("sees its step succeed", "running", self.succeeds),
            ("sees its step fail", "running", self.fails),
            ("blocks what needs it", "running", self.blocks),
            ("closes the attempt", "running", self.closes),
            ("reads what to judge", "recording", self.reads),
            ("records", "judging", self.records),
            ("gives up", "giving up", self.gives_up),
            ("pays its close", "owing", self.pays),
        ]
        return [self._action(*move) for move in moves]

    def _action(self, label: str, at: str, program: Program) -> Action:
        def function(world: World) -> Moves:
            if world is not self._seen:
                self._seen, self._memory = world, world.memory(self.name)
            memory = self._memory
            return None if memory.at != at or memory.stopped else program(world, memory)

        return Action(f"{self.name} {label}", function, by=self.name)

    # what it looks for

    def looks(self, world: World, me: Memory) -> Moves:
        """One read of plan and slot decides what there is to do, if anything."""
        if not me.locked:
            return None
        slot = world.load(SLOT, ID)
        if slot.state.status is SlotStatus.FREE:
            return self._looks_for_work(world, me, slot)
        if slot.state.status is SlotStatus.HELD and not self.model.alive(world, slot.state.holder):
            attempt = world.load(ATTEMPT, attempt_id(slot.state.execution_id))
            return self._at(world, me, "taking over", slot=Read(slot), attempt=Read(attempt))
        if self.model.pending(world, slot.state) and self._may_settle(world, me, slot):
            # the token that buys this round is spent before it (2.7)
            spent = (slot.state.execution_id, world.state(self.model.plan, ID).run_token)
            return self._at(world, me, "recording", execution=spent[0], spent=spent)
        return self._rests(world, me)

    def _looks_for_work(self, world: World, me: Memory, slot: Loaded[Any]) -> Moves:
        plan = world.load(self.model.plan, ID)
        lives = world.memory("log").lives
        answer = self.model.once(
            ("due", Read(plan), lives, self.claim),
            lambda: self.model.due(
                plan.state,
                plan.version,
                [life.fact for life in lives if life.stage is not Stage.HELD],
                self.claim,
            ),
        )
        if answer is Due.YES or (answer is Due.AT_START and me.starting):
            return self._at(world, me, "admitting", plan=Read(plan), slot=Read(slot))
        return self._rests(world, me)

    def _may_settle(self, world: World, me: Memory, slot: Loaded[Any]) -> bool:
        """A round is bought by a newer token, or is this process' first (2.7)."""
        execution = slot.state.execution_id
        if me.spent is None or me.spent[0] != execution:
            return True
        plan = world.load(self.model.plan, ID)
        if plan.state.run_token > me.spent[1]:
            return True
        verdict = self.model.judge(self._result(world, execution), plan.state)
        return verdict.finalization is not Finalization.COMMITTED

    def _rests(self, world: World, me: Memory) -> Moves:
        return self._at(world, me.idle(), "idle") if me.starting else None

    # an attempt

    def admits(self, world: World, me: Memory) -> Moves:
        """Take the slot as it was read, under the plan as it was read."""
        change = self.model.once(
            ("admit", me.plan, me.slot, me.holder), lambda: self._admission(me)
        )
        if change is None:
            return self._at(world, me.idle(), "idle")
        try:
            after = self.model.commit(world, self.name, change, *self.guards(me))
        except Conflict:
            return self._at(world, me.idle(), "idle")
        return self._at(after, me, "starting", slot=Read(after.load(SLOT, ID)))

    def _admission(self, me: Memory) -> Change[Any] | None:
        request = admit(me.plan.state, self.claim).request
        if request is None:
            return None
        return me.slot.loaded.decide(
            self.model.admit,
            execution_id=self.model.next_id(me.slot.state.floor),
            holder=me.holder,
            plan_version=me.plan.loaded.version,
            plan_generation=request.plan_generation,
            run_token=request.run_token,
            execution_authority=request.execution_authority,
            execution_owner=request.execution_owner,
        )

    def starts(self, world: World, me: Memory) -> Moves:
        """The first event of an attempt that has none yet."""
        attempt = ATTEMPT.blank_of(attempt_id(me.slot.state.execution_id))
        change = self.model.once(
            ("start", me.plan, me.slot),
            lambda: attempt.decide(
                attempts.start,
                plan=PlanSpec.from_json(me.plan.state.body),
                slot=me.slot.state,
                started_at=NOW,
            ),
        )
        return self._writes(world, me, change)

    def attempt(self, world: World, me: Memory) -> Loaded[Attempt]:
        """Its attempt, as it knows it."""
        return me.attempt.loaded

    def starts_step(self, world: World, me: Memory) -> Moves:
        attempt = self.attempt(world, me)
        step_id = self.model.once(("next", Read(attempt)), lambda: [next_step(attempt.state)])[0]
        if step_id is None:
            return None
        given = {"run_id": "run_1", "fingerprint": "sha256:1", "params": {}}
        return self._step(world, me, attempt, attempts.start_step, step_id=step_id, **given)

    def succeeds(self, world: World, me: Memory) -> Moves:
        attempt = self.attempt(world, me)
        if (running := attempt.state.running) is None:
            return None
        return self._step(world, me, attempt, attempts.succeed, step_id=running)

    def fails(self, world: World, me: Memory) -> Moves:
        attempt = self.attempt(world, me)
        if (running := attempt.state.running) is None:
            return None
        why = {"kind": "permanent", "error": "no", "error_type": "E"}
        return self._step(world, me, attempt, attempts.fail, step_id=running, **why)

    def blocks(self, world: World, me: Memory) -> Moves:
        attempt = self.attempt(world, me)
        steps = self.model.once(("blocked", Read(attempt)), lambda: to_block(attempt.state))
        return self._step(world, me, attempt, attempts.block, steps=steps) if steps else None

    def _step(
        self, world: World, me: Memory, attempt: Loaded[Attempt], decision: Any, **given: Any
    ) -> World:
        change = self.model.once(
            ("step", Read(attempt), decision), lambda: attempt.decide(decision, **given)
        )
        return self.publishes(world, me, change)

    def publishes(self, world: World, me: Memory, change: Change[Any]) -> World:
        """Append what happened to a step."""
        return self._writes(world, me, change)

    def _writes(self, world: World, me: Memory, change: Change[Any]) -> World:
        """Append to its attempt; a lost version means that somebody took the plan over."""
        try:
            after = self.model.commit(world, self.name, change)
        except Conflict:
            return self._fenced(world, me)
        attempt = after.load(ATTEMPT, attempt_id(me.slot.state.execution_id))
        return self._at(after, me, "running", attempt=Read(attempt))

    def _fenced(self, world: World, me: Memory) -> World:
        self.model.happened.add("a late write is refused")
        return self._at(world, me.idle(), "fenced")

    def closes(self, world: World, me: Memory) -> Moves:
        """When nothing is left to run: the report, and the slot's next state, in one commit."""
        attempt = self.attempt(world, me)
        reason = self.model.once(("ending", Read(attempt)), lambda: [ending(attempt.state)])[0]
        return None if reason is None else self.ends(world, me, Ending(reason))

    def ends(self, world: World, me: Memory, ending: Ending) -> World:
        """Close the attempt with this ending."""
        change, report = self._close(self.attempt(world, me), ending)
        try:
            after = self.model.commit(world, self.name, change, self.hands_on(me, report))
        except Conflict:
            return self._fenced(world, me)
        if not finishes_request(report):
            return self._at(after, me.idle(), "idle")
        return self._at(after, me.idle(), "recording", execution=me.slot.state.execution_id)

    def hands_on(self, me: Memory, report: dict[str, Any]) -> Change[Any]:
        """The slot's next state: to whoever records, or to nobody."""
        execution = me.slot.state.execution_id
        if not finishes_request(report):
            return self._release(me.slot, execution, slots.UNFINISHED)
        return self.model.once(
            ("file", me.slot),
            lambda: me.slot.loaded.decide(slots.file_report, execution_id=execution),
        )

    def pays(self, world: World, me: Memory) -> Moves:
        """Close what could not be closed, as the log has it by now (D9)."""
        slot, execution = world.load(SLOT, ID), me.slot.state.execution_id
        if slot.state.status is not SlotStatus.HELD or slot.state.execution_id != execution:
            return self._at(world, me.idle(), "fenced")
        attempt, changes = world.load(ATTEMPT, attempt_id(execution)), []
        if attempt.state.status is AttemptStatus.RUNNING:
            failure = {"message": "the store failed", "error_type": "E", "details": {}}
            changes.append(self._close(attempt, Ending("orchestration_error"), failure)[0])
            changes.append(self._release(Read(slot), execution, slots.UNFINISHED))
        else:
            changes.append(self._release(Read(slot), execution, slots.NOT_STARTED))
        after = self.model.commit(world, self.name, *changes)
        return self._at(after, me.idle(), "idle")
