"""A session runs its plans one at a time, in the order they became eligible, and waits for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import StoreError
from statelog.domain.execution.endings import Resolution, combined_exit_code
from statelog.domain.execution.plan import PLAN, PlanStatus
from statelog.domain.execution.request import RUN_ONCE
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.execution.session import Finished, Session, Wish
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from tests.infrastructure.execution.lab import Failing, Lab, a_step

STEPS = """
    import time
    @step
    def wait(ctx: StepContext) -> None:
        (ctx.workdir / "here").touch()
        while not (ctx.workdir / "go").exists():
            time.sleep(0.005)
"""


@pytest.fixture
def lab(tmp_path: Path, store_path: Path) -> Iterator[Lab]:
    with Journal(store_path) as journal:
        lab = Lab(tmp_path, journal)
        lab.steps(STEPS)
        yield lab


def until(happens: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def wish(lab: Lab, plan_id: str, *steps: Any, **more: Any) -> Wish:
    return Wish(lab.body(*(steps or (a_step("a"),)), plan_id=plan_id, **more))


class Going:
    """A session in a thread, as another process would run it."""

    def __init__(self, lab: Lab, *wishes: Wish, **given: Any) -> None:
        self.lab = lab
        self.ended: list[Finished] = []
        self.finished: list[Finished] = []
        self.holder = Holders.of(lab.journal.store).take(RUN_ONCE)
        self.running = lab.run_once(Holders.of(lab.journal.store), self.holder)
        session = Session(self.running, ended=self.ended.append, **given)
        self.thread = threading.Thread(target=lambda: self.finished.extend(session.run(wishes)))

    def join(self) -> list[Finished]:
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.finished

    def words(self) -> list[tuple[str, str]]:
        return [(e.resolved.plan_id, e.resolved.resolution.value) for e in self.ended]


@contextmanager
def going(lab: Lab, *wishes: Wish, **given: Any) -> Iterator[Going]:
    session = Going(lab, *wishes, **given)
    session.thread.start()
    try:
        yield session
    finally:
        session.running.cancel.set()
        for plan_id in (wish.plan_id for wish in wishes):
            (lab.work / plan_id / "a" / "go").parent.mkdir(parents=True, exist_ok=True)
            (lab.work / plan_id / "a" / "go").touch()
        session.join()
        session.holder.release()


def run(lab: Lab, *wishes: Wish, **given: Any) -> list[Finished]:
    with going(lab, *wishes, **given) as session:
        return session.join()


def codes(finished: list[Finished], *, interrupted: bool = False) -> list[int]:
    return [each.code(interrupted=interrupted) for each in finished]


def starts(lab: Lab) -> list[str]:
    return [r.event.plan_id for r in lab.journal.read() if r.name.endswith("attempt.started")]


def status(lab: Lab, plan_id: str) -> PlanStatus:
    return lab.journal.load(PLAN, plan_id).state.status


def test_several_plans_run_one_at_a_time_in_the_order_given(lab: Lab):
    finished = run(lab, wish(lab, "p"), wish(lab, "q", a_step("a", "bad")), wish(lab, "r"))
    assert starts(lab) == ["p", "q", "r"]
    assert codes(finished) == [0, 1, 0]
    assert combined_exit_code(codes(finished)) == 1
    events = [
        r.name.rsplit(".", 1)[1]
        for r in lab.journal.read()
        if r.name.endswith(("attempt.started", "attempt.closed"))
    ]
    assert events == ["started", "closed"] * 3


def test_drafts_run_in_the_order_of_their_approval(lab: Lab):
    """They are saved as drafts; the plan approved first runs first, also during another's run."""
    wishes = [wish(lab, "p"), wish(lab, "q", a_step("a", "wait")), wish(lab, "r")]
    with going(lab, *wishes, draft=True) as session:
        until(lambda: status(lab, "r") is PlanStatus.DRAFT)
        assert status(lab, "p") is PlanStatus.DRAFT
        plans = Plans(lab.journal, "alice")
        plans.approve("q")
        until((lab.work / "q" / "a" / "here").exists)
        plans.touch("p")
        plans.approve("r")
        plans.approve("p")
        (lab.work / "q" / "a" / "go").touch()
        assert codes(session.join()) == [0, 0, 0]
    assert starts(lab) == ["q", "r", "p"]
    assert [plan_id for plan_id, _ in session.words()] == ["q", "r", "p"]


