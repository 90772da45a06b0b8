"""Exploration: every world of two people at three locks and a badge, crashes included."""

from __future__ import annotations

from time import process_time

from statelog.domain.ids import Id
from statelog.infrastructure.testing import Action, World, always, each_move, explore, never_stuck
from tests.bench.result import Line
from tests.testing.lock import (
    BADGE,
    LOCK,
    REVOKE,
    BadgeStatus,
    Lock,
    leave,
    only_good_badges_open,
    take,
)

WORK = "a move of an exploration"
LEAST = 300_000
WANTED = f">= {LEAST:,} a minute"
FULL, QUICK = 40_000, 4_000
"""Worlds, after which it stops: locks may be taken and left for ever."""
LOCKS = ("1", "2", "3")
PEOPLE = ("alice", "bob")


def measure(*, quick: bool) -> Line:
    """Moves a minute of processor time: read and write, guards, conflicts, crashes, invariants."""
    limit = QUICK if quick else FULL
    rounds = []
    for _ in range(3):
        begin = process_time()
        moves = explored(limit)
        rounds.append(moves / (process_time() - begin) * 60)
    rate = sorted(rounds)[1]
    other = f"{moves:,} moves, 1 core"
    return Line("explore", WORK, other, WANTED, rate, rate >= LEAST, ours_us=60e6 / rate)


def explored(limit: int) -> int:
    """How many moves there are from that many worlds."""
    actions = [REVOKE]
    for who in PEOPLE:
        for lock in LOCKS:
            actions += [_reads(who, lock), _leaves(who, lock)]
        actions.append(_takes(who))
    invariants = [
        always("each lock has one holder", _held),
        each_move("good badges open", only_good_badges_open),
        never_stuck("the badge is revoked", _revoked),
    ]
    found = explore(World(), actions, invariants, crashes=PEOPLE, limit=limit)
    return found.transitions


def _reads(who: str, lock: Id) -> Action:
    def function(world: World) -> World:
        return world.remember(who, (world.load(LOCK, lock), world.load(BADGE, "1")))

    return Action(f"{who} looks at {lock}", function, by=who)


def _takes(who: str) -> Action:
    def function(world: World) -> World | None:
        if world.memory(who) is None:
            return None
        lock, badge = world.memory(who)
        if badge.state.status is BadgeStatus.REVOKED:
            return None
        taken = lock.decide(take, by=who)
        return world.commit(taken, badge.guard()).remember(who, None)

    return Action(f"{who} takes", function, by=who)


def _leaves(who: str, lock: Id) -> Action:
    def function(world: World) -> World:
        return world.commit(world.load(LOCK, lock).decide(leave, by=who))

    return Action(f"{who} leaves {lock}", function, by=who)


def _held(world: World) -> bool:
    return all(_sound(world.state(LOCK, lock)) for lock in LOCKS)


def _sound(lock: Lock) -> bool:
    return (lock.by is None) == (lock.status.name == "FREE")


def _revoked(world: World) -> bool:
    return world.state(BADGE, "1").status is BadgeStatus.REVOKED
