"""A journal with something to plan, algorithms made for a test, and a way to work jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from statelog.domain.planning.algorithm_run import ALGORITHM_RUN, AlgorithmRun
from statelog.domain.planning.algorithms import ALGORITHMS
from statelog.domain.planning.algorithms.port import Algorithm
from statelog.domain.planning.session import SESSION, Selection, Session
from statelog.domain.queue.job import keyed_id
from statelog.domain.workflows.schedule_plan import SchedulePlan
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.planning.coordinator import planning_handler
from statelog.infrastructure.planning.endings import abandoned
from statelog.infrastructure.planning.requests import SessionRequest
from statelog.infrastructure.planning.sessions import REQUESTED, Sessions
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.queue.worker import Done, JobWorker, Work
from statelog.infrastructure.workflows.definitions import Definitions
from tests.domain.planning.problems import ENVIRONMENT, SCOPE, TOPOLOGY, WORKFLOW, placed

DEFINITIONS = (ENVIRONMENT, SCOPE, TOPOLOGY, WORKFLOW)


def making(
    id: str, *plans: SchedulePlan | Exception, between: Callable[[int], None] | None = None
) -> Algorithm:
    """An algorithm that emits these plans, raises these errors, and is half done after each."""

    def emit(problem: Any, configuration: Any, report: Callable[[float], None]) -> Iterator[Any]:
        for at, plan in enumerate(plans):
            if between is not None:
                between(at)
            report((at + 1) / (2 * len(plans)))
            if isinstance(plan, Exception):
                raise plan
            yield plan

    return Algorithm(id, id.title(), "time", True, "Made for a test.", emit)


def broken(plan: SchedulePlan | None = None) -> SchedulePlan:
    """A plan that the validator refuses: an activity is not assigned."""
    given = plan or placed()
    return replace(given, assignments=given.assignments[:-1])


@dataclass
class Lab:
    """Sessions of one journal, worked on one job at a time or by a worker."""

    journal: Journal
    algorithms: dict[str, Algorithm] = field(default_factory=lambda: dict(ALGORITHMS))

    def __post_init__(self) -> None:
        Definitions(self.journal).register(*DEFINITIONS, actor="tester")

    @property
    def sessions(self) -> Sessions:
        return Sessions(self.journal, self.algorithms)

    def register(self, *algorithms: Algorithm) -> tuple[str, ...]:
        """Their ids, to be selected."""
        self.algorithms.update({each.id: each for each in algorithms})
        return tuple(each.id for each in algorithms)

    def request(self, id: str, *algorithms: str, **given: Any) -> SessionRequest:
        chosen = tuple(Selection(each) for each in algorithms)
        return SessionRequest(id, "chain-v1", "lab", "wire", chosen, **given)

    def create(self, id: str, *algorithms: str, **given: Any) -> None:
        self.sessions.create(self.request(id, *algorithms, **given), actor="tester")

    def deliver(self, id: str, stop: threading.Event | None = None) -> None:
        """Hand the job of a session to the handler, as a worker does, whatever became of it."""
        handler = planning_handler(self.journal, self.algorithms, tell_seconds=0.0)
        job = keyed_id(f"planning-session:{id}")
        handler(Work(job, REQUESTED, id, {"sessionId": id}, 1, stop or threading.Event()))

    def planned(self, id: str, *algorithms: Algorithm, **given: Any) -> dict[str, Any]:
        """The page of a session that these algorithms were run for."""
        self.create(id, *self.register(*algorithms), **given)
        self.deliver(id)
        return self.sessions.show(id)

    def worker(self, **given: Any) -> JobWorker:
        return JobWorker(
            self.journal,
            {REQUESTED: planning_handler(self.journal, self.algorithms)},
            "worker",
            on_failure={REQUESTED: abandoned(self.journal)},
            poll_seconds=0.05,
            **given,
        )

    def work(self) -> list[Done]:
        """Work on the queue until nothing is left."""
        done: list[Done] = []
        self.worker(on_done=done.append).run(threading.Event(), once=True)
        return done

    def session(self, id: str) -> Session:
        return self.journal.load(SESSION, id).state

    def run(self, id: str, algorithm: str) -> AlgorithmRun:
        return self.journal.load(ALGORITHM_RUN, (id, algorithm)).state

    def job(self, id: str) -> Any:
        return Queue(self.journal).get(keyed_id(f"planning-session:{id}")).state

    def names(self, prefix: str = "session") -> list[str]:
        """The last word of every event below a prefix."""
        return [each.name.rsplit(".", 1)[1] for each in self.journal.history(prefix)]

    def log(self) -> list[tuple[str, str, bytes | None]]:
        """All that is stored, without times."""
        return [(each.stream, each.name, each.data) for each in self.journal.read()]


def waited(until: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something holds. Fails when it never does."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if until():
            return
        pause.wait(0.01)
    raise AssertionError("it did not happen")


def ids(candidates: Iterable[dict[str, Any]]) -> list[str]:
    return [each["id"] for each in candidates]
