"""The service runs what is due, once, and takes over what a dead process left."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import StatelogError, StoreError
from statelog.domain.execution.plan import PLAN
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.infrastructure.execution.daemon import Daemon
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.execution.resolved import Resolved
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.views import Views
from statelog.projections.execution import EXECUTION_VIEWS
from tests.infrastructure.execution.lab import Failing, Lab, a_step

STEPS = """
    import os, signal, time
    @step
    def wait(ctx: StepContext) -> None:
        ctx.emit("here", pid=os.getpid())
        while not (ctx.workdir / "go").exists():
            time.sleep(0.005)
    @step
    def die(ctx: StepContext) -> None:
        ctx.emit("ran", step=ctx.step_id)
        os.kill(os.getpid(), signal.SIGKILL)
    @step
    def die_twice(ctx: StepContext) -> None:
        ctx.emit("ran", step=ctx.step_id)
        died = ctx.workdir / "died"
        count = int(died.read_text()) if died.exists() else 0
        died.write_text(str(count + 1))
        if count < 2:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def lab(tmp_path: Path, store_path: Path) -> Iterator[Lab]:
    with Journal(store_path) as journal:
        lab = Lab(tmp_path, journal)
        lab.steps(STEPS)
        yield lab


class Service:
    """A daemon in a thread, and what it resolved."""

    def __init__(self, lab: Lab, **given: Any) -> None:
        self.resolved: list[Resolved] = []
        self.stop = threading.Event()
        self.daemon = Daemon(
            lab.journal,
            lab.work,
            [lab.path],
            "svc",
            on_resolution=self.resolved.append,
            **given,
        )
        self.thread = threading.Thread(target=self.daemon.run, args=(self.stop,), daemon=True)

    def words(self, plan_id: str = "p") -> list[str]:
        """Its resolutions of a plan."""
        return [r.resolution.value for r in self.resolved if r.plan_id == plan_id]


@contextmanager
def service(lab: Lab, **given: Any) -> Iterator[Service]:
    running = Service(lab, **given)
    running.thread.start()
    try:
        yield running
    finally:
        running.stop.set()
        running.thread.join(30)
        assert not running.thread.is_alive()


