"""Operating it: the service, several plans in one run, settling, watching, following, backups."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import StoreError
from statelog.infrastructure.bell import SUFFIX
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from tests.infrastructure.cli.desk import RUN_FIELDS, Desk, Done, a_step, ended

TERMINATE, INTERRUPT = signal.SIGTERM, signal.SIGINT


def until(true: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def plan_file(desk: Desk, plan_id: str, *steps: Any, **more: Any) -> Path:
    body = {"plan_id": plan_id, "realm": "lab", "failure_policy": "continue_independent"}
    text = json.dumps({**body, "steps": [*(steps or (a_step("a"),))], **more})
    return desk.file(text, f"{plan_id}.json")


def slow(desk: Desk, flag: str = "flag") -> Any:
    return a_step("slow", "slow", params={"flag": str(desk.folder / flag)})


@contextmanager
def daemon(desk: Desk, *words: Any) -> Iterator[subprocess.Popen[str]]:
    """A service over the desk, ready to hear; whatever happens it ends."""
    process = desk.start("daemon", "--path", desk.folder, *words)
    try:
        until(lambda: any(id.startswith("daemon:") for id in Holders.of(desk.store).living()))
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def attempt(desk: Desk, plan_id: str = "p") -> dict[str, Any] | None:
    snapshot = desk("plan", "status", plan_id, "--json").json
    return None if snapshot is None else snapshot["attempt"]


def recorded(desk: Desk, plan_id: str) -> bool:
    return "last_finalized_execution" in desk("plan", "show", plan_id, "--json").json


# --- the service


def test_a_service_runs_what_is_due_and_what_becomes_due(desk: Desk):
    """Its stdout is empty, steps' prints are among the logs, and SIGTERM is exit code 0."""
    desk("plan", "save", plan_file(desk, "p", a_step("a", "prints")), "--approve")
    with daemon(desk) as process:
        until(lambda: recorded(desk, "p"))
        desk("plan", "save", plan_file(desk, "q"), "--approve")
        until(lambda: recorded(desk, "q"))
        process.send_signal(TERMINATE)
        done = ended(process)
    assert (done.code, done.out) == (0, "")
    assert "printed by the step" in done.err
    assert "echoed by its command" in done.err
    assert "INFO statelog.execution.daemon: stopped" in done.err
    assert desk("views", "verify").code == 0


@pytest.mark.parametrize("number", [TERMINATE, INTERRUPT], ids=["SIGTERM", "Ctrl-C"])
def test_a_stopped_service_lets_the_step_finish_and_the_next_goes_on(desk: Desk, number: int):
    """Exit code 0; the request stays open and the restart runs it again (case 132)."""
    desk("plan", "save", plan_file(desk, "p", slow(desk), a_step("b", "ok", "slow")), "--approve")
    with daemon(desk) as process:
        until((desk.folder / "flag").exists)
        process.send_signal(number)
        time.sleep(0.3)
        assert process.poll() is None
        (desk.folder / "flag.go").touch()
        done = ended(process)
    assert done.code == 0
    assert "Traceback" not in done.err
    found = attempt(desk)
    assert found is not None
    assert found["termination_reason"] == "cancelled"
    assert found["counts"]["succeeded"] == 1
    with daemon(desk) as process:
        until(lambda: recorded(desk, "p"))
        process.send_signal(TERMINATE)
        assert ended(process).code == 0


def test_a_second_signal_ends_the_service_and_its_attempts_at_once(desk: Desk):
    """What they left is taken over by the next one."""
    desk("plan", "save", plan_file(desk, "p", slow(desk)), "--approve")
    with daemon(desk) as process:
        until(lambda: (desk.folder / "flag").exists() and (desk.folder / "flag").read_text())
        child = int((desk.folder / "flag").read_text())
        process.send_signal(TERMINATE)
        time.sleep(0.3)
        process.send_signal(TERMINATE)
        assert ended(process).code == -TERMINATE
    until(lambda: not Path(f"/proc/{child}").exists())
    (desk.folder / "flag.go").touch()
    with daemon(desk) as process:
        until(lambda: recorded(desk, "p"))
        process.send_signal(TERMINATE)
        ended(process)
    reasons = [e["termination_reason"] for e in desk("plan", "attempts", "p", "--json").lines]
    assert reasons == ["completed", "orchestration_error"]


