"""A job, two workers, the leases beside the log, the clock and crashes: every world of them.

Job and leases are the real ones: the decisions of `statelog.domain.queue.job`, and the rules of
`Leases` over a log that is a world. Only the programs of the workers are the model's own. Each of
their commits is a move, so everything can happen between any two. Times count from now in what
makes a world the same as another, so the clock has no end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from statelog.domain import SAME, Aggregate, Conflict, Event, Lifecycle, Refused
from statelog.domain.aggregate import Loaded
from statelog.domain.queue import job as jobs
from statelog.domain.queue.job import JOB, Job, JobStatus
from statelog.infrastructure.store.leases import Lease, Leases
from statelog.infrastructure.testing import (
    World,
    always,
    each_move,
    explore,
    never_stuck,
    sometimes,
)
from statelog.infrastructure.testing.explore import Exploration
from statelog.infrastructure.testing.model import Action

SECOND = 1_000_000
LEASE = 2 * SECOND
ID = "j"
WORKERS = ("one", "two")

KEEPS = "a worker keeps its job until its lease ends"
ONE_END = "a lease is ended by its holder alone"
ATTEMPTS = "there are no more attempts than allowed"
FINAL = "an end is an end"
FENCED = "a guarded write lands only for the holder"
FREE = "what is given back costs no attempt"
EARLY = "nothing is leased before it is available"
STUCK = "every job ends"


class Wrote(Event, name="test.effect.wrote"):
    """A handler did something that others see."""


@dataclass(frozen=True)
class Effect:
    """What handlers did; it needs no state."""

    status: JobStatus = JobStatus.PENDING


EFFECT = Aggregate(
    "effect",
    Effect(),
    lambda effect, _: effect,
    Lifecycle(
        JobStatus.PENDING,
        [(Wrote, JobStatus.PENDING, SAME)],
        reserved=set(JobStatus) - {JobStatus.PENDING},
    ),
)


@dataclass(frozen=True)
class At:
    """Where a worker's program is, the job as it read it, and when it believes its lease ends."""

    where: str = "idle"
    read: Loaded[Job] | None = None
    ends: int = 0
    now: int = 0


@dataclass(frozen=True)
class Beside:
    """The rest of the world: the clock, the row of the lease, and claims that a move broke."""

    now: int = 0
    row: Lease | None = None
    broken: frozenset[str] = frozenset()


