"""Logs that keep every rule: stories of the coordinator's model, walked at random, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from random import Random

from statelog.domain.errors import Conflict, Refused
from statelog.domain.event import Event
from statelog.infrastructure import codec
from statelog.infrastructure.audit.rules import Rules, load
from statelog.infrastructure.store.row import Draft, Row, Stamp, stamped
from statelog.infrastructure.testing import World
from statelog.infrastructure.testing.clock import NEW_YEAR
from statelog.infrastructure.testing.contracts import COUNTER, add, start, stop
from tests.model.faults import FAULTS, Faults
from tests.model.operator import OPERATIONS, Operator
from tests.model.processes import Process
from tests.model.world import Model

SPECS = (
    "statelog.domain.execution.rulebook:RULEBOOK",
    "statelog.infrastructure.testing.contracts:COUNTER",
)
STEPS = (("a", ()), ("b", ("a",)), ("c", ()))
Append = Sequence[tuple[str, Event]]


@cache
def rules() -> Rules:
    """Those of plans, and a counter of somebody else."""
    return load(SPECS)


def story(random: Random, moves: int) -> Iterator[Append]:
    """What was appended, move by move: two daemons, an operator, and what goes wrong."""
    model = Model(
        operations=OPERATIONS,
        most_operations=8,
        faults=FAULTS,
        most_faults=8,
        steps=STEPS,
        policies=random.choice((("fail_fast",), ("continue_independent",))),
    )
    work, trouble = [], Operator(model).actions()
    for name, claim in model.processes:
        process = Process(model, name, claim)
        work += process.actions()
        trouble += Faults(model, process).actions()
    world = model.start()
    for _ in range(moves):
        found: list[World] = []
        now = [random.sample(each, len(each)) for each in (work, trouble)]
        for action in chain(*(now if random.random() < 0.9 else reversed(now))):
            if action.by is not None and not world.alive(action.by):
                continue
            try:
                answer = action.function(world)
                found = [answer] if isinstance(answer, World) else list(answer or ())
            except (Conflict, Refused):
                continue
            if found:
                break
        if not found:
            return
        after = random.choice(found)
        if after.appended:
            yield after.appended
        world = after.at(after.key)


def counting(random: Random) -> Iterator[Append]:
    """A counter's life."""
    name, state = f"counter/{random.randint(1, 9)}", COUNTER.blank
    for decision, given in [
        (start, {}),
        *((add, {"by": random.randint(1, 9)}) for _ in range(random.randint(1, 4))),
        (stop, {}),
    ]:
        events, state = COUNTER.decide(state, decision, **given)
        yield [(name, event) for event in events]


def rows_of(appends: Iterable[Append], random: Random) -> list[Row]:
    """The rows of these appends, one command each, some with causes and metadata."""
    rows: list[Row] = []
    versions: dict[str, int] = {}
    for number, append in enumerate(appends, 1):
        drafts = []
        for stream, event in append:
            versions[stream] = version = versions.get(stream, 0) + 1
            name, schema = event.stored_name, event.schema
            drafts.append(Draft(stream, version, name, schema, codec.encode(event)))
        cause = random.choice(rows) if rows and random.random() < 0.3 else None
        stamp = Stamp(
            random.choice(("bob", "alïce")),
            f"c-{number}",
            None if random.random() < 0.5 else "k",
            None if cause is None else f"{cause.stream}@{cause.version}",
            None if random.random() < 0.7 else '{"n":1}',
        )
        time = NEW_YEAR + number * 1_000_000
        rows += stamped(drafts, stamp, len(rows), time)
    return rows


def legal(seed: object, moves: int = 80) -> list[Row]:
    """A log of one plan and one counter, shuffled into each other."""
    random = Random(f"legal-{seed}")
    one, other = list(story(random, moves)), list(counting(random))
    places = sorted(random.sample(range(len(one) + len(other)), len(other)))
    mixed = []
    for at in range(len(one) + len(other)):
        mixed.append((other if places and at == places[0] else one).pop(0))
        if places and at == places[0]:
            places.pop(0)
    return rows_of(mixed, random)