def test_log_lines_as_json_name_plan_execution_and_resolution(desk: Desk):
    """`--log-format json`: every line that the service writes is an object."""
    desk("plan", "save", plan_file(desk, "p", a_step("x", "bad")), "--approve")
    with daemon(desk, "--log-format", "json", "-v") as process:
        until(lambda: recorded(desk, "p"))
        desk("plan", "touch", "p")
        time.sleep(0.3)
        process.send_signal(TERMINATE)
        lines = [json.loads(line) for line in ended(process).err.splitlines()]
    assert {"time", "level", "logger", "message"} <= set.intersection(*map(set, lines))
    failed = next(line for line in lines if "failed; blocked" in line["message"])
    assert (failed["level"], failed["plan"], failed["step"]) == ("WARNING", "p", "x")
    resolved = [line for line in lines if line.get("resolution") == "finalized"]
    found = attempt(desk)
    assert found is not None
    assert [(line["level"], line["execution"]) for line in resolved] == [
        ("WARNING", found["execution_id"])
    ]
    assert any(line["level"] == "DEBUG" for line in lines)


def test_a_service_on_a_store_it_cannot_write_says_so(desk: Desk):
    """One line, exit code 1."""
    desk("plan", "save", plan_file(desk, "p"))
    desk.store.chmod(0o400)
    done = desk("daemon")
    assert (done.code, "cannot be written" in done.error) == (1, True)
    assert desk("daemon", "--max-plans", "0").code == 2
    assert desk("daemon", "--path", desk.folder / "none").code == 2


# --- run


def test_several_plans_in_one_run(desk: Desk):
    """One JSON line a plan; the highest code counts; nothing else is on stdout."""
    files = [plan_file(desk, "p", a_step("a", "prints")), plan_file(desk, "q", a_step("a", "bad"))]
    done = desk.process("run", *files, plan_file(desk, "r"), "--json")
    assert done.code == 1
    assert [(line["plan_id"], line["outcome"]) for line in done.lines] == [
        ("p", "succeeded"),
        ("q", "failed"),
        ("r", "succeeded"),
    ]
    assert all(tuple(line) == RUN_FIELDS for line in done.lines)
    assert "printed by the step" in done.err
    assert re.search(r"^\S+  q  a  failed", done.err, re.M)


def test_the_tables_of_several_plans_are_their_own(desk: Desk):
    done = desk.process("run", plan_file(desk, "p", a_step("one")), plan_file(desk, "q"))
    assert done.code == 0
    first, second = done.out.split("plan p, execution")
    assert "one" in first
    assert "plan q, execution" in second
    assert "one" not in second


def test_what_steps_leave_running_prints_nowhere_near_the_results(desk: Desk):
    """A thread and a command that outlive their step, and a plan after it."""
    (desk.folder / "noisy.py").write_text(
        "import os, subprocess, sys, threading, time\n"
        "from statelog.domain.execution import step\n\n"
        "def shout():\n"
        "    while True:\n"
        "        print('thread'); os.write(1, b'descriptor\\n'); time.sleep(0.001)\n\n"
        "@step\n"
        "def noise(ctx):\n"
        "    threading.Thread(target=shout, daemon=True).start()\n"
        "    subprocess.Popen(['sh', '-c', 'for i in 1 2 3 4 5 6 7 8 9; do echo shell; sleep 0.05;"
        " done'])\n"
    )
    files = [plan_file(desk, "p", a_step("a", "noisy:noise")), plan_file(desk, "q")]
    done = desk.process("run", *files, "--json")
    assert [line["plan_id"] for line in done.lines] == ["p", "q"]
    assert {"thread", "descriptor", "shell"} <= set(done.err.splitlines())


def test_a_reader_that_leaves_early_stops_no_later_plan(desk: Desk):
    read, write = os.pipe()
    os.close(read)
    done = desk.process("run", plan_file(desk, "p"), plan_file(desk, "q"), "--json", stdout=write)
    os.close(write)
    assert (done.code, "Traceback" in done.err) == (0, False)
    assert recorded(desk, "q")