class _Turn:
    """A turn of the store, on a world."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __enter__(self) -> _Turn:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def version(self, stream: str) -> int:
        return self._log.world.load(self._log.aggregate, ID).version

    def lease(self, stream: str) -> Lease | None:
        return beside(self._log.world).row

    def put_lease(self, lease: Lease) -> None:
        self._log.world = let(self._log.world, row=lease)


class Log:
    """What `Leases` needs of a log."""

    def __init__(self, world: World, aggregate: Aggregate[Job]) -> None:
        self.world = world
        self.aggregate = aggregate

    def turn(self, *, durable: bool) -> _Turn:
        return _Turn(self)


def beside(world: World) -> Beside:
    return world.memory("beside") or Beside()


def let(world: World, **changes: Any) -> World:
    return world.remember("beside", replace(beside(world), **changes))


@dataclass(frozen=True)
class Model:
    """The parts, each of which a seeded bug may replace."""

    job: Aggregate[Job] = JOB
    lease: Any = jobs.lease
    expire: Any = jobs.expire
    give_back: Any = jobs.give_back
    cancel: Any = jobs.cancel
    leases: type[Leases] = Leases
    takes_first: bool = True
    ends_by_name: bool = False
    guarded: bool = True
    cancels: bool = True
    owners: tuple[str, str] = WORKERS
    max_attempts: int = 2
    seen: set[str] = field(default_factory=set)

    def start(self) -> World:
        """One job, published at 0."""
        given = {"category": "c", "event_type": "t", "payload": {}, "now": 0}
        published = self.job.blank_of(ID).decide(
            jobs.publish, max_attempts=self.max_attempts, **given
        )
        world = World().commit(published).remember("beside", Beside())
        for worker in WORKERS:
            world = world.remember(worker, At())
        return world

    def loaded(self, world: World) -> Loaded[Job]:
        return world.load(self.job, ID)

    def row_of(self, world: World, version: int) -> int | None:
        row = beside(world).row
        return row.expires_at if row and row.version == version else None

    def actions(self) -> list[Action]:
        """What everybody may do."""
        found = [
            Action("a second passes", lambda world: let(world, now=beside(world).now + SECOND)),
        ]
        if self.cancels:
            found.append(Action("somebody cancels", self._cancels))
        for worker, owner in zip(WORKERS, self.owners, strict=True):
            found += _Worker(self, worker, owner).actions()
        return found

    def _cancels(self, world: World) -> World:
        return world.commit(self.loaded(world).decide(self.cancel, now=beside(world).now))


class _Worker:
    """The program of one worker."""

    def __init__(self, model: Model, name: str, owner: str) -> None:
        self.model = model
        self.name = name
        self.owner = owner

    def actions(self) -> list[Action]:
        moves: dict[str, Callable[[World, At], World | None]] = {
            "looks for a job": self.looks,
            "leases it": self.leases,
            "renews": self.renews,
            "writes": self.writes,
            "completes": lambda world, at: self.ends(world, at, jobs.complete),
            "fails": lambda world, at: self.ends(world, at, jobs.fail, error="no"),
            "gives back": lambda world, at: self.ends(
                world, at, self.model.give_back, reason="stopping"
            ),
            "looks for expired leases": self.looks_for_expired,
            "takes the lease": self.takes,
            "says that it ran out": self.says,
        }
        found = [
            Action(f"{self.name} {what}", self._of(move), by=self.name)
            for what, move in moves.items()
        ]
        return [*found, Action(f"{self.name} starts again", self.starts_again)]

    def _of(self, move: Callable[[World, At], World | None]) -> Callable[[World], World | None]:
        return lambda world: move(world, world.memory(self.name))

    def go(self, world: World, where: str = "idle", **more: Any) -> World:
        return world.remember(self.name, At(where, **more))

    def starts_again(self, world: World) -> World | None:
        return None if world.alive(self.name) else self.go(world)

    def looks(self, world: World, at: At) -> World | None:
        read = self.model.loaded(world)
        if at.where != "idle" or read.state.status is not JobStatus.PENDING:
            return None
        return self.go(world, "leasing", read=read, now=beside(world).now)

    def leases(self, world: World, at: At) -> World | None:
        if at.where != "leasing":
            return None
        assert at.read is not None
        ends = at.now + LEASE
        try:
            change = at.read.decide(self.model.lease, owner=self.owner, now=at.now, expires_at=ends)
            after = world.commit(change)
        except (Conflict, Refused):
            return self.go(world)
        if at.read.state.available_at > beside(world).now:
            after = self.broke(after, EARLY)
        return self.go(after, "working", read=change.after, ends=ends)

    def renews(self, world: World, at: At) -> World | None:
        if at.where != "working":
            return None
        assert at.read is not None
        ends = beside(world).now + LEASE
        log: Any = Log(world, self.model.job)
        if self.model.leases(log).renew(at.read.stream, at.read.version, self.owner, ends):
            return self.go(log.world, "working", read=at.read, ends=ends)
        self.model.seen.add("a renewal fails")
        return self.go(world)

    def writes(self, world: World, at: At) -> World | None:
        if at.where != "working":
            return None
        assert at.read is not None
        wrote = world.load(EFFECT, "e").decide(lambda _: [Wrote()])
        guard = [at.read.guard()] if self.model.guarded else []
        after = world.commit(wrote, *guard)
        late = self.model.loaded(world).version != at.read.version
        return self.broke(after, FENCED) if late else after

    def ends(self, world: World, at: At, decision: Any, **given: Any) -> World | None:
        if at.where != "working":
            return None
        assert at.read is not None
        now = self.model.loaded(world)
        held = now if self.model.ends_by_name else at.read
        try:
            change = held.decide(decision, owner=self.owner, now=beside(world).now, **given)
            after = world.commit(change)
        except (Conflict, Refused):
            self.model.seen.add("a late end is refused")
            return self.go(world)
        if now.version != at.read.version:
            after = self.broke(after, ONE_END)
        if "reason" in given and change.state.attempts != now.state.attempts - 1:
            after = self.broke(after, FREE)
        return self.go(after)

    def looks_for_expired(self, world: World, at: At) -> World | None:
        read, now = self.model.loaded(world), beside(world).now
        if at.where != "idle" or read.state.lease_expires_at is None:
            return None
        ends = self.model.row_of(world, read.version) or read.state.lease_expires_at
        return None if ends > now else self.go(world, "sweeping", read=read, ends=ends, now=now)

    def takes(self, world: World, at: At) -> World | None:
        if at.where != "sweeping":
            return None
        assert at.read is not None
        log: Any = Log(world, self.model.job)
        taken = not self.model.takes_first or self.model.leases(log).take(
            at.read.stream, at.read.version, at.now
        )
        return self.go(log.world, "taken", read=at.read, ends=at.ends) if taken else self.go(world)

    def says(self, world: World, at: At) -> World | None:
        if at.where != "taken":
            return None
        assert at.read is not None
        try:
            change = at.read.decide(self.model.expire, now=beside(world).now, expires_at=at.ends)
            return self.go(world.commit(change))
        except (Conflict, Refused):
            return self.go(world)

    def broke(self, world: World, claim: str) -> World:
        return let(world, broken=beside(world).broken | {claim})


def same(model: Model) -> Callable[[World], Hashable]:
    """Times from now on, and versions as what they are for: is it the current one?"""

    def seen(world: World) -> Hashable:
        rest, job = beside(world), model.loaded(world)

        def left(time: int | None) -> int | None:
            return None if time is None else max(0, time - rest.now)

        def worker(name: str) -> Hashable:
            if not world.alive(name):
                return "dead"
            at: At = world.memory(name)
            current = at.read is not None and at.read.version == job.version
            first = at.read is not None and at.read.state.attempts
            return (at.where, current, left(at.ends), left(at.now), first)

        row = rest.row
        state = job.state
        return (
            state.status,
            state.attempts,
            state.lease_owner,
            left(state.available_at),
            left(state.lease_expires_at),
            row and (row.version == job.version and (row.owner, left(row.expires_at))),
            rest.broken,
            *map(worker, WORKERS),
        )

    return seen


def keeps(model: Model) -> Callable[[World], bool]:
    """Whoever has time left on its lease has the job, unless it was cancelled."""

    def holds(world: World) -> bool:
        job, now = model.loaded(world), beside(world).now
        for worker in WORKERS:
            at = world.memory(worker)
            if at is None or at.where != "working" or at.ends <= now:
                continue
            if job.version != at.read.version and job.state.status is not JobStatus.CANCELLED:
                return False
        return True

    return holds


def stays(model: Model) -> Callable[[World, World], bool]:
    def holds(before: World, after: World) -> bool:
        first = model.loaded(before)
        return not first.state.ended or first == model.loaded(after)

    return holds


CLAIMS = (KEEPS, ONE_END, ATTEMPTS, FINAL, FENCED, FREE, EARLY, STUCK)


def walk(
    model: Model, *, goals: Sequence[Any] = (), crashes: Sequence[str] = WORKERS
) -> Exploration:
    """Every world. Raises `Violation` with the shortest story."""

    def unbroken(claim: str) -> Any:
        return always(claim, lambda world: claim not in beside(world).broken)

    def few(world: World) -> bool:
        state = model.loaded(world).state
        return state.attempts <= state.max_attempts

    claims = [
        *map(unbroken, (ONE_END, FENCED, FREE, EARLY)),
        always(KEEPS, keeps(model)),
        always(ATTEMPTS, few),
        each_move(FINAL, stays(model)),
        never_stuck(STUCK, lambda world: model.loaded(world).state.ended),
        *goals,
    ]
    return explore(model.start(), model.actions(), claims, crashes=crashes, same=same(model))


def reached(model: Model, what: str, status: JobStatus, reason: str = "") -> Any:
    """A goal: the job ends so."""

    def holds(world: World) -> bool:
        state = model.loaded(world).state
        return state.status is status and reason in (state.last_error or "")

    return sometimes(what, holds)
