"""What tests of real runs get: a place whose commands are ended afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.infrastructure.runs.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A local runtime over a private folder; nothing it started outlives the test."""
    here = Place(tmp_path / "work")
    yield here
    here.close()
    assert here.alive() == []
