"""Disks that are full, stores that may not be written, and stores that others keep busy."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.infrastructure.journal import Journal
from tests.house.repo import ROOT
from tests.infrastructure.cli.desk import Done
from tests.infrastructure.execution.crash.arena import Arena, ended
from tests.infrastructure.execution.crash.checks import (
    check_attempts,
    check_log,
    check_views,
    lost,
    rows_of,
)

HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    """An arena; whatever was done there, one run without hindrance mends it in the end."""
    arena = Arena(tmp_path)
    yield arena
    done = arena.run("run", arena.plan(), "--json")
    assert done.code == 0, done.err
    assert done.json["resolution"] == "finalized"
    check_log(rows_of(arena.store))
    check_attempts(arena.store)
    check_views(arena.store, catch_up=True)


def honest(done: Done) -> Done:
    """It failed, and said why in words."""
    assert done.code == 1, done.out + done.err
    assert "Traceback" not in done.out + done.err
    assert done.err
    return done


@contextmanager
def held(store: Path) -> Iterator[None]:
    """Another program keeps the store to itself."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"held\n"
            yield
        finally:
            other.communicate()


@pytest.mark.parametrize("room", [1_000, 40_000, 60_000, 150_000, 300_000, 450_000, 600_000])
def test_a_disk_without_room(arena: Arena, room: int) -> None:
    """Wherever it ends, the run says so with exit 1, and what it was told is there, is there."""
    victim = arena.start("run", arena.plan(), "--json", orders={"bytes": room})
    done = victim.end()
    rows = rows_of(arena.store)
    check_log(rows)
    assert lost(rows, victim.acks) == []
    assert len(rows) == len(victim.acks)
    check_attempts(arena.store)
    if done.code:
        honest(done)
    else:
        assert done.json["resolution"] == "finalized"
    assert (done.code == 1) or room > 400_000


def test_no_room_beside_a_store_that_has_some(arena: Arena) -> None:
    """A finished plan stays finished when the next run of it cannot begin."""
    assert arena.run("run", arena.plan(), "-q").code == 0
    before = rows_of(arena.store)
    honest(arena.run("run", arena.plan(), orders={"bytes": 1_000}))
    assert rows_of(arena.store) == before


@pytest.mark.parametrize("when", ["after held", "after step_started", "after closed+report_filed"])
def test_a_log_that_may_not_grow_any_more(arena: Arena, when: str) -> None:
    """The WAL cannot grow from some moment on: an honest end, and the log as it was."""
    victim = arena.start("run", arena.plan(), "--json", orders={"full": when, "patience": 0.2})
    done = honest(victim.end())
    assert "s.db cannot be read or written" in done.err
    rows = rows_of(arena.store)
    assert lost(rows, victim.acks) == []
    assert len(rows) == len(victim.acks)
    if when == "after closed+report_filed":
        assert done.json["resolution"] == "finalization_pending"
        assert "keeping it pending" in done.err
        with Journal(arena.store, read_only=True) as journal:
            assert journal.load(SLOT, "p").state.status is SlotStatus.REPORTING


def test_a_store_that_may_not_be_written(arena: Arena) -> None:
    """Exit 1, one line, and no byte is changed."""
    assert arena.run("run", arena.plan(), "-q").code == 0
    before, plan = arena.store.read_bytes(), arena.plan()
    arena.store.chmod(0o400)
    done = honest(arena.run("run", plan, "-q"))
    arena.store.chmod(0o600)
    assert "cannot be written" in done.error
    assert arena.store.read_bytes() == before


def test_another_program_has_the_store_from_the_start(arena: Arena) -> None:
    """Admission fails after a bounded wait, and nothing is written."""
    assert arena.run("run", arena.plan(), "-q").code == 0
    before = rows_of(arena.store)
    with held(arena.store):
        done = honest(arena.run("run", arena.plan(), orders={"patience": 0.2}))
    assert "in use by another program" in done.err
    assert rows_of(arena.store) == before


