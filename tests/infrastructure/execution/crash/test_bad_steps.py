"""Steps that misbehave: each has the ending that the spec gives it, and the log stays whole."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.infrastructure.cli.desk import Done
from tests.infrastructure.execution.crash.arena import Arena
from tests.infrastructure.execution.crash.checks import (
    check_attempts,
    check_log,
    check_views,
    lost,
    rows_of,
)
from tests.infrastructure.execution.lab import a_step

STEPS = """
import os, shutil, signal, subprocess, sys, threading, time

@step
def ok(ctx: StepContext) -> None:
    ctx.emit("ran", step=ctx.step_id)

@step
def kills_itself(ctx: StepContext) -> None:
    os.kill(os.getpid(), signal.SIGKILL)

@step
def exits_hard(ctx: StepContext) -> None:
    os._exit(0)

class Odd(BaseException):
    pass

@step
def raises(ctx: StepContext, what: str) -> None:
    raise {"odd": Odd("odd"), "exit": SystemExit(0), "ctrl-c": KeyboardInterrupt(),
           "generator": GeneratorExit()}[what]

@step
def moves(ctx: StepContext) -> None:
    os.chdir("/")

@step
def relative(ctx: StepContext) -> None:
    Path("made-here").touch()

@step
def moves_where_nothing_is(ctx: StepContext) -> None:
    gone = ctx.workdir / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()

@step
def forks(ctx: StepContext, how: str) -> None:
    pid = os.fork()
    if pid:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        ctx.emit("ran", step=ctx.step_id, child=code)
        return
    if how == "exit":
        sys.exit(3)
    if how == "raise":
        raise ValueError("only the child")
    if how == "odd":
        raise Odd
    if how == "_exit":
        os._exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "emit":
        ctx.emit("ran", step="child")

@step
def loses_its_folder(ctx: StepContext) -> None:
    shutil.rmtree(ctx.workdir)

@step
def loses_the_plans_folder(ctx: StepContext) -> None:
    shutil.rmtree(ctx.workdir.parent)

@step
def prints(ctx: StepContext, where: str, megabytes: int) -> None:
    for _ in range(megabytes):
        getattr(sys, where).write("x" * (1 << 20))
    ctx.emit("ran", step=ctx.step_id)

@step
def shuts(ctx: StepContext) -> None:
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    ctx.emit("ran", step=ctx.step_id)

@step
def shuts_streams(ctx: StepContext) -> None:
    sys.stdout.close(); sys.stderr.close()

@step
def leaves_a_thread(ctx: StepContext) -> None:
    def late():
        while True:
            try:
                ctx.emit("late")
            except Exception:
                return
    threading.Thread(target=late).start()

@step
def leaves(ctx: StepContext) -> None:
    left = subprocess.Popen(["sleep", "600"], stdout=2)
    with (ctx.workdir / "left").open("a") as file:
        print(left.pid, file=file)

@step
def deep(ctx: StepContext) -> None:
    deep(ctx)

@step
def alarms(ctx: StepContext) -> None:
    signal.alarm(1)
    signal.pause()
