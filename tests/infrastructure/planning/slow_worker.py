"""A worker in a process of its own, whose algorithms take their time: run as a program."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.algorithms.port import Algorithm
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.planning.coordinator import planning_handler
from statelog.infrastructure.planning.endings import abandoned
from statelog.infrastructure.planning.sessions import REQUESTED
from statelog.infrastructure.queue.worker import JobWorker

ROOT = Path(__file__).resolve().parents[3]
PAUSE_S = 0.02


def slowly(algorithm: Algorithm) -> Algorithm:
    """The same plans, with a pause before each and at each report."""

    def plans(problem: Any, configuration: Any, report: Any) -> Iterator[Any]:
        def told(fraction: float) -> None:
            time.sleep(PAUSE_S)
            report(fraction)

        for plan in algorithm.plans(problem, configuration, told):
            time.sleep(PAUSE_S)
            yield plan

    return Algorithm(
        algorithm.id,
        algorithm.name,
        algorithm.objective,
        algorithm.multiple,
        algorithm.description,
        plans,
        algorithm.defaults,
        algorithm.version,
    )


SLOW = {id: slowly(algorithm) for id, algorithm in ALGORITHMS.items()}


def worker(journal: Journal, owner: str, **given: Any) -> JobWorker:
    """One that notices soon when another one is dead."""
    return JobWorker(
        journal,
        {REQUESTED: planning_handler(journal, SLOW, tell_seconds=0.0)},
        owner,
        concurrency=3,
        lease_seconds=0.5,
        poll_seconds=0.05,
        on_failure={REQUESTED: abandoned(journal)},
        **given,
    )


def main(store: str, owner: str) -> None:
    """Work until killed."""
    with Journal(store) as journal:
        print("working", flush=True)
        worker(journal, owner).run(threading.Event())


if __name__ == "__main__":
    main(*sys.argv[1:])
