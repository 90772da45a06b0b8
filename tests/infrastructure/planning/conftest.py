"""One lab for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from statelog.infrastructure.journal import Journal
from tests.infrastructure.planning.lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A journal in memory with a chain of three activities and two resources."""
    with Journal() as journal:
        yield Lab(journal)
