"""The operator: somebody at the command line, who changes the plan at any moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from statelog.domain.aggregate import Loaded
from statelog.domain.errors import Conflict
from statelog.domain.execution import plan as plans
from statelog.domain.execution.plan import Approved, Imported, Plan, PlanStatus
from statelog.domain.execution.request import DAEMON, RUN_ONCE
from statelog.domain.execution.slot import SLOT
from statelog.infrastructure.testing import Action, World
from tests.model.recording import Recorder
from tests.model.world import ID, SESSION, Memory, Model, Read

OPERATIONS = (
    "approves",
    "drafts",
    "raises the token",
    "touches",
    "regenerates",
    "deletes",
    "adopts",
    "gives to the session",
    "imports a finished document",
)


class Intent(NamedTuple):
    """What the operator may still do, and the adoption it is at."""

    left: int
    adopts: tuple[str, str | None] | None = None
    plan: Read | None = None
    slot: Read | None = None


class Operator:
    """Somebody at the command line."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.settler = Recorder(model, "operator")

    def actions(self) -> list[Action]:
        """The first save, and each operation that may happen."""
        saves = [self._saves(policy) for policy in self.model.policies]
        known = {
            "approves": self._decides(plans.approve),
            "drafts": self._decides(plans.return_to_draft),
            "raises the token": self._decides(plans.request),
            "touches": self._decides(plans.touch),
            "regenerates": self._regenerates,
            "deletes": self._decides(plans.delete),
            "adopts": lambda world, plan: self._reads(world, (DAEMON, None)),
            "gives to the session": lambda world, plan: self._reads(world, (RUN_ONCE, SESSION)),
            "imports a finished document": self._imports,
        }
        chosen = [self._action(name, known[name]) for name in self.model.operations]
        adopting = [Action("operator hands the plan over", self._adopts)]
        return [*saves, *chosen, *adopting]

    def _intent(self, world: World) -> Intent:
        return world.memory("operator") or Intent(self.model.most_operations)

    def _action(self, name: str, function: Callable[[World, Loaded[Plan]], World | None]) -> Action:
        def tries(world: World) -> World | None:
            intent, plan = self._intent(world), world.load(self.model.plan, ID)
            if not intent.left or intent.adopts or plan.version == 0:
                return None
            after = function(world, plan)
            if after is None or after.memory("operator") != world.memory("operator"):
                return after
            return after.remember("operator", Intent(intent.left - 1))

        return Action(f"operator {name}", tries)

    def _decides(self, decision: Any) -> Callable[[World, Loaded[Plan]], World | None]:
        def function(world: World, plan: Loaded[Plan]) -> World | None:
            if plan.state.status is PlanStatus.ABSENT:
                return None
            return self._commits(world, (decision, Read(plan)), lambda: plan.decide(decision))

        return function

    def _commits(self, world: World, key: Any, make: Callable[[], Any]) -> World | None:
        change = self.model.once(key, make)
        return self.model.commit(world, "operator", change) if change.events else None

    def _saves(self, policy: str) -> Action:
        def function(world: World) -> World | None:
            plan = world.load(self.model.plan, ID)
            return None if plan.version else self._save(world, plan, policy)

        return Action(f"operator saves a {policy} plan", function)

    def _save(self, world: World, plan: Loaded[Plan], policy: str) -> World | None:
        generation = self.model.generation(plan.version + 1)
        given = {"body": self._body(policy), "generation": generation, "approved": True}
        key = ("save", Read(plan), policy)
        return self._commits(world, key, lambda: plan.decide(plans.save, **given))

    def _regenerates(self, world: World, plan: Loaded[Plan]) -> World | None:
        policy = plan.state.body["failure_policy"] if plan.state.body else self.model.policies[0]
        return self._save(world, plan, policy)

    def _body(self, policy: str) -> dict[str, Any]:
        named = {"name": "A", "fn_ref": "m:f", "params": {}}
        steps = [
            {"step_id": step_id, "deps": list(deps), **named} for step_id, deps in self.model.steps
        ]
        return {"plan_id": ID, "realm": "lab", "steps": steps, "failure_policy": policy}

    def _imports(self, world: World, plan: Loaded[Plan]) -> World | None:
        """A document in which the present request was finished elsewhere (D20)."""
        if plan.state.status is PlanStatus.ABSENT or not plan.state.open:
            return None
        state, token = plan.state, plan.state.run_token
        last = {"execution_id": "elsewhere", "run_token": token, "outcome": "succeeded"}
        document = {
            "_id": ID,
            "realm": state.realm,
            "plan": state.body,
            "plan_generation": state.plan_generation,
            "run_token": token,
            "executed_run_token": token,
            "execution_authority": state.execution_authority,
            "execution_owner": state.execution_owner,
            "last_finalized_execution": {**last, "plan_generation": state.plan_generation},
        }
        events = [Imported(document=document), Approved()]
        return self._commits(world, ("import", Read(plan)), lambda: plan.decide(lambda _: events))

    # adoption settles first (D10)

    def _reads(self, world: World, to: tuple[str, str | None]) -> World | None:
        plan, slot = world.load(self.model.plan, ID), world.load(SLOT, ID)
        now = (plan.state.execution_authority, plan.state.execution_owner)
        if plan.state.status is PlanStatus.ABSENT or now == to:
            return None
        left = self._intent(world).left - 1
        return world.remember("operator", Intent(left, to, Read(plan), Read(slot)))

    def _adopts(self, world: World) -> World | None:
        """What was read decides: settle what is pending, or adopt; a lost race ends it."""
        intent = self._intent(world)
        if intent.adopts is None:
            return None
        done = world.remember("operator", Intent(intent.left))
        try:
            if self.model.pending(world, intent.slot.state):
                settled = self.settle(done, intent)
                plan, slot = settled.load(self.model.plan, ID), settled.load(SLOT, ID)
                again = Intent(intent.left, intent.adopts, Read(plan), Read(slot))
                return settled.remember("operator", again)
            return self.model.commit(done, "operator", *self.adoption(intent))
        except Conflict:
            return done

    def adoption(self, intent: Intent) -> list[Any]:
        """Adopt the plan as it was read, while no attempt of it ends."""
        authority, owner = intent.adopts
        change = self.model.once(
            ("adopt", intent.plan, authority),
            lambda: intent.plan.loaded.decide(plans.adopt, authority=authority, owner=owner),
        )
        return [change, self.model.once(("guard", intent.slot), intent.slot.loaded.guard)]

    def settle(self, world: World, intent: Intent) -> World:
        """Record, or drop, the result that waits. Raises `Conflict`."""
        execution = intent.slot.state.execution_id
        me = Memory(execution=execution, plan=intent.plan, slot=intent.slot)
        result = self.settler._result(world, execution)
        verdict = self.model.judge(result, intent.plan.state)
        changes = self.settler.recording(me, result, verdict)
        return self.model.commit(world, "operator", *changes)