def test_a_draft_that_nobody_approves_in_time_is_exit_one(lab: Lab):
    """Case 116, the second half; the request is left as it is."""
    finished = run(lab, wish(lab, "p"), draft=True, timeout_s=0.05)
    assert codes(finished) == [1]
    assert finished[0].resolved.resolution is Resolution.NOT_ELIGIBLE
    assert "gave up waiting after 0.05 s" in finished[0].resolved.reason
    assert status(lab, "p") is PlanStatus.DRAFT
    assert starts(lab) == []


def test_the_timeout_ends_neither_what_runs_nor_what_is_queued(lab: Lab):
    """Case 116: a plan approved in time waits for its turn; one approved late is not taken."""
    wishes = [wish(lab, "p", a_step("a", "wait")), wish(lab, "q"), wish(lab, "r")]
    with going(lab, *wishes, draft=True, timeout_s=1.0) as session:
        plans = Plans(lab.journal, "alice")
        until(lambda: status(lab, "r") is PlanStatus.DRAFT)
        plans.approve("p")
        plans.approve("q")
        until((lab.work / "p" / "a" / "here").exists)
        time.sleep(1.1)
        plans.approve("r")
        (lab.work / "p" / "a" / "go").touch()
        assert codes(session.join()) == [0, 0, 1]
    assert starts(lab) == ["p", "q"]


def test_a_plan_that_somebody_else_adopts_meanwhile_is_no_error(lab: Lab):
    """2.8: while it waits to be approved, and while it is queued; refused at once it is one."""
    with going(lab, wish(lab, "p"), draft=True) as session:
        until(lambda: status(lab, "p") is PlanStatus.DRAFT)
        Plans(lab.journal, "alice").adopt("p")
        (finished,) = session.join()
    assert finished.resolved.resolution is Resolution.NOT_AUTHORIZED
    assert (finished.taken_over, finished.code()) == (True, 0)
    with going(lab, wish(lab, "q", a_step("a", "wait")), wish(lab, "r")) as session:
        until((lab.work / "q" / "a" / "here").exists)
        Plans(lab.journal, "alice").adopt("r")
        (lab.work / "q" / "a" / "go").touch()
        both = session.join()
    assert codes(both) == [0, 0], both
    assert starts(lab) == ["q"]
    assert codes(run(lab, wish(lab, "p"))) == [1]


def test_a_plan_deleted_while_it_waits_is_an_error(lab: Lab):
    with going(lab, wish(lab, "p"), draft=True) as session:
        until(lambda: status(lab, "p") is PlanStatus.DRAFT)
        Plans(lab.journal, "alice").delete("p")
        (finished,) = session.join()
    assert finished.resolved.resolution is Resolution.NOT_FOUND
    assert finished.code() == 1


def test_a_plan_returned_to_draft_before_its_turn_is_waited_for(lab: Lab):
    """`not_eligible` keeps waiting."""
    with going(lab, wish(lab, "p", a_step("a", "wait")), wish(lab, "q")) as session:
        until((lab.work / "p" / "a" / "here").exists)
        plans = Plans(lab.journal, "alice")
        plans.draft("q")
        (lab.work / "p" / "a" / "go").touch()
        until(lambda: any("'q' waits" in line for line in lab.told))
        assert starts(lab) == ["p"]
        plans.approve("q")
        assert codes(session.join()) == [0, 0]


