"""What endings mean: finished or open, resolution, log level, exit code (4)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from statelog.domain.execution.endings import (
    Recording,
    Resolution,
    combined_exit_code,
    ending,
    exit_code,
    finishes_request,
    log_level,
    pending_line,
    resolution_of,
)
from tests.domain.execution.documents import report

OUTCOMES = ("succeeded", "failed", None)
REASONS = (
    *("completed", "failed_fast", "cancelled", "preflight_rejected", "orchestration_error"),
    None,
)
POLICIES = ("fail_fast", "continue_independent", "best_effort", None, 7)
FAILURES: tuple[Any, ...] = (
    None,
    {"message": "disk full", "error_type": "StoreError", "details": {}},
)

FINISHING = {
    ("succeeded", "completed", "fail_fast"),
    ("succeeded", "completed", "continue_independent"),
    ("failed", "completed", "continue_independent"),
    ("failed", "preflight_rejected", "continue_independent"),
}


@pytest.mark.parametrize("failure", FAILURES, ids=["published", "unpublished"])
def test_exactly_four_endings_finish_a_request(failure: Any):
    """case 76, and none of them when the report could not be published (cases 52, 53)."""
    finishing = {
        (outcome, reason, policy)
        for outcome, reason, policy in product(OUTCOMES, REASONS, POLICIES)
        if finishes_request(
            report(reason, outcome, failure_policy=policy, publication_failure=failure)
        )
    }
    assert finishing == (FINISHING if failure is None else set())


def test_an_engine_that_returned_nothing_finishes_nothing():
    """case 88"""
    assert not finishes_request(None)
    assert resolution_of(None) is Resolution.UNFINISHED
    assert resolution_of(report(None, None)) is Resolution.UNFINISHED


CONTINUE: dict[str, Any] = {"failure_policy": "continue_independent"}
RECORDED, SUPERSEDED, PENDING = Recording.RECORDED, Recording.SUPERSEDED, Recording.PENDING
PUBLICATION: dict[str, Any] = {"publication_failure": FAILURES[1]}

Row = tuple[str, dict[str, Any] | None, Recording | None, str, str, int]

TABLE: list[Row] = [
    ("E1", report(), RECORDED, "finalized", "INFO", 0),
    ("E1", report(**CONTINUE), RECORDED, "finalized", "INFO", 0),
    ("E2", report("completed", "failed", **CONTINUE), RECORDED, "finalized", "WARNING", 1),
    ("E3", report("failed_fast", "failed"), None, "unfinished", "ERROR", 1),
    ("E4", report("preflight_rejected", "failed"), None, "unfinished", "ERROR", 1),
    ("E4", report("preflight_rejected", "failed", **CONTINUE), RECORDED, "finalized", "ERROR", 1),
    (
        *("E5", report("preflight_rejected", "failed", failure_policy="x"), None),
        *("unfinished", "ERROR", 1),
    ),
    ("E6", report("cancelled", "failed"), None, "cancelled", "WARNING", 1),
    ("E6", report("cancelled", "failed", **CONTINUE), None, "cancelled", "WARNING", 1),
    ("E7", report("orchestration_error", "failed"), None, "unfinished", "ERROR", 1),
    ("E7", report("orchestration_error", "failed", **CONTINUE), None, "unfinished", "ERROR", 1),
    ("E8", report("orchestration_error", "failed", **PUBLICATION), None, "unfinished", "ERROR", 1),
    ("E9", report(), SUPERSEDED, "superseded", "WARNING", 1),
    ("E9", report("completed", "failed", **CONTINUE), SUPERSEDED, "superseded", "WARNING", 1),
    ("E10", report(), PENDING, "finalization_pending", "ERROR", 1),
    ("E11", report(None, None), None, "unfinished", "ERROR", 1),
    ("E11", None, None, "unfinished", "ERROR", 1),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_the_table_of_endings(row: Row):
    """4.2 row by row, as the spec writes it."""
    number, told, recording, *expected = row
    found = ending(told, recording)
    assert found.number == number
    assert [found.resolution.value, found.level, found.exit] == expected
    assert found.finished == (found.resolution is Resolution.FINALIZED)
    assert ending(told, recording, interrupted=True).exit == 130


def test_every_number_of_the_table_is_covered():
    """So no row is forgotten above."""
    assert {row[0] for row in TABLE} == {f"E{number}" for number in range(1, 12)}


def test_a_cancelled_attempt_stays_cancelled_when_its_report_could_not_be_published():
    """2.3: only a note is attached."""
    row = ending(report("cancelled", "failed", **PUBLICATION))
    assert (row.number, row.resolution) == ("E6", Resolution.CANCELLED)


def test_a_finished_request_needs_a_word_on_its_recording():
    """Nobody may take a finishing report for a recorded one."""
    with pytest.raises(ValueError, match="say which"):
        resolution_of(report())


LEVELS = {
    **dict.fromkeys(("not_authorized", "not_eligible", "duplicate"), "INFO"),
    **dict.fromkeys(("cancelled", "superseded"), "WARNING"),
    **dict.fromkeys(
        (
            *("not_found", "invalid_document", "admission_failed"),
            *("unfinished", "finalization_pending", "finalized"),
        ),
        "ERROR",
    ),
}


@pytest.mark.parametrize("resolution", Resolution, ids=lambda resolution: resolution.value)
def test_levels_without_a_report(resolution: Resolution):
    """4.3; a finalized result without its report is an ERROR."""
    assert log_level(resolution) == LEVELS[resolution.value]


@pytest.mark.parametrize("resolution", Resolution, ids=lambda resolution: resolution.value)
def test_only_a_recorded_success_exits_0(resolution: Resolution):
    """9: or a plan that was taken over while the session waited; Ctrl-C is always 130."""
    recorded = resolution is Resolution.FINALIZED
    taken = resolution is Resolution.NOT_AUTHORIZED
    assert exit_code(resolution, report()) == (0 if recorded else 1)
    assert exit_code(resolution, report(outcome="failed")) == 1
    assert exit_code(resolution) == 1
    assert exit_code(resolution, taken_over=True) == (0 if taken else 1)
    assert exit_code(resolution, report(), interrupted=True) == 130


def test_a_run_exits_with_its_worst_plan():
    """9"""
    assert combined_exit_code([]) == 0
    assert combined_exit_code([0, 1, 0]) == 1
    assert combined_exit_code([0, 130, 1]) == 130


def test_the_line_of_a_pending_result():
    """D18, word for word (the wording of case 139)."""
    assert pending_line("a", "20250101T000000000000Z_0001", "failed") == (
        "Plan 'a' execution '20250101T000000000000Z_0001' failed finished, but its result could "
        "not be recorded; keeping it pending, and not executing the plan again until it is "
        "recorded or superseded."
    )