def test_nothing_is_saved_when_one_of_the_files_cannot_be_used(desk: Desk):
    good, bad = plan_file(desk, "p"), desk.file("{", "bad.json")
    assert desk("run", good, bad).code == 2
    assert not desk.store.exists()
    twice = desk("run", good, good)
    assert (twice.code, "two of the files" in twice.error) == (2, True)
    assert desk("run", good, plan_file(desk, "q"), "--param", "a.x=1").code == 2
    assert desk("run").code == 2


def test_a_draft_waits_to_be_approved(desk: Desk):
    """`--draft`: another process approves it and it runs; 116: nobody does, exit code 1."""
    plan = plan_file(desk, "p")
    late = desk("run", plan, "--draft", "--timeout", "0.05", "--json")
    assert (late.code, late.json["resolution"]) == (1, "not_eligible")
    assert "gave up waiting" in late.error
    process = desk.start("run", plan, "--draft")
    assert process.stderr is not None
    until(lambda: "waits" in str(process.stderr and process.stderr.readline()))
    assert desk("plan", "approve", "p").code == 0
    done = ended(process)
    assert (done.code, "succeeded (recorded)" in done.out) == (0, True)


def test_ctrl_c_while_waiting_is_130(desk: Desk):
    """The plan stays a draft of that session, and each plan has its line."""
    process = desk.start("run", plan_file(desk, "p"), plan_file(desk, "q"), "--draft", "--json")
    until(lambda: desk.store.exists() and "saved" in desk.names("plan/q"))
    process.send_signal(INTERRUPT)
    done = ended(process)
    assert done.code == 130
    assert [line["resolution"] for line in done.lines] == ["cancelled", "cancelled"]


def test_ctrl_c_gives_the_queue_up(desk: Desk):
    """115: the running step finishes, what was queued does not start."""
    process = desk.start("run", plan_file(desk, "p", slow(desk)), plan_file(desk, "q"), "--json")
    until((desk.folder / "flag").exists)
    process.send_signal(INTERRUPT)
    time.sleep(0.2)
    (desk.folder / "flag.go").touch()
    done = ended(process)
    assert done.code == 130
    assert [line["resolution"] for line in done.lines] == ["finalized", "cancelled"]
    assert desk.names("plan/q/attempt") == []


def test_a_step_that_cancels_itself_stops_no_other_plan(desk: Desk):
    """117: exit code 1 promptly, without waiting for the timeout."""
    files = [plan_file(desk, "p", a_step("a", "cancelled")), plan_file(desk, "q")]
    done = desk("run", *files, "--json")
    assert done.code == 1
    assert [line["resolution"] for line in done.lines] == ["cancelled", "finalized"]


# --- what is pending


def leave_pending(desk: Desk, monkeypatch: pytest.MonkeyPatch, *more: Path) -> Done:
    """Run p, whose result the store does not take."""
    commit = Journal.commit

    def failing(journal: Journal, *changes: Any, **given: Any) -> Any:
        names = [e.stored_name for change in changes for e in change.events]
        if any("request_finished" in n for n in names) and changes[0].stream == "plan/p":
            raise StoreError("full", "the disk is full")
        return commit(journal, *changes, **given)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "commit", failing)
        return desk("run", plan_file(desk, "p"), *more, "--json")


