"""What a test run used of each lifecycle: rows that were folded, pairs that were refused.

While it records, folds go through the table one event at a time, which takes a little longer.
Asking a table directly, as `lifecycle_test` does for every pair, is counted apart: it says that
the table is tested, not that anything in the program takes the row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from statelog.domain import describe
from statelog.domain.aggregate import Aggregate
from statelog.domain.errors import IllegalTransition, Refused
from statelog.domain.lifecycle import AnyLifecycle, Lifecycle

Pair = tuple[str, str]


class Exercised:
    """What was done with one lifecycle: by status and event, and refusals by status and rule."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        self.described = described
        self.folded: Counter[Pair] = Counter()
        self.asked: Counter[Pair] = Counter()
        self.refused: Counter[Pair] = Counter()
        self.rules: Counter[Pair] = Counter()

    @property
    def pairs(self) -> list[Pair]:
        """Every pair of status and event without a row."""
        rows = {(row["from"], row["type"]) for row in self.described["rows"]}
        events = dict.fromkeys(row["type"] for row in self.described["rows"])
        every = ((status, event) for status in self.described["statuses"] for event in events)
        return [pair for pair in every if pair not in rows]

    def lines(self) -> Iterator[str]:
        """For people: how much was used, then every row and what was not refused."""
        rows, pairs = self.described["rows"], self.pairs
        taken = sum(bool(self.folded[row["from"], row["type"]]) for row in rows)
        tried = sum(bool(self.refused[pair]) for pair in pairs)
        yield (
            f"{self.described['name']}: {taken} of {len(rows)} rows folded, "
            f"{tried} of {len(pairs)} refused pairs tried"
        )
        for row in rows:
            pair = row["from"], row["type"]
            folded, asked = self.folded[pair], self.asked[pair]
            note = f"folded {folded} x" if folded else "asked only" if asked else "never"
            yield f"  {row['from']} {row['type']} -> {row['to']}: {note}"
        for (status, rule), count in sorted(self.rules.items()):
            yield f"  {status} refused by rule {rule}: {count} x"
        missed = [f"{status} {event}" for status, event in pairs if not self.refused[status, event]]
        if missed:
            yield f"  not tried: {', '.join(missed)}"

    def data(self) -> dict[str, Any]:
        """What another process can `take`."""
        counts = ("folded", "asked", "refused", "rules")
        told = {name: [[*pair, n] for pair, n in getattr(self, name).items()] for name in counts}
        return {"described": dict(self.described), **told}

    def take(self, data: Mapping[str, Any]) -> None:
        """Add what another process did."""
        for name in ("folded", "asked", "refused", "rules"):
            counter: Counter[Pair] = getattr(self, name)
            for one, other, count in data[name]:
                counter[one, other] += count


class Recording:
    """Listens to every lifecycle and aggregate of the process, from `start` to `stop`."""

    def __init__(self) -> None:
        self.found: dict[str, Exercised] = {}
        self._keys: dict[int, tuple[AnyLifecycle, Exercised]] = {}
        self.of_table = False
        """Whether a test of the table itself runs, to which nothing counts as folded."""
        self._inside = 0
        self._kept: list[tuple[type, str, Any]] = []

    def start(self) -> None:
        """Begin to listen."""
        self._replace(Lifecycle, "after", self._asks)
        self._replace(Lifecycle, "after_new", self._asks)
        self._replace(Lifecycle, "allows", self._allows)
        self._replace(Aggregate, "fold", self._fold)
        self._replace(Aggregate, "apply_new", self._within)
        self._replace(Aggregate, "decide", self._decides)

    def stop(self) -> None:
        """Put everything back."""
        while self._kept:
            owner, name, original = self._kept.pop()
            setattr(owner, name, original)

    def lines(self, prefixes: Iterable[str] = ()) -> Iterator[str]:
        """For people; only lifecycles with an event whose stored name begins with a prefix."""
        wanted = tuple(prefixes)
        for key in sorted(self.found):
            rows = self.found[key].described["rows"]
            if not wanted or any(row["event"].startswith(wanted) for row in rows):
                yield from self.found[key].lines()

    def data(self) -> dict[str, Any]:
        """What another process can `take`."""
        return {key: each.data() for key, each in self.found.items()}

    def take(self, data: Mapping[str, Any]) -> None:
        """Add what another process recorded."""
        for key, each in data.items():
            self.found.setdefault(key, Exercised(each["described"])).take(each)

    def _replace(self, owner: type, name: str, wrap: Callable[[Any], Any]) -> None:
        original = owner.__dict__[name]
        self._kept.append((owner, name, original))
        setattr(owner, name, wrap(original))

    def _of(self, lifecycle: AnyLifecycle) -> Exercised:
        known = self._keys.get(id(lifecycle))
        if known is None:
            described = describe.data(lifecycle)
            events = dict.fromkeys(row["event"] for row in described["rows"])
            key = " ".join((lifecycle.name, *events))
            exercised = self.found.setdefault(key, Exercised(described))
            # kept with it, so that no other one can have its id
            known = self._keys[id(lifecycle)] = (lifecycle, exercised)
        return known[1]

    def _asks(self, original: Any) -> Any:
        def after(lifecycle: AnyLifecycle, status: Any, event: Any) -> Any:
            pair = status.name, event.__name__
            try:
                target = original(lifecycle, status, event)
            except IllegalTransition:
                self._of(lifecycle).refused[pair] += 1
                raise
            exercised = self._of(lifecycle)
            folded = self._inside and not self.of_table
            (exercised.folded if folded else exercised.asked)[pair] += 1
            return target

        return after

    def _allows(self, original: Any) -> Any:
        def allows(lifecycle: AnyLifecycle, status: Any, event: Any) -> bool:
            allowed = bool(original(lifecycle, status, event))
            exercised = self._of(lifecycle)
            (exercised.asked if allowed else exercised.refused)[status.name, event.__name__] += 1
            return allowed

        return allows

    def _fold(self, _original: Any) -> Any:
        """As `Aggregate.fold`, without the way around `Lifecycle.after`."""

        def fold(aggregate: Any, events: Iterable[Any], state: Any = None) -> Any:
            current = aggregate.blank if state is None else state
            for event in events:
                current = within(aggregate, current, event)
            return current

        def step(aggregate: Any, state: Any, event: Any) -> Any:
            from statelog.domain.aggregate import changed

            status = aggregate.lifecycle.after(state.status, type(event))
            evolved = aggregate.evolve(state, event)
            return evolved if evolved.status is status else changed(evolved, status=status)

        within = self._within(step)
        return fold

    def _within(self, original: Any) -> Any:
        def inside(*given: Any) -> Any:
            self._inside += 1
            try:
                return original(*given)
            finally:
                self._inside -= 1

        return inside

    def _decides(self, original: Any) -> Any:
        def decide(aggregate: Any, state: Any, *given: Any, **named: Any) -> Any:
            try:
                return original(aggregate, state, *given, **named)
            except Refused as refused:
                self._of(aggregate.lifecycle).rules[state.status.name, refused.rule] += 1
                raise

        return decide