"""

CHILDREN = {"exit": 3, "raise": 1, "odd": 1, "_exit": 3, "kill": -9, "return": 0, "emit": 1}
"""How a forked child gets out of a step, and the exit code it has then."""


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    """An arena with these steps; whatever they did, its log is whole in the end."""
    arena = Arena(tmp_path)
    arena.steps(STEPS)
    yield arena
    check_log(rows_of(arena.store))
    check_attempts(arena.store)
    check_views(arena.store, catch_up=True)


def run(arena: Arena, *steps: dict[str, Any], **given: Any) -> Done:
    """Run a plan of these steps; what it was told is there, is there."""
    victim = arena.start("run", arena.file([*steps]), "--json", **given)
    done = victim.end()
    assert lost(rows_of(arena.store), victim.acks) == []
    assert "Traceback" not in done.out
    return done


def names(arena: Arena) -> list[str]:
    """The last words of all stored names."""
    return [row.name.rsplit(".", 1)[1] for row in rows_of(arena.store)]


def emitted(arena: Arena) -> list[dict[str, Any]]:
    """Payloads of custom events."""
    rows = rows_of(arena.store)
    return [json.loads(r.data)["payload"] for r in rows if r.name.endswith("step_emitted")]


@pytest.mark.parametrize(("fn", "code"), [("kills_itself", -9), ("exits_hard", 0)])
def test_a_step_that_ends_its_process(arena: Arena, fn: str, code: int) -> None:
    """Its attempt is closed by the next run, which runs the plan again: with the same end."""
    step = a_step("a", fn)
    for attempts in (1, 2):
        assert run(arena, step, a_step("b", "ok", "a")).code == code
        assert names(arena).count("held") == attempts
        assert names(arena).count("closed") == attempts - 1
        assert names(arena)[-1] == "step_started"
    assert run(arena, a_step("b")).code == 0


@pytest.mark.parametrize("what", ["odd", "exit", "ctrl-c", "generator"])
def test_a_step_that_raises_no_ordinary_exception(arena: Arena, what: str) -> None:
    """It ends the attempt as cancelled: no outcome, the request stays open, exit 1 (1.12)."""
    done = run(arena, a_step("a", "raises", params={"what": what}), a_step("b"))
    assert done.code == 1
    assert done.json["resolution"] == "cancelled"
    assert done.json["report"]["step_outcomes"] == {}
    assert done.json["report"]["diagnostic"]["details"] == {"running_step_id": "a"}
    assert "step_failed" not in names(arena)
    assert "Traceback" not in done.err


@pytest.mark.parametrize("fn", ["moves", "moves_where_nothing_is"])
def test_a_step_that_changes_the_directory(arena: Arena, fn: str) -> None:
    """The directory is the process's; nothing of ours is looked for in it."""
    done = run(arena, a_step("a", fn), a_step("b"))
    assert done.code == 0, done.err
    again = run(arena, a_step("a", fn), a_step("b"))
    assert set(again.json["report"]["step_outcomes"].values()) == {"reused"}


@pytest.mark.parametrize("given", ["relative", "absolute"])
def test_a_store_named_relatively_survives_a_change_of_directory(arena: Arena, given: str) -> None:
    """Also its work root, plan file and modules."""
    plan = arena.file(
        [
            a_step("a", "moves"),
            a_step("b"),
            a_step("c", "prints", "b", params={"where": "stdout", "megabytes": 0}),
        ]
    )
    root = "work" if given == "relative" else str(arena.folder / "work")
    name = plan.name if given == "relative" else str(plan)
    done = arena.run("run", name, "--work-root", root, "--store", "other.db")
    assert done.code == 0, done.err
    assert (arena.folder / "work" / "p" / "c" / "success.fingerprint").exists()
    assert (arena.folder / "other.db.views.db").exists()


@pytest.mark.parametrize("how", CHILDREN)
def test_a_step_whose_forked_child_gets_out_of_it(arena: Arena, how: str) -> None:
    """The child never goes on as the engine: the parent alone says how the step ended."""
    done = run(arena, a_step("a", "forks", params={"how": how}), a_step("b", "ok", "a"))
    assert done.code == 0, done.err
    assert done.json["report"]["step_outcomes"] == {"a": "succeeded", "b": "succeeded"}
    assert len(done.lines) == 1
    assert emitted(arena)[0] == {"step": "a", "child": CHILDREN[how]}
    for word in ("step_succeeded", "closed", "request_finished"):
        assert names(arena).count(word) == (2 if word == "step_succeeded" else 1)


