"""Archives: payloads go into a file and come back, whenever somebody stops in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statelog.domain import Invalid, Refused
from statelog.domain.erasure import Erased, ErasureStatus
from statelog.infrastructure.exchange.archiving import Back, archive, restore
from statelog.infrastructure.exchange.erasing import Gone, erasure_of
from statelog.infrastructure.journal import Journal
from tests.infrastructure.exchange.parcels import (
    ITEM,
    PARCEL,
    arrive,
    eraser,
    filled,
    pack,
    rows,
    unpack,
)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Two parcels that arrived, and one of each on its way."""
    with Journal(tmp_path / "s.db") as journal:
        filled(journal)
        filled(journal, "b", word="other")
        yield journal


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "archive.jsonl"


def archived(journal: Journal, file: Path, prefix: str = "parcel/a") -> Gone:
    return archive(eraser(journal), prefix, file, "old")


def test_payloads_go_and_come_back(journal: Journal, file: Path):
    """The file has all that went, mode 0600; afterwards every row is as it was."""
    before, seen = list(journal.rows()), rows(journal)
    assert archived(journal, file).events == 5
    assert file.stat().st_mode & 0o777 == 0o600
    assert [json.loads(line)["position"] for line in file.read_text().splitlines()] == [
        1,
        3,
        4,
        5,
        7,
    ]
    (told,) = journal.history("erasure")
    assert isinstance(told.event, Erased)
    assert (told.event.archived, told.event.reason) == (True, "old")
    assert rows(journal) == seen
    assert restore(journal, file, actor="bob") == Back(1, 5, 0)
    assert list(journal.rows())[: len(before)] == before
    assert rows(journal) == seen
    assert erasure_of(journal, "parcel/a").state.status is ErasureStatus.BACK


def test_a_restore_again_does_nothing(journal: Journal, file: Path):
    archived(journal, file)
    restore(journal, file, actor="bob")
    head = journal.head()
    assert restore(journal, file, actor="bob") == Back(0, 0, 5)
    assert journal.head() == head


def test_several_units_and_what_came_later(journal: Journal, file: Path):
    """Rows of a view that all share; streams that begin in between; archived twice."""
    for id in "ab":
        journal.execute(PARCEL, f"{id}-live", arrive, actor="bob")
    before, seen = list(journal.rows()), rows(journal)
    assert archived(journal, file, "parcel").units == 4
    journal.execute(ITEM, ("a", "9"), pack, what="late", grams=7, actor="bob")
    journal.execute(ITEM, ("a", "9"), unpack, actor="bob")
    more = rows(journal)
    second = file.with_name("second.jsonl")
    assert archived(journal, second).events == 2
    assert rows(journal) == more
    assert restore(journal, file, actor="bob").events == 16
    assert rows(journal) == more
    assert restore(journal, second, actor="bob").events == 2
    assert rows(journal) == more
    assert more != seen
    assert list(journal.rows())[: len(before)] == before


def test_a_file_that_is_there_is_left_alone(journal: Journal, file: Path):
    """Unless it has all that is to go: then an earlier try wrote it."""
    file.write_text("mine")
    with pytest.raises(Invalid):
        archived(journal, file)
    assert file.read_text() == "mine"
    file.write_text("")
    with pytest.raises(Refused, match="has not event 1; name a new file"):
        archived(journal, file)
    assert all(row.data is not None for row in journal.rows())


def test_nothing_to_archive_makes_no_file(journal: Journal, file: Path):
    archived(journal, file)
    other = file.with_name("other.jsonl")
    assert archived(journal, other).events == 0
    assert not other.exists()


def test_what_does_not_fit_is_refused(journal: Journal, file: Path, tmp_path: Path):
    """Another log, another payload, a line without one; nothing of its unit comes back."""
    archived(journal, file)
    good = file.read_text()
    with Journal(tmp_path / "t.db") as other:
        filled(other)
        with pytest.raises(Refused, match="event 1 of the archive is none of this log"):
            restore(other, file, actor="bob")
    for change, why in (
        (("secret cup", "golden cup"), "data_hash"),
        (("300", "301"), "data_hash"),
        (("secret street", "x"), "data_hash"),
    ):
        file.write_text(good.replace(*change))
        with pytest.raises(Invalid, match=why):
            restore(journal, file, actor="bob")
        assert journal.load(PARCEL, "a").version == 3
    first: dict[str, Any] = json.loads(good.splitlines()[0])
    file.write_text(json.dumps({**first, "data": None}))
    with pytest.raises(Invalid, match="data: is not there"):
        restore(journal, file, actor="bob")
    assert sum(row.data is None for row in journal.rows()) == 5
