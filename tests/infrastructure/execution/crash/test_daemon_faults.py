"""Steps that misbehave under a daemon: each has the ending that the spec gives it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from statelog.domain.execution.slot import SLOT, SlotStatus
from tests.house.repo import ROOT
from tests.infrastructure.execution.crash.arena import until
from tests.infrastructure.execution.crash.fleet import Fleet, fleet_of
from tests.infrastructure.execution.lab import a_step

STEPS = """
import os, signal, subprocess, sys, time

@step
def ok(ctx: StepContext) -> None:
    ctx.emit("ran", step=ctx.step_id)

@step
def forks(ctx: StepContext, dies: bool) -> None:
    if (ctx.workdir / "left").exists():
        return
    child = os.fork()
    if child == 0:
        while not (ctx.workdir / "go").exists():
            time.sleep(0.005)
        os._exit(0)
    (ctx.workdir / "left").write_text(str(child))
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)

@step
def prints(ctx: StepContext, where: str) -> None:
    for _ in range(50):
        getattr(sys, where).write("x" * (1 << 20))

class Odd(BaseException):
    pass

@step
def raises(ctx: StepContext, what: str) -> None:
    raise {"odd": Odd("odd"), "exit": SystemExit(0), "ctrl-c": KeyboardInterrupt()}[what]

@step
def moves(ctx: StepContext) -> None:
    gone = ctx.workdir / "gone"
    gone.mkdir(exist_ok=True)
    os.chdir(gone)
    gone.rmdir()

@step
def waits(ctx: StepContext) -> None:
    (ctx.workdir / "here").touch()
    while not (ctx.workdir / "go").exists():
        time.sleep(0.005)
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with fleet_of(tmp_path, STEPS) as fleet:
        yield fleet
        fleet.end()


def free(fleet: Fleet, plan_id: str = "p") -> None:
    """Wait until the plan's first attempt is over."""
    slot = fleet.journal.load
    until(lambda: slot(SLOT, plan_id).state.status is SlotStatus.FREE and fleet.words(plan_id)[-1:])
    until(lambda: "released" in fleet.words(plan_id))


def words_of(fleet: Fleet) -> list[str]:
    """What the daemons resolved, by level."""
    lines = [line for unit in fleet.units for line in unit.err.splitlines()]
    return [line.split(" ", 1)[1] for line in lines if " statelog.execution: " in line]


def test_a_step_that_leaves_a_forked_child(fleet: Fleet) -> None:
    """The result is recorded and heard of while the child still runs."""
    fleet.save(a_step("a", "forks", params={"dies": False}), a_step("b", "ok", "a"))
    fleet.daemon()
    until(lambda: words_of(fleet))
    assert words_of(fleet) == ["INFO statelog.execution: plan 'p': finalized"]
    left = int((fleet.work / "p" / "a" / "left").read_text())
    assert left in fleet.processes()
    (fleet.work / "p" / "a" / "go").touch()
    until(lambda: left not in fleet.processes())


def test_a_forked_child_keeps_the_plan_of_a_process_that_died(fleet: Fleet) -> None:
    """As long as it lives nobody runs the plan, and `plan status` names its pid (D8)."""
    fleet.save(a_step("a", "forks", params={"dies": True}), a_step("b", "ok", "a"))
    fleet.daemon()
    fleet.daemon()
    died = "plan 'p': unfinished (the attempt's process ended with exit code -9)"
    until(lambda: f"ERROR statelog.execution: {died}" in words_of(fleet))
    left = int((fleet.work / "p" / "a" / "left").read_text())
    before = len(words_of(fleet))
    fleet.plans.touch("p")
    until(lambda: len(words_of(fleet)) >= before + 2)
    assert all("plan 'p': duplicate" in line for line in words_of(fleet)[before:])
    assert fleet.words().count("held") == 1
    status = fleet.start("plan", "status", "p")
    assert status.end() == 0
    assert f"pid {left}" in status.out.read_text()
    (fleet.work / "p" / "a" / "go").touch()
    until(lambda: "request_finished" in fleet.words())
    assert fleet.words().count("held") == 2
    assert fleet.reports()[0]["diagnostic"]["details"]["abandoned"] is True


@pytest.mark.parametrize("where", ["stdout", "stderr"])
def test_a_step_that_prints_50_megabytes(fleet: Fleet, where: str) -> None:
    """All of it goes to the daemon's stderr, none to its stdout or the log."""
    fleet.save(a_step("a", "prints", params={"where": where}))
    daemon = fleet.daemon()
    until(lambda: "request_finished" in fleet.words())
    until(lambda: daemon.log.stat().st_size > 50 << 20)
    assert daemon.out.stat().st_size == 0
    assert fleet.store.stat().st_size < 1 << 20
    assert fleet.reports()[0]["outcome"] == "succeeded"


