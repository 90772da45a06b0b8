"""Workers in threads, for tests."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.queue.task import Outcome
from statelog.infrastructure.queue.worker import Handler, JobWorker

PATIENCE_S = 30.0
"""How long a test waits before it calls something that must happen not happening."""


class Running:
    """A worker at work in a thread of its own."""

    def __init__(self, worker: JobWorker) -> None:
        self.worker = worker
        self.stop = threading.Event()
        self.counts: Counter[Outcome] = Counter()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.counts = self.worker.run(self.stop)
        except BaseException as error:
            self.error = error

    def end(self) -> Counter[Outcome]:
        """Stop it; what it did. Raises what it raised."""
        self.stop.set()
        self.join()
        return self.counts

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the worker does not end"
        if self.error is not None:
            raise self.error


@contextmanager
def running(
    journal: Journal, handlers: dict[str, Handler], owner: str = "alice", **more: Any
) -> Iterator[Running]:
    """A worker until the end of the block."""
    given = Running(JobWorker(journal, handlers, owner, **more))
    try:
        yield given
    finally:
        given.end()


def once(
    journal: Journal, handlers: dict[str, Handler], owner: str = "alice", **more: Any
) -> Counter[Outcome]:
    """What a worker does until nothing is available."""
    return JobWorker(journal, handlers, owner, **more).run(threading.Event(), once=True)


def publish(journal: Journal, event_type: str = "t", **given: Any) -> str:
    """Publish a job; its id."""
    asked = {"category": "c", "event_type": event_type, "payload": {"n": 1}, **given}
    return str(Queue(journal).publish(**asked).id)


def until(flag: threading.Event) -> None:
    """Wait for a flag that somebody has to set."""
    assert flag.wait(PATIENCE_S), "it does not happen"
