"""Rules of a run, its tasks and its handles (2.5 to 2.8, P1, P12, P19)."""

from __future__ import annotations

from typing import Any

import pytest

from statelog.domain.errors import IllegalTransition
from statelog.domain.runs import activities
from statelog.domain.runs.activities import (
    cancel_task,
    complete_task,
    fail_task,
    handle_completed,
    handle_failed,
    handle_running,
    handle_stopped,
    interrupt,
    prepare_task,
    queue_task,
    record_transfer,
    start_handle,
    with_stopped_handles,
)
from statelog.domain.runs.events import (
    Completed,
    Failed,
    HandleFailed,
    HandleRunning,
    HandleStarting,
    HandleStopped,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskInterruptRequested,
    TaskKept,
    TaskPreparing,
    TaskQueued,
    TaskStarted,
)
from statelog.domain.runs.handle import Handle, HandleStatus
from statelog.domain.runs.run import (
    RUN,
    Run,
    RunStatus,
    complete,
    fail,
    failure_of,
    simulated,
    start,
)
from statelog.domain.runs.task import Task, TaskStatus
from statelog.infrastructure.testing import scenario
from statelog.infrastructure.testing.scenario import Scenario
from tests.domain.runs.stories import BEGUN, completed, moved, running, started, told


def after(*steps: Any) -> Scenario[Run]:
    """A run to which all this happened."""
    return scenario(RUN, *told(*steps))


A, B, C = ({"activity_id": each} for each in "abc")


def test_a_run_begins_once():
    """planning case 70: nobody ever reads it created; a second delivery begins nothing."""
    begun = scenario(RUN).when(start, started=BEGUN).then(BEGUN)
    assert begun.state.status is RunStatus.RUNNING
    after().when(start, started=BEGUN).then_nothing()


def test_every_activity_has_a_task_from_the_start():
    run = after().state
    assert {each: run.tasks[each].status for each in "abc"} == dict.fromkeys("abc", TaskStatus.NEW)
    assert run.ready == ("a",)


def test_a_task_is_queued_once_its_predecessors_completed():
    after().when(queue_task, **A, at=1.0).then(TaskQueued("a", 1.0, activities.AWAITING))
    after().when(queue_task, **B, at=1.0).then_refused("predecessors")
    done = after(*completed("a"))
    assert done.state.ready == ("b", "c")
    done.when(queue_task, **B, at=1.0).then(TaskQueued("b", 1.0, activities.AWAITING))


def test_what_was_said_is_not_said_again():
    after((queue_task, {**A, "at": 1.0})).when(queue_task, **A, at=2.0).then_nothing()
    seen = after(*running("a"))
    seen.when(handle_running, **A, external_id="77", started_at=1.0).then_nothing()
    once = after(*completed("a"), (record_transfer, {"transfer": moved("a", "b")}))
    once.when(record_transfer, transfer=moved("a", "b")).then_nothing()


def test_a_handle_is_recorded_before_anything_is_started():
    """P19: and only of a task that is being prepared."""
    given = {**A, "runtime_id": "local", "at": 3.0, "command": {"argv": ["true"]}}
    after().when(start_handle, **given).then_refused("task_status")
    ready = after((queue_task, {**A, "at": 1.0}), (prepare_task, {**A, "at": 2.0}))
    ready.when(start_handle, **given).then(
        HandleStarting("a", "m", "local", 3.0, {"argv": ["true"]})
    )


def test_an_activity_whose_handle_exists_is_never_started_again():
    """planning case 75, what the run says of it: P19."""
    given = {**A, "runtime_id": "local", "at": 3.0, "command": {}}
    after(*started("a")).when(start_handle, **given).then_refused("handle_exists")
    after(*running("a")).when(start_handle, **given).then_refused("task_status")


def test_a_task_runs_with_its_handle():
    """It waited from the queue, or from when the runtime had it, whichever is known."""
    given = {**A, "external_id": "77", "started_at": 103.0}
    after(*started("a")).when(handle_running, **given, submitted_at=101.0).then(
        HandleRunning("a", "77", 103.0, 101.0), TaskStarted("a", 103.0, "m", "local", 2.0)
    )
    after(*started("a")).when(handle_running, **given).then(
        HandleRunning("a", "77", 103.0), TaskStarted("a", 103.0, "m", "local", 3.0)
    )


