"""Servers, started once for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.infrastructure.http.live import Live


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server without a worker: jobs stay where they are until a test does them."""
    with Live(tmp_path_factory.mktemp("idle") / "s.db", "--no-worker") as live:
        yield live


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server with a worker."""
    with Live(tmp_path_factory.mktemp("busy") / "s.db") as live:
        yield live
