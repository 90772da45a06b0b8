"""1,000 kills, two processes at once, and many plans in one process (`make test-long`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.repo import ROOT
from tests.infrastructure.execution.crash.arena import Arena
from tests.infrastructure.execution.crash.siege import Siege

SHORT = bool(os.environ.get("STATELOG_SHORT"))
KILLS = 150 if SHORT else 1000
SOAK = 300 if SHORT else 2000


def test_two_processes_contend_and_are_killed(tmp_path: Path) -> None:
    """A few kills of the long siege: one plan that two want."""
    siege = Siege(Arena(tmp_path), seed=7, ms=20)
    siege.go_on(kills=4, at_once=2)
    siege.lift()


@pytest.mark.long
@pytest.mark.parametrize("plans", [("p",), ("p", "q")], ids=["one plan", "two plans"])
def test_a_long_siege(tmp_path: Path, plans: tuple[str, ...]) -> None:
    """Half of the kills each for two that want the same plan, and for two with their own.

    Nothing that was acknowledged is lost, nobody who lives loses a plan, no step of a plan is run
    by two at once, and each result is recorded once."""
    left, seed = KILLS // 2, 100
    while left > 0:
        seed += 1
        folder = tmp_path / str(seed)
        folder.mkdir()
        siege = Siege(Arena(folder), seed=seed, plans=plans, ms=10)
        siege.go_on(kills=min(left, 50), at_once=2)
        siege.lift()
        left -= siege.killed
    assert left <= 0


RUN_MANY = """
import gc, os, sys
from pathlib import Path
from statelog.infrastructure import Journal, Views
from statelog.infrastructure.execution.run_once import session
from statelog.projections.execution import EXECUTION_VIEWS

def use():
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 10, len(os.listdir("/proc/self/fd")), \\
        len(sys.modules), len(os.listdir("s.db.holders"))

folder, many = Path(sys.argv[1]), int(sys.argv[2])
os.chdir(folder)
with Journal(folder / "s.db") as journal, Views(journal, EXECUTION_VIEWS) as views:
    for number in range(many):
        with session(journal, actor="bob", work_root=folder / "work", path=[folder],
                     say=lambda line: None) as running:
            step = {"step_id": "a", "name": "A", "fn_ref": "steps:work", "params": {"ms": 0},
                    "outputs": {"out": "out.txt"}}
            plan = f"p{number}" if number % 4 else "same"
            body = {"plan_id": plan, "realm": "lab", "steps": [step]}
            assert running.run(body).succeeded
        views.catch_up()
        if number + 1 in (many // 5, many):
            print(*use(), flush=True)
    assert views.verify() == []
"""


def soak(folder: Path, plans: int) -> list[list[int]]:
    """KiB of memory, open files, modules and holder files after a fifth of the plans, and all."""
    arena = Arena(folder)
    done = subprocess.run(
        [sys.executable, "-c", RUN_MANY, arena.folder, str(plans)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [[int(number) for number in line.split()] for line in done.stdout.splitlines()]


def test_many_plans_leave_no_files_open(tmp_path: Path) -> None:
    """And no modules, and no holders."""
    early, late = soak(tmp_path, 40)
    assert late[1:] == early[1:]


@pytest.mark.long
def test_a_soak(tmp_path: Path) -> None:
    """Memory stays where it was after the first fifth, but for 16 MiB; open files stay the same."""
    early, late = soak(tmp_path, SOAK)
    assert late[1:] == early[1:]
    assert late[0] - early[0] < 16 << 10, (early, late)
