"""A daemon under load that is asked to stop: once, and once more."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from statelog.infrastructure.views import Views
from statelog.projections.execution import EXECUTION_VIEWS
from tests.infrastructure.execution.crash.arena import until
from tests.infrastructure.execution.crash.fleet import Fleet, Unit, fleet_of
from tests.infrastructure.execution.lab import a_step

STEPS = """
import os, time

@step
def ok(ctx: StepContext) -> None:
    ctx.emit("ran", step=ctx.step_id)

@step
def waits(ctx: StepContext) -> None:
    (ctx.workdir / "here").touch()
    while not (ctx.workdir / "go").exists():
        time.sleep(0.005)
"""

RUNNING, QUEUED = ("p", "q", "r"), ("s", "t")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(tmp_path, STEPS) as fleet:
        yield fleet
        fleet.end()


def loaded(fleet: Fleet) -> Unit:
    """A daemon with three plans in a step, and two in line."""
    for plan_id in (*RUNNING, *QUEUED):
        fleet.save(a_step("a", "waits"), a_step("b", "ok", "a"), plan_id=plan_id)
    daemon = fleet.daemon("--max-plans", 3)
    until(lambda: len(at_work(fleet)) == 3)
    return daemon


def at_work(fleet: Fleet) -> list[str]:
    """Plans whose step waits."""
    return [id for id in (*RUNNING, *QUEUED) if (fleet.work / id / "a" / "here").exists()]


def go(fleet: Fleet, plan_ids: list[str]) -> None:
    """Let the steps of these plans end."""
    for plan_id in plan_ids:
        folder = fleet.work / plan_id / "a"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "go").touch()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_running_steps_finish_and_nothing_more_begins(fleet: Fleet, number: int) -> None:
    """Case 118: exit 0, attempts cancelled between two steps, views caught up to the last event."""
    daemon = loaded(fleet)
    running = at_work(fleet)
    daemon.signal(number)
    until(lambda: daemon.said("stopping: running steps finish first"))
    assert len(fleet.attempts(daemon)) == 3
    go(fleet, running)
    assert daemon.end() == 0, daemon.err
    assert fleet.processes() == []
    for plan_id in running:
        (report,) = fleet.reports(plan_id)
        assert report["termination_reason"] == "cancelled"
        assert report["step_outcomes"] == {"a": "succeeded"}
    for plan_id in {*RUNNING, *QUEUED} - set(running):
        assert "held" not in fleet.words(plan_id)
    assert lags(fleet) == {0}
    fleet.daemon()
    go(fleet, [*RUNNING, *QUEUED])
    until(lambda: all("request_finished" in fleet.words(id) for id in (*RUNNING, *QUEUED)))
    assert fleet.reports("p")[-1]["step_outcomes"]["b"] == "succeeded"


def test_the_second_signal_ends_it_at_once(fleet: Fleet) -> None:
    """No process of it is left, and the next daemon takes its plans over."""
    daemon = loaded(fleet)
    running = at_work(fleet)
    daemon.signal(signal.SIGTERM)
    until(lambda: daemon.said("stopping"))
    assert daemon.end(signal.SIGTERM) == -signal.SIGTERM
    until(lambda: fleet.processes() == [])
    assert all(fleet.words(plan_id)[-1] == "step_started" for plan_id in running)
    go(fleet, [*RUNNING, *QUEUED])
    fleet.daemon("--max-plans", 3)
    until(lambda: all("request_finished" in fleet.words(id) for id in (*RUNNING, *QUEUED)))
    for plan_id in running:
        assert fleet.reports(plan_id)[0]["diagnostic"]["error_type"] == "Abandoned"


@pytest.mark.parametrize("mark", ["up", "before held", "after held"])
def test_stopped_while_an_attempt_begins(fleet: Fleet, mark: str) -> None:
    """However far its process is, the daemon ends with 0, and the next one runs the plan."""
    daemon = fleet.daemon()
    until(lambda: daemon.said("started on"))
    times = [told.word for told in fleet.told()].count(mark) + 1
    fleet.save(a_step("a"), a_step("b", "ok", "a"))
    fleet.passed(mark, times)
    assert daemon.end(signal.SIGTERM) == 0, daemon.err
    assert fleet.processes() == []
    fleet.daemon()
    until(lambda: "request_finished" in fleet.words())
    assert fleet.words().count("request_finished") == 1


def lags(fleet: Fleet) -> set[int]:
    """How far the stored views are behind the log, as they are."""
    with Views(fleet.journal, EXECUTION_VIEWS) as views:
        return {status.lag for status in views.status()}
