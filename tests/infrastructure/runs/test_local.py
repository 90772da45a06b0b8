"""The local runtime, with real commands: one start, one end, and nothing left (P19)."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from statelog.infrastructure.runs.handles import shim
from statelog.infrastructure.runs.handles.local import LocalRuntime
from statelog.infrastructure.runs.handles.port import RuntimeFailure, Seen
from tests.infrastructure.runs.place import Place, lives, soon

FOREVER = "sleep 1000"


def test_a_command_that_ends_well_is_completed_with_its_times(place: Place):
    """Exit 0 is completed; start and end are the shim's, in that order."""
    found = place.ran("a", "echo said; echo warned >&2; touch made")
    assert (found.seen, found.exit_code, found.failure) == (Seen.COMPLETED, 0, "")
    assert found.submitted_at <= found.started_at <= found.finished_at <= time.time()
    assert place.file("a", "made").exists()
    assert place.control("a", "stdout.log").read_text() == "said\n"
    assert place.control("a", "stderr.log").read_text() == "warned\n"


def test_a_command_that_fails_says_its_code_and_its_last_words(place: Place):
    """The exit code and the last line of standard error."""
    found = place.ran("a", "echo first >&2; echo 'no such sample' >&2; exit 3")
    assert (found.seen, found.exit_code) == (Seen.FAILED, 3)
    assert found.failure == "exit code 3: no such sample"


def test_a_command_ended_by_a_signal_names_it(place: Place):
    """As a shell tells it, with the signal's name."""
    found = place.ran("a", "kill -SEGV $$")
    assert (found.seen, found.exit_code) == (Seen.FAILED, 128 + signal.SIGSEGV)
    assert found.failure == "ended by SIGSEGV"


@pytest.mark.parametrize(
    ("argv", "directory", "why"),
    [
        (("no-such-program",), "", "no-such-program: No such file or directory"),
        (("/etc/passwd",), "", "/etc/passwd: Permission denied"),
        (("true",), "nowhere", "nowhere: No such file or directory"),
    ],
)
def test_a_command_that_cannot_be_started_says_why(place: Place, argv, directory, why):
    """It failed, without an exit code."""
    found = place.ran("a", argv, directory=directory)
    assert (found.seen, found.exit_code) == (Seen.FAILED, None)
    assert found.failure.startswith("start activity: ")
    assert found.failure.endswith(why)


def test_the_environment_is_explicit(tmp_path: Path):
    """A few variables of the worker, those of the command, and who it is; nothing else."""
    place = Place(tmp_path, environ={"PATH": os.defpath, "HOME": "/h", "SECRET": "s"})
    place.ran("a", "env", environment={"SAMPLE": "x1", "HOME": "/mine", "STATELOG_RUN_ID": "no"})
    place.close()
    lines = dict(
        line.split("=", 1) for line in place.control("a", "stdout.log").read_text().splitlines()
    )
    mark = lines.pop("STATELOG_MARK")
    assert mark == place.told("a", "order.json")["mark"]
    lines.pop("_", None)
    assert lines == {
        "PATH": os.defpath,
        "HOME": "/mine",
        "SAMPLE": "x1",
        "PWD": str(place.folder.workspace("a")),
        "STATELOG_RUN_ID": place.run_id,
        "STATELOG_ACTIVITY_ID": "a",
        "STATELOG_ATTEMPT": "1",
        "STATELOG_RESOURCE_ID": "here",
    }


def test_a_command_starts_with_every_signal_as_usual(place: Place):
    """Python ignores some and the shim others; a command does neither, and its input is empty."""
    place.ran("a", "grep -E 'Sig(Blk|Ign)' /proc/self/status; cat")
    _, blocked, _, ignored = place.control("a", "stdout.log").read_text().split()
    usual = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    assert int(blocked, 16) == 0
    assert [each for each in usual if int(ignored, 16) >> (each - 1) & 1] == []


def test_an_activity_is_started_once(place: Place):
    """Starting it again, or starting something else under its id, looks at what there is."""
    place.ran("a", "echo x >> times")
    again = place.start("a", "echo x >> times; exit 9")
    other = LocalRuntime(place.root).start(place.spec("a", "echo x >> times"))
    assert (again.seen, other.seen) == (Seen.COMPLETED, Seen.COMPLETED)
    assert place.file("a", "times").read_text() == "x\n"


def test_an_activity_is_started_once_by_many_at_once(place: Place):
    """Of eight runtimes that start one activity at the same moment one does."""
    from concurrent.futures import ThreadPoolExecutor

    spec = place.spec("a", "echo x >> times; sleep 0.2")
    runtimes = [LocalRuntime(place.root) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda runtime: runtime.start(spec), runtimes))
    place.ended("a")
    for runtime in runtimes:
        runtime.close()
    assert place.file("a", "times").read_text() == "x\n"


