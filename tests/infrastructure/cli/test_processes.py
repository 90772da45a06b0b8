"""Real processes: signals, pipes that close, disks that are full, and what a terminal gets."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.infrastructure.cli.desk import Desk, Done, a_step, ended

INTERRUPT, TERMINATE = signal.SIGINT, signal.SIGTERM


def until(true: Callable[[], bool]) -> None:
    """Wait for something that happens soon."""
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def stopped(
    desk: Desk, *signals: int, last: bool = False, finish: bool = True
) -> tuple[Done, dict[str, str]]:
    """Run a slow step, send signals while it runs, and let it finish: the end, and its outcomes."""
    flag = desk.folder / "flag"
    params = {"flag": str(flag)}
    steps = [a_step("slow", "slow", params=params), *([] if last else [a_step("next")])]
    process = desk.start("run", desk.plan(*steps, policy="continue_independent"), "--json")
    until(lambda: flag.exists() and flag.read_text() != "")
    for number in signals:
        process.send_signal(number)
        time.sleep(0.2)
    if finish:
        Path(f"{flag}.go").touch()
    done = ended(process)
    assert "Traceback" not in done.err
    return done, done.json["report"]["step_outcomes"]


def request_of(desk: Desk) -> str:
    (line,) = desk("plan", "list", "--json").lines
    return str(line["request"])


def test_ctrl_c_lets_the_running_step_finish(desk: Desk):
    """Case 115: exit 130, the step's success counts, the request is open and runs again."""
    done, outcomes = stopped(desk, INTERRUPT)
    assert (done.code, outcomes) == (130, {"slow": "succeeded"})
    assert "finishing the running step" in done.err
    assert request_of(desk) == "open"
    again = desk("run", desk.folder / "plan.json", "--json")
    assert again.code == 0
    assert "its open request 0 runs" in again.err
    assert again.json["report"]["step_outcomes"] == {"slow": "reused", "next": "succeeded"}


def test_ctrl_c_in_the_last_step_records_the_result(desk: Desk):
    """Case 115: still 130, and the request is finished."""
    done, outcomes = stopped(desk, INTERRUPT, last=True)
    assert (done.code, outcomes) == (130, {"slow": "succeeded"})
    assert done.json["resolution"] == "finalized"
    assert request_of(desk) == "finished"


def test_ctrl_c_twice_interrupts_the_step(desk: Desk):
    """130 at once: the step has no outcome and is shown as interrupted."""
    done, outcomes = stopped(desk, INTERRUPT, INTERRUPT, finish=False)
    assert (done.code, outcomes) == (130, {})
    assert done.json["termination_reason"] == "cancelled"
    status = desk("plan", "status", "p", "--json").json
    assert status["steps"]["slow"]["state"] == "interrupted"
    assert request_of(desk) == "open"


def test_sigterm_ends_after_the_running_step(desk: Desk):
    """Exit 1: nobody pressed Ctrl-C."""
    done, outcomes = stopped(desk, TERMINATE)
    assert (done.code, outcomes) == (1, {"slow": "succeeded"})
    assert done.json["resolution"] == "cancelled"


def test_children_of_a_step_can_be_ended(desk: Desk):
    """A process that a step forked is not deaf to SIGTERM, however soon it comes."""
    (desk.folder / "forks.py").write_text(
        "import os, signal, time\n"
        "from statelog.domain.execution import step, StepResult\n\n"
        "@step\n"
        "def forks(ctx):\n"
        "    ends = set()\n"
        "    for wait in [0, 0.1] * 5:\n"
        "        child = os.fork()\n"
        "        if child == 0:\n"
        "            try:\n"
        "                time.sleep(20)\n"
        "            finally:\n"
        "                os._exit(7)\n"
        "        time.sleep(wait)\n"
        "        os.kill(child, signal.SIGTERM)\n"
        "        ends.add(os.waitpid(child, 0)[1])\n"
        "    return StepResult(metrics={'ends': sorted(ends)})\n"
    )
    done = desk.process("run", desk.plan(a_step("a", "forks:forks")), "--json")
    assert done.code == 0
    status = desk("plan", "status", "p", "--json").json
    assert status["steps"]["a"]["metrics"] == {"ends": [int(TERMINATE)]}


