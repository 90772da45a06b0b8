"""Whether two files are mates: read by read, and by what their profiles say."""

from __future__ import annotations

from typing import Any, Final

from fastq_tools.reader import Record

EXAMPLES: Final = 5


def mate_name(header: bytes) -> bytes:
    """The name both mates share: without @, comment, and a last /1 or /2."""
    words = header[1:].split(None, 1)
    name = words[0] if words else b""
    return name[:-2] if name[-2:] in (b"/1", b"/2") else name


class Pairs:
    """Compares two files record by record."""

    def __init__(self) -> None:
        self.counts = [0, 0]
        self.mismatched = 0
        self.equal_length = 0
        self.examples: list[dict[str, Any]] = []

    def add(self, first: Record | None, second: Record | None) -> None:
        """Compare the two records at one place; None where one file has ended."""
        self.counts[0] += first is not None
        self.counts[1] += second is not None
        if first is None or second is None:
            return
        self.equal_length += len(first.sequence) == len(second.sequence)
        names = mate_name(first.header), mate_name(second.header)
        if names[0] != names[1]:
            self._differ(first.number, *names)

    def _differ(self, number: int, first: bytes, second: bytes) -> None:
        self.mismatched += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(
                {"record": number, "r1": first.decode("utf-8"), "r2": second.decode("utf-8")}
            )

    def result(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        compared = min(self.counts)
        return {
            "records": {"r1": self.counts[0], "r2": self.counts[1]},
            "same_count": self.counts[0] == self.counts[1],
            "compared": compared,
            "mismatched": self.mismatched,
            "mismatches": self.examples,
            "equal_length": self.equal_length,
        }


def differences(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """How far two profiles are apart: R1 minus R2, and the overlap of their lengths (1: same)."""
    return {
        "mean_quality": _minus(first["quality"]["mean"], second["quality"]["mean"]),
        "q30": _minus(first["quality"]["q30"], second["quality"]["q30"]),
        "gc": _minus(first["gc"]["fraction"], second["gc"]["fraction"]),
        "mean_length": _minus(first["length"]["mean"], second["length"]["mean"]),
        "length_overlap": _overlap(first, second),
    }


def _minus(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else round(first - second, 6)


def _overlap(first: dict[str, Any], second: dict[str, Any]) -> float | None:
    if not first["records"] or not second["records"]:
        return None
    one, two = first["length"]["histogram"], second["length"]["histogram"]
    shares = (
        min(one[length] / first["records"], two.get(length, 0) / second["records"])
        for length in one
    )
    return round(float(sum(shares)), 6)
