"""Who acts: workers, step by step, an operator, and everything that goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from statelog.domain.errors import Refused
from statelog.domain.planning import algorithm_run as runs
from statelog.domain.planning import session as sessions
from statelog.domain.planning.session import SessionStatus
from statelog.domain.queue import job as jobs
from statelog.domain.queue.job import JobStatus
from statelog.infrastructure.testing import Action, World
from tests.model.planning.world import NOW, WORKING, Chance, Memory, Model, candidate

Step = Callable[[World, Memory], World | None]


class Operator:
    """Somebody who asks for sessions, calls them off, and chooses."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def actions(self) -> list[Action]:
        """What may be asked for."""
        found = []
        for id, _ in self.model.asked:
            found.append(Action(f"operator creates {id}", self._creates(id)))
            if not self.model.creates_at_once:
                found.append(Action(f"operator publishes the job of {id}", self._publishes(id)))
            if "cancels" in self.model.operations:
                found.append(Action(f"operator cancels {id}", self._cancels(id)))
            if "selects" in self.model.operations:
                found.append(Action(f"operator selects in {id}", self._selects(id)))
        return found

    def _creates(self, id: str) -> Callable[[World], World | None]:
        def creates(world: World) -> World | None:
            if self.model.loaded(world, id).version:
                return None
            changes = self.model.create(id)
            if self.model.creates_at_once:
                return world.commit(*changes, self.model.publish(world, id))
            return world.commit(*changes).remember("operator", id)

        return creates

    def _publishes(self, id: str) -> Callable[[World], World | None]:
        def publishes(world: World) -> World | None:
            if world.memory("operator") != id:
                return None
            return world.commit(self.model.publish(world, id)).remember("operator", None)

        return publishes

    def _cancels(self, id: str) -> Callable[[World], World | None]:
        def cancels(world: World) -> World | None:
            if not self.model.loaded(world, id).version:
                return None
            return world.commit(*self.model.ended(world, id, sessions.cancel))

        return cancels

    def _selects(self, id: str) -> Callable[[World], World | None]:
        def selects(world: World) -> World | None:
            first = self.model.runs(world, id)[0].state
            if not first.emitted or self.model.loaded(world, id).state.selected_plan_id:
                return None
            chosen = first.emitted[0]
            given = {"candidate_id": chosen.id, "plan_id": chosen.plan_id}
            return world.commit(self.model.loaded(world, id).decide(sessions.select, **given))

        return selects


