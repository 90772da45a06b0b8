"""The supervisor of real runs, with real commands (4.3, 2.6 to 2.8, P12, P13, P19)."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from statelog.domain.errors import Invalid, Refused
from statelog.domain.runs import activities
from statelog.domain.runs.events import TaskKept
from statelog.domain.runs.handle import HandleStatus
from statelog.domain.runs.run import RUN, Run, RunStatus
from statelog.domain.runs.task import TaskStatus
from statelog.domain.workflows.resources import Link, Topology
from statelog.domain.workflows.workflow import Command, Policy
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.handles.port import (
    Observation,
    Ref,
    Runtime,
    RuntimeFailure,
    Seen,
    Spec,
)
from statelog.infrastructure.runs.operations import Prepared, Unprepared
from statelog.infrastructure.runs.runs import Runs
from statelog.infrastructure.runs.supervisor import Supervisor
from tests.infrastructure.runs.lab import FOREVER, Lab, activity, machine
from tests.infrastructure.runs.place import soon

DONE, FAILED, CANCELLED = TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED


@pytest.fixture
def lab(store_path: Path, tmp_path: Path) -> Iterator[Lab]:
    """A lab whose commands are all gone at the end."""
    here = Lab(store_path, tmp_path / "work")
    yield here
    here.close()
    assert here.alive() == []


class Wrapped:
    """The lab's runtime with something in the way of some activity's calls."""

    def __init__(self, lab: Lab, **ways) -> None:
        self._real: Runtime = lab.runtime
        self._ways = ways
        self.calls: list[tuple[str, str]] = []
        lab.runtime = self
        self.close = self._real.close

    def start(self, spec: Spec):
        return self._call("start", spec.ref, lambda: self._real.start(spec))

    def inspect(self, ref: Ref):
        return self._call("inspect", ref, lambda: self._real.inspect(ref))

    def stop(self, ref: Ref):
        return self._call("stop", ref, lambda: self._real.stop(ref))

    def watch(self, ref: Ref) -> int | None:
        return self._real.watch(ref)

    def of(self, name: str) -> list[str]:
        return [activity_id for called, activity_id in self.calls if called == name]

    def _call(self, name: str, ref: Ref, go):
        self.calls.append((name, ref.activity_id))
        way = self._ways.get(name)
        return way(ref, go) if way else go()


def statuses(run: Run) -> dict[str, TaskStatus]:
    return {activity_id: run.tasks[activity_id].status for activity_id in run.placed}


def in_background(lab: Lab, asked, stop: threading.Event | None = None):
    """Supervise in a thread; the thread and where its result will be."""
    result: list[Run] = []
    thread = threading.Thread(target=lambda: result.append(lab.supervise(asked, stop)))
    thread.start()
    return thread, result


def is_open_here(path: Path) -> bool:
    """Whether this process has the file open."""
    links = Path("/proc/self/fd").iterdir()
    return any(os.path.realpath(link) == os.path.realpath(path) for link in links)


def another(lab: Lab, decision, **given):
    """Another process's writer, as far as the store can tell."""
    with Journal(lab.journal.store) as journal:
        return journal.execute(RUN, lab.run_id, decision, actor="alice", **given)


