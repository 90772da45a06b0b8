"""B4: several processes append to one file for a while, and nobody is left waiting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

from statelog.domain.event import Event
from statelog.infrastructure.journal import Journal
from tests.bench import account
from tests.bench.result import Line, compared, faster
from tests.bench.rounds import Effort, Times, interleaved

FAIR, WORST_MS = 0.8, 100
FASTER = {4: 1.5, 16: 3.0}
PEER = "eventsourcing recorder"
ROOT = Path(__file__).resolve().parents[2]
THREADS = 8


@dataclass(frozen=True)
class Turn:
    """What one writer did: appends, failures, and its longest wait in seconds."""

    done: int
    failed: int
    worst: float


def measure(folder: Path, effort: Effort, seconds: float) -> list[Line]:
    """For 4 and 16 processes: speed beside the peer, fairness, worst wait, failures."""
    lines = [line for writers in FASTER for line in _crowd(folder, effort, writers, seconds)]
    return [*lines, _threads(folder, effort)]


def _crowd(folder: Path, effort: Effort, writers: int, seconds: float) -> list[Line]:
    turns: list[list[Turn]] = []
    numbers = count()

    def ours() -> float:
        store = folder / f"crowd-{writers}-{next(numbers)}.db"
        Journal(store).close()
        turns.append(_together("statelog", store, writers, seconds))
        return seconds / sum(turn.done for turn in turns[-1])

    def peer() -> float:
        store = folder / f"crowd-{writers}-{next(numbers)}.peer.db"
        recorder = _recorder(store)
        recorder.create_table()
        recorder.datastore.close()
        return seconds / max(
            1, sum(turn.done for turn in _together("peer", store, writers, seconds))
        )

    times = interleaved({"statelog": ours, PEER: peer}, effort)
    work = f"an append, {writers} processes"
    turns = turns[1:] or turns
    fair = median(min(t.done for t in each) / max(t.done for t in each) for each in turns)
    worst = median(max(turn.worst for turn in each) for each in turns) * 1e3
    failed = sum(turn.failed for each in turns for turn in each)
    speed = faster("B4", work, times, PEER, FASTER[writers], "statelog")
    return [
        Line(**{**vars(speed), "limit": None}),
        Line("B4", work, "slowest / fastest writer", f">= {FAIR}", fair, fair >= FAIR),
        Line("B4", work, "longest wait, ms", f"<= {WORST_MS}", worst, worst <= WORST_MS),
        Line("B4", work, "failures", "0", failed, failed == 0),
    ]


def _together(kind: str, store: Path, writers: int, seconds: float) -> list[Turn]:
    """Start them, let all go at once, and hear what each did."""
    words = [sys.executable, "-m", "tests.bench.crowd", kind, str(store), str(seconds)]
    crowd = [
        subprocess.Popen(
            [*words, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for number in range(writers)
    ]
    for each in crowd:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in crowd:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    return [Turn(**json.loads(each.communicate(timeout=60 + seconds)[0])) for each in crowd]


def _writer(kind: str, store: Path, number: int) -> Callable[[], object]:
    if kind == "statelog":
        return _append(Journal(store), f"{number}")
    recorder, version = _recorder(store), count(1)
    data = b'{"amount":1,"booked":"2026-01-15","counterparty":"bob","reference":"invoice"}'
    topic = "tests.bench.account:Deposited"
    stream = f"account-{number}"
    return lambda: recorder.insert_events([StoredEvent(stream, next(version), topic, data)])


def _append(journal: Journal, id: str) -> Callable[[], object]:
    opened = journal.commit(
        account.ACCOUNT.blank_of(id).decide(lambda _: [account.Opened("alice", "EUR")]),
        actor="bench",
    )
    loaded = [opened.loaded[0]]

    def deposit(_: account.Account) -> list[Event]:
        return [account.Deposited(1, "2026-01-15", "bob", "invoice")]

    def append() -> None:
        loaded[0] = journal.commit(loaded[0].decide(deposit), actor="bench").loaded[0]

    return append


def _recorder(store: Path) -> SQLiteApplicationRecorder:
    return SQLiteApplicationRecorder(
        SQLiteDatastore(str(store), originator_id_type="text"),
        events_table_name="stored_events",
    )


def _threads(folder: Path, effort: Effort) -> Line:
    """Threads of one process share commits; beside one thread that appends as often."""
    numbers = count()

    def run(threads: int, each: int) -> float:
        with Journal(folder / f"threads-{next(numbers)}.db") as journal:
            appends = [_append(journal, f"{number}") for number in range(threads)]
            crew = [
                threading.Thread(target=lambda go=append: [go() for _ in range(each)])
                for append in appends
            ]
            start = perf_counter()
            for thread in crew:
                thread.start()
            for thread in crew:
                thread.join()
            return (perf_counter() - start) / (threads * each)

    total = 800
    times: Times = interleaved(
        {"statelog": lambda: run(THREADS, total // THREADS), "one thread": lambda: run(1, total)},
        effort,
    )
    return compared("B4", f"an append, {THREADS} threads", times, "one thread")


def main() -> None:
    """One writer: ready, go, and then what it did."""
    kind, store, seconds, number = sys.argv[1:]
    append = _writer(kind, Path(store), int(number))
    append()
    print("ready", flush=True)
    sys.stdin.readline()
    done = failed = 0
    worst = 0.0
    start = before = perf_counter()
    while before - start < float(seconds):
        try:
            append()
            done += 1
        except Exception:
            failed += 1
        after = perf_counter()
        worst, before = max(worst, after - before), after
    print(json.dumps({"done": done, "failed": failed, "worst": worst}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
