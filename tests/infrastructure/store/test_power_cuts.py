"""Power cuts at any moment: what was acknowledged is there, and no append is there in part."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from statelog.domain import Refused
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import connections
from tests.infrastructure.store.counter import COUNTER, add, start, stop
from tests.infrastructure.store.disk import Disk, laid_out, recorded
from tests.infrastructure.store.test_processes import check

IMAGES = 300
LONG = 100 if os.environ.get("STATELOG_SHORT") else 3000
LARGE = "x" * 9000


def life(store: Path, disk: Disk, chance: random.Random, appends: int = 60) -> dict[str, int]:
    """A program's appends, small and large, with refusals and leases between; how many events each
    command has. The disk notes each one when it was acknowledged."""
    sizes = {"stop": 2}
    with Journal(store, driver="apsw") as journal:
        stopped = journal.load(COUNTER, "stopped").decide(start).then(stop)
        journal.commit(stopped, actor="bob", command="stop")
        disk.note("stop")
        for number in range(appends):
            command = f"command-{number}"
            changes = [
                journal.load(COUNTER, f"{number}-{part}").decide(start)
                for part in range(chance.randint(1, 4))
            ]
            changes[0] = changes[0].then(add, times=chance.randint(1, 6))
            meta = {"note": LARGE} if chance.random() < 0.1 else None
            sizes[command] = sum(len(change.events) for change in changes)
            journal.commit(*changes, actor="bob", command=command, meta=meta)
            disk.note(command)
            if chance.random() < 0.1:
                with pytest.raises(Refused):
                    journal.execute(COUNTER, "stopped", add, actor="bob")
            if chance.random() < 0.1:
                journal.leases.renew(changes[0].stream, 1, "bob", number)
    return sizes


def found(store: Path) -> dict[str, int]:
    """How many events of each command an image holds, read with Python's own SQLite."""
    with closing(sqlite3.connect(store)) as db:
        rows = db.execute("SELECT command, count(*) FROM events GROUP BY command").fetchall()
    return dict(rows)


def lived(folder: Path, chance: random.Random) -> tuple[Disk, dict[str, int]]:
    """A store that was made before, and the record of a life in it."""
    folder.mkdir()
    Journal(folder / "s.db").close()
    with recorded(folder) as disk:
        sizes = life(folder / "s.db", disk, chance)
    return disk, sizes


def lost(disk: Disk, sizes: dict[str, int], folder: Path, chance: random.Random) -> set[str]:
    """Acknowledged commands that one power cut took; fails on any image that is not whole."""
    upto = chance.randrange(1, len(disk.steps) + 1)
    image = laid_out(disk.after_power_cut(upto, chance), folder)
    there = found(image / "s.db")
    assert there.items() <= sizes.items(), "half an append"
    check(image / "s.db")
    return disk.told(upto) - there.keys()


@pytest.fixture(autouse=True)
def _small_wal(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that checkpoints are among what the power cuts hit."""
    monkeypatch.setattr(connections, "CHECKPOINT_PAGES", 60)


def tried(tmp_path: Path, images: int, seed: int) -> int:
    """How many acknowledged appends were lost over so many images, several lives long."""
    chance, missing = random.Random(seed), 0
    for number in range(images):
        if number % 100 == 0:
            disk, sizes = lived(tmp_path / f"life-{seed}-{number}", chance)
        missing += len(lost(disk, sizes, tmp_path / f"image-{seed}-{number}", chance))
    return missing


def test_what_was_acknowledged_survives(tmp_path: Path):
    """In every image, and nothing else is there in part; positions, versions and hashes hold."""
    assert tried(tmp_path, IMAGES, seed=1) == 0


@pytest.mark.long
def test_what_was_acknowledged_survives_many(tmp_path: Path):
    """The same, more often."""
    assert tried(tmp_path, LONG, seed=2) == 0


def test_without_syncs_something_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The proof that the images above can show a loss: the same with synchronous=NORMAL."""
    connect = connections.Connections._connect

    def careless(self: connections.Connections, options: str, *settings: str) -> object:
        return connect(self, options, *(each.replace("FULL", "NORMAL") for each in settings))

    monkeypatch.setattr(connections.Connections, "_connect", careless)
    monkeypatch.setattr(connections.Connections, "_be_durable", lambda self: None)
    assert tried(tmp_path, 60, seed=3) > 0


def test_a_store_that_was_just_made_survives(tmp_path: Path):
    """Its first append too: the WAL is made then."""
    chance = random.Random(4)
    folder = tmp_path / "life"
    folder.mkdir()
    Journal(folder / "s.db").close()
    with recorded(folder) as disk:
        sizes = life(folder / "s.db", disk, chance, appends=1)
    for upto in range(1, len(disk.steps) + 1):
        for number in range(4):
            image = laid_out(disk.after_power_cut(upto, chance), tmp_path / f"{upto}-{number}")
            there = found(image / "s.db")
            assert there.items() <= sizes.items()
            assert disk.told(upto) <= there.keys()
            check(image / "s.db")