def test_a_diamond_of_commands(lab: Lab):
    """Each activity once, after all it waits for, with what they made in its workspace."""
    run = lab.run(
        [
            activity("a", "echo 1 > a.txt; mkdir deep; ln -s ../a.txt deep/link"),
            activity("b", "cat a.txt > b.txt"),
            activity("c", "cat deep/link a.txt > c.txt"),
            activity("d", "cat b.txt c.txt > d.txt"),
        ],
        data=[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
    )
    assert run.status is RunStatus.COMPLETED
    assert lab.file("d", "d.txt").read_text() == "1\n1\n1\n"
    assert os.readlink(lab.file("d", "deep/link")) == "../a.txt"
    assert {each.status for each in run.handles.values()} == {HandleStatus.COMPLETED}
    assert run.transfers[f"{lab.run_id}:d:c"].bytes in (4, 6)
    names = lab.names()
    assert names[0] == "runs.run.started"
    assert names[-1] == "runs.run.completed"
    assert names.count("runs.handle.starting") == 4


def test_the_files_of_a_run_are_nobody_elses(lab: Lab):
    """Others may not enter its folder, nor read what commands said or were given."""
    lab.run([activity("a", "echo said")])
    assert lab.file("a", "x").parent.parent.parent.stat().st_mode & 0o077 == 0
    kept = list(lab.control("a", "x").parent.iterdir())
    assert {path.name for path in kept} >= {"order.json", "stdout.log", "ended.json"}
    assert [path.name for path in kept if path.stat().st_mode & 0o077] == []


def test_control_orders_and_moves_nothing(lab: Lab):
    """A control dependency waits; files come with data dependencies."""
    run = lab.run(
        [activity("a", "sleep 0.2; touch made"), activity("b", "test ! -e made")],
        control=[("a", "b")],
    )
    assert run.status is RunStatus.COMPLETED
    assert (run.tasks["b"].started_at or 0.0) >= (run.tasks["a"].finished_at or 1.0)
    assert len(run.transfers) == 0


def test_a_data_dependency_alone_orders_and_its_transfer_is_counted(lab: Lab):
    """Planning case 62, run real."""
    run = lab.run(
        [activity("a", "sleep 0.2; echo data > f"), activity("b", "cat f")], data=[("a", "b")]
    )
    assert run.status is RunStatus.COMPLETED
    assert (run.tasks["b"].started_at or 0.0) >= (run.tasks["a"].finished_at or 1.0)
    moved = run.transfers[f"{lab.run_id}:b:a"]
    assert (moved.bytes, moved.files_transferred, moved.strategy) == (5, 1, "runtime-local")
    assert (run.tasks["b"].transfer_bytes, run.end.transferred_bytes) == (5, 5)
    assert run.tasks["b"].transfer_seconds == moved.duration_seconds > 0


def test_order_on_a_lane_holds_nobody_up(lab: Lab):
    """Planning case 57, run real: two on one lane without a dependency run together on two cores.

    Each waits for the other's file, so one after the other would never end.
    """
    lines = {
        me: f"touch {{}}/{me}; while [ ! -e {{}}/{you} ]; do sleep 0.02; done"
        for me, you in ("ab", "ba")
    }
    meet = lab.work_root / "meet"
    meet.mkdir(parents=True)
    run = lab.run([activity(me, line.format(meet, meet)) for me, line in lines.items()], cores=2)
    assert run.status is RunStatus.COMPLETED


def test_a_resource_runs_as_many_as_it_has_cores(lab: Lab):
    """Six that would run together share two cores: never three at once."""
    line = "echo + >> {0}; sleep 0.1; echo - >> {0}"
    log = lab.work_root / "log"
    lab.work_root.mkdir()
    run = lab.run([activity(f"a{n}", line.format(log)) for n in range(6)], cores=2)
    assert run.status is RunStatus.COMPLETED
    level = most = 0
    for sign in log.read_text().split():
        level += 1 if sign == "+" else -1
        most = max(most, level)
    assert (level, most) == (0, 2)


def test_activities_are_admitted_in_the_plans_order_of_preference(lab: Lab):
    """Predicted start, then priority, then order on the resource, then id (4.3)."""
    log = lab.work_root / "log"
    lab.work_root.mkdir()
    assigned = {
        "last": {"predicted_start_at": 9.0, "priority": 99, "order_on_resource": 0},
        "third": {"predicted_start_at": 1.0, "priority": 1, "order_on_resource": 1},
        "second": {"predicted_start_at": 1.0, "priority": 2, "order_on_resource": 7},
        "first": {"predicted_start_at": 0.5, "priority": 0, "order_on_resource": 9},
        "fourth": {"predicted_start_at": 1.0, "priority": 1, "order_on_resource": 2},
        "z": {"predicted_start_at": 1.0, "priority": 1, "order_on_resource": 2},
    }
    run = lab.run(
        [activity(name, f"echo {name} >> {log}") for name in assigned], cores=1, assigned=assigned
    )
    assert run.status is RunStatus.COMPLETED
    assert log.read_text().split() == ["first", "second", "third", "fourth", "z", "last"]


def test_the_first_failure_stops_its_siblings_and_ends_the_run(lab: Lab):
    """Planning case 59: the sibling is cancelled with the cause, the run names the failure.

    There is no makespan and no cost of a run that failed.
    """
    run = lab.run(
        [
            activity("bad", "sleep 0.3; echo 'no reads' >&2; exit 3"),
            activity("sibling", FOREVER),
            activity("never", "true"),
        ],
        control=[("sibling", "never")],
    )
    assert statuses(run) == {"bad": FAILED, "sibling": CANCELLED, "never": CANCELLED}
    cause = "activity bad failed: exit code 3: no reads"
    assert run.end.reason == cause
    assert run.tasks["sibling"].reason == f"stopped because {cause}"
    assert run.tasks["never"].reason == cause
    assert run.handle("sibling").status is HandleStatus.STOPPED
    assert run.handle("never").status is HandleStatus.NEW
    assert lab.names()[-1] == "runs.run.failed"
    shown = Runs(lab.journal).get(lab.run_id)["run"]
    assert (shown["makespanSeconds"], shown["cost"]) == (0, 0)
    assert lab.alive() == []


def test_a_sibling_that_cannot_be_stopped_failed_with_the_stop_error(lab: Lab):
    """Planning case 60."""

    def refuse(ref: Ref, go):
        raise RuntimeFailure("the machine does not answer")

    real = lab.runtime
    Wrapped(lab, stop=refuse)
    run = lab.run([activity("bad", "sleep 0.2; exit 1"), activity("sibling", FOREVER)])
    real.stop(Ref(lab.run_id, "sibling"))
    assert statuses(run) == {"bad": FAILED, "sibling": FAILED}
    assert run.tasks["sibling"].reason == "it could not be stopped: the machine does not answer"
    assert run.end.reason == "activity bad failed: exit code 1"


def test_nothing_is_started_beside_a_failure_that_arrives_with_it(lab: Lab):
    """What is ready to start is judged after what failed, in whatever order both arrived."""
    asked = lab.request([activity("a", "true"), activity("b", "true")])
    lab.begin(asked)
    for activity_id in "ab":
        for decision in (activities.queue_task, activities.prepare_task):
            another(lab, decision, activity_id=activity_id, at=1.0)
    loaded = lab.journal.load(RUN, lab.run_id)
    supervisor = Supervisor(lab.journal, loaded, asked, "test", lab.stop)
    place = lab.file("a", "x").parent
    ready = Prepared(Spec(Ref(lab.run_id, "a"), "here", "local", 1, ("true",), {}, place), ())
    launches: list = []
    change = supervisor._decided((("a", ready), ("b", Unprepared("no"))), launches)
    assert launches == []
    assert "a" not in change.state.handles
    assert change.state.end.reason == "activity b failed: start activity: no"


def test_two_failures_at_once_name_the_first(lab: Lab):
    """The later one is a failure too, and not what the run says."""
    run = lab.run([activity("b", "sleep 0.1; exit 1"), activity("a", "sleep 0.1; exit 2")])
    first = min(run.tasks, key=lambda each: run.tasks[each].finished_at)
    assert run.end.reason.startswith(f"activity {first} failed")
    assert all(task.status in (FAILED, CANCELLED) for task in run.tasks.values())


def test_a_missing_output_fails_task_and_run(lab: Lab):
    """Planning case 61: exit code 0 does not help."""
    metadata = {"expectedOutputs": ["made", "missing/one", "two"]}
    run = lab.run([activity("a", "touch made", metadata=metadata)])
    assert run.status is RunStatus.FAILED
    assert run.tasks["a"].reason == "expected outputs are missing: missing/one, two"
    assert run.handle("a").status is HandleStatus.COMPLETED


def test_outputs_are_observed_with_their_checksums(lab: Lab):
    """A file, and a directory by what is in it; a link that leads out is missing."""
    metadata = {"expectedOutputs": ["f", {"path": "d"}]}
    run = lab.run([activity("a", "printf abc > f; mkdir d; printf x > d/y", metadata=metadata)])
    file, folder = run.tasks["a"].outputs
    content = sha256(b"abc").hexdigest()
    assert file == {"path": "f", "kind": "file", "bytes": 3, "sha256": content}
    inner = sha256(b"x").hexdigest()
    assert folder["sha256"] == sha256(f"y\0{inner}\n".encode()).hexdigest()
    again = lab.run(
        [activity("a", "ln -s /etc/hostname f", metadata={"expectedOutputs": ["f"]})],
        run_id=f"{lab.run_id}-out",
    )
    assert again.tasks["a"].reason == "expected outputs are missing: f"


def test_stage_metrics_are_what_the_runtime_told(lab: Lab):
    """Planning case 63: submitted 100, started 103, own code 105, finished 115, price 2."""

    def told(ref: Ref, go):
        return Observation(ref, Seen.COMPLETED, "job-7", 100.0, 103.0, 105.0, 115.0, exit_code=0)

    Wrapped(lab, start=told)
    run = lab.run([activity("a", "true")], price=2.0)
    task = run.tasks["a"]
    assert (task.queue_seconds, task.overhead_seconds) == (3.0, 2.0)
    assert (task.runtime_seconds, task.cost) == (10.0, 20.0)
    assert (run.end.makespan_seconds, run.end.cost) == (12.0, 20.0)


def test_a_terminal_run_never_changes(lab: Lab):
    """Planning case 64: supervising it again does nothing, and whatever comes is refused."""
    asked = lab.request([activity("a", "true")])
    lab.begin(asked)
    run = lab.supervise(asked)
    before = lab.names()
    assert lab.supervise(asked) == run
    with pytest.raises(Refused):
        another(lab, activities.cancel_task, activity_id="a", at=1.0, reason="late")
    assert lab.names() == before


def test_nothing_is_started_on_a_workspace_that_cannot_be_filled(lab: Lab):
    """Planning case 65: two producers left different files at one path; no runtime is called."""
    wrapped = Wrapped(lab)
    run = lab.run(
        [
            activity("a", "echo a > same; echo 1 > f"),
            activity("b", "echo a > same; echo 2 > f"),
            activity("c", "true"),
        ],
        data=[("a", "c"), ("b", "c")],
    )
    assert statuses(run) == {"a": DONE, "b": DONE, "c": FAILED}
    assert run.tasks["c"].reason == ("start activity: 'f' is there already with another content")
    assert run.handle("c").status is HandleStatus.NEW
    assert "c" not in wrapped.of("start")


def test_a_link_that_leads_out_is_not_brought_over(lab: Lab):
    """The consumer is not started, and the link is named."""
    run = lab.run([activity("a", "ln -s /etc x"), activity("b", "true")], data=[("a", "b")])
    assert run.tasks["b"].reason.startswith("start activity: 'x' is a link that leads out")


def test_an_activity_that_only_simulates_is_not_run(lab: Lab):
    """Planning case 66: no run begins, and no runtime is called."""
    wrapped = Wrapped(lab)
    only = replace(activity("a", "true"), capabilities=("simulation",))
    with pytest.raises(Invalid, match="'a' is for simulation only"):
        lab.run([only])
    assert wrapped.calls == []


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (Command(), "command: names neither an entrypoint nor an executable"),
        (Command("", "x", "", (), {}, "/abs"), "command.workingDirectory: is a place below"),
        (Command("", "x", "", (), {"A=B": "c"}, ""), "command.environment: 'A=B' is no variable"),
    ],
)
def test_a_definition_that_nothing_can_start_fails_its_task(lab: Lab, command: Command, why: str):
    """Before any runtime is called."""
    run = lab.run([replace(activity("a", "true"), command=command)])
    assert run.tasks["a"].reason.startswith(f"start activity: {why}")
    assert run.handle("a").status is HandleStatus.NEW


