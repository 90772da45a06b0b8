"""What worlds of the model are made of: one plan's streams, and what each process remembers.

A world holds the real states of plan, slot and attempts. Beside them it has memories: of each
process, of the operator, of how many faults may still happen (`chance`), and of what the log says
so far (`log`), by which the rules of `statelog.domain.execution.invariants` are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

from statelog.domain.aggregate import Aggregate, Change, Loaded
from statelog.domain.event import Event
from statelog.domain.execution import invariants
from statelog.domain.execution import plan as plans
from statelog.domain.execution import slot as slots
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.due import ABANDONED, due
from statelog.domain.execution.finalization import judge
from statelog.domain.execution.plan import PLAN, Adopted, RequestFinished
from statelog.domain.execution.plan_history import History, Life, evolve
from statelog.domain.execution.request import DAEMON, RUN_ONCE, Claim
from statelog.domain.execution.slot import SLOT, Released, Slot, SlotStatus
from statelog.infrastructure.testing import World

T = TypeVar("T")

ID = "p"
SESSION = "run_once:s"
CLAIMS = {"daemon": Claim(DAEMON), "session": Claim(RUN_ONCE, SESSION)}

HEALTHY = "nothing pending while its holder is healthy"
LIVING = "a living holder keeps its plan"
ORPHANS = "adopt never orphans a pending result"


class Read:
    """What was read, compared as the very object: a world keeps equal states once."""

    __slots__ = ("loaded",)

    def __init__(self, loaded: Loaded[Any]) -> None:
        self.loaded = loaded

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Read) and self.loaded is other.loaded

    def __hash__(self) -> int:
        return id(self.loaded)

    def __repr__(self) -> str:
        return f"{self.loaded.stream}@{self.loaded.version}"

    @property
    def state(self) -> Any:
        return self.loaded.state


class Memory(NamedTuple):
    """All that a process knows: where its program is, and what it read on its way there.

    `spent` is the execution it gave up recording, with the newest token seen then (2.7).
    """

    at: str = "idle"
    holder: str = ""
    execution: str = ""
    plan: Read | None = None
    slot: Read | None = None
    attempt: Read | None = None
    locked: bool = True
    stopped: bool = False
    starting: bool = True
    spent: tuple[str, int] | None = None

    def idle(self) -> Memory:
        """The same process with nothing on its hands."""
        return Memory("idle", self.holder, "", None, None, None, *self[6:])


class Chance(NamedTuple):
    """How many faults may still happen, and how many holders each process has been."""

    left: int
    holders: tuple[tuple[str, int], ...]


class Log(NamedTuple):
    """What the log says of attempts, and the rules that the last append broke."""

    lives: tuple[Life, ...] = ()
    broken: tuple[str, ...] = ()


@dataclass(eq=False)
class Model:
    """What is explored: who takes part, what may happen how often, and the parts they are made of.

    `operations` and `faults` are the kinds that may happen, `most_operations` and `most_faults`
    how many of them in all. Every part below `parts` is the real one, unless a bug is seeded.
    """

    processes: tuple[tuple[str, str], ...] = (("one", "daemon"), ("two", "daemon"))
    steps: tuple[tuple[str, tuple[str, ...]], ...] = (("a", ()),)
    policies: tuple[str, ...] = ("fail_fast", "continue_independent")
    operations: tuple[str, ...] = ()
    most_operations: int = 0
    faults: tuple[str, ...] = ()
    most_faults: int = 0

    # parts
    plan: Aggregate[plans.Plan] = PLAN
    due: Callable[..., Any] = due
    judge: Callable[..., Any] = judge
    admit: Callable[..., Any] = slots.admit
    finish: Callable[..., Any] = plans.finish
    next_id: Callable[[str | None], str] = lambda floor: f"x{int((floor or 'x0')[1:]) + 1}"
    generation: Callable[[int], str] = lambda version: f"g{version}"

    happened: set[str] = field(default_factory=set)
    _known: dict[Hashable, Any] = field(default_factory=dict)

    def start(self) -> World:
        """The world before anything happened."""
        world = World().remember("log", Log())
        holders = tuple((name, 1) for name, _ in self.processes)
        world = world.remember("chance", Chance(self.most_faults, holders))
        for name, _ in self.processes:
            world = world.remember(name, Memory(holder=f"{name}.1", starting=False))
        return world

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` answers for this key; a decision is asked once for all worlds alike."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = make()
        return cast("T", found)

    def alive(self, world: World, holder: str | None) -> bool:
        """Whether somebody has the lock of this holder; a stopped process has it too."""
        memories = (world.memory(name) for name, _ in self.processes)
        return any(each is not None and each.holder == holder and each.locked for each in memories)

    def pending(self, world: World, slot: Slot) -> bool:
        """Whether a result waits and nobody healthy is about to record it (D10)."""
        reporting = slot.status is SlotStatus.REPORTING
        return reporting and (slot.gave_up is not None or not self.alive(world, slot.holder))

    def commit(self, world: World, by: str, *changes: Change[Any]) -> World:
        """All the changes in one append; the log's memory keeps up. Raises `Conflict`."""
        after = world.commit(*changes)
        plan, slot = world.load(self.plan, ID), world.load(SLOT, ID)
        log = world.memory("log")
        # the changes are kept beside what they lead to, so that no other ones can have their ids
        key = ("fold", Read(plan), Read(slot), log.lives, *map(id, changes))
        _, folded = self.once(key, lambda: (changes, self._fold(plan, slot, log.lives, changes)))
        wrong = tuple(self._wrong(world, by, slot.state, changes))
        return after.remember("log", folded._replace(broken=folded.broken + wrong))

    def _fold(
        self,
        plan: Loaded[plans.Plan],
        slot: Loaded[Slot],
        lives: tuple[Life, ...],
        changes: tuple[Change[Any], ...],
    ) -> Log:
        history, broken = History(plan.state, plan.version, slot.state, lives), []
        for change in changes:
            path = change.stream.split("/")
            execution_id = path[3] if len(path) > 3 else None
            for event in change.events:
                after = evolve(history, event, execution_id, plan=self.plan)
                broken += invariants.broken(history, event, execution_id, after)
                history = after
        return Log(history.lives, tuple(broken))

    def _wrong(
        self, world: World, by: str, slot: Slot, changes: tuple[Change[Any], ...]
    ) -> list[str]:
        """The rules about processes that an append breaks: what no log can tell."""
        wrong = []
        for event in (event for change in changes for event in change.events):
            mine = self._is(world, by, slot.holder)
            healthy = self.alive(world, slot.holder) and slot.gave_up is None and not mine
            if settles(event) and healthy:
                wrong.append(HEALTHY)
            if takes_over(event) and self.alive(world, slot.holder):
                wrong.append(LIVING)
            if isinstance(event, Adopted) and self.pending(world, slot):
                wrong.append(ORPHANS)
            if settles(event) and not mine:
                self.happened.add("a pending result is settled by another process")
        return wrong

    def _is(self, world: World, name: str, holder: str | None) -> bool:
        memory = world.memory(name)
        return isinstance(memory, Memory) and memory.holder == holder


def settles(event: Event) -> bool:
    """Whether a result is recorded, or dropped, by this event."""
    recorded = isinstance(event, Released) and event.how in (slots.RECORDED, slots.SUPERSEDED)
    return recorded or isinstance(event, RequestFinished)


def takes_over(event: Event) -> bool:
    """Whether somebody ends what another holder began, by this event."""
    return isinstance(event, Released) and (event.how == slots.VOIDED or event.reason == ABANDONED)


def attempt_id(execution: str) -> tuple[str, str]:
    """The aggregate id of an attempt."""
    return (ID, execution)


def live_part(world: World) -> Hashable:
    """What makes two worlds the same: all but the insides of attempts that are long over.

    Whatever still refers to such an attempt is a late writer, who conflicts whatever is in it.
    """
    current = world.state(SLOT, ID).execution_id
    return tuple(
        (kind, name, id(value))
        for kind, name, value in world.contents()
        if not (kind == "stream" and value.aggregate is ATTEMPT and value.id[1] != current)
    )