def test_a_second_run_of_a_running_plan_is_refused(desk: Desk):
    """It names the process; the status does too; `--adopt` waits for the slot and then runs."""
    flag = desk.folder / "flag"
    plan = desk.plan(a_step("slow", "slow", params={"flag": str(flag)}))
    first = desk.start("run", plan)
    until(lambda: flag.exists() and flag.read_text() != "")
    refused = desk("run", plan)
    assert (refused.code, f"pid {first.pid}" in refused.error) == (1, True)
    status = desk("plan", "status", "p").out
    assert f"pid {first.pid} on" in status
    assert "running" in status
    assert "pending" not in status
    adopting = desk.start("run", plan, "--adopt")
    assert adopting.stderr is not None
    assert "waiting for execution" in adopting.stderr.readline()
    Path(f"{flag}.go").touch()
    assert ended(first).code == 0
    assert ended(adopting).code == 0


def test_a_killed_run_is_shown_and_taken_over(desk: Desk):
    """Nobody has the plan any more, and the next run closes the attempt and goes on."""
    flag = desk.folder / "flag"
    plan = desk.plan(a_step("slow", "slow", params={"flag": str(flag)}))
    process = desk.start("run", plan)
    until(lambda: flag.exists() and flag.read_text() != "")
    process.kill()
    ended(process)
    status = desk("plan", "status", "p").out
    assert "is gone" in status
    assert "pending" not in status
    assert "running" in status
    holders = desk("store", "doctor", "--json").json["holders"]
    assert [each["alive"] for each in holders] == [False]
    Path(f"{flag}.go").touch()
    assert desk("run", plan).code == 0
    attempts = desk("plan", "attempts", "p", "--json").lines
    assert [each["termination_reason"] for each in attempts] == ["completed", "orchestration_error"]
    assert [each["diagnostic"] is None for each in attempts] == [True, False]


@pytest.mark.parametrize("code", [0, 1], ids=["success", "failure"])
def test_a_reader_that_went_away_is_no_failure(desk: Desk, code: int):
    """`run ... | head`: the work is done, recorded, and decides the exit code."""
    read, write = os.pipe()
    os.close(read)
    plan = desk.plan(a_step("a", "bad" if code else "ok"), policy="continue_independent")
    done = desk.process("run", plan, "--json", stdout=write)
    os.close(write)
    assert (done.code, "Traceback" in done.err, "Exception" in done.err) == (code, False, False)
    assert request_of(desk) == "finished"


def test_a_closed_stderr_stops_no_attempt(desk: Desk):
    """Progress that nobody reads goes nowhere."""
    read, write = os.pipe()
    os.close(read)
    done = desk.process("run", desk.plan(a_step("a"), a_step("b")), "--json", stderr=write)
    os.close(write)
    assert (done.code, done.json["outcome"]) == (0, "succeeded")


def test_reading_into_a_closed_pipe(desk: Desk):
    """`log history | head` and `--help | head` end quietly."""
    desk("run", desk.plan(a_step("a")))
    read, write = os.pipe()
    os.close(read)
    for words in (["log", "history", "p"], ["plan", "list"], ["--help"]):
        done = desk.process(*words, stdout=write)
        assert done.err == ""
    os.close(write)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_stdout_on_a_full_disk_is_one_line(desk: Desk):
    """Exit 1 and why."""
    desk("run", desk.plan(a_step("a")))
    with open("/dev/full", "w") as full:
        for words in (["plan", "show", "p"], ["plan", "show", "p", "--json"], ["--help"]):
            done = desk.process(*words, stdout=full)
            assert (done.code, done.error) == (1, "stdout: No space left on device")


def test_a_current_folder_that_is_gone_is_one_line(desk: Desk, tmp_path: Path):
    """Exit 1 and what is gone."""
    plan, gone = desk.plan(a_step("a")), tmp_path / "gone"
    gone.mkdir()
    command = f"cd {gone} && rmdir {gone} && exec {sys.executable} -m statelog run {plan}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    said = "error: the current folder: No such file or directory\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_store_on_a_full_disk_is_one_line(desk: Desk):
    """No file may grow past a limit: exit 1, one line, and the log still opens."""
    desk("plan", "save", desk.plan(a_step("a")), "--approve")
    limit = desk.store.stat().st_size
    code = (
        "import resource, runpy, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        f"sys.argv = ['statelog', '--store', {str(desk.store)!r}, 'plan', 'touch', 'p']\n"
        "runpy.run_module('statelog', run_name='__main__')\n"
    )
    for _ in range(200):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if done.returncode:
            break
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert desk("views", "verify").code == 0
    assert desk("plan", "touch", "p").code == 0