def test_what_the_runtime_cannot_start_fails_handle_and_task(lab: Lab):
    """The handle was recorded before, and says what was tried."""
    run = lab.run([replace(activity("a", ""), command=Command(executable="no-such-program"))])
    assert run.tasks["a"].reason == ("start activity: no-such-program: No such file or directory")
    assert run.handle("a").command["argv"] == ["no-such-program"]


def test_the_handle_is_recorded_before_anything_is_started(lab: Lab):
    """When the runtime is called, whoever reads the log finds the handle and its command (P19)."""
    found = []

    def look(ref: Ref, go):
        found.append(lab.state().handle("a"))
        return go()

    Wrapped(lab, start=look)
    lab.run([activity("a", "true")])
    assert found[0].status is HandleStatus.STARTING
    assert found[0].command["argv"] == ["/bin/sh", "-c", "true"]


def test_a_policys_timeout_ends_the_activity(lab: Lab):
    """And with it the run."""
    run = lab.run([activity("a", FOREVER, policy=Policy(timeout_seconds=0.2))])
    assert run.tasks["a"].reason.startswith("timed out after ")


def test_an_interrupted_activity_is_stopped_and_the_rest_goes_on(lab: Lab):
    """Planning case 67: the run ends failed, naming it; what does not depend on it completes."""
    asked = lab.request(
        [
            activity("long", FOREVER),
            activity("after", "true"),
            activity("other", "sleep 0.5"),
            activity("last", "true"),
        ],
        control=[("long", "after"), ("other", "last")],
    )
    lab.begin(asked)
    with pytest.raises(Refused, match="nothing to stop yet"):
        another(lab, activities.interrupt, activity_id="long", at=1.0)
    thread, result = in_background(lab, asked)
    soon(lambda: lab.state().tasks["long"].status is TaskStatus.RUNNING)
    another(lab, activities.interrupt, activity_id="long", at=1.0)
    another(lab, activities.interrupt, activity_id="long", at=2.0)
    thread.join()
    run = result[0]
    assert statuses(run) == {"long": CANCELLED, "after": CANCELLED, "other": DONE, "last": DONE}
    assert run.tasks["long"].reason == "interrupted by a user"
    assert run.handle("long").status is HandleStatus.STOPPED
    assert run.end.reason == "activity long was cancelled: interrupted by a user"
    assert another(lab, activities.interrupt, activity_id="long", at=3.0).events == ()
    with pytest.raises(Refused, match="completed"):
        another(lab, activities.interrupt, activity_id="other", at=3.0)


