"""The contract of journals, for both stores and for both ways to find a prefix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import recorder
from statelog.infrastructure.testing.contracts import JournalContract


class TestInMemory(JournalContract):
    """A journal without a file."""

    def make_journal(self, tmp_path: Path, clock: Callable[[], int]) -> Journal:
        return Journal(clock=clock)


class TestInAFile(JournalContract):
    """A journal in a SQLite file."""

    def make_journal(self, tmp_path: Path, clock: Callable[[], int]) -> Journal:
        return Journal(tmp_path / "desk.db", clock=clock)


class TestInAFileOfApsw(JournalContract):
    """The same file, kept with another build of SQLite."""

    def make_journal(self, tmp_path: Path, clock: Callable[[], int]) -> Journal:
        return Journal(tmp_path / "desk.db", clock=clock, driver="apsw")


class TestInMemoryByIndex(TestInMemory):
    """Every prefix is looked up in the index, however close to the head it is."""

    @pytest.fixture(autouse=True)
    def _by_index(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recorder, "NEAR", 0)


class TestInAFileByIndex(TestInAFile):
    """Every prefix is looked up in the index, however close to the head it is."""

    @pytest.fixture(autouse=True)
    def _by_index(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recorder, "NEAR", 0)