class Worker:
    """One worker that has one job at a time, and its handler."""

    def __init__(self, model: Model, name: str) -> None:
        self.model, self.name = model, name

    def actions(self) -> list[Action]:
        """Every step it may take, and what may happen to it."""
        progress = ("tells progress", self._inside(runs.progress, fraction=0.5))
        steps: list[tuple[str, Step]] = [
            ("looks at its session", self._looks),
            ("takes the turn", self._takes),
            ("starts its session", self._starts),
            ("begins a run, or ranks", self._begins),
            *([progress] if self.model.tells_progress else []),
            ("emits", self._emits),
            ("sees its run complete", self._ends(runs.complete)),
            ("sees its run fail", self._ends(runs.fail, reason="no")),
            ("sees the cancellation", self._sees),
            ("completes its job", self._completes),
            ("notices that its job is lost", self._notices),
            *self._faults(),
        ]
        moves = [Action(f"{self.name} {name}", self._step(step), self.name) for name, step in steps]
        for id, _ in self.model.asked:
            leases = Action(f"{self.name} leases {id}", self._leases(id), self.name)
            sweeps = Action(f"{self.name} sweeps {id}", self._sweeps(id), self.name)
            moves += [leases, sweeps]
        return moves

    def _faults(self) -> list[tuple[str, Step]]:
        known: dict[str, tuple[str, Step]] = {
            "crash": ("is killed", self._is_killed),
            "stop": ("is stopped", self._is_stopped),
            "fail": ("cannot write", self._cannot_write),
        }
        return [known[each] for each in self.model.faults if each in known]

    def _step(self, step: Step) -> Callable[[World], World | None]:
        """What is refused ends the handler: the refusal is evidence, and the job is done."""

        def happens(world: World) -> World | None:
            me: Memory = world.memory(self.name)
            try:
                return step(world, me)
            except Refused:
                if me.at in WORKING:
                    return world.remember(self.name, me._replace(at="done"))
                raise

        return happens

    def _goes(self, world: World, me: Memory, at: str, run: int | None = None) -> World:
        return world.remember(self.name, me._replace(at=at, run=me.run if run is None else run))

    # the queue

    def _leases(self, id: str) -> Callable[[World], World | None]:
        def leases(world: World) -> World | None:
            job = self.model.job(world, id)
            if world.memory(self.name).at != "idle" or job.state.status is not JobStatus.PENDING:
                return None
            given = {"owner": self.name, "now": NOW, "expires_at": NOW}
            return world.commit(job.decide(jobs.lease, **given)).remember(
                self.name, Memory("leased", id)
            )

        return leases

    def _sweeps(self, id: str) -> Callable[[World], World | None]:
        """The lease of a dead worker runs out; that of a living one when it is stopped for long."""

        def sweeps(world: World) -> World | None:
            job = self.model.job(world, id)
            if job.state.status is not JobStatus.LEASED:
                return None
            if self.model.owns(world, str(job.state.lease_owner), id):
                chance: Chance = world.memory("chance")
                if "stall" not in self.model.faults or not chance.left:
                    return None
                world = world.remember("chance", chance._replace(left=chance.left - 1))
            return self.model.job_ends(world, id, job.decide(jobs.expire, now=NOW))

        return sweeps

    def _completes(self, world: World, me: Memory) -> World | None:
        if me.at != "done":
            return None
        given = {"owner": self.name, "now": NOW}
        done = self.model.job(world, me.session).decide(jobs.complete, **given)
        return world.commit(done).remember(self.name, Memory())

    def _notices(self, world: World, me: Memory) -> World | None:
        """Its stop is set: the handler raises, and lets go of the turn."""
        if me.at in ("idle", "ghost"):
            return None
        job = self.model.job(world, me.session).state
        if job.status is JobStatus.LEASED and job.lease_owner == self.name:
            return None
        return world.remember(self.name, Memory())

    # the handler

    def _looks(self, world: World, me: Memory) -> World | None:
        if me.at != "leased":
            return None
        skipped = self.model.skips(self.model.loaded(world, me.session).state)
        return self._goes(world, me, "done" if skipped else "waits")

    def _takes(self, world: World, me: Memory) -> World | None:
        if me.at != "waits":
            return None
        if self.model.waits_for_the_turn and not self.model.turn_is_free(world):
            return None
        return self._goes(world, me, "has the turn")

    def _starts(self, world: World, me: Memory) -> World | None:
        if me.at != "has the turn":
            return None
        mine = self.model.loaded(world, me.session)
        if self.model.skips(mine.state):
            return self._goes(world, me, "done")
        chance: Chance = world.memory("chance")
        left = []
        if chance.last not in ("", me.session) and self.model.requeues_the_last:
            left = [self.model.loaded(world, chance.last).decide(sessions.requeue)]
        started = world.commit(*left, mine.decide(sessions.start))
        started = started.remember("chance", chance._replace(last=me.session))
        return self._goes(started, me, "begins", 0)

    def _begins(self, world: World, me: Memory) -> World | None:
        if me.at != "begins":
            return None
        left = [each for each in self.model.runs(world, me.session)[me.run :]]
        while left and left[0].state.ended:
            left = left[1:]
        if not left:
            return self._ranks(world, me)
        run = len(self.model.algorithms(me.session)) - len(left)
        return self._goes(world.commit(left[0].decide(runs.start)), me, "inside", run)

    def _inside(self, decision: Any, **given: Any) -> Step:
        def happens(world: World, me: Memory) -> World | None:
            if me.at != "inside":
                return None
            run = self.model.runs(world, me.session)[me.run]
            change = run.decide(decision, **given)
            return world.commit(change) if change.events else None

        return happens

    def _emits(self, world: World, me: Memory) -> World | None:
        if me.at != "inside":
            return None
        algorithm = self.model.algorithms(me.session)[me.run]
        run = self.model.runs(world, me.session)[me.run]
        change = run.decide(self.model.emit, candidate=candidate(me.session, algorithm))
        return world.commit(change) if change.events else None

    def _ends(self, decision: Any, **given: Any) -> Step:
        def happens(world: World, me: Memory) -> World | None:
            after = self._inside(decision, **given)(world, me)
            return None if after is None else self._goes(after, me, "begins", me.run + 1)

        return happens

    def _ranks(self, world: World, me: Memory) -> World:
        ranked = self.model.ranking(world, me.session)
        change = self.model.loaded(world, me.session).decide(self.model.finish, candidates=ranked)
        return self._goes(world.commit(change), me, "done")

    def _sees(self, world: World, me: Memory) -> World | None:
        """What watches the stream says so, while it waits or computes."""
        if me.at not in ("waits", "has the turn", *WORKING):
            return None
        if self.model.status(world, me.session) is not SessionStatus.CANCELLED:
            return None
        return self._goes(world, me, "done")

    # what goes wrong

    def _is_killed(self, world: World, me: Memory) -> World | None:
        """All it knew is gone, and the kernel frees its lock; another one starts in its place."""
        chance: Chance = world.memory("chance")
        if me.at == "idle" or not chance.crashes:
            return None
        locked = self.model.has_turn(world, self.name) and not self.model.frees_the_lock
        world = world.remember("chance", chance._replace(crashes=chance.crashes - 1))
        return world.remember(self.name, Memory("ghost") if locked else Memory())

    def _is_stopped(self, world: World, me: Memory) -> World | None:
        """The worker is told to stop: the handler raises, and the job goes back unused."""
        chance: Chance = world.memory("chance")
        if me.at in ("idle", "done") or not chance.left:
            return None
        if self.model.interrupted_is_done:
            return self._goes(world, me, "done")
        given = {"owner": self.name, "reason": "stopped", "now": NOW}
        back = self.model.job(world, me.session).decide(jobs.give_back, **given)
        world = world.commit(back).remember("chance", chance._replace(left=chance.left - 1))
        return world.remember(self.name, Memory())

    def _cannot_write(self, world: World, me: Memory) -> World | None:
        """The store is full for a moment: the handler raises, and the attempt has failed."""
        if me.at in ("idle", "done"):
            return None
        given = {"owner": self.name, "error": "full", "now": 0}
        failed = self.model.job(world, me.session).decide(jobs.fail, **given)
        return self.model.job_ends(world, me.session, failed).remember(self.name, Memory())