def test_a_request_to_interrupt_is_heard_while_nothing_else_happens(lab: Lab):
    """Planning case 67: the supervisor follows the log, and does not wait for its next commit."""
    asked = lab.request([activity("a", FOREVER)])
    lab.begin(asked)
    thread, result = in_background(lab, asked)
    soon(lambda: lab.state().tasks["a"].status is TaskStatus.RUNNING)
    another(lab, activities.interrupt, activity_id="a", at=1.0)
    thread.join(20)
    lab.stop.set()
    thread.join()
    assert statuses(result[0]) == {"a": CANCELLED}


def test_three_failed_inspections_in_a_row_fail_a_handle(lab: Lab):
    """U11: what runs is stopped before. The start that nobody heard of is the first of them."""

    def lost(ref: Ref, go):
        raise RuntimeFailure("no answer")

    wrapped = Wrapped(lab, start=started_and_lost, inspect=lost)
    run = lab.run([activity("a", FOREVER)])
    assert run.tasks["a"].reason == "3 inspections in a row failed: no answer"
    assert wrapped.of("inspect") == ["a", "a"]
    assert wrapped.of("stop") == ["a"]


def started_and_lost(ref: Ref, go):
    """The command runs, and whoever started it does not hear so."""
    go()
    raise RuntimeFailure("it may have been started")


