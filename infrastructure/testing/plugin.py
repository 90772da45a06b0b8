"""The pytest plug-in: stories without a traceback, a journal for each test, and options."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from statelog.infrastructure.testing.clock import FakeClock, FakeIds

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal

_KEY = pytest.StashKey[Any]()
_SENT = "statelog_lifecycle_coverage"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the plug-in."""
    group = parser.getgroup("statelog")
    group.addoption(
        "--lifecycle-coverage",
        action="store_true",
        help="say which rows of each lifecycle were folded, and which refused pairs were tried",
    )
    group.addoption(
        "--lifecycle-coverage-of",
        action="append",
        default=[],
        metavar="PREFIX",
        help="only lifecycles with an event whose stored name begins so; repeatable",
    )
    group.addoption(
        "--record-shapes",
        action="store_true",
        help="let shapes_test write down the shapes of events that are new or of a new version",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin to record what tests do with lifecycles, when somebody wants to know."""
    if config.getoption("lifecycle_coverage") or config.getoption("lifecycle_coverage_of"):
        from statelog.infrastructure.testing.lifecycle_coverage import Recording

        recording = config.stash[_KEY] = Recording()
        recording.start()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop recording."""
    recording = config.stash.get(_KEY, None)
    if recording is not None:
        recording.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """What `lifecycle_test` does to a table is no use of it."""
    recording = item.config.stash.get(_KEY, None)
    if recording is not None:
        given = getattr(item, "callspec", None)
        check = None if given is None else given.params.get("check")
        recording.of_table = (
            type(check).__module__ == "statelog.infrastructure.testing.lifecycle_test"
        )
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a worker of pytest-xdist hand on what it recorded."""
    recording = session.config.stash.get(_KEY, None)
    worker: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if recording is not None and worker is not None:
        worker[_SENT] = recording.data()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker recorded."""
    recording = node.config.stash.get(_KEY, None)
    if recording is not None:
        recording.take(getattr(node, "workeroutput", {}).get(_SENT, {}))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what was recorded."""
    recording = config.stash.get(_KEY, None)
    if recording is not None:
        terminalreporter.section("lifecycle coverage")
        for line in recording.lines(config.getoption("lifecycle_coverage_of")):
            terminalreporter.write_line(line)


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