def test_another_program_takes_the_store_before_the_admission(arena: Arena) -> None:
    """The plan is saved, and its request stays open."""
    orders = {"patience": 0.2, "stop": "before held"}
    victim = arena.start("run", arena.plan(), "--json", orders=orders)
    with ended(victim):
        victim.until_stopped()
        with held(arena.store):
            victim.signal(signal.SIGCONT)
            done = honest(victim.end())
    assert done.json["resolution"] == "admission_failed"
    assert "in use by another program" in done.json["reason"]
    assert [row.name.rsplit(".", 1)[1] for row in rows_of(arena.store)] == ["saved", "approved"]


def test_another_program_takes_the_store_in_a_step(arena: Arena) -> None:
    """A success that cannot be published ends the attempt; the next run closes and repeats it."""
    orders = {"patience": 0.2, "stop": "before step_succeeded"}
    victim = arena.start("run", arena.plan(), "--json", orders=orders)
    with ended(victim):
        victim.until_stopped()
        with held(arena.store):
            victim.signal(signal.SIGCONT)
            done = honest(victim.end())
    assert done.json["resolution"] == "unfinished"
    assert done.json["termination_reason"] == "orchestration_error"
    assert "in use by another program" in done.json["reason"]
    assert not arena.markers()


def test_another_program_takes_the_store_before_the_recording(arena: Arena) -> None:
    """The result stays pending, exit 1; the next run settles it and runs nothing."""
    orders = {"patience": 0.05, "stop": "before request_finished+released"}
    victim = arena.start("run", arena.plan(), "--json", orders=orders)
    with ended(victim):
        victim.until_stopped()
        with held(arena.store):
            victim.signal(signal.SIGCONT)
            done = honest(victim.end())
    assert done.json["resolution"] == "finalization_pending"
    assert "succeeded finished, but its result could not be recorded" in done.err
    before = len(rows_of(arena.store))
    settled = arena.run("run", arena.plan(), "--json")
    assert settled.code == 0
    assert settled.json["execution_id"] == done.json["execution_id"]
    names = [row.name.rsplit(".", 1)[1] for row in rows_of(arena.store)[before:]]
    assert names == ["request_finished", "released"]


def test_a_store_that_is_only_looked_at_by_others_is_never_busy(arena: Arena) -> None:
    """A reader that stays in its transaction hinders nobody."""
    assert arena.run("run", arena.plan(), "-q").code == 0
    reader = sqlite3.connect(f"file:{arena.store}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    (before,) = reader.execute("SELECT count(*) FROM events").fetchone()
    assert arena.run("run", arena.plan(), "-q", orders={"patience": 0.2}).code == 0
    assert reader.execute("SELECT count(*) FROM events").fetchone() == (before,)
    reader.close()


TIGHT = """
import subprocess, sys
from pathlib import Path
from tests.infrastructure.execution.crash.arena import Arena
from tests.infrastructure.execution.crash.checks import *

def mount(options):
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", sys.argv[1]]
    subprocess.run(words, check=True)

codes = set()
for size in range(64, 800, 32):
    mount(f"size={size}k")
    arena = Arena(Path(sys.argv[1]))
    plan = arena.plan()
    victim = arena.start("run", plan, "--json", "-q")
    done = victim.end()
    codes.add(done.code)
    assert "Traceback" not in done.err, done.err
    assert done.code == 0 or "disk is full" in done.err or "No space left" in done.err, done.err
    mount("remount,size=20m")  # without room SQLite cannot even read what nobody has open
    rows = rows_of(arena.store)
    check_log(rows)
    assert lost(rows, victim.acks) == []
    again = arena.run("run", plan, "-q")
    assert again.code == 0, again.err
    check_log(rows_of(arena.store))
    check_attempts(arena.store)
    check_views(arena.store, catch_up=True)
    subprocess.run(["umount", sys.argv[1]], check=True)
print(sorted(codes))
"""


@pytest.mark.servers
def test_file_systems_of_many_sizes_are_full(tmp_path: Path) -> None:
    """Full at every place where a run can be, also in a checkpoint; room makes it work again."""
    words = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", TIGHT]
    done = subprocess.run([*words, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0, 1]\n"