def test_two_failed_inspections_are_forgiven(lab: Lab):
    """The third look tells how it ended."""
    count: list[Ref] = []

    def lost(ref: Ref, go):
        count.append(ref)
        if len(count) < 2:
            raise RuntimeFailure("no answer")
        return go()

    wrapped = Wrapped(lab, start=started_and_lost, inspect=lost)
    run = lab.run([activity("a", "true")])
    assert run.status is RunStatus.COMPLETED
    assert wrapped.of("stop") == []


def test_a_stop_from_outside_is_a_failure(lab: Lab):
    """Nobody of the run asked for it."""
    asked = lab.request([activity("a", FOREVER)])
    lab.begin(asked)
    thread, result = in_background(lab, asked)
    soon(lambda: lab.state().tasks["a"].status is TaskStatus.RUNNING)
    lab.runtime.stop(Ref(lab.run_id, "a"))
    thread.join()
    assert result[0].tasks["a"].reason == "stopped from outside the run"
    assert result[0].status is RunStatus.FAILED


def test_a_stopped_process_is_waited_for(lab: Lab):
    """SIGSTOP is no end: the activity runs, and completes when it may."""
    asked = lab.request([activity("a", "while [ ! -e go ]; do sleep 0.02; done")])
    lab.begin(asked)
    thread, result = in_background(lab, asked)
    soon(lambda: lab.state().tasks["a"].status is TaskStatus.RUNNING)
    pid = int(lab.state().handle("a").external_id)
    os.kill(pid, signal.SIGSTOP)
    lab.file("a", "go").touch()
    time.sleep(0.3)
    assert thread.is_alive()
    os.kill(pid, signal.SIGCONT)
    thread.join()
    assert result[0].status is RunStatus.COMPLETED


