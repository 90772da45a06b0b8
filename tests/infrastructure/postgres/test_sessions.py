"""A holder lives as long as its session, and a session as long as its process and the server."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import postgres_holders
from statelog.infrastructure.store.postgres_holders import SessionHolders
from tests.infrastructure.postgres.server import Server, started

pytestmark = pytest.mark.servers

HOLD = """
from statelog.infrastructure.holders import Holders
journal = Journal(sys.argv[1])
holder = Holders.for_journal(journal).take("turn", "one")
"""
STAY = (
    HOLD
    + """
print("ready", flush=True)
signal.pause()
"""
)


@pytest.fixture
def journal(url: str) -> Iterator[Journal]:
    with Journal(url) as journal:
        yield journal


@pytest.fixture
def holders(journal: Journal) -> Holders:
    return Holders.for_journal(journal)


def ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def until(happens: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def end_session(server: Server, holders: Holders, id: str) -> None:
    """End the session that has a holder's lock."""
    assert isinstance(holders, SessionHolders)
    key = holders._connections.key(id)
    low, high = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
    with server.admin() as db:
        found = db.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks "
            "WHERE locktype = 'advisory' AND classid = %s::oid AND objid = %s::oid",
            (high, low),
        ).fetchall()
    assert found == [(True,)]


def test_a_journal_in_postgresql_has_holders_of_its_own(holders: Holders):
    assert isinstance(holders, SessionHolders)


def test_a_holder_lives_until_it_lets_go(url: str, holders: Holders):
    """For other journals too; who it is can be asked."""
    with Journal(url) as other:
        theirs = Holders.for_journal(other)
        with holders.take("run_once") as holder:
            assert theirs.alive(holder.id)
            assert (theirs.who(holder.id) or {})["pid"] == os.getpid()
            assert theirs.living() == theirs.known() == (holder.id,)
        assert not theirs.alive(holder.id)
        assert theirs.known() == ()
        assert not theirs.alive(None)
        assert theirs.who(holder.id) is None


def test_one_that_is_tried_is_taken_once(url: str, holders: Holders):
    """And nobody waits for it."""
    with Journal(url) as other:
        theirs = Holders.for_journal(other)
        with holders.try_take("turn", "one") or pytest.fail("nobody has it"):
            assert theirs.try_take("turn", "one") is None
            with theirs.try_take("turn", "two") or pytest.fail("nobody has it"):
                pass
        with theirs.try_take("turn", "one") or pytest.fail("it is free again"):
            assert holders.try_take("turn", "one") is None


def test_a_killed_process_is_dead_at_once(url: str, holders: Holders, monkeypatch: Any):
    """On its own machine; its place can be taken, and what it left is swept."""
    monkeypatch.setattr(postgres_holders, "GRACE_S", 3600.0)
    for take_over in (True, False):
        with started(STAY, url) as process:
            ready(process)
            assert holders.alive("turn:one")
            assert holders.try_take("turn", "one") is None
            process.kill()
        until(lambda: not holders.alive("turn:one"))
        assert holders.known() == ("turn:one",)
        if take_over:
            with holders.try_take("turn", "one") or pytest.fail("nobody has it"):
                assert (holders.who("turn:one") or {})["pid"] == os.getpid()
        else:
            assert holders.sweep() == 1
        assert holders.known() == ()


def test_a_stopped_process_lives(url: str, holders: Holders):
    with started(STAY, url) as process:
        ready(process)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        assert holders.alive("turn:one")
        assert holders.sweep() == 0
        process.kill()


def test_a_process_of_another_machine_has_a_moment_to_come_back(
    url: str, holders: Holders, monkeypatch: Any
):
    """Nobody can see whether it is gone, only for how long its lock has been free."""
    monkeypatch.setattr(postgres_holders, "GRACE_S", 1.0)
    with started(STAY, url) as process:
        ready(process)
        monkeypatch.setattr(postgres_holders, "_machine", lambda: "another")
        process.kill()
    since = time.monotonic()
    until(lambda: not holders.alive("turn:one"))
    assert time.monotonic() - since > 0.9
    assert holders.sweep() == 1


def test_a_lost_session_is_replaced(server: Server, holders: Holders):
    """Whoever looks meanwhile sees a living holder, and nobody gets its place."""
    with holders.take("turn", "one"):
        for _ in range(3):
            end_session(server, holders, "turn:one")
            assert holders.alive("turn:one")
            assert holders.try_take("turn", "one") is None
            assert holders.sweep() == 0
            until(lambda: _locked(holders))
    assert holders.known() == ()


def _locked(holders: Holders) -> bool:
    assert isinstance(holders, SessionHolders)
    key = holders._connections.key("turn:one")
    ((held, _),) = holders._connections.read(postgres_holders._LOOK, (key, key, "turn:one"))
    return bool(held)


def test_a_holder_survives_a_server_that_does_not(server: Server, holders: Holders):
    """Its lock is taken again once the server is back."""
    with holders.take("turn", "one"):
        server.stop("immediate")
        server.start()
        assert holders.alive("turn:one")
        until(lambda: _locked(holders))
        assert holders.alive("turn:one")


def test_a_forked_child_shares_a_holder(url: str, holders: Holders):
    """A killed parent lives on in its child, and the child's end takes nothing from its parent."""
    code = (
        HOLD
        + """
child = os.fork()
if not child:
    if sys.argv[2] == "ends":
        holder.release()
        os._exit(0)
    signal.pause()
if sys.argv[2] == "ends":
    os.waitpid(child, 0)
    print("ready", flush=True)
print(child, flush=True)
signal.pause()
"""
    )
    with started(code, url, "ends") as process:
        ready(process)
        assert holders.alive("turn:one")
        process.kill()
    until(lambda: not holders.alive("turn:one"))
    with started(code, url, "stays") as process:
        assert process.stdout is not None
        forked = int(process.stdout.readline())
        process.kill()
        process.wait()
        time.sleep(0.2)
        assert holders.alive("turn:one")
        os.kill(forked, signal.SIGKILL)
        until(lambda: not holders.alive("turn:one"))


def test_a_parent_that_dies_within_its_turn_leaves_no_lock_to_its_child(url: str, journal: Journal):
    """The child gave up the socket of the open transaction, so the server sees the end of it."""
    code = """
journal = Journal(sys.argv[1])
turn = journal.recorder.turn()
turn.__enter__()
child = os.fork()
if not child:
    signal.alarm(60)
    signal.pause()
print(child, flush=True)
signal.pause()
"""
    from tests.infrastructure.store.counter import COUNTER, start

    with started(code, url) as process:
        assert process.stdout is not None
        forked = int(process.stdout.readline())
        process.kill()
        process.wait()
        assert journal.execute(COUNTER, "a", start, actor="bob").position == 1
        os.kill(forked, signal.SIGKILL)
