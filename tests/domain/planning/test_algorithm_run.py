"""What an algorithm run may do, and what becomes of what comes too late (2.2)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from statelog.domain.event import Event
from statelog.domain.planning import algorithm_run as decisions
from statelog.domain.planning.algorithm_run import (
    ALGORITHM_RUN,
    Cancelled,
    CandidateEmitted,
    Completed,
    Failed,
    Progressed,
    Queued,
    Started,
)
from statelog.domain.planning.estimate import Estimate
from statelog.domain.planning.progress import (
    TOLD_TIMES,
    clamped,
    session_progress,
    worth_telling,
)
from statelog.infrastructure.testing import scenario
from tests.domain.planning.problems import found, placed, promising

QUEUED: tuple[Event, ...] = (Queued("heft", "time", {}, Estimate()),)
RUNNING: tuple[Event, ...] = (*QUEUED, Started())
ENDS: dict[str, tuple[Event, ...]] = {
    "completed": (*RUNNING, Completed()),
    "failed": (*RUNNING, Failed("no")),
    "cancelled": (*RUNNING, Cancelled()),
}


def test_a_run_begins_and_begins_again():
    """After an interruption it is started again from running."""
    scenario(ALGORITHM_RUN, *QUEUED).when(decisions.start).then(Started())
    scenario(ALGORITHM_RUN, *RUNNING).when(decisions.start).then(Started())


def test_a_candidate_counts_once():
    """planning case 26: the same placement again, also after a redelivery, is nothing."""
    emitted = scenario(ALGORITHM_RUN, *RUNNING, CandidateEmitted(found()))
    emitted.when(decisions.emit, candidate=found()).then_nothing()
    again = replace(placed(), id="another-id", metadata={"option": 2})
    emitted.when(decisions.emit, candidate=found(again)).then_nothing()
    other = found(promising(20.0, 1.0))
    emitted.when(decisions.emit, candidate=other).then(CandidateEmitted(other))


def test_candidates_keep_their_order():
    """Ranking is stable by it, whatever the ids hash to."""
    found_ones = [found(promising(float(n), 1.0)) for n in range(1, 40)]
    run = ALGORITHM_RUN.fold([*RUNNING, *map(CandidateEmitted, found_ones)])
    assert [each.id for each in run.emitted] == [each.id for each in found_ones]


@pytest.mark.parametrize("end", ENDS)
def test_terminal_is_terminal(end: str):
    """P1: a late candidate, report, end or start is refused by a rule."""
    ended = scenario(ALGORITHM_RUN, *ENDS[end])
    ended.when(decisions.start).then_refused("ended")
    ended.when(decisions.emit, candidate=found()).then_refused("ended")
    ended.when(decisions.progress, fraction=0.5).then_refused("ended")
    ended.when(decisions.complete).then_refused("ended")
    ended.when(decisions.fail, reason="late").then_refused("ended")
    ended.when(decisions.cancel).then_nothing()


def test_progress_is_told_a_bounded_number_of_times():
    """At most twenty events over all deliveries, however often the algorithm reports."""
    run, told = ALGORITHM_RUN.fold(RUNNING), 0
    for _ in range(3):
        for at in range(10_001):
            events = decisions.progress(run, fraction=at / 10_000)
            told += len(events)
            run = ALGORITHM_RUN.fold(events, run)
    assert told == TOLD_TIMES
    assert run.progress == 1.0


def test_progress_never_goes_back():
    """A run that begins again stays where it was until it is further (P7)."""
    half = scenario(ALGORITHM_RUN, *RUNNING, Progressed(0.5), Started())
    half.when(decisions.progress, fraction=0.1).then_nothing()
    half.when(decisions.progress, fraction=0.6).then(Progressed(0.6))


@pytest.mark.parametrize(
    ("fraction", "told"), [(-1.0, 0.0), (0.25, 0.25), (7.0, 1.0), (float("nan"), 0.0)]
)
def test_what_an_algorithm_reports_is_a_fraction(fraction: float, told: float):
    """Out of range is clamped (3.9)."""
    assert clamped(fraction) == told
    assert worth_telling(1.0, fraction) is False


def test_the_progress_of_a_session():
    """planning case 13: of two runs the first ended and the second at half is three quarters."""
    assert session_progress([(True, 1.0), (False, 0.5)]) == 0.75
    assert session_progress([(True, 0.3), (False, 0.5)]) == 0.75
    assert session_progress([(False, 0.0)] * 3) == 0.0
    assert session_progress([]) == 0.0
