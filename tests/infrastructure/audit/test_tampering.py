"""Any single event below a checkpoint that is changed, moved, removed, inserted or cut off is
found, named by its position, and found by the stand-alone verifier too."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from statelog.infrastructure.audit import sealing as shipped
from statelog.infrastructure.audit.checkpoint import Checkpoint
from statelog.infrastructure.journal import Journal
from tests.house.repo import ROOT
from tests.infrastructure.audit.logs import Shelf, rows_of
from tests.infrastructure.audit.tampering import TAMPERINGS, Case

TRIES = 200
LONG = 1_000 if os.environ.get("STATELOG_SHORT") else 10_000
SIZES = (1, 2, 3, 4, 7, 8, 20, 33, 501)
"""The last needs two pages of a reader."""
LATER = 4
ROWS = rows_of(max(SIZES) + LATER)

STANDALONE = ROOT / "docs" / "verify_seal.py"


def module_of(path: Path, old: str = "", new: str = "") -> ModuleType:
    """A file as a module of its own, with one piece of it replaced."""
    source = path.read_text(encoding="utf-8")
    assert not old or source.count(old) == 1, old
    module = ModuleType("copy_of_" + path.stem)
    sys.modules[module.__name__] = module
    exec(compile(source.replace(old, new) if old else source, str(path), "exec"), module.__dict__)
    return module


def tries(count: int, seed: int) -> Iterator[tuple[str, Case]]:
    """Tamperings in turn, each with a log and a checkpoint of its own."""
    for number in range(count):
        random = Random(f"{seed}-{number}")
        name = list(TAMPERINGS)[number % len(TAMPERINGS)]
        size = random.choice(SIZES)
        yield name, Case(ROWS[: size + random.randint(0, LATER)], size, random)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Checkpoint]:
    """The checkpoint of each size, from before anything happened."""
    shelf = Shelf(tmp_path_factory.mktemp("sealed"))
    found = {}
    for size in SIZES:
        with Journal(shelf.put(ROWS), read_only=True) as journal:
            found[size] = shipped.seal(journal, upto=size)
    return found


def wrong(
    shelf: Shelf,
    sealed: dict[int, Checkpoint],
    count: int = TRIES,
    seed: int = 1,
    *,
    ours: ModuleType = shipped,
    theirs: ModuleType | None = None,
) -> Iterator[str]:
    """Each try that a verifier does not answer as it should, as a line that says how."""
    done: Counter[str] = Counter()
    standalone = theirs or module_of(STANDALONE)
    for name, case in tries(count, seed):
        checkpoint, size = sealed[case.size], case.size
        said = TAMPERINGS[name](case)
        if said is None:
            continue
        rows, kind, position = said
        done[name] += 1
        path = shelf.put(rows)
        with Journal(path, read_only=True) as journal:
            finding = ours.verify(journal, checkpoint).finding
        found = finding and (finding.kind, finding.position)
        if found != (kind, position):
            yield f"{name} of {len(rows)}/{size}: {found}, and not {(kind, position)}"
        fault = standalone.first_fault(path, *standalone.read_checkpoint(str(checkpoint).encode()))
        if not agree(found, fault):
            yield f"{name} of {len(rows)}/{size}: ours {found}, stand-alone {fault}"
    assert count < TRIES or set(done) == set(TAMPERINGS)


def agree(ours: tuple[str, int | None] | None, theirs: tuple[int | None, str] | None) -> bool:
    """Whether both find the same first position. The stand-alone verifier does not look for where
    an event came from, so of a whole row that was put in it sees the one after."""
    if ours is None or theirs is None:
        return ours is theirs
    kind, position = ours
    after = {position + 1} if kind == "inserted" and position is not None else set()
    return theirs[0] in {position} | after


def test_any_single_tampering_is_found(shelf: Shelf, sealed: dict[int, Checkpoint]):
    """200 random tries, each kind in turn, in logs of 1 to 505 events."""
    assert list(wrong(shelf, sealed)) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 7))
def test_any_single_tampering_is_found_in_10000_tries(
    shelf: Shelf, sealed: dict[int, Checkpoint], seed: int
):
    """10,000 in all, 1,000 in the short form."""
    assert list(wrong(shelf, sealed, LONG // 5, seed)) == []


@pytest.mark.parametrize("size", SIZES)
def test_a_log_that_nobody_touched_is_as_sealed(
    shelf: Shelf, sealed: dict[int, Checkpoint], size: int
):
    """Also when it has grown since: both verifiers say so, and no event is called bad."""
    standalone = module_of(STANDALONE)
    for later in range(LATER + 1):
        path = shelf.put(ROWS[: size + later])
        with Journal(path, read_only=True) as journal:
            verdict = shipped.verify(journal, sealed[size])
        assert (verdict.finding, verdict.later) == (None, later)
        assert standalone.first_fault(path, size, sealed[size].root) is None


SKIPPED = {
    "payloads": ("not data_fits(row)", "False"),
    "headers": ("leaf is None or leaf != row.hash", "False"),
    "order": ("row.position != self.tree.size + 1", "False"),
    "the end": ("self.tree.size < size", "False"),
    "the root": ("seen.tree.root != checkpoint.root", "False"),
    "strays": ("findings.strays(journal)", "None"),
    "what only changed a hash": ("_root(journal, checkpoint.size) == checkpoint.root", "False"),
    "all but the first page": ("range(0, size, _PAGE)", "range(0, min(size, _PAGE), _PAGE)"),
}


@pytest.mark.parametrize("part", SKIPPED)
def test_a_verifier_that_skips_a_part_is_caught(
    shelf: Shelf, sealed: dict[int, Checkpoint], part: str
):
    """The control: without any one of its checks the tries above fail."""
    assert shipped.__file__
    sloppy = module_of(Path(shipped.__file__), *SKIPPED[part])
    assert next(wrong(shelf, sealed, ours=sloppy), None)


SKIPPED_THERE = {
    "payloads": ("sha256(data).digest() != data_hash", "False"),
    "types of payloads": ("not isinstance(data, bytes) or ", ""),
    "headers": ("leaf is None or leaf != stored", "False"),
    "order": ("position != due", "False"),
    "the end": ("if due <= size:", "if False:"),
    "the root": ("root_of(subtrees) != root", "False"),
    "strays": ("position < 1", "False"),
}


@pytest.mark.parametrize("part", SKIPPED_THERE)
def test_a_stand_alone_verifier_that_skips_a_part_is_caught(
    shelf: Shelf, sealed: dict[int, Checkpoint], part: str
):
    """The same of the other one: they no longer agree."""
    sloppy = module_of(STANDALONE, *SKIPPED_THERE[part])
    assert next(wrong(shelf, sealed, theirs=sloppy), None)
