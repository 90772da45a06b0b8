"""What people read is cut to what they can read."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from statelog.infrastructure.cli.tables import table
from statelog.infrastructure.execution.closing import text_of
from statelog.infrastructure.execution.resolved import tell
from statelog.infrastructure.logs import shortened
from tests.infrastructure.execution.lab import Lab, a_step


def test_a_long_text_is_cut_and_says_how_long_it_was():
    assert shortened("x" * 500) == "x" * 500
    assert shortened("x" * 5_000_000) == f"{'x' * 500}... (5,000,000 characters)"
    assert len(table(["note"], [["y" * 100_000]])) < 1000


def test_what_is_no_ordinary_exception_says_its_name():
    """`sys.exit(3)` would say no more than 3."""
    assert text_of(SystemExit(3)) == "SystemExit: 3"
    assert text_of(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert text_of(ValueError("no")) == "no"


def test_a_recorded_failure_is_told_as_one(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    lab = Lab(tmp_path)
    tell(lab.go(a_step("a", "bad")))
    tell(lab.go(a_step("b")))
    lines = [r.getMessage() for r in caplog.records if r.name == "statelog.execution"]
    assert "plan 'p': finalized, failed" in lines
    caplog.set_level(logging.INFO)
    tell(lab.go(a_step("b")))
    assert caplog.records[-1].getMessage() == "plan 'p': finalized"
