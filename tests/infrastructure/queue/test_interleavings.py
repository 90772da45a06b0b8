"""Two queues on one store, whatever they do in whatever order: a plain list of jobs agrees."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

from statelog.domain import Refused
from statelog.domain.queue.job import JobStatus
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.queue import Queue
from statelog.infrastructure.testing.clock import FakeClock
from statelog.projections.projection import fold
from statelog.projections.queue import jobs
from tests.amounts import amount

SECOND = 1_000_000
OWNERS = st.sampled_from(["alice", "bob"])
SIDES = st.integers(0, 1)


class Plain:
    """One job as a few fields, and the rules of 2.4 written once more."""

    def __init__(self, number: int, priority: int, at: int, most: int) -> None:
        self.number, self.priority, self.at, self.most = number, priority, at, most
        self.status = "pending"
        self.attempts = self.ends = self.lease = 0
        self.owner: str | None = None

    def free(self, status: str) -> None:
        self.status, self.owner = status, None

    def order(self) -> tuple[int, int, int]:
        return (-self.priority, self.at, self.number)


class Two(RuleBasedStateMachine):
    """Two queues, each with a board of its own."""

    folder: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.place = None if self.folder is None else tempfile.TemporaryDirectory(dir=self.folder)
        store = None if self.place is None else Path(self.place.name) / "queue.db"
        first = Journal(store, clock=self.clock)
        second = first if store is None else Journal(store, clock=self.clock)
        self.journals = {id(each): each for each in (first, second)}
        self.queues = (Queue(first), Queue(second))
        self.jobs: dict[str, Plain] = {}

    def teardown(self) -> None:
        for journal in self.journals.values():
            journal.close()
        if self.place is not None:
            self.place.cleanup()

    def now(self) -> int:
        return self.clock()

    @rule(
        side=SIDES,
        priority=st.integers(0, 2),
        later=st.sampled_from([0, 0, 3]),
        most=st.integers(1, 3),
    )
    def publishes(self, side: int, priority: int, later: int, most: int) -> None:
        number, at = len(self.jobs), self.now() + later * SECOND
        made = self.queues[side].publish(
            category="c",
            event_type="t",
            payload={"n": number},
            priority=priority,
            available_at=at,
            max_attempts=most,
            key=f"k{number}",
        )
        self.jobs[str(made.id)] = Plain(number, priority, at, most)
        self.clock.advance(0.001)

    @rule(side=SIDES, owner=OWNERS, limit=st.integers(1, 3), seconds=st.sampled_from([1, 4]))
    def leases(self, side: int, owner: str, limit: int, seconds: int) -> None:
        due = [
            (plain.order(), job_id)
            for job_id, plain in self.jobs.items()
            if plain.status == "pending" and plain.at <= self.now()
        ]
        expected = [job_id for _, job_id in sorted(due)][:limit]
        found = self.queues[side].lease(owner, limit=limit, seconds=seconds)
        assert [job.id for job in found] == expected
        for job in found:
            plain = self.jobs[str(job.id)]
            plain.status, plain.owner, plain.lease = "leased", owner, job.version
            plain.attempts += 1
            plain.ends = self.now() + seconds * SECOND

    @rule(seconds=st.sampled_from([1, 2, 5]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    def _any(self, data: st.DataObject) -> tuple[str, Plain]:
        job_id = data.draw(st.sampled_from(sorted(self.jobs)))
        return job_id, self.jobs[job_id]

    def _refused(self, act: Callable[..., Any], *args: Any, **given: Any) -> bool:
        try:
            act(*args, **given)
        except Refused:
            return True
        return False

    @precondition(lambda self: self.jobs)
    @rule(
        side=SIDES,
        owner=OWNERS,
        data=st.data(),
        what=st.sampled_from(["complete", "fail", "give_back"]),
    )
    def ends(self, side: int, owner: str, data: st.DataObject, what: str) -> None:
        job_id, plain = self._any(data)
        more = {"fail": ("no",), "give_back": ("stopping",)}.get(what, ())
        lease = data.draw(
            st.sampled_from([plain.lease, plain.lease - 1]) if plain.lease else st.none()
        )
        mine = plain.status == "leased" and plain.owner == owner and lease == plain.lease
        act = getattr(self.queues[side], what)
        assert self._refused(act, job_id, owner, *more, lease=lease) is not mine
        if not mine:
            return
        if what == "complete":
            plain.free("completed")
        elif what == "give_back":
            plain.attempts -= 1
            plain.at = self.now()
            plain.free("pending")
        elif plain.attempts >= plain.most:
            plain.free("failed")
        else:
            plain.at = self.now() + 2 * SECOND * 2 ** (plain.attempts - 1)
            plain.free("pending")
        plain.lease = 0

    @precondition(lambda self: self.jobs)
    @rule(side=SIDES, owner=OWNERS, data=st.data())
    def renews(self, side: int, owner: str, data: st.DataObject) -> None:
        job_id, plain = self._any(data)
        mine = plain.status == "leased" and plain.owner == owner
        assert self._refused(self.queues[side].renew, job_id, owner, seconds=3) is not mine
        if mine:
            plain.ends = max(plain.ends, self.now() + 3 * SECOND)

    @precondition(lambda self: self.jobs)
    @rule(side=SIDES, data=st.data())
    def cancels(self, side: int, data: st.DataObject) -> None:
        job_id, plain = self._any(data)
        over = plain.status in ("completed", "failed")
        assert self._refused(self.queues[side].cancel, job_id) is over
        if not over:
            plain.free("cancelled")
            plain.lease = 0

    @rule(side=SIDES)
    def sweeps(self, side: int) -> None:
        expired = {
            job_id
            for job_id, plain in self.jobs.items()
            if plain.status == "leased" and plain.ends <= self.now()
        }
        assert {job.id for job in self.queues[side].sweep()} == expired
        for job_id in expired:
            plain = self.jobs[job_id]
            plain.at = self.now()
            plain.free("failed" if plain.attempts >= plain.most else "pending")
            plain.lease = 0

    @invariant()
    def every_job_is_what_the_list_says(self) -> None:
        shown = fold(jobs, self.queues[0].journal.history("job")) if self.jobs else {}
        for job_id, plain in self.jobs.items():
            state = self.queues[plain.number % 2].get(job_id).state
            assert (state.status.value, state.attempts) == (plain.status, plain.attempts)
            assert state.lease_owner == plain.owner
            assert state.payload == {"n": plain.number}
            assert shown[job_id].status is state.status
        live = {JobStatus.PENDING.value, JobStatus.LEASED.value}
        expected = {job_id for job_id, plain in self.jobs.items() if plain.status in live}
        assert set(self.queues[0].jobs()) == set(self.queues[1].jobs()) == expected


@pytest.mark.parametrize("store", ["memory", "file"])
def test_two_queues_on_one_store_agree_with_a_plain_list(store: str, tmp_path: Path):
    """In memory and in a file; published, leased, renewed, swept, ended and cancelled."""
    tmp_path.chmod(0o700)

    class Machine(Two):
        folder = str(tmp_path) if store == "file" else None

    examples = 40 if store == "memory" else 15
    run(Machine, settings=settings(max_examples=examples, stateful_step_count=30, deadline=None))


@pytest.mark.long
def test_many_more_interleavings():
    """The same for longer, in memory."""
    run(
        Two,
        settings=settings(max_examples=amount(1500, 100), stateful_step_count=60, deadline=None),
    )
