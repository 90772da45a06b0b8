"""Working on the planning jobs of a store in this process until one session has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from statelog.domain.event import Recorded
from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.algorithms.port import Algorithm
from statelog.domain.planning.session import Cancelled, Completed, Failed
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.planning.coordinator import planning_handler
from statelog.infrastructure.planning.endings import abandoned, load_session
from statelog.infrastructure.planning.sessions import CATEGORY, REQUESTED
from statelog.infrastructure.queue.worker import JobWorker

_ENDS: Final = frozenset(each.stored_name for each in (Completed, Failed, Cancelled))

Told = Callable[[Sequence[Recorded]], None]


def work_until_ended(
    journal: Journal,
    session_id: str,
    told: Told = lambda events: None,
    *,
    owner: str,
    algorithms: Mapping[str, Algorithm] = ALGORITHMS,
    after: int | None = None,
) -> str:
    """Work, or wait for whoever works, until the session has ended; its status.

    `told` hears the events of the session and its runs, from the position `after` on (default: from
    now). What is not
    done when this is interrupted stays in the queue. Raises `NotFound`, and what the worker raises.
    """
    found = load_session(journal, session_id)
    if found.state.ended:
        return found.state.status.value
    stop, ended = threading.Event(), False
    start = journal.head() if after is None else after
    worker = JobWorker(
        journal,
        {REQUESTED: planning_handler(journal, algorithms)},
        owner,
        categories=(CATEGORY,),
        on_failure={REQUESTED: abandoned(journal)},
    )
    failures: list[BaseException] = []
    thread = threading.Thread(target=_run, args=(worker, stop, failures), name="planning")
    with journal.follow(after=start, prefix=found.stream) as follower:
        thread.start()
        try:
            while not ended and thread.is_alive():
                events = follower.batch()
                told(events)
                ended = any(each.name in _ENDS for each in events)
        finally:
            stop.set()
            follower.wake()
            thread.join()
        told(follower.ready())
    if failures:
        raise failures[0]
    return load_session(journal, session_id).state.status.value


def _run(worker: JobWorker, stop: threading.Event, failures: list[Any]) -> None:
    try:
        worker.run(stop)
    except BaseException as error:
        failures.append(error)
