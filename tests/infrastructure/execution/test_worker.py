"""A service's workers: plans of the daemon's authority, executed inside its own process."""

from __future__ import annotations

import threading
from pathlib import Path

from statelog.domain.execution.endings import Resolution
from statelog.infrastructure.execution import Plans, Worker
from tests.infrastructure.execution.lab import Lab, a_step

LOOKING = """
    import os, time
    @step
    def look(ctx: StepContext) -> StepResult:
        seen = set()
        for _ in range(20):
            seen.add(os.environ["STATELOG_EXECUTION_ID"])
            time.sleep(0.005)
        return StepResult(metrics={"seen": sorted(seen), "mine": ctx.execution_id})
"""


def worker(lab: Lab) -> Worker:
    return Worker(lab.journal, work_root=lab.work, path=[lab.path], actor="svc")


def test_a_worker_runs_what_the_daemon_may_run(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    Plans(lab.journal, "alice").save(lab.body(a_step("a")), approve=True)
    with worker(lab) as running:
        assert running.run("p").succeeded
        assert running.run("p").resolution is Resolution.NOT_ELIGIBLE
        assert running.run("nowhere").resolution is Resolution.NOT_FOUND
        assert running.run("").resolution is Resolution.ADMISSION_FAILED
        assert running.run("\udcff").resolution is Resolution.ADMISSION_FAILED


def test_the_commands_of_attempts_in_two_threads_are_not_mixed_up(tmp_path: Path) -> None:
    """Each step sees its own attempt's mark from beginning to end (D8)."""
    lab = Lab(tmp_path)
    lab.steps(LOOKING)
    for plan_id in ("p", "q"):
        body = lab.body(a_step("a", "look"), plan_id=plan_id)
        Plans(lab.journal, "alice").save(body, approve=True)
    with worker(lab) as one, worker(lab) as two:
        threads = [
            threading.Thread(target=running.run, args=[plan_id])
            for running, plan_id in ((one, "p"), (two, "q"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    done = [e.event for e in lab.journal.read() if e.name.endswith("step_succeeded")]
    assert len(done) == 2
    assert all(event.metrics["seen"] == [event.metrics["mine"]] for event in done)


def test_two_workers_on_one_journal_in_memory_know_each_other(tmp_path: Path) -> None:
    """A living holder's plan is a duplicate, not something to take over."""
    lab = Lab(tmp_path)
    Plans(lab.journal, "alice").save(lab.body(a_step("a")), approve=True)
    with worker(lab) as one, worker(lab) as two:
        one._coordinator._admit("p")
        assert two.run("p").resolution is Resolution.DUPLICATE
