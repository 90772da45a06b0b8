"""What every test gets: a store path, no silent skips in CI, and verified views at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

DAMAGED = pytest.StashKey[set[Path]]()
PROBLEMS = pytest.StashKey[list[str]]()


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """The path of a store that is not there yet, in a private folder."""
    tmp_path.chmod(0o700)
    return tmp_path / "statelog.db"


@pytest.fixture
def damaged_store(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Leave a store that a test damages on purpose out of the verification at the end."""
    stash = request.config.stash.setdefault(DAMAGED, set())
    return lambda path: stash.add(path.resolve())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test is a failed test."""
    report = yield
    _no_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In CI a skipped module is an error."""
    report = yield
    _no_skip(report)
    return report


def _no_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and nothing may be skipped in CI: {report.longrepr}"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Verify and audit every store with views that this process made; a worker hands it on."""
    problems = session.config.stash.setdefault(PROBLEMS, [])
    problems += _verify_stores(session.config)
    worker: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if worker is not None:
        worker["view_problems"] = problems
    elif problems and session.exitstatus in (
        pytest.ExitCode.OK,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect what a worker found."""
    found = getattr(node, "workeroutput", {}).get("view_problems", [])
    node.config.stash.setdefault(PROBLEMS, []).extend(found)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name each view that differs from its rebuild, and each event that breaks a rule."""
    problems = terminalreporter.config.stash.get(PROBLEMS, [])
    if problems:
        terminalreporter.section("views that differ from their rebuild, broken rules", red=True)
        for problem in problems:
            terminalreporter.write_line(problem)


def _verify_stores(config: pytest.Config) -> list[str]:
    factory = getattr(config, "_tmp_path_factory", None)
    base = getattr(factory, "_basetemp", None)
    shared_out = config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")
    if base is None or shared_out:
        return []
    damaged = config.stash.get(DAMAGED, set())
    problems = []
    for views in sorted(base.rglob("*.views.db")):
        store = views.with_name(views.name.removesuffix(".views.db"))
        if store.exists() and store.resolve() not in damaged:
            problems += [f"{store}: {problem}" for problem in verify_store(store)]
            problems += [f"{store}: {problem}" for problem in audit_store(store)]
    return problems


def verify_store(store: Path) -> list[str]:
    """Each place where the stored views of plan execution are not what the log gives."""
    from statelog.domain import StatelogError, StoreError
    from statelog.infrastructure.journal import Journal
    from statelog.infrastructure.views import Views
    from statelog.projections.execution import EXECUTION_VIEWS

    try:
        with Journal(store, read_only=True) as journal, Views(journal, EXECUTION_VIEWS) as views:
            return [str(difference) for difference in views.verify()]
    except StatelogError as error:
        if isinstance(error, StoreError) and error.kind in {"foreign", "newer"}:
            return []  # a test's counterfeit: nothing that this release wrote
        return [f"cannot be verified: {error}"]


def audit_store(store: Path) -> list[str]:
    """Each event that breaks a rule; those of aggregates that only a test knows are passed over."""
    from statelog.domain import StatelogError
    from statelog.infrastructure.audit import envelope, streams
    from statelog.infrastructure.audit.conformance import audit
    from statelog.infrastructure.cli.all_rules import RULEBOOKS

    try:
        found = audit(store, RULEBOOKS, jobs=1)
    except StatelogError:
        return []  # said when its views were verified
    unknown = {envelope.NAMES, streams.OWNERS}
    return [str(each) for each in found.violations if each.rule not in unknown]
