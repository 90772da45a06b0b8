"""One cycle a plan at a time in a process, and one shared follow-up for all who ask meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import StoreError
from statelog.domain.execution.due import Due
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.request import DAEMON, RUN_ONCE, Claim
from statelog.infrastructure.execution.coordinator import Coordinator
from statelog.infrastructure.execution.dispatch import Ask, Attempted, Cancel, Dispatch
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.execution.resolved import Resolved
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from tests.infrastructure.execution.lab import Failing, Lab, a_step

ASK = Ask(Claim(DAEMON), frozenset({Due.YES}))
EVERY = frozenset({Due.YES, Due.AT_START})


def until(happens: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.002)


class Cycles:
    """Cycles that wait to be let go, and what they were given."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, Ask, Attempted | None]] = []
        self.cancels: list[Cancel] = []
        self.gate = threading.Semaphore(0)
        self.token = 0
        self.error: Exception | None = None
        self.guard = threading.Lock()
        self.at_work: list[str] = []
        self.most_at_work = 0
        self.threads: set[str] = set()

    def __call__(
        self, plan_id: str, ask: Ask, attempted: Attempted | None, cancel: Cancel
    ) -> Resolved:
        with self.guard:
            assert plan_id not in self.at_work
            self.at_work.append(plan_id)
            self.most_at_work = max(self.most_at_work, len(self.at_work))
            self.begun.append((plan_id, ask, attempted))
            self.cancels.append(cancel)
            self.threads.add(threading.current_thread().name)
        assert self.gate.acquire(timeout=30)
        with self.guard:
            self.at_work.remove(plan_id)
            if self.error is not None:
                raise self.error
            if attempted == ("g", self.token):
                return Resolved(plan_id, Resolution.DUPLICATE)
            resolution = Resolution.CANCELLED if cancel.is_set() else Resolution.FINALIZED
            return Resolved(plan_id, resolution, "", "g", self.token, f"x{self.token}")


@pytest.fixture
def cycles() -> Iterator[Cycles]:
    cycles = Cycles()
    yield cycles
    cycles.gate.release(100)


def test_all_who_ask_meanwhile_share_one_follow_up_and_its_result(cycles: Cycles):
    """2.5: the newest caller's claim, every reason to run, and what the slot just attempted."""
    dispatch = Dispatch(cycles)
    first = dispatch.request("p", ASK)
    until(lambda: len(cycles.begun) == 1)
    mine = Claim(RUN_ONCE, "run_once:1")
    second = dispatch.request("p", Ask(Claim(DAEMON), frozenset({Due.AT_START})))
    third = dispatch.request("p", Ask(mine, frozenset({Due.YES})))
    cycles.token = 1
    cycles.gate.release()
    assert first.result(30).execution_id == "x1"
    until(lambda: len(cycles.begun) == 2)
    cycles.gate.release()
    assert second.result(30) is third.result(30)
    assert second.result().resolution is Resolution.DUPLICATE
    assert cycles.begun[1] == ("p", Ask(mine, EVERY), ("g", 1))
    assert dispatch.drain(30)
    assert len(cycles.begun) == 2


def test_a_follow_up_runs_a_newer_request(cycles: Cycles):
    """Cases 66 and 68: afterwards, never alongside."""
    dispatch = Dispatch(cycles)
    dispatch.request("p", ASK)
    until(lambda: cycles.begun)
    again = dispatch.request("p", ASK)
    cycles.gate.release()
    until(lambda: len(cycles.begun) == 2)
    cycles.token = 1
    cycles.gate.release()
    assert again.result(30).execution_id == "x1"
    assert cycles.begun[1][2] == ("g", 0)


