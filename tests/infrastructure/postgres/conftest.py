"""One server for all these tests, and a schema for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.infrastructure.postgres.server import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server that runs."""
    made = Server()
    try:
        made.start()
        yield made
        made.stop("immediate")
    finally:
        made.remove()


@pytest.fixture
def url(server: Server) -> str:
    """The URL of a place without a store."""
    return server.place()
