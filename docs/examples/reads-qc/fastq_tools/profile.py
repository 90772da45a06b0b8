"""What one FASTQ file holds: lengths, qualities, bases and GC, overall and per position."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Final

from fastq_tools.reader import Record

POSITIONS: Final = 1000
"""Statistics per position stop here; totals cover every base."""
BLOCK: Final = 1 << 20
"""Bases that are counted together: columns of a block are counted much faster than reads."""
PHRED: Final = 33
QUARTILES: Final = {"p10": 0.10, "q1": 0.25, "median": 0.50, "q3": 0.75, "p90": 0.90}

_CALLED = {ord(a): ord(b) for a, b in zip("ACGTUacgtu", "ACGTTACGTT", strict=True)}
_CALLS = bytes(_CALLED.get(byte, ord("N") if byte else 0) for byte in range(256))


class Profile:
    """Counts of one file. Every base that is not A, C, G or T (or U) counts as N."""

    def __init__(self) -> None:
        self.records = 0
        self.lengths: Counter[int] = Counter()
        self.gc: Counter[tuple[int, int]] = Counter()
        self.reads_with_n = 0
        self.qualities: Counter[int] = Counter()
        self.bases: Counter[int] = Counter()
        self.columns: list[tuple[Counter[int], Counter[int]]] = []
        self._block: list[tuple[bytes, bytes]] = []
        self._width = 0

    def add(self, record: Record) -> None:
        """Count one read."""
        calls = record.sequence.translate(_CALLS)
        length = len(calls)
        self.records += 1
        self.lengths[length] += 1
        unknown = calls.count(b"N")
        self.reads_with_n += unknown > 0
        if called := length - unknown:
            strong = calls.count(b"G") + calls.count(b"C")
            self.gc[(strong, called) if called <= 200 else (round(100 * strong / called), 100)] += 1
        self._width = max(self._width, length)
        self._block.append((calls, record.quality))
        if (len(self._block) + 1) * self._width > BLOCK:
            self._count_block()

    def result(self) -> dict[str, Any]:
        """The profile as JSON values; fractions are of 1, qualities are Phred scores."""
        self._count_block()
        total = sum(self.bases.values())
        gc = self.bases[ord("G")] + self.bases[ord("C")]
        unknown = self.bases[ord("N")]
        return {
            "records": self.records,
            "bases": total,
            "length": _lengths(self.lengths, total),
            "gc": {
                "fraction": _share(gc, total - unknown),
                "histogram": _gc_histogram(self.gc),
            },
            "n": {
                "bases": unknown,
                "fraction": _share(unknown, total),
                "reads": self.reads_with_n,
            },
            "quality": _qualities(self.qualities),
            "positions": _positions(self.columns),
        }

    def _count_block(self) -> None:
        width, block = self._width, self._block
        calls = b"".join(calls.ljust(width, b"\0") for calls, _ in block)
        quality = b"".join(quality.ljust(width, b"\0") for _, quality in block)
        _count(calls, self.bases)
        _count(quality, self.qualities)
        while len(self.columns) < min(width, POSITIONS):
            self.columns.append((Counter(), Counter()))
        for at in range(min(width, POSITIONS)):
            _count(calls[at::width], self.columns[at][0])
            _count(quality[at::width], self.columns[at][1])
        self._block, self._width = [], 0


def _count(column: bytes, into: Counter[int]) -> None:
    for byte in set(column):
        if byte:
            into[byte] += column.count(byte)


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 6) if whole else None


def _gc_histogram(gc: Counter[tuple[int, int]]) -> list[float]:
    """Reads per whole percent. A short read counts for all the percents that it may stand for.

    Otherwise reads of 101 bases, of which 50 and 51 both round to 50 %, would show a false peak.
    """
    bins = [0.0] * 101
    for (strong, called), reads in gc.items():
        low = max(0.0, 100 * (strong - 0.5) / called + 0.5)
        high = min(101.0, 100 * (strong + 0.5) / called + 0.5)
        for percent in range(int(low), min(101, math.ceil(high))):
            share = min(high, percent + 1) - max(low, percent)
            bins[percent] += reads * share / (high - low)
    return [round(reads, 3) for reads in bins]


def _lengths(lengths: Counter[int], total: int) -> dict[str, Any]:
    count = sum(lengths.values())
    return {
        "min": min(lengths, default=None),
        "max": max(lengths, default=None),
        "mean": round(total / count, 2) if count else None,
        "histogram": {str(length): lengths[length] for length in sorted(lengths)},
    }


def _qualities(qualities: Counter[int]) -> dict[str, Any]:
    count = sum(qualities.values())
    at_least = {
        floor: sum(n for byte, n in qualities.items() if byte - PHRED >= floor)
        for floor in (20, 30)
    }
    return {
        "mean": _mean(qualities),
        "q20": _share(at_least[20], count),
        "q30": _share(at_least[30], count),
    }


def _mean(qualities: Counter[int]) -> float | None:
    count = sum(qualities.values())
    weight = sum((byte - PHRED) * n for byte, n in qualities.items())
    return round(weight / count, 3) if count else None


def _positions(columns: list[tuple[Counter[int], Counter[int]]]) -> dict[str, list[Any]]:
    reads = [sum(calls.values()) for calls, _ in columns]
    return {
        "reads": reads,
        "mean": [_mean(quality) for _, quality in columns],
        **{
            name: [_quantile(quality, share) for _, quality in columns]
            for name, share in QUARTILES.items()
        },
        **{
            base: [
                _share(calls[ord(base)], n) for (calls, _), n in zip(columns, reads, strict=True)
            ]
            for base in "ACGTN"
        },
    }


def _quantile(qualities: Counter[int], share: float) -> int | None:
    """The smallest quality that at least this share of the reads does not exceed."""
    wanted = share * sum(qualities.values())
    seen = 0
    for byte in sorted(qualities):
        seen += qualities[byte]
        if seen >= wanted:
            return byte - PHRED
    return None