def test_what_a_terminal_gets(desk: Desk):
    """Colours on a terminal only, none with NO_COLOR, and no escape of the log's."""
    plan = desk.plan(
        a_step("a", "says", params={"text": "\x1b]0;owned\x07 \x9b2J \x1b[31mred"}),
        a_step("b", "write"),
        policy="continue_independent",
    )
    told = desk.process("run", plan)
    assert "\x1b" not in told.out + told.err
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        for words in (
            *(["run", str(plan)], ["plan", "status", "p"], ["plan", "explain", "p", "a"]),
            *(["log", "history", "p"], ["plan", "show", "p"], ["log", "history", "p", "--json"]),
        ):
            shown = on_a_terminal(desk, words, {"TERM": "xterm", **env})
            assert "\x1b]" not in shown
            assert "\x9b" not in shown
            assert "\x1b[31mred" not in shown
            if words[0] == "run":
                assert ("\x1b[" in shown) is coloured


def on_a_terminal(desk: Desk, words: list[str], env: dict[str, str]) -> str:
    """Everything a command prints when both its outputs are a terminal."""
    master, terminal = pty.openpty()
    process = desk.start(*words, stdout=terminal, stderr=terminal, env=env)
    os.close(terminal)
    shown = b""
    try:
        while chunk := os.read(master, 65536):
            shown += chunk
    except OSError:
        pass
    os.close(master)
    process.wait(timeout=60)
    return shown.decode()


def test_json_is_json_wherever_it_goes(desk: Desk):
    """Whatever a step says, and whatever the terminal can show."""
    text = "caf\u00e9 \u2028 \x7f \x9b \U0001f9ec \u202e"
    desk("run", desk.plan(a_step("a", "says", params={"text": text})), "-q")
    for encoding in ("utf-8", "ascii", "latin-1"):
        done = desk.process(
            "log", "history", "p", "--json", env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
        )
        assert done.code == 0
        said = [line["data"].get("error") for line in map(json.loads, done.out.splitlines())]
        assert text in said
        assert not set(done.out) & {"\x7f", "\x9b", "\u202e", "\u2028"}
    assert desk.process("plan", "status", "p", env={"PYTHONIOENCODING": "ascii"}).code == 0


def test_both_ways_to_start_it(desk: Desk):
    """`python -m statelog` and the console script are one program; alone it prints its help."""
    script = Path(sys.executable).with_name("statelog")
    for command in ([str(script)], [sys.executable, "-m", "statelog"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True)
        assert (done.returncode, done.stdout.split()[0]) == (0, "statelog")
        alone = subprocess.run(command, capture_output=True, text=True)
        assert (alone.returncode, "Usage: statelog" in alone.stdout) == (0, True)


def test_options_before_and_after_the_command(desk: Desk):
    """`--store`, `--json` and `--actor` may stand in both places; the later one wins."""
    other = desk.folder / "other.db"
    plan = desk.plan(a_step("a"))
    done = desk(
        "--json", "--actor", "alice", "plan", "--actor", "bob", "save", plan, "--store", other
    )
    assert done.json["status"] == "draft"
    assert not desk.store.exists()
    told = desk("log", "history", "p", "--json", "--store", other).lines
    assert {line["actor"] for line in told} == {"bob"}


def test_the_default_store(desk: Desk):
    """$STATELOG_STORE, else ./statelog.db."""
    plan = desk.plan(a_step("a"))
    command = [sys.executable, "-m", "statelog", "plan", "save", str(plan)]
    for name, env in (("statelog.db", {}), ("env.db", {"STATELOG_STORE": "env.db"})):
        subprocess.run(command, check=True, cwd=desk.folder, env={**os.environ, **env})
        assert (desk.folder / name).exists()
