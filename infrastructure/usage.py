"""How much of a lifecycle was used: rows taken and how long that took, statuses, refusals."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from statelog.domain import describe
from statelog.domain.lifecycle import AnyLifecycle


def _times() -> defaultdict[Any, array[int]]:
    return defaultdict(lambda: array("q"))


@dataclass
class Usage:
    """What happened to all things with one lifecycle.

    `taken` counts rows by the names of status and event; `waits` holds how long things had been in
    the status then, where that is known, and `stays` how long they stayed that have left, all in
    microseconds. `now` is how many are in a status at the end; `refused` counts decisions that a
    rule forbade, by status and rule.
    """

    lifecycle: AnyLifecycle
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    waits: defaultdict[tuple[str, str], array[int]] = field(default_factory=_times)
    stays: defaultdict[str, array[int]] = field(default_factory=_times)
    now: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def visited(self) -> set[str]:
        """The names of statuses that something was in, or still is."""
        return {*self.stays, *(name for name, count in self.now.items() if count)}

    @property
    def unused(self) -> list[tuple[str, str]]:
        """Status and event of the declared rows that nothing took; retired ones need not be."""
        rows = (row for row in self.lifecycle.rows if not row.retired)
        pairs = ((row.source.name, row.event.__name__) for row in rows)
        return [pair for pair in pairs if not self.taken[pair]]

    def moved(
        self, source: Enum, event: str, target: Enum, entered: int | None, time: int
    ) -> int | None:
        """Count a row that was taken at a time; since when the thing is where it is now.

        `entered` is since when it was in the source, None before its first event.
        """
        self.taken[source.name, event] += 1
        if entered is not None:
            long = max(0, time - entered)
            self.waits[source.name, event].append(long)
            if target is source:
                return entered
            self.stays[source.name].append(long)
            self.now[source.name] -= 1
        self.now[target.name] += 1
        return time

    def notes(self) -> describe.Notes:
        """What a diagram says beside its rows and statuses."""
        rows = {}
        for row in self.lifecycle.rows:
            pair = row.source.name, row.event.__name__
            waits = self.waits.get(pair)
            spent = f", {spread(waits)}" if waits else ""
            rows[pair] = f"{self.taken[pair]:,} x{spent}"
        members = self.lifecycle.statuses.__members__.values()
        return describe.Notes(rows, {each.name: self._note(each) for each in members})

    def data(self) -> dict[str, Any]:
        """All of it as JSON values; times in seconds."""
        described = describe.data(self.lifecycle)
        rows = [
            {**row, "count": self.taken[row["from"], row["type"]], **_stretch(self._waits(row))}
            for row in described["rows"]
        ]
        visited = self.visited
        statuses = [
            {
                "status": name,
                "visited": name in visited,
                "now": self.now[name],
                **_stretch(self.stays.get(name)),
            }
            for name in described["statuses"]
        ]
        refused = [
            {"status": status, "rule": rule, "count": count}
            for (status, rule), count in sorted(self.refused.items())
        ]
        name = self.lifecycle.name
        return {"name": name, "statuses": statuses, "rows": rows, "refused": refused}

    def _waits(self, row: dict[str, Any]) -> array[int] | None:
        return self.waits.get((row["from"], row["type"]))

    def _note(self, status: Enum) -> list[str]:
        stays, lines = self.stays.get(status.name), []
        if self.now[status.name]:
            lines.append(f"{self.now[status.name]:,} now")
        if stays:
            lines.append(f"left {len(stays):,} x, {spread(stays)}")
        for (where, rule), count in sorted(self.refused.items()):
            if where == status.name:
                lines.append(f"refused {count:,} x: {rule}")
        return lines


def quantile(values: Sequence[int], share: float) -> int:
    """The value that this share of the values does not exceed. Raises `ValueError` for none."""
    if not values:
        raise ValueError("there is no quantile of nothing")
    at = max(0, -(-int(share * 100) * len(values) // 100) - 1)
    return sorted(values)[at]


def spread(values: Sequence[int]) -> str:
    """Median and 95 % of some durations in microseconds, for people."""
    return f"median {long(quantile(values, 0.5))}, p95 {long(quantile(values, 0.95))}"


def long(micros: int) -> str:
    """A duration for people: `350 ms`, `4.2 s`, `12 min`, `3.5 h`, `8 d`."""
    seconds = micros / 1e6
    if seconds < 1:
        return f"{micros / 1000:.0f} ms" if micros >= 1000 or not micros else f"{micros} us"
    for unit, size, most in (("s", 1, 100), ("min", 60, 100), ("h", 3600, 48)):
        if seconds / size < most:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86400:.0f} d"


def _stretch(values: Sequence[int] | None) -> dict[str, Any]:
    if not values:
        return {"median_s": None, "p95_s": None}
    median, most = (quantile(values, share) / 1e6 for share in (0.5, 0.95))
    return {"median_s": median, "p95_s": most}
