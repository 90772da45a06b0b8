"""Long lists: ten thousand sessions are answered in one piece, and nobody waits for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from statelog.domain.planning import session as sessions
from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.session import SESSION, Selection
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.planning.requests import problem_of
from tests.infrastructure.http.live import Live
from tests.infrastructure.planning.lab import Lab

MANY = 10_000
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server of a store with many sessions, as their creation left them."""
    store = tmp_path_factory.mktemp("many") / "s.db"
    store.parent.chmod(0o700)
    with Journal(store) as journal:
        lab = Lab(journal)
        problem = problem_of(lab.sessions.definitions, lab.request("s", "heft"))
        given = {"algorithms": (Selection("heft"),), "known": ALGORITHMS, "problem": problem}
        changes = (
            SESSION.blank_of(f"s{at:05}").decide(sessions.create, **given) for at in range(MANY)
        )
        journal.commit(*changes, actor="tester")
    with Live(store, "--no-worker") as live:
        yield live


def test_ten_thousand_sessions_are_listed(live: Live):
    """All of them, four times at once, in bounded memory; others are answered meanwhile."""
    live.get("/planning-sessions/")
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(live.get, "/planning-sessions/") for _ in range(4)]
        waits = []
        while not all(each.done() for each in asked):
            started = time.monotonic()
            assert live("GET", "/planning-algorithms/").status == 200
            waits.append(time.monotonic() - started)
        for each in asked:
            found = each.result()
            assert len(found) == len({session["id"] for session in found}) == MANY
    assert waits
    assert max(waits) < 10
    assert live.memory() < 700 * MIB


def test_a_reader_that_stops_reading_holds_nobody_up(live: Live):
    """It takes the first bytes of a long answer, and then no more."""
    import socket

    stuck = [socket.create_connection(live.address) for _ in range(20)]
    try:
        for each in stuck:
            ask = f"GET {live.base}/planning-sessions/ HTTP/1.1\r\nHost: {live.host}\r\n\r\n"
            each.sendall(ask.encode())
        assert live("GET", "/planning-sessions/none/").status == 404
        assert live.memory() < 700 * MIB
    finally:
        for each in stuck:
            each.close()