@pytest.mark.parametrize("what", ["odd", "exit", "ctrl-c"])
def test_a_step_that_raises_no_ordinary_exception(fleet: Fleet, what: str) -> None:
    """Cancelled: the request stays open, only that plan is touched, and it is not run again."""
    fleet.daemon()
    fleet.save(a_step("a", "raises", params={"what": what}), a_step("b"))
    fleet.save(a_step("a"), plan_id="q")
    until(lambda: len(words_of(fleet)) == 2)
    assert sorted(words_of(fleet))[0] == "INFO statelog.execution: plan 'q': finalized"
    assert "WARNING statelog.execution: plan 'p': cancelled" in sorted(words_of(fleet))[1]
    (report,) = fleet.reports()
    assert report["termination_reason"] == "cancelled"
    assert report["diagnostic"]["details"] == {"running_step_id": "a"}
    assert "request_finished" not in fleet.words()


def test_a_step_that_changes_the_directory(fleet: Fleet) -> None:
    """Store, work root and modules were named relatively, and are found all the same."""
    fleet.save(a_step("a", "moves"), a_step("b", "ok", "a"))
    fleet.start("daemon", "--store", "s.db", "--path", ".", "--work-root", "work")
    until(lambda: "request_finished" in fleet.words())
    assert (fleet.folder / "work" / "p" / "b" / "success.fingerprint").exists()
    fleet.plans.request("p")
    until(lambda: len(fleet.reports()) == 2)
    assert fleet.reports()[1]["step_outcomes"] == {"a": "reused", "b": "reused"}


def test_a_clock_that_is_set_back_an_hour(fleet: Fleet) -> None:
    """Within a step, and once more before the next run: ids, times and the result are in order."""
    clock = fleet.folder / "clock"
    daemon = fleet.daemon(orders={"clock": str(clock)})
    fleet.save(a_step("a", "waits"), a_step("b", "ok", "a"))
    until((fleet.work / "p" / "a" / "here").exists)
    clock.write_text("-3600")
    (fleet.work / "p" / "a" / "go").touch()
    until(lambda: "request_finished" in fleet.words())
    clock.write_text("-7200")
    fleet.plans.request("p")
    until(lambda: fleet.words().count("request_finished") == 2)
    assert [report["outcome"] for report in fleet.reports()] == ["succeeded", "succeeded"]
    assert fleet.words().count("held") == 2
    assert "ERROR" not in daemon.err
    shown = fleet.start("plan", "status", "p", "--json")
    assert shown.end() == 0
    assert fleet.reports()[1]["execution_id"] in shown.out.read_text()


FULL = """
import sys
from pathlib import Path
from tests.infrastructure.execution.crash.test_daemon_faults import full_disk
full_disk(Path(sys.argv[1]))
"""


def full_disk(folder: Path) -> None:
    """On a file system of its own: full while a step runs, and then with room again."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)
    with fleet_of(disk, STEPS, logs=folder) as fleet:
        daemon = fleet.daemon(orders={"patience": 0.2})
        fleet.save(a_step("a", "waits"), a_step("b", "ok", "a"))
        until((fleet.work / "p" / "a" / "here").exists)
        attempt = fleet.passed("after step_started")
        _fill(disk / "filler")
        (fleet.work / "p" / "a" / "go").touch()
        until(lambda: daemon.said("the close is still owed"))
        assert attempt in fleet.processes()
        assert fleet.words()[-1] == "step_started"
        (disk / "filler").unlink()
        until(lambda: "closed" in fleet.words())
        until(lambda: daemon.said("plan 'p': unfinished"))
        (report,) = fleet.reports()
        assert report["termination_reason"] == "orchestration_error"
        assert "disk is full" in str(report["publication_failure"])
        assert "request_finished" not in fleet.words()
        fleet.plans.touch("p")
        until(lambda: "request_finished" in fleet.words())
        fleet.end()


def _fill(path: Path) -> None:
    """Take all the room there is."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


@pytest.mark.servers
def test_a_full_disk_while_an_attempt_runs(tmp_path: Path) -> None:
    """Case 134: the close lands once there is room, without a restart; then the plan runs."""
    words = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", FULL]
    done = subprocess.run([*words, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