def test_a_completed_task_has_its_stage_metrics():
    """planning case 63: queue 3, overhead 2, runtime 10, cost 20."""
    seen = {"started_at": 103.0, "submitted_at": 100.0, "container_started_at": 105.0}
    run = after(
        *started("a"),
        (handle_running, {**A, "external_id": "77", **seen}),
        (handle_completed, {**A, "at": 115.0, "exit_code": 0}),
    )
    run.when(complete_task, **A, at=115.0, outputs=[{"path": "x"}]).then(
        TaskCompleted(
            "a",
            115.0,
            runtime_seconds=10.0,
            queue_seconds=3.0,
            overhead_seconds=2.0,
            cost=20.0,
            outputs=({"path": "x"},),
        )
    )


def test_transfers_count_for_the_activity_that_waits():
    run = after(
        *completed("a"),
        (record_transfer, {"transfer": moved("a", "b", 2.0, 30)}),
        *completed("b", 120.0),
    ).state
    assert (run.tasks["b"].transfer_seconds, run.tasks["b"].transfer_bytes) == (2.0, 30)
    assert (run.tasks["a"].transfer_seconds, run.tasks["c"].transfer_bytes) == (0.0, 0)


def test_a_missing_output_fails_the_task():
    """planning case 61: exit 0, and a declared output is not there."""
    run = after(*running("a"), (handle_completed, {**A, "at": 110.0, "exit_code": 0}))
    run.when(complete_task, **A, at=110.0, missing=["x", "y"]).then(
        TaskFailed("a", 110.0, "expected outputs are missing: x, y")
    )


def test_nothing_is_completed_that_is_not_known_to_have_ended_well():
    after(*running("a")).when(complete_task, **A, at=1.0).then_refused("live_handles")
    bare = after((queue_task, {**A, "at": 1.0}), (prepare_task, {**A, "at": 1.0}))
    bare.when(complete_task, **A, at=1.0).then_refused("no_result")
    bare.when(fail_task, **A, at=1.0, reason="no room").then(TaskFailed("a", 1.0, "no room"))
    after(*running("a")).when(fail_task, **A, at=1.0, reason="x").then_refused("live_handles")
    after(*running("a")).when(cancel_task, **A, at=1.0, reason="x").then_refused("live_handles")


def test_a_failed_handle_fails_its_task():
    """planning case 60, what the run says of it: also when it could not be stopped."""
    given = {**A, "at": 5.0, "failure": "exit status 3", "exit_code": 3}
    after(*running("a")).when(handle_failed, **given).then(
        HandleFailed("a", 5.0, "exit status 3", 3), TaskFailed("a", 5.0, "exit status 3")
    )


def test_a_stopped_handle_cancels_its_task():
    """planning case 59, what the run says of it."""
    given = {**A, "at": 5.0, "reason": "b failed", "exit_code": -15}
    after(*running("a")).when(handle_stopped, **given).then(
        HandleStopped("a", 5.0, "b failed", -15), TaskCancelled("a", 5.0, "b failed")
    )


def test_what_ended_by_itself_is_not_stopped():
    """P12, U12: a stop of a completed handle is refused."""
    run = after(*running("a"), (handle_completed, {**A, "at": 110.0}))
    run.when(handle_stopped, **A, at=111.0, reason="x").then_refused("handle_ended")
    after().when(handle_stopped, **A, at=1.0, reason="x").then_refused("no_handle")


def test_a_run_fails_only_when_nothing_runs_any_more():
    """P12: every started handle is stopped and recorded first."""
    after(*started("a")).when(fail, reason="x", at=9.0).then_refused("live_handles")
    after(*running("a")).when(fail, reason="x", at=9.0).then_refused("live_handles")
    ended = after(*running("a"), (handle_completed, {**A, "at": 110.0}))
    ended.when(fail, reason="x", at=111.0).then_refused("results_first")


