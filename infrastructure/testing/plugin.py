"""The pytest plug-in: stories without a traceback around them, and a journal for each test."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from statelog.infrastructure.testing.clock import FakeClock, FakeIds

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal


@pytest.fixture
def journal_clock() -> FakeClock:
    """The clock of the `journal` fixture; it stands still until it is advanced."""
    return FakeClock()


@pytest.fixture
def journal(journal_clock: FakeClock) -> Iterator[Journal]:
    """An empty journal in memory, with a clock that stands still and ids `id-1`, `id-2` ..."""
    from statelog.infrastructure.journal import Journal

    with Journal(clock=journal_clock, new_id=FakeIds()) as opened:
        yield opened


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a violation as its story alone: the frames of an exploration say nothing."""
    report = yield
    model = sys.modules.get("statelog.infrastructure.testing.model")
    if model is None or call.excinfo is None or not report.failed:
        return report
    if isinstance(call.excinfo.value, model.Violation):
        path, line, _ = item.location
        report.longrepr = f"{path}:{(line or 0) + 1}: {item.name}\n{call.excinfo.value}"
    return report
