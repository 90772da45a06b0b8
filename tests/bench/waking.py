"""Live views: how soon a follower hears of a commit, its views have it, and what idling costs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median, quantiles
from time import monotonic_ns, sleep
from typing import Any, Final

from statelog.domain.execution import plan as plans
from statelog.domain.execution.plan import PLAN
from statelog.infrastructure.journal import Journal
from tests.bench.result import Line

HEARS: Final = "from COMMIT until another process hears of it, median"
SHOWS: Final = "the same until its view has the row, median"
IDLES: Final = "an idle follower of all views"
LIMIT: Final = 0.2
WANTED: Final = f"<= {LIMIT} % of a core"

_SETUP = """
import json, sys
from time import monotonic, monotonic_ns, process_time
from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.views import Views
from statelog.projections.execution import plan_summary

path, amount = sys.argv[1], float(sys.argv[2])

class Stamped(Views):
    def catch_up(self, *names):
        super().catch_up(*names)
        stamps.append((self.status()[0].position, monotonic_ns()))

def ready():
    print("ready", flush=True)

stamps = []
"""
_HEAR = """
with Journal(path) as journal, journal.follow(after=journal.head()) as follower:
    ready()
    end = follower.position + amount
    while follower.position < end:
        follower.wait(60)
        follower.position = journal.head()
        stamps.append((follower.position, monotonic_ns()))
print(json.dumps(stamps))
"""
_SHOW = """
with Journal(path) as journal, Stamped(journal, [plan_summary]) as views:
    views.catch_up()
    end = journal.head() + amount
    ready()
    views.follow(lambda: stamps[-1][0] >= end, "plan_summary")
print(json.dumps(stamps))
"""
_IDLE = """
with Journal(path) as journal, Views(journal, all_views()) as views:
    views.catch_up()
    begin = monotonic()
    until = begin + 1 + amount
    spent = []
    def stopped():
        if monotonic() > begin + 1:
            spent.append((monotonic(), process_time()))
        return monotonic() > until
    ready()
    views.follow(stopped)
print(json.dumps([spent[0], spent[-1]]))
"""


def measure(folder: Path, *, quick: bool) -> list[Line]:
    """The two latencies over some hundred commits, and the processor time of a quiet while."""
    commits, seconds = (100, 3) if quick else (1000, 30)
    with Journal(folder / "waking.db") as journal:
        body = {"plan_id": "p", "realm": "lab"}
        journal.execute(PLAN, "p", plans.save, actor="bench", body=body, generation="g")
        hears, shows = (_latencies(journal, code, commits) for code in (_HEAR, _SHOW))
        first, last = _told(journal, _IDLE, seconds)
    percent = 100 * (last[1] - first[1]) / (last[0] - first[0])
    return [
        _latency(HEARS, hears),
        _latency(SHOWS, shows),
        Line("live", IDLES, "processor time", WANTED, percent, percent <= LIMIT),
    ]


def _latency(work: str, micros: Sequence[float]) -> Line:
    """The median, with the 99th percentile beside it."""
    worst = quantiles(micros, n=100)[98]
    figure = worst / median(micros)
    return Line("live", work, "p99", "no goal", figure, None, median(micros), worst)


def _latencies(journal: Journal, code: str, commits: int) -> list[float]:
    """Microseconds from the end of each COMMIT to when its position was reached."""
    with _child(journal, code, commits) as child:
        committed = _commits(journal, commits)
        stamps = json.loads(child.communicate(timeout=120)[0])
    return list(_waits(committed, stamps))


def _commits(journal: Journal, count: int) -> list[tuple[int, int]]:
    """Position and end of each of some commits, far enough apart for a follower to sleep."""
    committed, chance = list[tuple[int, int]](), Random(1)
    bell: Any = journal._bell
    ring, ended = bell.ring, list[int]()

    def stamped() -> None:
        ended.append(monotonic_ns())
        ring()

    bell.ring = stamped
    try:
        for _ in range(count):
            position = journal.execute(PLAN, "p", plans.touch, actor="bench").position
            committed.append((position, ended[-1]))
            sleep(chance.uniform(0.008, 0.015))
    finally:
        bell.ring = ring
    return committed


def _waits(
    committed: Sequence[tuple[int, int]], stamps: Sequence[tuple[int, int]]
) -> Iterator[float]:
    """For each commit the time to the first stamp that has it."""
    reached = iter(stamps)
    position, at = next(reached)
    for wanted, ended in committed:
        while position < wanted:
            position, at = next(reached)
        yield max(0, at - ended) / 1000


def _told(journal: Journal, code: str, seconds: float) -> Any:
    with _child(journal, code, seconds) as child:
        return json.loads(child.communicate(timeout=120)[0])


@contextmanager
def _child(journal: Journal, code: str, amount: float) -> Iterator[subprocess.Popen[str]]:
    """A process that has begun to wait."""
    args = [sys.executable, "-c", _SETUP + code, str(journal.store), str(amount)]
    child = subprocess.Popen(args, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        if child.stdout.readline() != "ready\n":
            raise RuntimeError("the follower did not begin")
        sleep(0.2)
        yield child
    finally:
        child.kill()
        child.communicate()