def until(happens: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def approved(lab: Lab, *steps: Any, plan_id: str = "p", **more: Any) -> Plans:
    plans = Plans(lab.journal, "alice", Holders.for_journal(lab.journal))
    body = lab.body(*steps, policy=more.pop("policy", "continue_independent"), plan_id=plan_id)
    plans.save(body, approve=True, force=True, **more)
    return plans


def last(lab: Lab, plan_id: str = "p") -> Any:
    return lab.journal.load(PLAN, plan_id).state.last


def test_what_is_due_at_the_start_is_run_once(lab: Lab) -> None:
    """Case 95, first half."""
    approved(lab, a_step("a"))
    with service(lab) as running:
        until(lambda: last(lab))
    assert lab.ran() == ["a"]
    assert running.words() == ["finalized"]
    with service(lab) as again:
        time.sleep(0.3)
    assert again.words() == []


def test_a_plan_approved_later_is_run(lab: Lab) -> None:
    with service(lab) as running:
        approved(lab, a_step("a"))
        until(lambda: last(lab))
        plans = Plans(lab.journal, "alice")
        plans.request("p")
        until(lambda: lab.plan.executed_run_token == 1)
    assert set(running.words()) <= {"finalized", "not_eligible", "duplicate"}
    assert lab.ran() == ["a"]


def test_a_failed_fast_attempt_is_not_repeated_until_the_document_changes(lab: Lab) -> None:
    """Cases 67, 95, 131: neither by a restart; a touch runs it again with the same token."""
    plans = approved(lab, a_step("a", "bad"), policy="fail_fast")
    with service(lab) as running:
        until(lambda: "unfinished" in running.words())
    attempts = lab.names().count("started")
    with service(lab):
        time.sleep(0.5)
    assert lab.names().count("started") == attempts == 1
    with service(lab):
        plans.touch("p")
        until(lambda: lab.names().count("closed") == 2)
    assert lab.events()[-1].event.report["run_token"] == 0


def test_approving_again_looks_at_an_open_request_and_not_at_a_finished_one(lab: Lab) -> None:
    """Cases 130 and 140."""
    plans = approved(lab, a_step("a", "bad"), policy="fail_fast")
    with service(lab):
        until(lambda: lab.names().count("closed") == 1)
        plans.approve("p")
        until(lambda: lab.names().count("closed") == 2)
        approved(lab, a_step("b"))
        until(lambda: last(lab))
        before = lab.journal.head()
        assert plans.approve("p").recorded == ()
        assert lab.journal.head() == before
    assert lab.ran() == ["b"]


def test_its_own_events_wake_nothing(lab: Lab) -> None:
    """Case 96."""
    approved(lab, a_step("a", "bad"), policy="fail_fast")
    with service(lab) as running:
        until(lambda: "unfinished" in running.words())
        time.sleep(1.5)
    assert running.words() == ["unfinished"]


def test_several_changes_are_judged_once_on_the_latest_state(lab: Lab) -> None:
    """Cases 65 and 94: an event saying approved while the document is draft runs nothing."""
    plans = approved(lab, a_step("a"))
    plans.draft("p")
    approved(lab, a_step("b"), plan_id="gone").delete("gone")
    with service(lab) as running:
        plans.touch("p")
        time.sleep(0.8)
    assert lab.ran() == []
    assert "finalized" not in running.words()


def test_a_stale_event_runs_the_current_version(lab: Lab) -> None:
    """Case 64."""
    approved(lab, a_step("a", params={"v": 1}))
    approved(lab, a_step("a", params={"v": 2}))
    with service(lab):
        until(lambda: last(lab))
    started = next(e.event for e in lab.events() if e.name.endswith("step_started"))
    assert started.params == {"v": 2}
    assert last(lab)["plan_generation"] == lab.plan.plan_generation


def test_a_cancelled_attempt_runs_again_after_a_restart(lab: Lab) -> None:
    """Cases 118 and 132: attempts are signalled first, the running step finishes."""
    approved(lab, a_step("a", "wait"), a_step("b", "ok", "a"))
    with service(lab) as running:
        until(lambda: "emitted a" in lab.names())
        running.stop.set()
        until(lambda: running.daemon._dispatch._refusing)
        (lab.work / "p" / "a" / "go").touch()
    assert running.words() == ["cancelled"]
    assert lab.ran() == []
    with service(lab):
        until(lambda: last(lab))
    assert lab.ran() == ["b"]


def test_a_step_that_kills_its_process_is_taken_over_and_goes_on(lab: Lab) -> None:
    approved(lab, a_step("a", "die_twice"), a_step("b", "ok", "a"))
    with service(lab):
        until(lambda: last(lab))
    assert lab.ran() == ["a", "a", "a", "b"]
    reports = [e.event.report for e in lab.events() if e.name.endswith("closed")]
    assert [r["diagnostic"] and r["diagnostic"]["error_type"] for r in reports] == [
        "Abandoned",
        "Abandoned",
        None,
    ]


def test_a_step_that_always_kills_its_process_is_given_up(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 128: four attempts in all, one ERROR line, then nothing until the document changes."""
    plans = approved(lab, a_step("a", "die"))
    with service(lab):
        until(lambda: lab.names().count("closed") == 4)
        time.sleep(2.5)
        assert lab.names().count("started") == 4
        lines = [r for r in caplog.records if "left until the document changes" in r.getMessage()]
        assert [r.levelname for r in lines] == ["ERROR"]
        plans.touch("p")
        until(lambda: lab.names().count("started") > 4)


def test_plans_run_at_once_but_no_more_than_allowed(lab: Lab) -> None:
    for plan_id in ("p", "q", "r"):
        approved(lab, a_step("a", "wait"), plan_id=plan_id)
    with service(lab, most=2):

        def running() -> list[str]:
            return [
                plan_id
                for plan_id in ("p", "q", "r")
                if lab.journal.load(SLOT, plan_id).state.status is SlotStatus.HELD
            ]

        until(lambda: len(running()) == 2)
        time.sleep(0.3)
        assert len(running()) == 2
        for plan_id in ("p", "q", "r"):
            folder = lab.work / plan_id / "a"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "go").touch()
        until(lambda: all(last(lab, plan_id) for plan_id in ("p", "q", "r")))


def test_two_daemons_share_the_plans_and_run_none_twice(lab: Lab) -> None:
    """Case 120."""
    with service(lab) as one, service(lab) as two:
        for number in range(6):
            approved(lab, a_step("a"), plan_id=f"p{number}")
        until(lambda: all(last(lab, f"p{number}") for number in range(6)))
    starts = [r for r in lab.journal.read() if r.name.endswith("attempt.started")]
    assert len(starts) == 6
    assert len([w for n in range(6) for w in one.words(f"p{n}") + two.words(f"p{n}")]) >= 6


def test_a_pending_result_of_a_dead_run_is_settled_by_a_daemon(lab: Lab) -> None:
    """Case 126: although the daemon may not execute the plan."""
    with Failing(lab.journal, lambda n: "request_finished" in n, StatelogError("no")):
        lab.run(a_step("a"))
    assert lab.slot.status is SlotStatus.REPORTING
    with service(lab):
        until(lambda: lab.plan.last)
    assert lab.plan.execution_authority == "run_once"
    assert lab.ran() == ["a"]


def test_the_attempt_of_a_dead_holder_is_closed_whatever_the_plan_says(lab: Lab) -> None:
    """Case 135: also of a draft."""
    with lab.session() as dead:
        dead.prepare("p", lab.body(a_step("a")), adopt=False)
        dead.coordinator._admit("p")
    Plans(lab.journal, "alice").draft("p")
    with service(lab):
        until(lambda: lab.slot.status is SlotStatus.FREE)
    assert "voided" in lab.names("plan/p")


def test_the_attempt_of_a_killed_child_names_its_running_step(lab: Lab) -> None:
    approved(lab, a_step("a", "wait"))
    with service(lab):
        until(lambda: "emitted a" in lab.names())
        pid = next(e.event.payload["pid"] for e in lab.events() if e.name.endswith("emitted"))
        assert pid != os.getpid()
        os.kill(pid, signal.SIGKILL)
        until(lambda: "closed" in lab.names())
        (lab.work / "p" / "a" / "go").touch()
        until(lambda: last(lab))
    report = next(e.event.report for e in lab.events() if e.name.endswith("closed"))
    assert report["diagnostic"]["details"]["running_step_id"] == "a"


def test_a_stopped_daemon_runs_again(lab: Lab) -> None:
    """Case 119: the same object accepts events and runs plans again."""
    plans = approved(lab, a_step("a"))
    running = Service(lab)
    for token in (0, 1):
        running.stop.clear()
        running.thread = threading.Thread(target=running.daemon.run, args=(running.stop,))
        running.thread.start()
        until(lambda token=token: lab.plan.executed_run_token == token)
        running.stop.set()
        running.thread.join(30)
        assert not running.thread.is_alive()
        plans.request("p")
    assert set(running.words()) <= {"finalized", "duplicate", "not_eligible"}


def test_views_are_caught_up_after_the_executions_drained(lab: Lab) -> None:
    """Case 118: also while it drains, and at last with the close of the stopped attempt."""
    approved(lab, a_step("a", "wait"), a_step("b", "ok", "a"))
    with service(lab) as running:
        until(lambda: "emitted a" in lab.names())
        running.stop.set()
        until(lambda: running.daemon._dispatch._refusing)
        Plans(lab.journal, "alice").touch("p")
        with ViewFile(lab) as file:
            until(lambda: file.lags() == {0})
        assert running.thread.is_alive()
        (lab.work / "p" / "a" / "go").touch()
    with ViewFile(lab) as file:
        assert file.lags() == {0}
    assert lab.events()[-1].event.report["termination_reason"] == "cancelled"


class ViewFile:
    """The file of views as it is, without catching up."""

    def __init__(self, lab: Lab) -> None:
        assert lab.journal.store is not None
        self.journal = Journal(lab.journal.store, read_only=True)
        self.views = Views(self.journal, EXECUTION_VIEWS)

    def lags(self) -> set[int]:
        return {status.lag for status in self.views.status()}

    def __enter__(self) -> ViewFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.views.close()
        self.journal.close()


def test_a_process_that_dies_before_it_has_the_plan_is_followed_by_another(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is missed, and nothing is tried in a tight loop: after 1, 2, 4 ... seconds."""
    broken = tmp_path / "broken"
    broken.mkdir()
    tries = tmp_path / "tries"
    (broken / "sitecustomize.py").write_text(
        "import os, pathlib\n"
        f"tries = pathlib.Path({str(tries)!r})\n"
        "count = len(tries.read_text()) if tries.exists() else 0\n"
        "if count < 2:\n"
        "    tries.write_text('x' * (count + 1))\n"
        "    os._exit(3)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(broken))
    approved(lab, a_step("a"))
    began = time.monotonic()
    with service(lab) as running:
        until(lambda: last(lab))
    assert running.words() == ["admission_failed", "admission_failed", "finalized"]
    assert time.monotonic() - began > 3
    lines = [r for r in caplog.records if "before it had the plan" in r.getMessage()]
    assert [(r.levelname, r.plan) for r in lines] == [("ERROR", "p")] * 2


def test_an_owed_close_of_a_child_lands_when_there_is_room(lab: Lab) -> None:
    """Case 134: the process of the attempt lives on until its close is in the log."""
    lab.steps(
        STEPS
        + """
    @step
    def full(ctx: StepContext) -> None:
        ctx.emit("here", pid=os.getpid())
        import resource
        size = os.stat(os.environ["STORE"] + "-wal").st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        def later():
            while not (ctx.workdir / "room").exists():
                time.sleep(0.01)
            infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.setrlimit(resource.RLIMIT_FSIZE, infinite)
        import threading
        threading.Thread(target=later, daemon=True).start()
    """
    )
    os.environ["STORE"] = str(lab.journal.store)
    approved(lab, a_step("a", "full"), policy="fail_fast")
    try:
        with service(lab) as running:
            until(lambda: "emitted a" in lab.names())
            pid = next(e.event.payload["pid"] for e in lab.events() if e.name.endswith("emitted"))
            time.sleep(1.5)
            os.kill(pid, 0)
            assert lab.slot.status is SlotStatus.HELD
            assert "closed" not in lab.names()
            (lab.work / "p" / "a" / "room").touch()
            until(lambda: "closed" in lab.names())
            until(lambda: running.words() == ["unfinished"])
    finally:
        del os.environ["STORE"]
    report = lab.events()[-1].event.report
    assert report["termination_reason"] == "orchestration_error"
    assert report["publication_failure"] is not None
    assert lab.plan.open


def test_a_defect_of_the_store_ends_the_service_in_order(lab: Lab) -> None:
    """A file that was moved away is not followed for ever: one error, after the plans drained."""
    running = Service(lab)
    raised: list[StoreError] = []

    def run() -> None:
        with pytest.raises(StoreError) as error:
            running.daemon.run(running.stop)
        raised.append(error.value)

    running.thread = threading.Thread(target=run)
    running.thread.start()
    until(lambda: any("daemon" in id for id in Holders.of(lab.journal.store).living()))
    time.sleep(0.2)
    lab.journal.close()
    running.thread.join(30)
    assert not running.thread.is_alive()
    assert [error.kind for error in raised] == ["closed"]
