"""A plan belongs to one living holder; what a dead one left is closed, voided or settled."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.faults import Fenced
from statelog.domain.execution.plan import PlanStatus
from statelog.domain.execution.request import RUN_ONCE
from statelog.domain.execution.slot import SlotStatus
from statelog.domain.execution.spec import PlanSpec
from statelog.infrastructure.execution.engine import Ended
from statelog.infrastructure.execution.fence import EXECUTION_ID, marked_processes
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.execution.resolved import Resolved
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from tests.infrastructure.execution.lab import Lab, a_step

WAITING = """
    import time
    @step
    def wait(ctx: StepContext) -> None:
        (ctx.workdir / "here").touch()
        while not (ctx.workdir / "go").exists():
            time.sleep(0.005)
        ctx.emit("ran", step=ctx.step_id)
"""


@pytest.fixture
def lab(tmp_path: Path, store_path: Path) -> Iterator[Lab]:
    with Journal(store_path) as journal:
        lab = Lab(tmp_path, journal)
        lab.steps(WAITING)
        yield lab


def until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_reservation_of_a_dead_holder_is_voided_and_a_late_start_refused(lab: Lab) -> None:
    """Case 121."""
    with lab.session() as dead:
        body = lab.body(a_step("a"))
        dead.prepare("p", body, adopt=False)
        _, slot = dead.coordinator._admit("p")  # type: ignore[misc]
    assert lab.run(a_step("a")).succeeded
    words = lab.names("plan/p")
    assert "voided" in words
    late = lab.engine()
    with pytest.raises(Exception, match="exists already"):
        late.attempt(PlanSpec.from_json(body), slot)


def test_a_late_start_that_read_before_the_takeover_is_fenced(lab: Lab) -> None:
    """Case 121, the other interleaving."""
    from statelog.infrastructure.execution.engine import _Run

    with lab.session() as dead:
        body = lab.body(a_step("a"))
        dead.prepare("p", body, adopt=False)
        _, slot = dead.coordinator._admit("p")  # type: ignore[misc]
        late = _Run(lab.engine(), PlanSpec.from_json(body), slot, threading.Event())
    assert lab.run(a_step("a")).succeeded
    ended = late.run()
    assert ended.fenced
    assert lab.ran() == ["a"]


def test_a_dead_holders_attempt_is_closed_and_its_late_writes_are_refused(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 122: the late success and the next start. Both processes are threads of this one."""
    monkeypatch.setattr("statelog.infrastructure.execution.engine.marked", lambda _: nullcontext())
    ended: list[Ended] = []
    holders = Holders.for_journal(lab.journal)
    holder = holders.take(RUN_ONCE)
    session = lab.run_once(holders, holder)
    body = lab.body(a_step("a", "wait"), a_step("b", "ok", "a"))
    session.prepare("p", body, adopt=False)
    request, slot = session.coordinator._admit("p")  # type: ignore[misc]
    thread = threading.Thread(target=lambda: ended.append(lab.engine().attempt(request.plan, slot)))
    thread.start()
    until((lab.work / "p" / "a" / "here").exists)
    holder.release()
    (lab.work / "p" / "a" / "here").unlink()
    taken: list[Resolved] = []
    other = threading.Thread(
        target=lambda: taken.append(lab.run(a_step("a", "wait"), a_step("b", "ok", "a")))
    )
    other.start()
    until((lab.work / "p" / "a" / "here").exists)
    (lab.work / "p" / "a" / "go").touch()
    thread.join()
    other.join()
    assert isinstance(ended[0].error, Fenced)
    assert taken[0].succeeded
    first = [r for r in lab.events() if r.stream.endswith(slot.state.execution_id)]
    assert [r.name.rsplit(".")[-1] for r in first] == ["started", "step_started", "closed"]
    report = first[-1].event.report
    assert report["termination_reason"] == "orchestration_error"
    assert report["diagnostic"]["details"]["running_step_id"] == "a"
    assert report["diagnostic"]["details"]["abandoned"]


