"""A bit that flips, or an end that is gone: found, or without effect; never a wrong answer."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import warnings
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from statelog.domain import StatelogError
from statelog.infrastructure.audit.conformance import audit
from statelog.infrastructure.audit.sealing import seal, verify
from statelog.infrastructure.audit.staging import stage
from statelog.infrastructure.audit.violations import Tally
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.jsonl import line_of, row_of
from statelog.infrastructure.testing.contracts import COUNTER, add, start

COUNTERS = 40
LONG = 200 if os.environ.get("STATELOG_SHORT") else 2000
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with half of its events in the file itself and half in its WAL."""
    path = tmp_path_factory.mktemp("sound") / "s.db"
    for half in range(2):
        with Journal(path) as journal:
            for number in range(half, COUNTERS, 2):
                journal.execute(COUNTER, f"c{number}", start, actor="bob")
                for by in range(number % 5):
                    command = f"{number}-{by}"
                    journal.execute(COUNTER, f"c{number}", add, by=by, actor="bob", command=command)
            if half:
                shutil.copytree(path.parent, path.parent.with_name("sound-open"))
        if not half:
            with closing(sqlite3.connect(path)) as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.parent.with_name("sound-open") / "s.db"


def files_of(store: Path) -> Files:
    """The database and its WAL."""
    return {name: (store.parent / name).read_bytes() for name in ("s.db", "s.db-wal")}


def laid_out(files: Files, folder: Path) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
    return folder / "s.db"


def answers(store: Path) -> list[Any]:
    """What a journal says in each of the ways to ask."""
    with Journal(store) as journal:
        rows = [row._replace() for row in journal.rows()]
        loaded = [journal.load(COUNTER, f"c{number}") for number in range(COUNTERS)]
        return [
            rows,
            [(each.version, each.state) for each in loaded],
            [each.position for each in journal.history("counter")],
            [
                each.position
                for each in journal.history("counter", names=["contract.counter.added"])
            ],
            [each.position for each in journal.latest("counter", "contract.counter.added")],
            [len(journal.find(f"{number}-0")) for number in range(COUNTERS)],
            journal.head(),
        ]


def hurt(content: bytes, chance: random.Random) -> bytes:
    """One bit flipped, or the end cut off."""
    if chance.random() < 0.2:
        return content[: chance.randrange(len(content))]
    hit = bytearray(content)
    hit[chance.randrange(len(hit))] ^= 1 << chance.randrange(8)
    return bytes(hit)


def found(store: Path, checkpoint: Any) -> bool:
    """Whether an audit, or the checkpoint, says that something is wrong."""
    try:
        if not audit(store, [COUNTER]).good:
            return True
        with Journal(store) as journal:
            return verify(journal, checkpoint).finding is not None
    except StatelogError:
        return True


def tried(store: Path, tmp_path: Path, tries: int, seed: int) -> dict[str, int]:
    """How often it was noticed at once, found when asked, or without effect."""
    sound, chance = files_of(store), random.Random(seed)
    whole = laid_out(sound, tmp_path / "whole")
    right = answers(whole)
    with Journal(whole) as journal:
        checkpoint = seal(journal)
    counts = {"noticed": 0, "found": 0, "harmless": 0}
    for number in range(tries):
        name = chance.choice(sorted(sound))
        path = laid_out({**sound, name: hurt(sound[name], chance)}, tmp_path / str(number))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a time that is in the future now
            try:
                same = answers(path) == right
            except StatelogError:
                counts["noticed"] += 1
            else:
                assert same or found(path, checkpoint), f"try {number} of seed {seed}: {name}"
                counts["harmless" if same else "found"] += 1
        shutil.rmtree(path.parent)
    return counts


def test_a_store(store: Path, tmp_path: Path):
    """The database and the WAL; each of the three ways happens."""
    counts = tried(store, tmp_path, 300, seed=1)
    assert all(counts.values())


@pytest.mark.long
def test_a_store_many_times(store: Path, tmp_path: Path):
    """The same, more often."""
    tried(store, tmp_path, LONG, seed=2)


def dumps(store: Path, tmp_path: Path, tries: int, seed: int) -> None:
    """Hurt a dump, and audit it: what is not complained of is the log, or its beginning."""
    chance = random.Random(seed)
    with Journal(laid_out(files_of(store), tmp_path / "dumped")) as journal:
        rows = list(journal.rows())
    dump = b"".join(line_of(row) + b"\n" for row in rows)
    for number in range(tries):
        lines = hurt(dump, chance).splitlines(keepends=True)
        folder = tmp_path / f"dump-{number}"
        folder.mkdir()
        tally = Tally()
        place = stage(BytesIO(b"".join(lines)), folder, tally)
        if audit(place, [COUNTER], tally=tally).good:
            assert [row_of(line) for line in lines] == rows[: len(lines)]
        shutil.rmtree(folder)


def test_a_dump(store: Path, tmp_path: Path):
    """Every line has the hash of what it says."""
    dumps(store, tmp_path, 100, seed=3)


@pytest.mark.long
def test_a_dump_many_times(store: Path, tmp_path: Path):
    """The same, more often."""
    dumps(store, tmp_path, LONG, seed=4)