def test_a_failing_run_cancels_what_never_started_in_order():
    """P12, U9: nothing is queued for ever, and each says why."""
    run = after(
        *completed("a"),
        *running("b", 120.0),
        (queue_task, {**C, "at": 121.0}),
        (handle_failed, {**B, "at": 130.0, "failure": "exit status 1"}),
    )
    run.when(fail, reason="activity b failed: exit status 1", at=131.0).then(
        TaskCancelled("c", 131.0, "activity b failed: exit status 1"),
        Failed(131.0, "activity b failed: exit status 1"),
    )
    after().when(fail, reason="why", at=1.0).then(
        TaskCancelled("a", 1.0, "why"),
        TaskCancelled("b", 1.0, "why"),
        TaskCancelled("c", 1.0, "why"),
        Failed(1.0, "why"),
    )


def test_a_run_completes_with_its_totals():
    """P16: a real makespan counts from the first start."""
    run = after(
        *completed("a", 105.0),
        (record_transfer, {"transfer": moved("a", "b")}),
        *completed("b", 120.0),
        *completed("c", 120.0, 20.0),
    )
    run.when(complete, at=140.0).then(
        Completed(
            140.0,
            makespan_seconds=35.0,
            cost=80.5,
            feasible=True,
            compute_seconds=40.0,
            transfer_seconds=1.0,
            queue_seconds=0.0,
            interference_seconds=0.0,
            overhead_seconds=0.0,
            transferred_bytes=10,
        )
    )


def test_a_run_with_an_open_activity_does_not_complete():
    after(*completed("a")).when(complete, at=1.0).then_refused("open_tasks")
    after(*running("a")).when(complete, at=1.0).then_refused("live_handles")


LATE = [
    (queue_task, {**A, "at": 1.0}),
    (prepare_task, {**A, "at": 1.0}),
    (start_handle, {**A, "at": 1.0, "runtime_id": "local", "command": {}}),
    (handle_running, {**A, "external_id": "7", "started_at": 1.0}),
    (handle_completed, {**A, "at": 1.0}),
    (handle_failed, {**A, "at": 1.0, "failure": "x"}),
    (handle_stopped, {**A, "at": 1.0, "reason": "x"}),
    (complete_task, {**A, "at": 1.0}),
    (fail_task, {**A, "at": 1.0, "reason": "x"}),
    (cancel_task, {**A, "at": 1.0, "reason": "x"}),
    (record_transfer, {"transfer": moved("a", "b")}),
    (complete, {"at": 1.0}),
    (fail, {"reason": "x", "at": 1.0}),
    (start, {"started": BEGUN}),
    (simulated, {"events": []}),
]


@pytest.mark.parametrize(("decision", "given"), LATE, ids=[each[0].__name__ for each in LATE])
def test_what_is_late_is_refused(decision: Any, given: dict[str, Any]):
    """planning case 64: after the end no decision changes anything (P1)."""
    after((fail, {"reason": "x", "at": 1.0})).when(decision, **given).then_refused("run_ended")
    if decision is not start:
        scenario(RUN).when(decision, **given).then_refused("run_started")


def test_no_event_follows_the_end_of_a_run():
    """planning case 64: not even one that no decision gave."""
    run = after((fail, {"reason": "x", "at": 1.0})).state
    for event in (TaskQueued("a", 1.0), Failed(2.0, "y"), BEGUN, moved("a", "b")):
        with pytest.raises(IllegalTransition):
            RUN.apply(run, event)


def test_an_unplanned_activity_is_refused():
    after().when(queue_task, activity_id="z", at=1.0).then_refused("planned_activity")
    after().when(record_transfer, transfer=moved("a", "z")).then_refused("planned_activity")
    after().when(interrupt, activity_id="z", at=1.0).then_refused("planned_activity")


def test_only_a_simulation_is_recorded_as_computed():
    after().when(simulated, events=[]).then_refused("simulation")