def test_ctrl_c_lets_the_step_finish_and_abandons_the_queue(lab: Lab):
    """9: their requests stay open, and the next session runs them."""
    wishes = [
        wish(lab, "p", a_step("a", "wait"), a_step("b", "ok", "a")),
        wish(lab, "q"),
    ]
    with going(lab, *wishes) as session:
        until((lab.work / "p" / "a" / "here").exists)
        session.running.cancel.set()
        (lab.work / "p" / "a" / "go").touch()
        finished = session.join()
    assert [each.resolved.resolution for each in finished] == [Resolution.CANCELLED] * 2
    assert codes(finished, interrupted=True) == [130, 130]
    assert codes(finished) == [1, 1]
    assert starts(lab) == ["p"]
    assert all(lab.journal.load(PLAN, plan_id).state.open for plan_id in ("p", "q"))
    assert codes(run(lab, *wishes)) == [0, 0]


def test_ctrl_c_ends_a_wait_and_completed_plans_count_as_interrupted(lab: Lab):
    """130, even if everything else had completed."""
    with going(lab, wish(lab, "p"), wish(lab, "q"), draft=True) as session:
        until(lambda: status(lab, "q") is PlanStatus.DRAFT)
        Plans(lab.journal, "alice").approve("p")
        until(lambda: session.ended)
        session.running.cancel.set()
        finished = session.join()
    assert [each.resolved.resolution.value for each in finished] == ["finalized", "cancelled"]
    assert combined_exit_code(codes(finished, interrupted=True)) == 130


def test_an_adopting_session_waits_for_one_plan_and_runs_the_others(lab: Lab):
    """D13: the waiting plan runs once its holder has ended."""
    with lab.session() as first:
        first.prepare("p", lab.body(a_step("a")), adopt=False)
        admitted: Any = first.coordinator._admit("p")
        with going(lab, wish(lab, "p"), wish(lab, "q"), adopt=True) as second:
            until(lambda: second.ended)
            assert second.words() == [("q", "finalized")]
            assert first.coordinator._execute(*admitted).succeeded
            assert codes(second.join()) == [0, 0]
    assert starts(lab) == ["q", "p", "p"]


def test_an_adopting_session_takes_the_plan_of_a_holder_that_dies_without_a_word(lab: Lab):
    """No event says so: it is looked at every second."""
    with lab.session() as dead:
        dead.prepare("p", lab.body(a_step("a")), adopt=False)
        dead.coordinator._admit("p")
        with going(lab, wish(lab, "p"), adopt=True) as session:
            until(lambda: any("waiting for execution" in line for line in lab.told))
            dead.coordinator.holder.release()
            assert codes(session.join()) == [0]
    assert "voided" in lab.names("plan/p")


def test_a_pending_result_is_one_error_and_the_others_still_run(lab: Lab):
    """Case 139: of several plans the first is pending, the second is recorded, exit 1."""
    failed: list[int] = []

    def first(names: list[str]) -> bool:
        if "request_finished" in names and not failed:
            failed.append(1)
            return True
        return False

    with Failing(lab.journal, first, StoreError("full", "the disk is full")):
        finished = run(lab, wish(lab, "p"), wish(lab, "q"))
    words = [each.resolved.resolution.value for each in finished]
    assert words == ["finalization_pending", "finalized"]
    assert codes(finished) == [1, 0]


def test_what_is_pending_is_settled_first_and_runs_nothing(lab: Lab):
    """The recovery pass."""
    with Failing(lab.journal, lambda n: "request_finished" in n, StoreError("full", "full")):
        run(lab, wish(lab, "p"))
    finished = run(lab, wish(lab, "p"), wish(lab, "q"))
    assert codes(finished) == [0, 0]
    assert starts(lab) == ["p", "q"]


def test_each_plan_finds_the_modules_of_its_own_folder(lab: Lab, tmp_path: Path):
    """Modules of one name in two folders do not mix."""
    wishes = []
    for plan_id in ("p", "q"):
        folder = tmp_path / plan_id
        folder.mkdir()
        (folder / "mine.py").write_text(
            "from statelog.domain.execution import step\n"
            "@step\n"
            f"def where(ctx):\n    ctx.emit('{plan_id}')\n"
        )
        body = lab.body(a_step("a", "mine:where"), plan_id=plan_id)
        wishes.append(Wish(body, [folder]))
    assert codes(run(lab, *wishes)) == [0, 0]
    emitted = [r.event.type for r in lab.journal.read() if r.name.endswith("step_emitted")]
    assert emitted == ["p", "q"]