def test_an_activity_that_was_never_started_failed_for_good(place: Place):
    """Looking decides it: a start that comes later starts nothing."""
    found = place.runtime.inspect(place.ref("a"))
    assert (found.seen, found.exit_code) == (Seen.FAILED, None)
    assert found.failure == "the command was never started: nothing of it was prepared"
    place.folder.workspace("a").mkdir(parents=True)
    assert place.runtime.inspect(place.ref("a")).failure == found.failure


def test_an_order_without_a_shim_was_never_started(place: Place):
    """Whoever wrote the order ended before it started the shim: the lock is free (P19)."""
    place.control("a", "x").parent.mkdir(parents=True)
    order = place.runtime._order(place.spec("a", "touch started"))
    shim.write_json(str(place.folder.control("a")), "order.json", order)
    found = place.runtime.inspect(place.ref("a"))
    assert found.seen is Seen.FAILED
    assert found.failure.startswith("the command was never started: whoever was about to")
    assert place.start("a", "touch started").failure == found.failure
    assert not place.file("a", "started").exists()


def test_a_stop_ends_everything_the_command_started(place: Place):
    """Children, a background job in a session of its own, and a double fork."""
    line = f"{FOREVER} & (setsid {FOREVER} &); setsid sh -c '{FOREVER} & {FOREVER}' & {FOREVER}"
    place.start("a", line)
    soon(lambda: len(place.alive()) >= 5)
    found = place.runtime.stop(place.ref("a"))
    assert (found.seen, found.failure) == (Seen.STOPPED, "stopped")
    assert place.alive() == []


def test_a_command_that_ignores_the_request_is_killed(place: Place):
    """After the grace, with what it started."""
    place.start("a", f"trap '' TERM; {FOREVER} & touch deaf; while :; do sleep 0.05; done")
    soon(place.file("a", "deaf").exists)
    found = place.runtime.stop(place.ref("a"))
    assert (found.seen, found.metadata["signal"]) == (Seen.STOPPED, "SIGKILL")
    assert place.alive() == []


def test_a_stopped_process_is_ended_too(place: Place):
    """One under SIGSTOP is woken for TERM, and one that ignores it is killed."""
    started = place.start("a", FOREVER)
    os.kill(int(started.external_id), signal.SIGSTOP)
    assert place.runtime.inspect(place.ref("a")).seen is Seen.RUNNING
    found = place.runtime.stop(place.ref("a"))
    assert (found.seen, found.metadata["signal"]) == (Seen.STOPPED, "SIGTERM")


def test_a_stop_of_what_ended_by_itself_tells_how_it_ended(place: Place):
    """It is not stopped any more (P12)."""
    place.ran("a", "true")
    assert place.runtime.stop(place.ref("a")).seen is Seen.COMPLETED


def test_a_timeout_ends_the_command(place: Place):
    """With all it started; how long it ran is said."""
    found = place.ran("a", f"(setsid {FOREVER} &) ; {FOREVER}", timeout_seconds=0.2)
    assert found.seen is Seen.FAILED
    assert found.failure.startswith("timed out after ")
    assert place.alive() == []


def test_a_timeout_reaches_a_stopped_process(place: Place):
    """SIGSTOP does not hold a limit up."""
    started = place.start("a", f"trap '' TERM; {FOREVER}", timeout_seconds=0.3)
    os.kill(int(started.external_id), signal.SIGSTOP)
    assert place.ended("a").failure.startswith("timed out")


def test_what_a_command_leaves_running_is_ended_with_it(place: Place):
    """A daemon in a session of its own, without the mark: the shim inherits it all the same."""
    line = f"setsid env -i /bin/sh -c 'trap \"\" HUP TERM; echo $$ > pid; {FOREVER}' & sleep 0.3"
    found = place.ran("a", line)
    assert (found.seen, found.exit_code) == (Seen.COMPLETED, 0)
    assert found.metadata["leftOver"] >= 1
    assert not lives(int(place.file("a", "pid").read_text()))


def test_a_killed_shim_takes_its_command_along(place: Place):
    """Its death is the command's; what is left is found by its mark and ended by the next look."""
    started = place.start("a", f"(setsid {FOREVER} &) ; {FOREVER} & {FOREVER}")
    soon(lambda: len(place.alive()) >= 4)
    os.kill(place.told("a", "shim.json")["pid"], signal.SIGKILL)
    soon(lambda: not lives(int(started.external_id)))
    found = place.ended("a")
    assert (found.seen, found.exit_code) == (Seen.FAILED, None)
    assert found.failure.startswith("the process that watched over the command was ended")
    assert place.alive() == []


def test_a_stopped_shim_does_not_hold_a_stop_up(place: Place):
    """It cannot do what it is asked, and is done without."""
    place.start("a", FOREVER)
    os.kill(place.told("a", "shim.json")["pid"], signal.SIGSTOP)
    assert place.runtime.stop(place.ref("a")).seen.over
    assert place.alive() == []