def test_a_pending_result_is_shown_with_its_reason_and_settled(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    """Case 139: exit 1, B is recorded, A's snapshot is finished, its document is not; then D10."""
    done = leave_pending(desk, monkeypatch, plan_file(desk, "b"))
    assert done.code == 1
    words = [(line["plan_id"], line["resolution"]) for line in done.lines]
    assert words == [("p", "finalization_pending"), ("b", "finalized")]
    execution = done.lines[0]["execution_id"]
    line = (
        f"Plan 'p' execution '{execution}' succeeded finished, but its result could not be "
        "recorded; keeping it pending, and not executing the plan again until it is recorded or "
        "superseded."
    )
    assert sum(each.endswith(f": {line}") for each in done.err.splitlines()) == 1
    found = attempt(desk)
    assert found is not None
    assert (found["state"], found["outcome"]) == ("finished", "succeeded")
    document = desk("plan", "show", "p", "--json").json
    assert document["executed_run_token"] == -1
    assert "last_finalized_execution" not in document
    assert document["pending_result"]["execution_id"] == execution
    assert document["pending_result"]["reason"] == "the disk is full"
    assert "the disk is full" in desk("plan", "status", "p").out
    settled = desk("plan", "settle", "p", "--json")
    assert (settled.code, settled.json["recording"]) == (0, "recorded")
    assert (settled.json["execution_id"], settled.json["outcome"]) == (execution, "succeeded")
    document = desk("plan", "show", "p", "--json").json
    assert document["pending_result"] is None
    assert document["executed_run_token"] == 0
    assert "no result is pending" in desk("plan", "settle", "p").out


def test_a_result_that_stays_pending_or_is_superseded_says_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    leave_pending(desk, monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "commit", lambda *_, **__: fail())
        still = desk("plan", "settle", "p")
    assert (still.code, "still pending (the disk is full)" in still.out) == (1, True)
    desk("plan", "save", plan_file(desk, "p", a_step("b")), "--force")
    dropped = desk("plan", "settle", "p")
    assert (dropped.code, "superseded (generation_changed)" in dropped.out) == (0, True)
    assert desk("plan", "settle", "nobody").code == 1


def fail() -> None:
    raise StoreError("full", "the disk is full")


# --- watching and following


def test_watching_a_plan_in_a_pipe_ends_when_it_is_done(desk: Desk):
    """First where it is, then a line an event; 0 for a success, 1 for a failure."""
    desk("plan", "save", plan_file(desk, "p", slow(desk)), "--approve")
    watching = desk.start("plan", "watch", "p", "--until-done")
    assert watching.stdout is not None
    assert watching.stdout.readline().split() == ["plan", "p"]
    (desk.folder / "flag.go").touch()
    desk("run", desk.folder / "p.json", "--adopt", "-q")
    done = ended(watching)
    assert done.code == 0
    happened = [line.split("  ")[1:] for line in done.out.splitlines() if line[2:3] == ":"]
    assert ["p", "slow", "step succeeded"] in happened
    assert ["p", "run 0 finished", "succeeded"] in happened
    assert "\x1b" not in done.out
    desk("run", plan_file(desk, "q", a_step("a", "bad")), "-q")
    assert desk("plan", "watch", "q", "--until-done").code == 1
    assert desk("plan", "watch", "nobody").code == 1
    assert desk("plan", "watch", "--until-done").code == 2


def listening(desk: Desk) -> None:
    """Wait until somebody follows the store; where it begins is settled then."""
    bells, deadline = Path(f"{desk.store}{SUFFIX}"), time.monotonic() + 60
    while not (bells.is_dir() and any(bells.iterdir())):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_watching_all_plans_as_json_until_ctrl_c(desk: Desk):
    """130; every line says which plan, step and event."""
    desk("plan", "save", plan_file(desk, "p"))
    watching = desk.start("plan", "watch", "--json")
    listening(desk)
    desk("run", plan_file(desk, "q"), "-q")
    assert watching.stdout is not None
    lines = []
    while not lines or lines[-1]["happened"] != "released":
        lines.append(json.loads(watching.stdout.readline()))
    watching.send_signal(INTERRUPT)
    assert ended(watching).code == 130
    assert {line["plan_id"] for line in lines} == {"q"}
    assert [line["step_id"] for line in lines if line["happened"].startswith("step")] == ["a", "a"]


def test_watching_on_a_terminal_draws_a_table(desk: Desk):
    """With rich; the last one is the one at the end."""
    pytest.importorskip("rich")
    desk("plan", "save", plan_file(desk, "p"), "--approve")
    master, terminal = pty.openpty()
    env = {"TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    watching = desk.start(
        "plan", "watch", "p", "--until-done", stdout=terminal, stderr=terminal, env=env
    )
    os.close(terminal)
    shown: list[bytes] = []
    reader = threading.Thread(target=read_all, args=(master, shown))
    reader.start()
    until(lambda: b"no attempt yet" in b"".join(shown))
    desk("run", desk.folder / "p.json", "--adopt", "-q")
    assert watching.wait(60) == 0
    reader.join(10)
    os.close(master)
    last = b"".join(shown).decode().split("plan           p")[-1]
    assert "finished (run 0, executed 0)" in last
    assert "\x1b[" in last


def read_all(descriptor: int, into: list[bytes]) -> None:
    try:
        while chunk := os.read(descriptor, 65536):
            into.append(chunk)
    except OSError:
        pass


def test_the_tail_of_the_log_as_json_lines(desk: Desk):
    """The last ten, or all after a position; `--follow` goes on, each event once and in order."""
    desk("run", plan_file(desk, "p"), "-q")
    every = desk("log", "history", "p", "--json").lines
    assert desk("log", "tail").lines == every[-10:]
    assert desk("log", "tail", "--since", "0").lines == every
    assert desk("log", "tail", "--since", len(every)).lines == []
    tail = desk.start("log", "tail", "--since", "3", "--follow")
    assert tail.stdout is not None
    positions = [json.loads(tail.stdout.readline())["position"] for _ in range(len(every) - 3)]
    desk("run", desk.folder / "p.json", "-q")
    head = len(desk.events("plan"))
    while positions[-1] < head:
        positions.append(json.loads(tail.stdout.readline())["position"])
    assert positions == list(range(4, head + 1))
    tail.send_signal(INTERRUPT)
    assert ended(tail).code == 130


# --- backups


def test_a_restore_drill(desk: Desk):
    """While others write: the copy is of one moment, whole, and a plan goes on from it."""
    desk("run", plan_file(desk, "p"), "-q")
    stop = threading.Event()
    written = []

    def write() -> None:
        while not stop.is_set():
            written.append(desk.process("plan", "touch", "p").code)

    def write_here() -> None:
        with Journal(desk.store) as journal:
            while not stop.is_set():
                Plans(journal, "alice").touch("p")

    writers = [threading.Thread(target=each) for each in (write, write_here)]
    for writer in writers:
        writer.start()
    copies = []
    for number in range(5):
        copy = desk.folder / f"copy{number}.db"
        done = desk.process("store", "backup", copy, "--json")
        assert done.code == 0
        copies.append((copy, done.json["position"]))
        time.sleep(0.1)
    stop.set()
    for writer in writers:
        writer.join()
    assert set(written) == {0}
    assert len({position for _, position in copies}) > 1
    original = [(r.position, r.hash) for r in rows(desk.store)]
    for copy, position in copies:
        assert copy.stat().st_mode & 0o777 == 0o600
        assert [(r.position, r.hash) for r in rows(copy)] == original[:position]
        assert [p for p, _ in original[:position]] == list(range(1, position + 1))
    copy, position = copies[-1]
    assert desk("store", "doctor", "--check", store=copy).code == 0
    done = desk("run", desk.folder / "p.json", "--json", store=copy)
    assert (done.code, done.json["run_token"]) == (0, 1)
    assert desk("views", "verify", store=copy).code == 0
    assert len(rows(copy)) > position
    assert not [name for name in desk.files if ".new-" in name]


def rows(store: Path) -> list[Any]:
    with Journal(store, read_only=True) as journal:
        return list(journal.read())


def test_a_backup_overwrites_nothing_and_leaves_nothing(desk: Desk):
    """A file, a link or the store itself is refused; a folder that is not there is an error."""
    desk("run", plan_file(desk, "p"), "-q")
    there = desk.file("precious", "there.db")
    (desk.folder / "link.db").symlink_to(desk.folder / "nowhere")
    for path in (there, desk.folder / "link.db", desk.store):
        refused = desk("store", "backup", path)
        assert (refused.code, "is there already" in refused.error) == (1, True)
    assert there.read_text() == "precious"
    assert desk("store", "backup", desk.folder / "no" / "b.db").code == 1
    assert not [name for name in desk.files if ".new-" in name]


def test_a_backup_on_a_full_disk_leaves_no_half_file(desk: Desk):
    """One line, exit code 1, and the name is free again."""
    desk("run", plan_file(desk, "p"), "-q")
    code = (
        "import resource, runpy, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        f"sys.argv = ['statelog', '--store', {str(desk.store)!r}, 'store', 'backup', 'b.db']\n"
        "runpy.run_module('statelog', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=desk.folder
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("error: ")
    assert not [name for name in desk.files if name.startswith("b.db")]