def test_the_plan_of_a_living_run_is_refused_unless_adopted(lab: Lab) -> None:
    """D13: an adopting session waits for the slot, then runs."""
    holders = Holders.for_journal(lab.journal)
    with holders.take(RUN_ONCE) as holder:
        session = lab.run_once(holders, holder)
        thread = threading.Thread(target=session.run, args=[lab.body(a_step("a", "wait"))])
        thread.start()
        until((lab.work / "p" / "a" / "here").exists)
        refused = lab.run(a_step("a", "wait"))
        assert refused.resolution is Resolution.NOT_AUTHORIZED
        assert "pid" in refused.reason
        with lab.session() as adopting:
            taken: list[Resolved] = []
            other = threading.Thread(
                target=lambda: taken.append(adopting.run(lab.body(a_step("a", "wait")), adopt=True))
            )
            other.start()
            until(lambda: any("waiting" in line for line in lab.told))
            (lab.work / "p" / "a" / "go").touch()
            thread.join()
            other.join()
    assert taken[0].succeeded
    assert lab.ran() == ["a"]


def test_a_daemons_plan_is_refused_unless_adopted(lab: Lab) -> None:
    """D12: what a rule forbids is kept as evidence."""
    body = lab.body(a_step("a"))
    Plans(lab.journal, "bob").save(body, approve=True)
    with lab.session() as session:
        refused = session.run(body)
        assert refused.resolution is Resolution.NOT_AUTHORIZED
        (kept,) = lab.journal.refusals()
        assert (kept.stream, kept.version, kept.rule) == ("plan/p", 2, "not_authorized")
        assert kept.reason == refused.reason
        assert session.run(body, adopt=True).succeeded


def test_a_draft_of_the_same_body_is_not_run(lab: Lab) -> None:
    lab.run(a_step("a"))
    Plans(lab.journal, "bob").draft("p")
    resolved = lab.run(a_step("a"))
    assert resolved.resolution is Resolution.NOT_ELIGIBLE
    assert "plan approve p" in resolved.reason
    assert lab.plan.status is PlanStatus.DRAFT


def test_a_failed_run_runs_its_open_request_again(lab: Lab) -> None:
    assert not lab.run(a_step("a", "bad")).succeeded
    again = lab.run(a_step("a", "bad"))
    assert again.run_token == 0
    assert lab.slot.status is SlotStatus.FREE


def test_the_external_command_of_a_dead_attempt_is_ended_first(lab: Lab) -> None:
    """Case 133."""
    with lab.session() as dead:
        dead.prepare("p", lab.body(a_step("a")), adopt=False)
        _, slot = dead.coordinator._admit("p")  # type: ignore[misc]
    execution_id = slot.state.execution_id
    command = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        env={EXECUTION_ID: execution_id},
    )
    until(lambda: command.pid in marked_processes(execution_id))
    assert lab.run(a_step("a")).succeeded
    assert command.wait(timeout=10) != 0


def test_a_next_execution_id_is_above_the_floor_of_a_clock_set_back(lab: Lab) -> None:
    """Case 98, also of an attempt that never started."""
    with lab.session() as dead:
        dead.prepare("p", lab.body(a_step("a")), adopt=False)
        dead.coordinator._admit("p")
    floor = lab.slot.floor
    with lab.session(clock=lambda: 1_000_000) as session:
        resolved = session.run(lab.body(a_step("a")))
    assert resolved.succeeded
    assert resolved.execution_id is not None
    assert resolved.execution_id > floor


def test_a_failed_reservation_is_admission_failed_and_nothing_runs(lab: Lab) -> None:
    """Case 100, second half."""
    from statelog.domain.errors import StoreError
    from tests.infrastructure.execution.lab import Failing

    with Failing(lab.journal, lambda n: "held" in n, StoreError("full", "full")):
        resolved = lab.run(a_step("a"))
    assert resolved.resolution is Resolution.ADMISSION_FAILED
    assert lab.ran() == []
    assert lab.plan.open


def test_a_second_admission_while_held_is_a_duplicate_and_changes_nothing(lab: Lab) -> None:
    """Case 100, first half."""
    with lab.session() as session:
        session.prepare("p", lab.body(a_step("a")), adopt=False)
        session.coordinator._admit("p")
        before = lab.names("plan/p")
        resolved = session.coordinator.cycle("p")
    assert resolved.resolution is Resolution.DUPLICATE
    assert lab.names("plan/p") == before
