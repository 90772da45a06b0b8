"""A plan's steps cost the same in a long plan as in a short one: counted, not timed."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from statelog.infrastructure.journal import Journal
from tests.infrastructure.execution.lab import Lab, a_step

SHORT, LONG = 50, 500


def chain(length: int) -> list[dict[str, Any]]:
    """Steps that each need the one before."""
    return [
        a_step(f"s{n}", "nothing", *([f"s{n - 1}"] if n else []), params={}) for n in range(length)
    ]


def lab(folder: Path, store: str | None = "statelog.db") -> Lab:
    """A lab on a file, or in memory, with a step that does nothing at all."""
    folder.mkdir(mode=0o700)
    made = Lab(folder, Journal(store and folder / store))
    made.steps("@step\ndef nothing(ctx: StepContext) -> None: ...\n")
    return made


def calls_of(folder: Path, length: int) -> Counter[str]:
    """How often a chain calls functions: Python's, C's, and `execute` of SQLite's connections."""
    place, counts = lab(folder), Counter[str]()

    def count(frame: FrameType, event: str, called: Any) -> None:
        counts[event] += 1
        if event == "c_call" and called.__name__ == "execute":
            counts["execute"] += 1

    sys.setprofile(count)
    try:
        resolved = place.run(*chain(length))
    finally:
        sys.setprofile(None)
    place.journal.close()
    assert resolved.succeeded
    return counts


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Counter[str], Counter[str]]:
    """Calls of a short and of a long chain, after one that fills every cache."""
    folder = tmp_path_factory.mktemp("chains")
    calls_of(folder / "warm", 5)
    return calls_of(folder / "short", SHORT), calls_of(folder / "long", LONG)


def test_a_step_of_a_long_chain_makes_no_more_calls_than_one_of_a_short_chain(
    counts: tuple[Counter[str], Counter[str]],
):
    """A walk over all steps on each of them would make ten times as many."""
    short, long = counts
    for kind in ("call", "c_call", "execute"):
        assert long[kind] / LONG <= short[kind] / SHORT * 1.05, kind


def test_a_step_takes_three_statements_an_event(counts: tuple[Counter[str], Counter[str]]):
    """BEGIN, INSERT, COMMIT, twice; checkpoints come beside them."""
    short, long = counts
    more = long["execute"] - short["execute"]
    checkpoints = 2 * (LONG - SHORT) // 100
    assert 6 * (LONG - SHORT) <= more <= 6 * (LONG - SHORT) + checkpoints


@pytest.mark.parametrize("again", [False, True], ids=["run", "reuse"])
def test_time_grows_with_the_steps_and_not_with_their_square(tmp_path: Path, again: bool):
    """Processor time a step, best of three each: ten times the steps, at most twice the time."""
    times: dict[int, list[float]] = {SHORT: [], LONG: []}
    for length in (SHORT, LONG, SHORT, LONG, SHORT, LONG):
        place = lab(tmp_path / f"{length}-{len(times[length])}", None)
        if again:
            place.run(*chain(length))
        start = time.process_time()
        assert place.run(*chain(length)).succeeded
        times[length].append((time.process_time() - start) / length)
        place.journal.close()
    assert min(times[LONG]) <= 2 * min(times[SHORT])