def test_a_supervisor_that_leaves_is_followed_by_one_that_attaches(lab: Lab):
    """Nothing is started twice, and the exit status is the one of the command (case 75)."""
    asked = lab.request(
        [activity("a", "echo x >> times; while [ ! -e go ]; do sleep 0.02; done; exit 0")]
    )
    lab.begin(asked)
    first_stop = threading.Event()
    thread, result = in_background(lab, asked, first_stop)
    soon(lambda: lab.state().tasks["a"].status is TaskStatus.RUNNING)
    first_stop.set()
    thread.join()
    assert result[0].status is RunStatus.RUNNING
    assert lab.alive() != []
    lab.file("a", "go").touch()
    run = lab.supervise(asked)
    assert run.status is RunStatus.COMPLETED
    assert lab.file("a", "times").read_text() == "x\n"
    assert lab.names().count("runs.handle.starting") == 1


def test_a_handle_whose_command_was_never_started_fails(lab: Lab):
    """Its supervisor ended between the record and the start: it is not started now (P19)."""
    asked = lab.request([activity("a", "touch started")])
    lab.begin(asked)
    for decision in (activities.queue_task, activities.prepare_task):
        another(lab, decision, activity_id="a", at=1.0)
    recorded = partial(activities.start_handle, command={})
    another(lab, recorded, activity_id="a", runtime_id="local", at=1.0)
    run = lab.supervise(asked)
    assert run.tasks["a"].reason.startswith("the command was never started")
    assert not lab.file("a", "started").exists()


def test_a_preparation_that_was_broken_off_is_begun_again(lab: Lab):
    """There is no handle yet, so nothing was started."""
    asked = lab.request([activity("a", "true")])
    lab.begin(asked)
    for decision in (activities.queue_task, activities.prepare_task):
        another(lab, decision, activity_id="a", at=1.0)
    assert lab.supervise(asked).status is RunStatus.COMPLETED


def test_the_folder_of_another_run_is_not_taken_for_ones_own(lab: Lab, tmp_path: Path):
    """A store that was begun anew beside an old folder: what lies there says nothing about it."""
    lab.run([activity("a", "echo x >> times")])
    anew = Lab(tmp_path / "anew.db", lab.work_root)
    anew.run_id = lab.run_id
    run = anew.run([activity("a", "echo x >> times")])
    anew.close()
    assert run.status is RunStatus.FAILED
    assert "is that of another run of this id" in run.end.reason
    assert run.tasks["a"].status is CANCELLED
    assert lab.file("a", "times").read_text() == "x\n"


def test_two_supervisors_are_never_at_one_run(lab: Lab):
    """Whatever leases say: the second one waits for the first one's lock, and finds the end."""
    asked = lab.request([activity(f"a{n}", "echo x >> times; sleep 0.1") for n in range(4)])
    lab.begin(asked)
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda _: lab.supervise(asked), range(3)))
    assert {run.status for run in runs} == {RunStatus.COMPLETED}
    assert lab.names().count("runs.handle.starting") == 4
    assert {lab.file(f"a{n}", "times").read_text() for n in range(4)} == {"x\n"}


