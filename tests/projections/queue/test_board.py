"""The board offers the right jobs in the right order, and forgets what has ended."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.event import Event, Recorded
from statelog.domain.queue.job import (
    JOB,
    Cancelled,
    Completed,
    Job,
    JobStatus,
    Leased,
    Published,
    Retried,
    Returned,
)
from statelog.projections.queue import jobs
from statelog.projections.queue.board import Board
from tests.projections.recorded import Log as Written


def published(
    priority: int = 0, available_at: int = 0, created_at: int = 0, category: str = "c"
) -> Published:
    return Published(
        category, "t", "", "", {"secret": 1}, priority, available_at, 5, "", created_at
    )


class Log:
    """Events of jobs, each noted on a board as it comes."""

    def __init__(self) -> None:
        self.board = Board()
        self.written = Written()
        self.jobs: dict[str, Job] = {}
        self.versions: dict[str, int] = {}

    def add(self, job_id: str, *events: Event) -> None:
        for event in events:
            self.jobs[job_id] = JOB.apply(self.jobs.get(job_id, Job()), event)
            recorded = self.written.append(f"job/{job_id}", event)
            self.versions[job_id] = recorded.version
            self.board.note(recorded)

    @property
    def recorded(self) -> list[Recorded]:
        return self.written.events

    def due(self, now: int, categories: Sequence[str] | None = None) -> list[str]:
        return list(self.board.due(now, categories))


def test_the_order_is_priority_then_availability_then_age():
    """And then the log's."""
    log = Log()
    log.add("young", published(created_at=2))
    log.add("old", published(created_at=1))
    log.add("urgent", published(priority=5, available_at=9, created_at=9))
    log.add("twin", published(created_at=1))
    log.add("waited", published(available_at=-1, created_at=3))
    assert log.due(9) == ["urgent", "waited", "old", "twin", "young"]


def test_a_future_job_is_not_offered():
    """Until its moment has come, which includes that moment."""
    log = Log()
    log.add("later", published(available_at=10))
    assert log.due(9) == []
    assert log.due(10) == ["later"]


def test_only_the_wanted_categories_are_offered():
    """In one order over all of them."""
    log = Log()
    for at, category in enumerate(("a", "b", "c", "a")):
        log.add(f"j{at}", published(created_at=at, category=category))
    assert log.due(0, ["a", "b"]) == ["j0", "j1", "j3"]
    assert log.due(0, []) == []


def test_who_has_enough_leaves_the_rest():
    """What was offered and not leased is offered again, to whoever asks next."""
    log = Log()
    for at in range(5):
        log.add(f"j{at}", published(created_at=at))
    with closing(log.board.due(0)) as due:
        assert list(islice(due, 2)) == ["j0", "j1"]
    log.add("j1", Leased("alice", 1, 0, 30))
    assert log.due(0) == ["j0", "j2", "j3", "j4"]


def test_a_lease_is_looked_at_when_it_ends_and_once():
    """Later again when somebody says that it runs on."""
    log = Log()
    log.add("j", published(), Leased("alice", 1, 0, 30))
    assert log.board.overdue(29) == []
    assert log.board.overdue(30) == [("j", 2)]
    assert log.board.overdue(31) == []
    log.board.runs_until("j", 2, 40)
    assert log.board.overdue(40) == [("j", 2)]
    log.add("j", Returned("expired", 40, 1), Leased("bob", 2, 41, 71))
    log.board.runs_until("j", 2, 50)
    assert log.board.overdue(60) == []
    assert log.board.overdue(71) == [("j", 4)]


def test_what_has_ended_takes_no_room():
    """A board is as large as the work that is left."""
    log = Log()
    for at in range(100):
        log.add(f"j{at}", published(), Leased("alice", 1, 0, 30))
        log.add(f"j{at}", Completed(1) if at % 2 else Cancelled(1))
    assert log.board.jobs() == {}
    assert log.board.overdue(99) == []
    assert log.due(99) == []


def test_no_payload_is_kept_or_shown():
    """Neither on the board nor in the view (1.6, P22)."""
    log = Log()
    log.add("j", published())
    assert log.board.jobs()["j"].payload == {}
    assert "secret" not in repr(log.board.entries)
    state = jobs.evolve(jobs.blank, log.recorded[0])
    assert state is not None
    assert state.payload == {}
    assert jobs.show is not None
    assert "payload" not in (jobs.show("j", state) or {})


MOVES = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from(["publish", "lease", "retry", "return", "complete"]),
        st.integers(0, 3),
        st.integers(0, 20),
    ),
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(MOVES, st.integers(0, 20))
def test_the_board_is_what_sorting_all_jobs_says(moves: list[tuple[str, str, int, int]], now: int):
    """After any history, the jobs that are due, in order, and asked for at any moment."""
    log = Log()
    order: dict[str, int] = {}
    for job_id, move, number, at in moves:
        status = log.jobs.get(job_id, Job()).status
        events: dict[tuple[str, JobStatus], Event] = {
            ("publish", JobStatus.ABSENT): published(number, at, at),
            ("lease", JobStatus.PENDING): Leased("alice", 1, at, at + 5),
            ("retry", JobStatus.LEASED): Retried("no", at),
            ("return", JobStatus.LEASED): Returned("expired", at, 1),
            ("complete", JobStatus.LEASED): Completed(at),
        }
        event = events.get((move, status))
        if event is not None:
            log.add(job_id, event)
            order[job_id] = len(log.recorded)
            log.due(0)
    waiting = [
        (-job.priority, job.available_at, job.created_at, order[job_id], job_id)
        for job_id, job in log.jobs.items()
        if job.status is JobStatus.PENDING and job.available_at <= now
    ]
    assert log.due(now) == [job_id for *_, job_id in sorted(waiting)]
    leased = {(i, log.versions[i]) for i, j in log.jobs.items() if j.status is JobStatus.LEASED}
    assert set(log.board.overdue(99)) == leased