def test_interrupting_a_running_activity_asks_for_its_stop():
    """planning case 67: then the supervisor stops it, and the task is cancelled."""
    run = after(*running("a"))
    run.when(interrupt, **A, at=5.0).then(TaskInterruptRequested("a", 5.0))
    asked = after(*running("a"), (interrupt, {**A, "at": 5.0}))
    assert activities.interrupted(asked.state) == ("a",)
    asked.when(interrupt, **A, at=6.0).then_nothing()
    asked.when(handle_stopped, **A, at=7.0, reason=activities.INTERRUPTED).then(
        HandleStopped("a", 7.0, activities.INTERRUPTED),
        TaskCancelled("a", 7.0, activities.INTERRUPTED),
    )


def test_interrupting_what_ended():
    """planning case 67: a completed one is an error, a cancelled one success."""
    after(*completed("a")).when(interrupt, **A, at=5.0).then_refused("task_ended")
    stopped = after(*running("a"), (handle_stopped, {**A, "at": 5.0, "reason": "x"}))
    stopped.when(interrupt, **A, at=6.0).then_nothing()
    over = after(
        *running("a"),
        (handle_stopped, {**A, "at": 5.0, "reason": "x"}),
        (fail, {"reason": "x", "at": 6.0}),
    )
    over.when(interrupt, **B, at=7.0).then_nothing()
    ended = after(*running("a"), (handle_completed, {**A, "at": 5.0}))
    ended.when(interrupt, **A, at=6.0).then_refused("handle_ended")


def test_interrupting_what_has_no_handle_yet():
    """planning case 67: wait; there is nothing to stop."""
    after().when(interrupt, **A, at=5.0).then_refused("no_handle")
    after((queue_task, {**A, "at": 1.0})).when(interrupt, **A, at=5.0).then_refused("no_handle")


def test_a_stopped_handle_of_an_open_task_is_reconciled():
    """2.8: as an older log may say it."""
    events = told(*running("a"))
    run = scenario(RUN, *events, HandleStopped("a", 5.0, "the node went away"))
    run.when(interrupt, **A, at=6.0).then(TaskCancelled("a", 6.0, "the node went away"))
    run.when(fail, reason="x", at=6.0).then(
        *(TaskCancelled(each, 6.0, "x") for each in "abc"), Failed(6.0, "x")
    )


def test_a_task_under_a_stopped_handle_reads_failed():
    """planning case 73: with the handle's reason and time; others read as they are."""
    task, handle = Task(TaskStatus.RUNNING), Handle(HandleStatus.STOPPED, failure="gone")
    read = with_stopped_handles(task, handle)
    assert (read.status, read.reason) == (TaskStatus.FAILED, "gone")
    assert with_stopped_handles(task, Handle(HandleStatus.RUNNING)) is task
    done = Task(TaskStatus.COMPLETED)
    assert with_stopped_handles(done, handle) is done


def test_what_a_run_keeps_counts_as_completed():
    """planning case 76, what the run says of it: kept with its allocation, the rest may run."""
    kept = TaskKept("a", "r0", "elsewhere", "other", 5.0, 9.0, ({"path": "x"},))
    run = scenario(RUN).when(start, started=BEGUN, kept=[kept]).then(BEGUN, kept).state
    task = run.tasks["a"]
    assert (task.status, task.resource_id, task.kept_from) == (
        TaskStatus.COMPLETED,
        "elsewhere",
        "r0",
    )
    assert run.ready == ("b", "c")


def test_the_reason_names_what_failed_first():
    """Those that were stopped because of it come after it."""
    run = after(
        *completed("a"),
        *running("b", 120.0),
        *running("c", 120.0),
        (handle_failed, {**C, "at": 130.0, "failure": "exit status 1"}),
        (handle_stopped, {**B, "at": 131.0, "reason": "c failed"}),
    ).state
    assert failure_of(run) == "activity c failed: exit status 1"
    assert failure_of(after().state) is None


def test_preparing_says_why():
    run = after((queue_task, {**A, "at": 1.0}))
    run.when(prepare_task, **A, at=2.0).then(TaskPreparing("a", 2.0, activities.PREPARING))
    after().when(prepare_task, **A, at=2.0).then_refused("task_status")
