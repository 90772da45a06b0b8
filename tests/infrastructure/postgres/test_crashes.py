"""Writers, sessions and the server are killed at random moments: nothing acknowledged is lost."""

from __future__ import annotations

import random
import subprocess
import time
from itertools import count

import pytest

from statelog.domain.errors import StoreError
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import hash_of
from tests.infrastructure.postgres.server import Server
from tests.infrastructure.store.counter import COUNTER, child, start

pytestmark = pytest.mark.servers

WRITE = """
from statelog.infrastructure.store.postgres import PostgresRecorder
PostgresRecorder.patience = 2.0
name = sys.argv[2]
def insist(act):
    while True:
        try:
            return act()
        except Conflict:
            pass
        except OutcomeUnknown:
            print("unknown", flush=True)
        except StoreError as error:
            assert error.retryable or act is opening, error
            time.sleep(0.05)
opening = lambda: Journal(sys.argv[1])
with insist(opening) as journal:
    insist(lambda: journal.execute(COUNTER, name, start, actor="bob"))
    print("ready", flush=True)
    for number in range(100_000):
        command = f"{name}-{number}"
        insist(lambda: journal.commit(
            *(journal.load(COUNTER, each).decide(add) for each in (name, "shared")),
            actor="bob", command=command))
        print(command, flush=True)
"""
ROUNDS = 24
WRITERS = 3


def check(journal: Journal) -> dict[str, list[int]]:
    """Dense positions and versions, times in order, hashes right; positions by command."""
    rows = list(journal.rows())
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    assert [row.time for row in rows] == sorted(row.time for row in rows)
    versions: dict[str, int] = {}
    found: dict[str, list[int]] = {}
    for row in rows:
        assert row.version == versions.get(row.stream, 0) + 1
        versions[row.stream] = row.version
        assert hash_of(row) == row.hash
        found.setdefault(row.command, []).append(row.position)
    return found


def told_by(process: subprocess.Popen[str]) -> list[str]:
    """Kill a writer; the commands it was told of."""
    process.kill()
    printed, _ = process.communicate(timeout=60)
    lines = [line[:-1] for line in printed.splitlines(keepends=True) if line.endswith("\n")]
    assert not [line for line in lines if "Error" in line], printed
    return [line for line in lines if line not in {"ready", "unknown"}]


def test_kills_at_random_moments(server: Server, url: str):
    """Of writers, of single processes of the server, and of the whole server."""
    chance = random.Random(7)
    names = count()
    with Journal(url) as journal:
        journal.execute(COUNTER, "shared", start, actor="bob")
    writers = [child(WRITE, url, next(names)) for _ in range(WRITERS)]
    told: list[str] = []
    for turn in range(ROUNDS):
        time.sleep(chance.uniform(0.05, 0.4))
        kind = ("writer", "session", "server")[turn % 3]
        if kind == "writer":
            place = chance.randrange(WRITERS)
            told += told_by(writers[place])
            writers[place] = child(WRITE, url, next(names))
        elif kind == "session":
            with server.admin() as db:
                db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                    "backend_type = 'client backend' AND pid <> pg_backend_pid() "
                    "AND random() < 0.5"
                )
        elif turn % 2:
            pids = server.backends()
            if pids:
                server.kill(chance.choice(pids))  # the server ends all its processes then
                server.wait()
        else:
            server.stop("immediate")
            server.start()
    time.sleep(1)
    for process in writers:
        told += told_by(process)
    with Journal(url) as journal:
        found = check(journal)
        assert not [command for command in told if len(found.get(command, ())) != 2]
        assert all(
            len(at) == 2 for command, at in found.items() if "-" in command and len(command) < 12
        )
        assert len(told) > ROUNDS
        assert journal.load(COUNTER, "shared").state.total >= len(told)


def test_a_whole_server_stops_in_the_middle_of_a_turn(server: Server, url: str):
    """All of an append is there or nothing of it."""
    with Journal(url) as journal:
        journal.execute(COUNTER, "shared", start, actor="bob")
        for _ in range(3):
            with pytest.raises(StoreError):
                _half_of_an_append(journal, server)
        assert journal.head() == 1


def _half_of_an_append(journal: Journal, server: Server) -> None:
    (row,) = journal.rows()
    with journal.recorder.turn() as turn:
        turn.insert([row._replace(position=2, version=2)])
        server.stop("immediate")
        server.start()
        turn.version("any")