def test_a_wish_that_comes_before_the_cycle_begins_joins_it(cycles: Cycles):
    """Its fresh read is still to come."""
    dispatch = Dispatch(cycles, most=1)
    dispatch.request("other", ASK)
    until(lambda: cycles.begun)
    one = dispatch.request("p", ASK)
    two = dispatch.request("p", Ask(Claim(DAEMON), frozenset({Due.AT_START})))
    cycles.gate.release(2)
    assert one.result(30) is two.result(30)
    assert cycles.begun[1:] == [("p", Ask(Claim(DAEMON), EVERY), None)]


def test_cancelled_before_it_ever_ran_all_waiters_are_answered_and_the_plan_is_free(
    cycles: Cycles,
):
    """Case 63: at once, whatever else is at work; and it can be asked for again."""
    told: list[Resolved] = []
    dispatch = Dispatch(cycles, most=1, told=told.append)
    dispatch.request("other", ASK)
    until(lambda: cycles.begun)
    waiters = [dispatch.request("p", ASK) for _ in range(3)]
    dispatch.cancel("p")
    assert {waiter.result(30).resolution for waiter in waiters} == {Resolution.CANCELLED}
    assert not dispatch.busy("p")
    assert [each.plan_id for each in told] == ["p"]
    again = dispatch.request("p", ASK)
    cycles.gate.release(2)
    assert again.result(30).resolution is Resolution.FINALIZED
    assert [plan_id for plan_id, *_ in cycles.begun] == ["other", "p"]


def test_a_cancelled_cycle_answers_the_queued_recheck_cancelled(cycles: Cycles):
    """2.5: no follow-up runs once cancellation was requested; the plan stays excluded till then."""
    dispatch = Dispatch(cycles)
    first = dispatch.request("p", ASK)
    until(lambda: cycles.begun)
    queued = dispatch.request("p", ASK)
    dispatch.cancel("p")
    assert cycles.cancels[0].is_set()
    assert dispatch.busy("p")
    assert not queued.done()
    cycles.gate.release()
    assert first.result(30).resolution is Resolution.CANCELLED
    assert queued.result(30).resolution is Resolution.CANCELLED
    assert dispatch.drain(30)
    assert len(cycles.begun) == 1


def test_an_internal_defect_fails_the_waiters_and_frees_the_plan(
    cycles: Cycles, caplog: pytest.LogCaptureFixture
):
    """2.5: also those of the recheck; the log names plan and field."""
    dispatch = Dispatch(cycles)
    first = dispatch.request("p", ASK)
    until(lambda: cycles.begun)
    queued = dispatch.request("p", ASK)
    cycles.error = ZeroDivisionError("a defect")
    cycles.gate.release()
    for waiter in (first, queued):
        with pytest.raises(ZeroDivisionError):
            waiter.result(30)
    assert not dispatch.busy("p")
    (line,) = [r for r in caplog.records if "the coordinator failed" in r.getMessage()]
    assert (line.levelname, line.plan) == ("ERROR", "p")
    cycles.error = None
    cycles.gate.release()
    assert dispatch.request("p", ASK).result(30).resolution is Resolution.FINALIZED


def test_a_cancelled_waiter_asks_for_the_end_and_unwinds_nothing(cycles: Cycles):
    """Case 59: the plan stays excluded until the cycle has ended."""
    dispatch = Dispatch(cycles)
    waiter = dispatch.request("p", ASK)
    until(lambda: cycles.begun)
    assert waiter.cancel()
    assert cycles.cancels[0].is_set()
    assert dispatch.busy("p")
    assert not dispatch.drain(0.05)
    cycles.gate.release()
    assert dispatch.drain(30)
    with pytest.raises(CancelledError):
        waiter.result()


def test_a_cycle_that_others_wait_for_goes_on(cycles: Cycles):
    """One of two gives up: the other is served; a queued wish that is given up runs nothing."""
    dispatch = Dispatch(cycles, most=1)
    dispatch.request("other", ASK)
    until(lambda: cycles.begun)
    one, two = dispatch.request("p", ASK), dispatch.request("p", ASK)
    one.cancel()
    cycles.gate.release()
    until(lambda: len(cycles.begun) == 2)
    dispatch.request("p", ASK).cancel()
    assert not cycles.cancels[1].is_set()
    cycles.gate.release()
    assert two.result(30).resolution is Resolution.FINALIZED
    assert dispatch.drain(30)
    assert len(cycles.begun) == 2


