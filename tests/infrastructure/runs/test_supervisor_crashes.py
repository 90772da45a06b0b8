"""Supervisors that are killed: nothing is started twice, nothing is left, every run ends (P19)."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from statelog.domain.runs.handle import HandleStatus
from statelog.domain.runs.run import RUN, Run, RunStatus
from statelog.domain.runs.task import TaskStatus
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.handles import shim
from statelog.infrastructure.runs.handles.port import RUN_ID, Ref
from tests.amounts import amount
from tests.house.repo import ROOT
from tests.infrastructure.runs.crashing import NAMES, launched
from tests.infrastructure.runs.lab import FOREVER, Lab, activity
from tests.infrastructure.runs.place import processes

NEVER = "the command was never started"


class Scene:
    """One run that is supervised by one process after another."""

    def __init__(self, store: Path, work_root: Path) -> None:
        self.store, self.work_root = store, work_root
        self.run_id = f"run-{uuid4().hex[:12]}"

    def ended(self, die: str = "-") -> int:
        """Supervise to the end, or to the death of the process."""
        with launched(self.store, self.work_root, self.run_id, die) as process:
            return process.wait(60)

    def killed_after(self, seconds: float) -> bool:
        """Supervise, and kill the process after so long; whether it was still there."""
        with launched(self.store, self.work_root, self.run_id) as process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                return True
            return False

    def errors(self) -> str:
        """What the processes said on their standard error."""
        return self.work_root.with_name("stderr").read_text()

    def run(self) -> Run:
        with Journal(self.store) as journal:
            return journal.load(RUN, self.run_id).state

    def starts(self) -> dict[str, int]:
        """How often each command began to run, by what it wrote."""
        found = {}
        for name in NAMES:
            file = RunFolder(self.work_root, self.run_id).workspace(name) / f"times-{name}"
            found[name] = len(file.read_text().split()) if file.exists() else 0
        return found

    def check(self, reason: str = NEVER) -> Run:
        """What holds for every run that has ended, however often its supervisor died."""
        run = self.run()
        assert run.ended
        assert processes(f"{RUN_ID}={self.run_id}") == []
        assert run.live == ()
        with Journal(self.store) as journal:
            names = [each.name for each in journal.history(f"run/{self.run_id}")]
        assert names.count("runs.handle.starting") == len(run.handles)
        for name, count in self.starts().items():
            done = run.tasks[name].status is TaskStatus.COMPLETED
            assert count <= 1, f"{name} was started {count} times"
            assert count == 1 or not done
        if run.status is RunStatus.FAILED:
            assert reason in run.end.reason
        return run


@pytest.fixture
def scene(store_path: Path, tmp_path: Path) -> Scene:
    return Scene(store_path, tmp_path / "work")


def test_a_supervisor_killed_between_record_and_start(scene: Scene):
    """The handle is there and nothing was spawned: it failed, and is not started later."""
    assert scene.ended("before start") != 0
    assert scene.run().handle("a").status is HandleStatus.STARTING
    assert scene.ended() == 0
    run = scene.check()
    assert run.status is RunStatus.FAILED
    assert scene.starts()["a"] == 0


def test_a_supervisor_killed_right_after_the_start(scene: Scene):
    """Planning case 75: the command is not started again, and its exit status is what counts."""
    assert scene.ended("after start") != 0
    assert scene.run().handle("a").status is HandleStatus.STARTING
    assert scene.ended() == 0
    run = scene.check()
    assert run.status is RunStatus.COMPLETED
    assert run.handle("a").exit_code == 0
    assert set(scene.starts().values()) == {1}


def kill_often(scene: Scene, seed: int, most: int) -> int:
    """Kill at random moments until the run has ended, and check it; how often."""
    chance, kills = random.Random(seed), 0
    while kills < most and scene.killed_after(chance.uniform(0.25, 0.9)):
        kills += 1
    assert scene.ended() == 0, scene.errors()
    scene.check()
    return kills


@pytest.mark.parametrize("seed", range(4))
def test_supervisors_killed_at_random_moments(scene: Scene, seed: int):
    """Up to five times for each run, and at least once."""
    assert kill_often(scene, seed, 5) > 0


@pytest.mark.long
def test_supervisors_killed_at_random_moments_for_minutes(scene: Scene):
    """Until two hundred were killed; twenty in the short form."""
    kills, seed = 0, 100
    while kills < amount(200, 20):
        scene.run_id = f"run-{uuid4().hex[:12]}"
        seed += 1
        kills += kill_often(scene, seed, 20)


def kill_anything(scene: Scene, seed: int) -> None:
    """Kill supervisors, shims and commands at random moments until the run has ended."""
    chance = random.Random(seed)
    control = RunFolder(scene.work_root, scene.run_id).path / "control"
    for _ in range(8):
        with launched(scene.store, scene.work_root, scene.run_id) as process:
            time.sleep(chance.uniform(0.3, 0.8))
            victims = list(control.glob(f"*/{chance.choice(['shim', 'started'])}.json"))
            if victims:
                told = json.loads(chance.choice(victims).read_text())
                shim.send(told["pid"], told["ticks"], signal.SIGKILL)
            time.sleep(chance.uniform(0.0, 0.2))
            process.kill()
    assert scene.ended() == 0, scene.errors()
    scene.check(reason="activity ")


@pytest.mark.parametrize("seed", range(2))
def test_anything_killed_at_random_moments(scene: Scene, seed: int):
    """Shims and commands too: then the run may fail, and still leaves nothing."""
    kill_anything(scene, seed)


@pytest.mark.long
def test_anything_killed_at_random_moments_for_minutes(scene: Scene):
    """Twenty runs."""
    for seed in range(100, amount(120, 102)):
        scene.run_id = f"run-{uuid4().hex[:12]}"
        kill_anything(scene, seed)


FULL = """
import sys
from pathlib import Path
from tests.infrastructure.runs.test_supervisor_crashes import full_disk
full_disk(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def full_disk(store: Path, folder: Path) -> None:
    """Workspaces on a file system of their own, which a command fills up and then frees."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)
    lab = Lab(store, disk)
    waits = "while [ ! -e ../sibling/up ]; do sleep 0.02; done"
    line = f"{waits}; cat /dev/zero > filler 2>/dev/null; seq 100000; echo lost >&2; exit 7"
    run = lab.run([activity("full", line), activity("sibling", f"touch up; {FOREVER}")])
    full = run.handle("full")
    assert (full.status, full.exit_code) == (HandleStatus.FAILED, 7), full
    assert run.tasks["sibling"].status is TaskStatus.CANCELLED, run.tasks["sibling"]
    assert run.status is RunStatus.FAILED
    seen = lab.runtime.inspect(Ref(lab.run_id, "full"))
    assert seen.metadata["outputLost"] == "No space left on device", seen
    later = lab.run([activity("a", "true")], run_id=f"{lab.run_id}-2")
    assert later.status is RunStatus.FAILED
    assert "No space left on device" in later.end.reason, later.end
    assert lab.alive() == []
    lab.close()


@pytest.mark.servers
def test_a_full_disk_hides_no_end(store_path: Path, tmp_path: Path):
    """The exit status is told although nothing can be written; what cannot start says why."""
    words = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", FULL]
    words += [str(store_path), str(tmp_path)]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_a_supervisor_leaves_no_zombies(store_path: Path, tmp_path: Path):
    """Shims are noticed as they end: a worker that lives for months keeps none of them."""
    lab = Lab(store_path, tmp_path / "work")
    lab.run([activity(f"a{n}", "true") for n in range(8)])
    time.sleep(0.2)
    lab.runtime.close()
    lab.close()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    zombies = [pid for pid in children if " Z " in Path(f"/proc/{pid}/stat").read_text()]
    assert zombies == []
