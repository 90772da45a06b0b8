"""A long chain takes no longer a step than a short one."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from tests.bench.chains import Chains
from tests.bench.result import Line
from tests.bench.rounds import Effort, Turn, interleaved, micros, ratio

LONG, SHORT, LIMIT = 5_000, 500, 1.2


def measure(folder: Path, effort: Effort, *, quick: bool) -> Line:
    """Time a step of the long chain by that of the short one, each in a store of its own."""
    long, short = (LONG // 10, SHORT // 10) if quick else (LONG, SHORT)
    other = f"of {short:,}"
    times = interleaved(
        {
            "statelog": _chain(folder / "long", long, 1),
            other: _chain(folder / "short", short, long // short),
        },
        effort,
    )
    figure = ratio(times, "statelog", other)
    ours, theirs = micros(times, "statelog"), micros(times, other)
    work = f"a step of a chain of {long:,}"
    return Line("growth", work, other, f"<= {LIMIT} x", figure, figure <= LIMIT, ours, theirs)


def _chain(folder: Path, length: int, times: int) -> Turn:
    """Chains in a fresh store; the short one is run as often as makes the long one."""
    numbers = count()

    def turn() -> float:
        chains = Chains(folder / str(next(numbers)))
        took = [chains.run(length) for _ in range(times)]
        chains.close()
        return sum(took) / len(took)

    return turn
