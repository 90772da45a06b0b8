"""Parts of the model that are wrong, each in a way somebody might write it."""

from __future__ import annotations

from typing import Any

from statelog.domain.aggregate import Aggregate, Change, Loaded, changed
from statelog.domain.execution import slot as slots
from statelog.domain.execution.attempt import ATTEMPT, Attempt
from statelog.domain.execution.due import ABANDONED, Due, due
from statelog.domain.execution.finalization import Finalization, Supersession, Verdict, judge
from statelog.domain.execution.plan import PlanStatus, RequestFinished, evolve
from statelog.domain.execution.request import admit
from statelog.domain.execution.slot import SLOT, Held, SlotStatus
from statelog.domain.execution.step_lifecycle import STEP, StepState, evolve_step
from statelog.infrastructure.testing import World
from tests.model.faults import Faults
from tests.model.operator import Intent, Operator
from tests.model.processes import Process
from tests.model.world import ID, Memory, Model

# decisions that are wrong


def judge_any_generation(request: Any, document: Any) -> Verdict:
    if document.status is PlanStatus.ABSENT:
        return judge(request, document)
    return judge(request, changed(document, plan_generation=request.plan_generation))


def judge_latest_only(request: Any, document: Any) -> Verdict:
    """The result of an older request is of no interest any more."""
    verdict = judge(request, document)
    if verdict.writes and document.run_token != request.run_token:
        return Verdict(Finalization.SUPERSEDED, Supersession.REQUEST_ALREADY_FINALIZED)
    return verdict


def judge_nothing(request: Any, document: Any) -> Verdict:
    return Verdict(Finalization.COMMITTED)


def finish_anything(plan: Any, *, result: RequestFinished) -> list[RequestFinished]:
    return [result]


def admit_any_id(slot: Any, **given: Any) -> list[Held]:
    return [Held(**given)]


def evolve_token_only(plan: Any, event: Any) -> Any:
    if isinstance(event, RequestFinished):
        return changed(plan, executed_run_token=event.run_token)
    return evolve(plan, event)


def due_when_eligible(document: Any, version: int, facts: Any, claim: Any) -> Due:
    """Every event of the plan wakes it, its own attempt's too."""
    return Due.YES if admit(document, claim).request is not None else Due.NO


def due_after_any_crash(document: Any, version: int, facts: Any, claim: Any) -> Due:
    return due(document, version, [fact for fact in facts if fact.ended != ABANDONED], claim)


# programs that are wrong


class FreesOnly(Process):
    """Its takeover frees the plan and leaves the attempt as it is."""

    def recovery(self, me: Memory) -> list[Change[Any]]:
        return super().recovery(me)[1:]


class DoesNotVoid(Process):
    """Its takeover does not void an attempt that never started."""

    def recovery(self, me: Memory) -> list[Change[Any]]:
        attempt, release = super().recovery(me)
        unstarted = me.attempt.loaded.version == 0
        return [me.attempt.loaded.guard() if unstarted else attempt, release]


class ReleasesAtOnce(Process):
    """Its close frees the plan, whatever the report says."""

    def hands_on(self, me: Memory, report: dict[str, Any]) -> Change[Any]:
        return self._release(me.slot, me.slot.state.execution_id, slots.UNFINISHED)


class RecordsBlindly(Process):
    """It records without looking at who has the slot."""

    def recording(self, me: Memory, result: Any, verdict: Any) -> list[Change[Any]]:
        theirs = me.slot.state.status is not SlotStatus.REPORTING
        if theirs or me.slot.state.execution_id != me.execution:
            return [self.finish(me, result)]
        return super().recording(me, result, verdict) or []


class AdmitsWhatItRead(Process):
    """Its admission is not conditional on the plan."""

    def guards(self, me: Memory) -> list[Change[Any]]:
        return []


class AsksTooEarly(Process):
    """It asks whether the plan is due, and reads the slot afterwards."""

    def admits(self, world: World, me: Memory) -> Any:
        slot = world.load(SLOT, ID)
        if slot.state.status is not SlotStatus.FREE:
            return self._at(world, me.idle(), "idle")
        return super().admits(world, me._replace(slot=type(me.plan)(slot)))


class LooksAtDuePlansOnly(Process):
    """It looks for dead holders only where it could run the plan."""

    def looks(self, world: World, me: Memory) -> Any:
        if admit(world.state(self.model.plan, ID), self.claim).request is None:
            return self._rests(world, me)
        return super().looks(world, me)


class ForgetsTheClose(Process):
    """It does not try again what it could not append."""

    def pays(self, world: World, me: Memory) -> Any:
        return self._at(world, me.idle(), "idle")


STREAM = Aggregate("step", StepState(), evolve_step, STEP, "plan/{}/attempt/{}/step/{}")


class StepsApart(Process):
    """Each step has a stream of its own, which no takeover moves."""

    def attempt(self, world: World, me: Memory) -> Loaded[Attempt]:
        known, execution = me.attempt.loaded, me.slot.state.execution_id
        steps, running = known.state.steps, None
        for step_id in known.state.steps:
            step = world.state(STREAM, (ID, execution, step_id))
            steps = steps.set(step_id, step)
            running = step_id if step.status.value == "running" else running
        state = changed(known.state, steps=steps, running=running)
        merged = Loaded(ATTEMPT, known.id, state, known.version)
        return self.model.once(("merged", me.attempt, str(state)), lambda: merged)

    def publishes(self, world: World, me: Memory, change: Change[Any]) -> World:
        for event in change.events:
            step = world.load(STREAM, (ID, me.slot.state.execution_id, event.step_id))
            said = self.model.once(
                ("said", id(step), event.step_id, type(event)),
                lambda step=step, event=event: step.decide(lambda _: [event]),
            )
            world = self.model.commit(world, self.name, said)
        return self._at(world, me, "running")


class Lease(Model):
    """Who was not heard of for a while counts as dead."""

    def alive(self, world: World, holder: str | None) -> bool:
        memories = (world.memory(name) for name, _ in self.processes)
        heard = (each for each in memories if each is not None and not each.stopped)
        return any(each.holder == holder and each.locked for each in heard)


class Impatient(Model):
    """A result that is not recorded yet is pending."""

    def pending(self, world: World, slot: Any) -> bool:
        return slot.status is SlotStatus.REPORTING


class ForgetsTheVerdict(Faults):
    """What it gave up and could not say so, it forgets."""

    GIVING_UP_FAILED = "idle"


class AdoptsAtOnce(Operator):
    """It adopts without settling first."""

    def settle(self, world: World, intent: Intent) -> World:
        return world

    def _adopts(self, world: World) -> Any:
        intent = self._intent(world)
        if intent.adopts is None:
            return None
        done = world.remember("operator", Intent(intent.left))
        return self.model.commit(done, "operator", *self.adoption(intent))


class AdoptsUnguarded(Operator):
    """It settles first, but adopts whatever became of the attempt meanwhile."""

    def adoption(self, intent: Intent) -> list[Any]:
        return super().adoption(intent)[:1]