def test_a_supervisor_is_stopped_while_it_adds_up_an_output(lab: Lab):
    """However large that is: the next one adds it up anew."""
    big = activity("a", "truncate -s 4T big", metadata={"expectedOutputs": ["big"]})
    asked = lab.request([big])
    lab.begin(asked)
    thread, _ = in_background(lab, asked)
    big_file = RunFolder(lab.work_root, lab.run_id).workspace("a") / "big"
    try:
        soon(lambda: is_open_here(big_file))
    finally:
        lab.stop.set()
    thread.join(20)
    assert not thread.is_alive()
    assert lab.state().tasks["a"].status not in (DONE, FAILED)
    os.truncate(big_file, 3)
    assert lab.supervise(asked, threading.Event()).status is RunStatus.COMPLETED


def test_a_supervisor_that_waits_for_another_can_be_stopped(lab: Lab):
    """It leaves the run to the other one."""
    asked = lab.request([activity("a", "while [ ! -e go ]; do sleep 0.02; done")])
    lab.begin(asked)
    thread, _ = in_background(lab, asked)
    soon(lambda: lab.state().tasks["a"].status is TaskStatus.RUNNING)
    gone = threading.Event()
    second, result = in_background(lab, asked, gone)
    gone.set()
    second.join()
    assert result[0].status is RunStatus.RUNNING
    lab.file("a", "go").touch()
    thread.join()


def test_a_recovered_run_keeps_what_completed_and_runs_the_rest(lab: Lab):
    """Planning case 76: the kept activity's workspace is the one it worked in before."""
    steps = [
        activity("a", "echo made >> f"),
        activity("b", 'cat f && test -n "$GO"', command={"environment": {}}),
    ]
    first = lab.run(steps, data=[("a", "b")])
    assert statuses(first) == {"a": DONE, "b": FAILED}
    steps[1] = activity("b", 'cat f && test -n "$GO"', command={"environment": {"GO": "1"}})
    again = lab.request(
        steps, data=[("a", "b")], run_id=f"{lab.run_id}-2", recovers_run_id=lab.run_id
    )
    task = first.tasks["a"]
    allocation = (task.resource_id, task.runtime_id, task.started_at, task.finished_at)
    lab.begin(again, kept=[TaskKept("a", lab.run_id, *allocation)])
    run = lab.supervise(again)
    assert run.status is RunStatus.COMPLETED
    assert run.tasks["a"].kept_from == lab.run_id
    assert (run.tasks["a"].resource_id, run.tasks["a"].runtime_id) == ("here", "local")
    assert run.handle("a").status is HandleStatus.NEW
    assert lab.file("a", "f").read_text() == "made\n"
    assert run.transfers[f"{lab.run_id}-2:b:a"].bytes == 5


def test_a_transfer_over_a_link_has_its_price(lab: Lab):
    """The price per byte of the direct link between the two resources (3.4)."""
    there = machine("there", cpu_cores=1, cpu_capacity=1.0)
    link = Link("here", "there", bandwidth_bits_per_second=1e9, price_per_byte=0.5)
    run = lab.run(
        [activity("a", "printf 1234 > f"), activity("b", "cat f")],
        data=[("a", "b")],
        assigned={"b": {"resource_id": "there"}},
        resources=(there,),
        network_topology=Topology("n", links=(link,)),
    )
    moved = run.transfers[f"{lab.run_id}:b:a"]
    assert (moved.source_resource_id, moved.target_resource_id) == ("here", "there")
    assert (moved.cost, run.end.cost) == (2.0, 2.0)


def test_what_ends_is_heard_of_and_not_asked_for(lab: Lab):
    """A command that takes a second and a half is looked at no more than a few times."""
    wrapped = Wrapped(lab)
    run = lab.run([activity("a", "sleep 1.5")])
    assert run.status is RunStatus.COMPLETED
    assert len(wrapped.of("inspect")) <= 3


def test_a_run_in_memory(tmp_path: Path):
    """A journal without a file supervises as well, in its own process."""
    lab = Lab(None, tmp_path / "work")
    run = lab.run([activity("a", "echo 1 > f"), activity("b", "cat f")], data=[("a", "b")])
    lab.close()
    assert run.status is RunStatus.COMPLETED
