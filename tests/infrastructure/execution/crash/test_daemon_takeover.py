"""What a daemon that is killed leaves, another one takes over; what is only stopped, nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.infrastructure.execution.children import COMMAND
from tests.infrastructure.execution.crash.arena import until
from tests.infrastructure.execution.crash.fleet import (
    Fleet,
    Unit,
    fleet_of,
    parent_of,
    state_of,
    stopped,
)
from tests.infrastructure.execution.lab import a_step

STEPS = """
import os, signal, subprocess, time

@step
def ok(ctx: StepContext) -> None:
    ctx.emit("ran", step=ctx.step_id)

@step
def waits(ctx: StepContext) -> None:
    (ctx.workdir / "here").touch()
    while not (ctx.workdir / "go").exists():
        time.sleep(0.005)
"""

TAKEN = ["closed", "released", "held", "started"]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(tmp_path, STEPS) as fleet:
        yield fleet
        fleet.end()


def two(fleet: Fleet) -> list[Unit]:
    """Two daemons at work."""
    units = [fleet.daemon(), fleet.daemon()]
    until(lambda: all(unit.said("started on") for unit in units))
    return units


def at_work(fleet: Fleet) -> tuple[Unit, Unit, int]:
    """The daemon whose attempt is in the step that waits, the other one, and the attempt's pid."""
    units = two(fleet)
    fleet.save(a_step("a", "waits"), a_step("b", "ok", "a"))
    until((fleet.work / "p" / "a" / "here").exists)
    attempt = fleet.passed("after step_started")
    units.sort(key=lambda unit: unit.pid != parent_of(attempt))
    return units[0], units[1], attempt


def go(fleet: Fleet) -> None:
    """Let the step that waits end."""
    (fleet.work / "p" / "a" / "go").touch()


def finished(fleet: Fleet, times: int = 1) -> None:
    """Wait until so many results are recorded."""
    until(lambda: fleet.words().count("request_finished") >= times)


def test_the_plan_of_a_killed_daemon_is_taken_over(fleet: Fleet) -> None:
    """Its attempt dies with it and is closed by the other daemon, which runs the plan again."""
    owner, other, attempt = at_work(fleet)
    before = len(fleet.words())
    owner.end(signal.SIGKILL)
    until(lambda: len(fleet.words()) >= before + 4)
    assert fleet.words()[before : before + 4] == TAKEN
    assert state_of(attempt) in "ZX"
    assert parent_of(fleet.passed("after started", 2)) == other.pid
    go(fleet)
    finished(fleet)
    left, ended = fleet.reports()
    assert left["diagnostic"]["details"]["abandoned"] is True
    assert left["diagnostic"]["details"]["running_step_id"] == "a"
    assert ended["step_outcomes"] == {"a": "succeeded", "b": "succeeded"}
    assert other.err.count("took over from execution") == 1


def test_a_killed_attempt_is_followed_though_its_daemon_lives(fleet: Fleet) -> None:
    """By whoever looks first, and only once."""
    owner, other, attempt = at_work(fleet)
    before = len(fleet.words())
    assert fleet.kill(attempt)
    until(lambda: len(fleet.words()) >= before + 4)
    assert fleet.words()[before : before + 4] == TAKEN
    go(fleet)
    finished(fleet)
    assert fleet.words().count("held") == 2
    assert (owner.err + other.err).count("took over from execution") == 1


@pytest.mark.parametrize("who", ["daemon", "attempt", "both"])
def test_a_stopped_one_keeps_its_plan(fleet: Fleet, who: str) -> None:
    """Case 123: though the other daemon looks once a second, and is asked to look."""
    owner, other, attempt = at_work(fleet)
    pids = {"daemon": [owner.pid], "attempt": [attempt], "both": [owner.pid, attempt]}[who]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
        until(stopped(pid))
    fleet.plans.touch("p")
    asked = fleet.words()
    until(lambda: other.said("plan 'p': duplicate"))
    time.sleep(3)
    assert fleet.words() == asked
    go(fleet)
    if who == "daemon":
        finished(fleet)  # the attempt needs nobody
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    finished(fleet)
    assert fleet.words().count("held") == 1
    assert "took over" not in owner.err + other.err


def test_a_stopped_attempt_dies_with_its_daemon(fleet: Fleet) -> None:
    """And its plan is free at once."""
    owner, _, attempt = at_work(fleet)
    os.kill(attempt, signal.SIGSTOP)
    until(stopped(attempt))
    before = len(fleet.words())
    owner.end(signal.SIGKILL)
    go(fleet)
    finished(fleet)
    assert fleet.words()[before : before + 4] == TAKEN


def test_a_daemon_that_slept_through_a_takeover_says_what_became_of_its_attempt(
    fleet: Fleet,
) -> None:
    """Its attempt had the plan, although the other daemon has freed it since."""
    owner, _, attempt = at_work(fleet)
    owner.signal(signal.SIGSTOP)
    until(stopped(owner.pid))
    assert fleet.kill(attempt)
    go(fleet)
    finished(fleet)
    owner.signal(signal.SIGCONT)
    until(lambda: owner.said("exit code -9"))
    assert "before it had the plan" not in owner.err
    assert fleet.words().count("held") == 2


@pytest.mark.parametrize("killed", ["daemon", "attempt"])
@pytest.mark.parametrize("when", ["after closed+report_filed", "before held", "after held"])
def test_killed_at_a_moment(fleet: Fleet, when: str, killed: str) -> None:
    """Cases 121 and 124: a result that waits is recorded once, and nothing is run twice."""
    units = [fleet.daemon(orders={"stop": when}) for _ in range(2)]
    until(lambda: all(unit.said("started on") for unit in units))
    fleet.save(a_step("a"), a_step("b", "ok", "a"))
    attempt = fleet.passed(when)
    until(stopped(attempt))
    if killed == "attempt":
        assert fleet.kill(attempt)
    else:
        next(unit for unit in units if unit.pid == parent_of(attempt)).end(signal.SIGKILL)
    finished(fleet)
    until(lambda: fleet.journal.load(SLOT, "p").state.status is SlotStatus.FREE)
    words = fleet.words()
    assert words.count("request_finished") == 1
    assert words.count("step_succeeded") == 2
    assert words.count("started") == 1
    assert words.count("voided") == (1 if when == "after held" else 0)
    assert words.count("held") == (2 if when == "after held" else 1)


@pytest.mark.parametrize("order", [b"", b'{"store": "s.db", "plan'])
def test_a_daemon_that_dies_before_it_has_given_the_order(tmp_path: Path, order: bytes) -> None:
    """Its attempt's process ends without a word, and without a store."""
    read, write = os.pipe()
    command = [*COMMAND, str(write)]
    done = subprocess.run(
        command, input=order, cwd=tmp_path, pass_fds=[write], capture_output=True, timeout=90
    )
    os.close(write)
    assert (done.returncode, done.stderr, os.read(read, 1)) == (1, b"", b"")
    os.close(read)
    assert not any(tmp_path.iterdir())
