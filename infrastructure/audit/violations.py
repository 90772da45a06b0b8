"""What an audit says: the violations of a log, each with the few events that show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from statelog.infrastructure.store.row import Row


class Shown(NamedTuple):
    """An event as a violation names it."""

    position: int
    stream: str
    version: int
    name: str

    def __str__(self) -> str:
        return f"{self.position} {self.stream}@{self.version} {self.name}"


def shown(row: Row) -> Shown:
    """How a row is named."""
    return Shown(row.position, row.stream, row.version, row.name)


class Violation(NamedTuple):
    """One event that breaks a rule, a line that is no event, or damage of the file (position 0).

    `place` is where it stands: the position, or the number of the line of a dump, which tell the
    same as long as nothing is wrong with positions. `events` show it, the one itself last.
    """

    position: int
    rule: str
    why: str
    stream: str
    events: tuple[Shown, ...] = ()
    place: int = 0

    def __str__(self) -> str:
        if not self.events and not self.position:
            return f"{self.rule}: {self.why}"
        if not self.events:
            return f"line {self.position}: {self.rule}: {self.why}"
        return f"event {self.position}: {self.rule}: {self.why}"

    def json(self) -> dict[str, Any]:
        """The violation as a JSON object."""
        return {
            "position": self.position,
            "rule": self.rule,
            "why": self.why,
            "stream": self.stream,
            "events": [each._asdict() for each in self.events],
        }


@dataclass
class Tally:
    """Violations counted by rule, of which the first `limit` of each rule are kept."""

    limit: int = 100
    counts: Counter[str] = field(default_factory=Counter)
    kept: dict[str, list[Violation]] = field(default_factory=dict)

    def add(
        self,
        row: Row,
        rule: str,
        why: str,
        before: Iterable[Shown] = (),
        *,
        place: int | None = None,
    ) -> None:
        """Count what is wrong with a row; `before` are earlier events that show it."""
        self.counts[rule] += 1
        events = (*sorted({each for each in before if each.position != row.position}), shown(row))
        at = row.position if place is None else place
        self._keep(Violation(row.position, rule, why, row.stream, events, at))

    def line(self, number: int, rule: str, why: str) -> None:
        """Count a line of a dump that is no event; its number stands for a position."""
        self.counts[rule] += 1
        self._keep(Violation(number, rule, why, "", (), number))

    def take(self, other: Tally) -> None:
        """Count what another one counted, and keep the first of all."""
        self.counts += other.counts
        for each in other.first():
            self._keep(each)

    def first(self) -> list[Violation]:
        """What is kept, in the order of the log: of each rule the first `limit`."""
        found = [each for kept in self.kept.values() for each in self._lowest(kept)]
        return sorted(found, key=_place)

    def _keep(self, violation: Violation) -> None:
        kept = self.kept.setdefault(violation.rule, [])
        kept.append(violation)
        if len(kept) > 4 * self.limit:  # they come in any order: streams are read one by one
            kept[:] = self._lowest(kept)

    def _lowest(self, kept: list[Violation]) -> list[Violation]:
        return sorted(kept, key=_place)[: self.limit]


def _place(violation: Violation) -> tuple[int, int]:
    return violation.place, violation.position