def test_many_plans_take_turns_with_few_threads(cycles: Cycles):
    """`most` bounds the cycles at work and the threads that wait with them."""
    dispatch = Dispatch(cycles, most=3)
    futures = [dispatch.request(f"p{number}", ASK) for number in range(200)]
    until(lambda: len(cycles.at_work) == 3)
    assert sum(t.name.startswith("plans ") for t in threading.enumerate()) <= 3
    cycles.gate.release(200)
    assert {future.result(30).resolution for future in futures} == {Resolution.FINALIZED}
    assert cycles.most_at_work == 3
    assert len(cycles.threads) <= 3
    assert [plan_id for plan_id, *_ in cycles.begun] != []


def test_stopping_refuses_with_a_warning_signals_all_and_can_be_taken_back(
    cycles: Cycles, caplog: pytest.LogCaptureFixture
):
    """9 and case 119: those in line are answered, those at work are waited for."""
    dispatch = Dispatch(cycles, most=1)
    at_work = dispatch.request("p", ASK)
    until(lambda: cycles.begun)
    in_line = dispatch.request("q", ASK)
    dispatch.refuse()
    assert in_line.result(30).resolution is Resolution.CANCELLED
    late = dispatch.request("r", ASK)
    assert late.result(30).resolution is Resolution.CANCELLED
    (line,) = [r for r in caplog.records if "is stopping" in r.getMessage()]
    assert (line.levelname, line.plan) == ("WARNING", "r")
    cycles.gate.release()
    assert at_work.result(30).resolution is Resolution.CANCELLED
    assert dispatch.drain(30)
    dispatch.accept()
    cycles.gate.release()
    assert dispatch.request("r", ASK).result(30).resolution is Resolution.FINALIZED


# --- over a real coordinator

STEPS = """
    import time
    @step
    def wait(ctx: StepContext) -> None:
        (ctx.workdir / "here").touch()
        while not (ctx.workdir / "go").exists():
            time.sleep(0.005)
    @step
    def wait_and_fail(ctx: StepContext) -> None:
        wait(ctx)
        raise PermanentStepError("it is broken")
"""


@pytest.fixture
def lab(tmp_path: Path, store_path: Path) -> Iterator[Lab]:
    with Journal(store_path) as journal:
        lab = Lab(tmp_path, journal)
        lab.steps(STEPS)
        yield lab


class Real:
    """A dispatch whose cycles run in this process, as a service that embeds one does it."""

    def __init__(self, lab: Lab, owner: str) -> None:
        self.lab = lab
        self.claim = Claim(RUN_ONCE, owner)
        self.dispatch = Dispatch(self.cycle)
        self.coordinators: list[Coordinator] = []

    def cycle(
        self, plan_id: str, ask: Ask, attempted: Attempted | None, cancel: Cancel
    ) -> Resolved:
        holders = Holders.of(self.lab.journal.store)
        with holders.take(RUN_ONCE) as holder:
            coordinator = self.lab.run_once(holders, holder).coordinator
            coordinator.claim, coordinator.cancel = ask.claim, cancel
            self.coordinators.append(coordinator)
            return coordinator.cycle(plan_id, when=ask.when, attempted=attempted)

    def ask(self) -> Any:
        return self.dispatch.request("p", Ask(self.claim, EVERY))


def saved(lab: Lab, *steps: Any, policy: str = "fail_fast") -> Real:
    Plans(lab.journal, "alice").save(
        lab.body(*steps, policy=policy),
        approve=True,
        force=True,
        authority=RUN_ONCE,
        owner="run_once:me",
    )
    return Real(lab, "run_once:me")