def test_another_runtime_finds_what_runs_and_how_it_ended(place: Place):
    """All that is known lies in files: a worker that comes later attaches again."""
    place.start("a", "while [ ! -e go ]; do sleep 0.02; done; exit 7")
    later = LocalRuntime(place.root, grace_s=0.5)
    assert later.inspect(place.ref("a")).seen is Seen.RUNNING
    place.file("a", "go").touch()
    soon(lambda: later.inspect(place.ref("a")).seen.over)
    assert later.inspect(place.ref("a")).exit_code == 7
    later.close()


def test_a_pid_that_became_another_process_is_never_signalled(place: Place):
    """Pid and start time are one identity: files that name a process of now do not reach it."""
    import subprocess

    with subprocess.Popen(["sleep", "1000"]) as other:
        control = place.folder.control("a")
        control.mkdir(parents=True)
        order = place.runtime._order(place.spec("a", "true"))
        stale = {"pid": other.pid, "ticks": 1, "boot": shim.boot_id(), "startedAt": 1.0}
        for name, value in (("order", order), ("shim", stale), ("started", stale)):
            shim.write_json(str(control), f"{name}.json", value)
        assert place.runtime.stop(place.ref("a")).seen is Seen.FAILED
        assert place.runtime.watch(place.ref("a")) is None
        assert other.poll() is None
        other.kill()


def test_a_signal_is_for_one_process_and_no_later_one():
    """Another start time under the same pid is another process."""
    import subprocess

    with subprocess.Popen(["sleep", "1000"]) as other:
        ticks = shim.start_ticks(other.pid)
        shim.send(other.pid, ticks - 1, signal.SIGKILL)
        shim.send(other.pid, ticks, signal.SIGTERM)
        assert other.wait(20) == -signal.SIGTERM


def test_a_descriptor_tells_the_end(place: Place):
    """It polls readable once the activity is over, and not before."""
    import select

    place.start("a", "while [ ! -e go ]; do sleep 0.02; done")
    watch = place.runtime.watch(place.ref("a"))
    assert watch is not None
    try:
        assert select.select([watch], [], [], 0.05)[0] == []
        place.file("a", "go").touch()
        assert select.select([watch], [], [], 20)[0] == [watch]
    finally:
        os.close(watch)
    assert place.runtime.inspect(place.ref("a")).seen is Seen.COMPLETED


def test_huge_output_is_bounded_and_its_end_is_kept(tmp_path: Path):
    """50 MB on standard output: the first 64 KiB, how much was left out, and the last 64 KiB."""
    place = Place(tmp_path, log_bytes=65536)
    line = "head -c 52428800 /dev/zero; echo the end"
    found = place.ran("a", line)
    place.close()
    log = place.control("a", "stdout.log").read_bytes()
    assert found.seen is Seen.COMPLETED
    assert found.metadata["stdoutBytes"] == 52428800 + 8
    assert len(log) < 2 * 65536 + 100
    assert b"\n[... 52297736 bytes left out ...]\n" in log
    assert log.endswith(b"the end\n")


def test_output_on_both_streams_at_once_never_blocks(place: Place):
    """More than a pipe holds, on one and then on the other."""
    found = place.ran("a", "head -c 500000 /dev/zero >&2; head -c 500000 /dev/zero")
    assert (found.metadata["stdoutBytes"], found.metadata["stderrBytes"]) == (500000, 500000)


def test_an_image_is_not_used_and_that_is_said(place: Place):
    """The local runtime runs commands on the machine."""
    found = place.ran("a", "true", image="python:3")
    assert "python:3" in found.metadata["warning"]


def test_files_that_cannot_be_read_are_no_verdict(place: Place):
    """Nobody knows what became of the activity, so the runtime raises."""
    place.start("a", FOREVER)
    place.control("a", "started.json").write_text("{")
    with pytest.raises(RuntimeFailure):
        place.runtime.inspect(place.ref("a"))
    place.control("a", "started.json").unlink()


def test_the_shim_needs_the_standard_library_only():
    """It runs isolated: neither this package nor the user's site is on its path."""
    import ast

    tree = ast.parse(Path(shim.__file__).read_text())
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert names <= set(sys.stdlib_module_names)


def test_ids_are_names_of_folders_and_nothing_else(tmp_path: Path):
    """Slashes, dots, long and odd ids stay inside the root."""
    place = Place(tmp_path)
    for activity in ("../../out", "..", ".hidden", "a/b", "ä ö", "x" * 500):
        found = place.ran(activity, "pwd -P")
        assert found.seen is Seen.COMPLETED, activity
        inside = Path(place.control(activity, "stdout.log").read_text().strip())
        assert inside.parent == (place.folder.path / "workspaces").resolve()
    place.close()
    ended = [json.loads(path.read_text())["how"] for path in tmp_path.rglob("ended.json")]
    assert ended == ["exited"] * 6
