"""A lock that badges open, and the two people who want it: a small world with a race in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from statelog.domain import Aggregate, Event, Lifecycle, Refused, changed
from statelog.infrastructure.testing import Action, World


class Taken(Event, name="test.lock.taken"):
    """Somebody has it."""

    by: str


class Left(Event, name="test.lock.left"):
    """Nobody has it."""


class Revoked(Event, name="test.badge.revoked"):
    """The badge opens nothing any more."""


class LockStatus(Enum):
    """Whether somebody has the lock."""

    FREE, HELD = "free", "held"


class BadgeStatus(Enum):
    """Whether the badge is good."""

    GOOD, REVOKED = "good", "revoked"


@dataclass(frozen=True)
class Lock:
    """Who has it."""

    status: LockStatus = LockStatus.FREE
    by: str | None = None


@dataclass(frozen=True)
class Badge:
    """One for all."""

    status: BadgeStatus = BadgeStatus.GOOD


def evolve(lock: Lock, event: Taken | Left) -> Lock:
    """The lock after an event."""
    return changed(lock, by=event.by if isinstance(event, Taken) else None)


LOCK = Aggregate(
    "lock",
    Lock(),
    evolve,
    Lifecycle(
        LockStatus.FREE,
        [(Taken, LockStatus.FREE, LockStatus.HELD), (Left, LockStatus.HELD, LockStatus.FREE)],
    ),
)
BADGE = Aggregate(
    "badge",
    Badge(),
    lambda badge, event: badge,
    Lifecycle(BadgeStatus.GOOD, [(Revoked, BadgeStatus.GOOD, BadgeStatus.REVOKED)]),
)


def take(lock: Lock, *, by: str) -> list[Taken]:
    """Take a free lock. Raises `Refused` (`free`)."""
    if lock.by is not None:
        raise Refused(f"{lock.by} has it", rule="free")
    return [Taken(by)]


def leave(lock: Lock, *, by: str | None) -> list[Left]:
    """Leave it. Raises `Refused` (`own`)."""
    if lock.by != by or by is None:
        raise Refused("it is not yours", rule="own")
    return [Left()]


def reads(who: str) -> Action:
    """Somebody looks at lock and badge and remembers both."""

    def function(world: World) -> World:
        return world.remember(who, (world.load(LOCK, "1"), world.load(BADGE, "1")))

    return Action(f"{who} reads", function, by=who)


def takes(who: str, *, guarded: bool = True) -> Action:
    """Somebody takes the lock as it was read; guarded, only while the badge is as it was read."""

    def function(world: World) -> World | None:
        if world.memory(who) is None:
            return None
        lock, badge = world.memory(who)
        if badge.state.status is BadgeStatus.REVOKED:
            raise Refused("the badge is revoked", rule="badge")
        guards = [badge.guard()] if guarded else []
        return world.commit(lock.decide(take, by=who), *guards).remember(who, None)

    return Action(f"{who} takes", function, by=who)


def leaves(who: str) -> Action:
    """Somebody leaves the lock."""
    return Action(
        f"{who} leaves",
        lambda world: world.commit(world.load(LOCK, "1").decide(leave, by=who)),
        by=who,
    )


def frees(who: str, other: str) -> Action:
    """Somebody frees the lock of another who is dead."""

    def function(world: World) -> Iterable[World]:
        if not world.alive(other):
            yield world.commit(world.load(LOCK, "1").decide(leave, by=other))

    return Action(f"{who} frees the lock of {other}", function, by=who)


def revokes(world: World) -> World | None:
    """The badge is revoked, once."""
    badge = world.load(BADGE, "1")
    if badge.state.status is BadgeStatus.REVOKED:
        return None
    return world.commit(badge.decide(lambda badge: [Revoked()]))


REVOKE = Action("the badge is revoked", revokes)


def holder(world: World) -> str | None:
    """Who has the lock."""
    return world.state(LOCK, "1").by


def is_free(world: World) -> bool:
    """Whether nobody has the lock."""
    return holder(world) is None


def only_good_badges_open(before: World, after: World) -> bool:
    """A lock is taken only while the badge is good."""
    taken = holder(before) is None and holder(after) is not None
    return not taken or before.state(BADGE, "1").status is BadgeStatus.GOOD
