"""`pytest --lifecycle-coverage` says which rows a run folded, and which refused pairs it tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from statelog.domain.errors import IllegalTransition, Refused
from statelog.infrastructure.testing.lifecycle_coverage import Recording
from tests.domain.desk import TICKET, Closed, Opened, Status, close
from tests.testing.test_plugin import run

STORY = """
def test_a_story():
    scenario(TICKET, Opened("No heat")).when(close, answer="a").then(Closed("a"))

def test_a_refusal():
    scenario(TICKET, Opened("No heat")).when(close, answer=" ").then_refused("answer")

test_lifecycle = lifecycle_test(TICKET)
"""


def test_a_run_says_what_it_used(tmp_path: Path):
    """Rows of stories are folded, in whatever worker; those that only a test of the table asked
    for are not."""
    options = ("-p", "xdist", "-n", "2")
    printed = run(tmp_path, STORY, "--lifecycle-coverage-of", "test.desk.", *options)
    assert "lifecycle coverage" in printed
    lines = [line.strip() for line in printed.splitlines()]
    assert "NEW Opened -> OPEN: folded 2 x" in lines
    assert "OPEN Closed -> CLOSED: folded 1 x" in lines
    assert "OPEN refused by rule answer: 1 x" in lines
    (first,) = [line for line in lines if "rows folded" in line]
    rows = len(TICKET.lifecycle.rows)
    assert f": 2 of {rows} rows folded" in first
    assert any(line.endswith(": asked only") for line in lines)


def test_nobody_is_told_who_did_not_ask(tmp_path: Path):
    """Without the option nothing is printed, and nothing is wrapped."""
    assert "lifecycle coverage" not in run(tmp_path, STORY)


def test_recording_changes_no_answer():
    """Folds, refusals and illegal events are as ever, and everything is put back."""
    kept = vars(type(TICKET))["fold"], vars(type(TICKET.lifecycle))["after"]
    recording = Recording()
    recording.start()
    try:
        state = TICKET.fold([Opened("No heat")])
        assert state.status is Status.OPEN
        with pytest.raises(IllegalTransition):
            TICKET.fold([Opened("again")], state)
        with pytest.raises(Refused):
            TICKET.decide(state, close, answer="")
        assert TICKET.decide(state, close, answer="a")[1].status is Status.CLOSED
    finally:
        recording.stop()
    assert kept == (vars(type(TICKET))["fold"], vars(type(TICKET.lifecycle))["after"])
    (exercised,) = recording.found.values()
    assert exercised.folded == {("NEW", "Opened"): 1, ("OPEN", "Closed"): 1}
    assert exercised.refused == {("OPEN", "Opened"): 1}
    assert exercised.rules == {("OPEN", "answer"): 1}
    assert exercised.folded[Status.OPEN.name, Closed.__name__] == 1
    assert list(recording.lines(["lab."])) == []
    assert "NEW Opened -> OPEN: folded 1 x" in map(str.strip, recording.lines())
    other = Recording()
    for _ in range(2):
        other.take(recording.data())
    (twice,) = other.found.values()
    assert twice.folded == {("NEW", "Opened"): 2, ("OPEN", "Closed"): 2}
