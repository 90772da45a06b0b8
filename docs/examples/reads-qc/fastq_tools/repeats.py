"""Reads seen before, and reads that run into the adapter behind a short fragment."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any, Final

from fastq_tools.reader import Record

PREFIX: Final = 50
"""Two reads are duplicates when their first 50 bases are the same."""
SAMPLE: Final = 200_000
"""About this many reads are remembered; larger files are sampled by content, so fairly."""
OVERLAP: Final = 6
"""An adapter that starts at the very end of a read shows at least this many bases."""
LEVELS: Final = (("1", 1), ("2", 2), ("3", 3), ("4", 4), ("5-9", 9), ("10-49", 49), ("50+", None))


class Repeats:
    """Counts of duplicates and adapter starts of a file that has `records` reads."""

    def __init__(self, adapter: bytes, records: int) -> None:
        self.adapter = adapter.upper()
        self.every = max(1, -(-records // SAMPLE))
        self.reads = 0
        self.copies: Counter[bytes] = Counter()
        self.starts: Counter[int] = Counter()

    def add(self, record: Record) -> None:
        """Count one read; one without bases is neither a duplicate nor has an adapter."""
        self.reads += 1
        sequence = record.sequence.upper()
        prefix = sequence[:PREFIX]
        if prefix and zlib.crc32(prefix) % self.every == 0:
            self.copies[prefix] += 1
        start = adapter_start(sequence, self.adapter)
        if start is not None:
            self.starts[start] += 1

    def result(self) -> dict[str, Any]:
        """The counts as JSON values; positions count from 1, fractions are of 1."""
        seen = sum(self.copies.values())
        found = sum(self.starts.values())
        top = sorted(self.copies.items(), key=lambda item: (-item[1], item[0]))[:5]
        return {
            "duplicates": {
                "sampled_reads": seen,
                "one_in": self.every,
                "fraction": round(1 - len(self.copies) / seen, 6) if seen else None,
                "levels": _levels(self.copies),
                "most_frequent": [
                    {"sequence": prefix.decode(), "count": count}
                    for prefix, count in top
                    if count > 1
                ],
            },
            "adapter": {
                "sequence": self.adapter.decode(),
                "reads": found,
                "fraction": round(found / self.reads, 6) if self.reads else None,
                "starts": {str(at + 1): self.starts[at] for at in sorted(self.starts)},
            },
        }


def adapter_start(sequence: bytes, adapter: bytes) -> int | None:
    """Where the adapter begins (from 0): all of it inside, or its first bases at the end."""
    inside = sequence.find(adapter)
    if inside >= 0:
        return inside
    for size in range(min(len(adapter) - 1, len(sequence)), OVERLAP - 1, -1):
        if sequence.endswith(adapter[:size]):
            return len(sequence) - size
    return None


def _levels(copies: Counter[bytes]) -> dict[str, float]:
    """The share of the reads whose sequence occurs so many times."""
    seen = sum(copies.values())
    shares = dict.fromkeys((name for name, _ in LEVELS), 0)
    for count in copies.values():
        name = next(name for name, most in LEVELS if most is None or count <= most)
        shares[name] += count
    return {name: round(count / seen, 6) if seen else 0.0 for name, count in shares.items()}