def test_a_step_that_removes_its_own_directory(arena: Arena) -> None:
    """Its success is in the log and its marker cannot be: an orchestration error, no outcome."""
    done = run(arena, a_step("a", "loses_its_folder"), a_step("b", "ok", "a"))
    assert (done.code, done.json["resolution"]) == (1, "unfinished")
    assert done.json["termination_reason"] == "orchestration_error"
    assert "success marker" in done.json["reason"]
    assert done.json["report"]["step_outcomes"] == {}
    assert done.json["report"]["unreached_step_ids"] == ["a", "b"]
    assert "Traceback" not in done.err
    shown = arena.run("plan", "status", "p", "--json").json["steps"]
    assert [shown[step]["state"] for step in "ab"] == ["interrupted", "unreached"]


def test_a_step_that_removes_the_plans_directory(arena: Arena) -> None:
    """The same, and the next run makes it anew."""
    done = run(arena, a_step("a"), a_step("b", "loses_the_plans_folder"))
    assert done.json["termination_reason"] == "orchestration_error"
    assert run(arena, a_step("a")).code == 0


@pytest.mark.parametrize("where", ["stdout", "stderr"])
def test_a_step_that_prints_without_end(arena: Arena, where: str) -> None:
    """50 MB go to stderr, none of them to stdout, the log or memory."""
    before = arena.folder / "s.db"
    done = run(arena, a_step("a", "prints", params={"where": where, "megabytes": 50}))
    assert done.code == 0
    assert len(done.lines) == 1
    assert len(done.err) > 50 << 20
    assert before.stat().st_size < 1 << 20


def test_nobody_reads_what_is_told(arena: Arena) -> None:
    """What we and the step print has nowhere to go, and the result is recorded all the same."""
    read, write = os.pipe()
    os.close(read)
    step = a_step("a", "prints", params={"where": "stderr", "megabytes": 1})
    done = arena.run("run", arena.file([step]), stderr=write, stdout=write)
    os.close(write)
    assert done.code == 0
    assert names(arena)[-2:] == ["request_finished", "released"]


def test_every_output_is_full(arena: Arena) -> None:
    """`/dev/full` takes nothing; what was run is recorded."""
    with Path("/dev/full").open("w") as full:
        done = arena.run("run", arena.file([a_step("a")]), stdout=full, stderr=full)
    assert done.code in (0, 1)
    assert names(arena)[-2:] == ["request_finished", "released"]


@pytest.mark.parametrize("fn", ["shuts", "shuts_streams"])
def test_a_step_that_closes_the_standard_streams(arena: Arena, fn: str) -> None:
    """The result is recorded, whatever can still be said of it."""
    run(arena, a_step("a", fn), a_step("b"))
    assert names(arena)[-2:] == ["request_finished", "released"]


def test_a_step_that_leaves_a_thread_behind(arena: Arena) -> None:
    """Its late events are refused, and none comes after the step's own end."""
    done = run(arena, a_step("a", "leaves_a_thread"), a_step("b", "ok", "a"))
    assert done.code == 0, done.err
    ends = names(arena).index("step_succeeded")
    rows = [row for row in rows_of(arena.store)[ends:] if row.name.endswith("step_emitted")]
    assert [json.loads(row.data)["step_id"] for row in rows] == ["b"]


def test_a_step_without_end_of_recursion(arena: Arena) -> None:
    """An ordinary failure."""
    done = run(arena, a_step("a", "deep"))
    assert done.json["termination_reason"] == "failed_fast"
    assert "RecursionError" in str(done.json["report"])


def test_a_step_that_is_ended_by_a_signal(arena: Arena) -> None:
    """As the signal ends processes; the next run takes over."""
    assert run(arena, a_step("a", "alarms")).code == -14
    assert run(arena, a_step("a")).code == 0


def test_a_command_that_outlives_its_run(arena: Arena) -> None:
    """A command that a step leaves behind holds nothing of ours: the next run is not hindered."""
    for _ in range(2):
        assert run(arena, a_step("a", "leaves")).code == 0
        arena.marker("a").unlink()
    for line in (arena.work() / "a" / "left").read_text().split():
        os.kill(int(line), signal.SIGKILL)