def at(lab: Lab, step_id: str, name: str) -> Path:
    return lab.work / "p" / step_id / name


def test_a_duplicate_of_a_failing_attempt_is_not_run_until_the_document_changes(lab: Lab):
    """Case 67: no attempt stream is made for it."""
    real = saved(lab, a_step("a", "wait_and_fail"))
    first = real.ask()
    until(at(lab, "a", "here").exists)
    duplicate = real.ask()
    at(lab, "a", "go").touch()
    assert first.result(30).resolution is Resolution.UNFINISHED
    assert duplicate.result(30).resolution is Resolution.DUPLICATE
    assert lab.names().count("started") == 1
    assert real.ask().result(30).resolution is Resolution.NOT_ELIGIBLE
    Plans(lab.journal, "alice").touch("p")
    assert real.ask().result(30).resolution is Resolution.UNFINISHED
    assert lab.names().count("started") == 2


def test_a_newer_token_raised_during_a_failing_attempt_is_run_by_the_recheck(lab: Lab):
    """Cases 66 and 68: afterwards, never alongside."""
    real = saved(lab, a_step("a", "wait_and_fail"))
    first = real.ask()
    until(at(lab, "a", "here").exists)
    Plans(lab.journal, "alice").request("p")
    recheck = real.ask()
    assert lab.names().count("started") == 1
    at(lab, "a", "go").touch()
    assert first.result(30).run_token == 0
    assert recheck.result(30).run_token == 1
    assert recheck.result().resolution is Resolution.UNFINISHED
    words = [word for word in lab.names() if word in ("started", "closed")]
    assert words == ["started", "closed"] * 2


def test_while_the_result_is_recorded_the_plan_is_still_excluded(lab: Lab):
    """Case 69: the attempt has ended, its recording has not."""
    real = saved(lab, a_step("a"))
    paused, go_on = threading.Event(), threading.Event()

    def pause(names: list[str]) -> bool:
        if "request_finished" in names:
            paused.set()
            assert go_on.wait(30)
        return False

    with Failing(lab.journal, pause, StoreError("busy", "never")):
        first = real.ask()
        assert paused.wait(30)
        assert lab.slot.status.value == "reporting"
        assert real.dispatch.busy("p")
        second = real.ask()
        time.sleep(0.1)
        assert len(real.coordinators) == 1
        go_on.set()
        assert first.result(30).succeeded
    assert second.result(30).resolution is Resolution.NOT_ELIGIBLE
    assert lab.names().count("started") == 1


def test_the_request_of_a_cancelled_caller_stays_open(lab: Lab):
    """Case 59: the running step finishes, the rest is unreached."""
    real = saved(lab, a_step("a", "wait"), a_step("b"))
    caller = real.ask()
    until(at(lab, "a", "here").exists)
    caller.cancel()
    time.sleep(0.05)
    assert real.dispatch.busy("p")
    assert lab.slot.status.value == "held"
    at(lab, "a", "go").touch()
    assert real.dispatch.drain(30)
    report = lab.events()[-1].event.report
    assert report["termination_reason"] == "cancelled"
    assert report["step_outcomes"] == {"a": "succeeded"}
    assert lab.plan.open


def test_a_shutdown_during_the_backoff_records_at_once(lab: Lab):
    """Case 62: the wait is cut short and the next try follows."""
    real = saved(lab, a_step("a"))
    failed = threading.Event()

    def first_only(names: list[str]) -> bool:
        if "request_finished" not in names or failed.is_set():
            return False
        for coordinator in real.coordinators:
            coordinator.settler.delays_s = (600.0, 600.0)
            coordinator.settler.interrupt = coordinator.cancel
        failed.set()
        return True

    with Failing(lab.journal, first_only, StoreError("busy", "locked")):
        waiting = real.ask()
        assert failed.wait(30)
        real.dispatch.refuse()
        assert waiting.result(30).succeeded
    assert lab.plan.last["outcome"] == "succeeded"
