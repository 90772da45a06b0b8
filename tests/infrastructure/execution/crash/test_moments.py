"""Processes that die or stop at one exact moment, and what the next `statelog run` makes of it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.event import Recorded
from statelog.infrastructure.journal import Journal
from tests.infrastructure.cli.desk import Done
from tests.infrastructure.execution.crash.arena import Arena, Victim, ended, until
from tests.infrastructure.execution.crash.checks import (
    check_attempts,
    check_log,
    check_views,
    lost,
    rows_of,
)
from tests.infrastructure.execution.lab import a_step

STEPS = """
import fcntl, os, signal, subprocess, sys, time

@step
def ok(ctx: StepContext) -> None:
    ctx.emit("ran", step=ctx.step_id)

@step
def dies_once(ctx: StepContext) -> None:
    again = ctx.workdir / "again"
    if not again.exists():
        again.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    ctx.emit("ran", step=ctx.step_id)

@step
def waits(ctx: StepContext) -> None:
    (ctx.workdir / "here").touch()
    while not (ctx.workdir / "go").exists():
        time.sleep(0.005)
    ctx.emit("ran", step=ctx.step_id)

COMMAND = '''
import fcntl, os, signal, sys, time
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
held = open(sys.argv[1], "w")
fcntl.flock(held, fcntl.LOCK_EX)
print("ready", flush=True)
time.sleep(600)
'''

@step
def commands(ctx: StepContext, kind: str) -> None:
    lock, again = ctx.workdir / "lock", ctx.workdir / "again"
    if again.exists():
        with lock.open("w") as free:
            fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)
        ctx.emit("ran", step=ctx.step_id)
        return
    command = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(lock), kind], stdout=subprocess.PIPE)
    command.stdout.readline()
    again.write_text(str(command.pid))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    """An arena with these steps; whatever was done there, its log is whole in the end."""
    arena = Arena(tmp_path)
    arena.steps(STEPS)
    yield arena
    check_log(rows_of(arena.store))
    check_attempts(arena.store)
    check_views(arena.store, catch_up=True)


def events(arena: Arena, prefix: str = "plan/p") -> list[Recorded]:
    """All events below a prefix."""
    with Journal(arena.store, read_only=True) as journal:
        return list(journal.history(prefix))


def words(arena: Arena, prefix: str = "plan/p") -> list[str]:
    """The last words of their stored names."""
    return [recorded.name.rsplit(".", 1)[1] for recorded in events(arena, prefix)]


def ran(arena: Arena) -> list[str]:
    """Steps whose functions came to their end."""
    emitted = [r.event for r in events(arena) if r.name.endswith("step_emitted")]
    return [event.payload["step"] for event in emitted]


def dead(arena: Arena, plan: Path, **orders: Any) -> Victim:
    """A run that came to its death, and what it was told is there."""
    victim = arena.start("run", plan, "-q", orders=orders)
    assert victim.end().code == -9
    assert lost(rows_of(arena.store), victim.acks) == []
    return victim


def after(arena: Arena, plan: Path) -> dict[str, Any]:
    """What the next run of the plan says; it must succeed at once."""
    done = arena.run("run", plan, "--json")
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    assert "waiting for" not in done.err
    return told(done)


def told(done: Done) -> dict[str, Any]:
    found: dict[str, Any] = done.json
    return found


def status(arena: Arena, execution_id: str) -> dict[str, Any]:
    """The snapshot of one attempt."""
    done = arena.run("plan", "status", "p", "--attempt", execution_id, "--json")
    assert done.code == 0, done.err
    return told(done)


def test_killed_between_reservation_and_start(arena: Arena) -> None:
    """Case 121: the next admission voids the attempt, which is never shown."""
    plan = arena.file([a_step("a")])
    dead(arena, plan, die="after held")
    (held,) = [r.event.execution_id for r in events(arena) if r.name.endswith("held")]
    run = after(arena, plan)
    assert run["execution_id"] > held
    assert words(arena, f"plan/p/attempt/{held}") == ["voided"]
    # the takeover is its very first write, and nothing lies between it and the admission
    rest = words(arena)[words(arena).index("voided") :]
    assert rest[:4] == ["voided", "released", "adopted", "held"]
    attempts = arena.run("plan", "attempts", "p", "--json")
    assert held not in attempts.out
    assert run["execution_id"] in attempts.out
    assert arena.run("plan", "status", "p", "--attempt", held).code == 1


@pytest.mark.parametrize("die", [None, "before step_succeeded", "inserted step_emitted"])
def test_killed_inside_a_step(arena: Arena, die: str | None) -> None:
    """Case 122: the next process closes the attempt, and the step shows as interrupted."""
    first = "dies_once" if die is None else "ok"
    plan = arena.file([a_step("a", first), a_step("b", "ok", "a")])
    dead(arena, plan, die=die)
    (left,) = [r.event.execution_id for r in events(arena) if r.name.endswith("held")]
    run = after(arena, plan)
    assert run["report"]["step_outcomes"] == {"a": "succeeded", "b": "succeeded"}
    assert words(arena, f"plan/p/attempt/{left}")[-1] == "closed"
    report = events(arena, f"plan/p/attempt/{left}")[-1].event.report
    assert report["termination_reason"] == "orchestration_error"
    assert report["diagnostic"]["details"]["abandoned"] is True
    assert report["diagnostic"]["details"]["running_step_id"] == "a"
    snapshot = status(arena, left)
    assert snapshot["steps"]["a"]["state"] == "interrupted"
    assert snapshot["steps"]["b"]["state"] == "unreached"


@pytest.mark.parametrize("die", ["before marker", "after step_succeeded", "after marker"])
def test_killed_at_the_marker(arena: Arena, die: str) -> None:
    """A success without its marker runs again; one with it is reused."""
    plan = arena.file([a_step("a"), a_step("b", "ok", "a")])
    dead(arena, plan, die=die)
    run = after(arena, plan)
    there = die == "after marker"
    assert run["report"]["step_outcomes"]["a"] == ("reused" if there else "succeeded")
    assert ran(arena) == (["a", "b"] if there else ["a", "a", "b"])


@pytest.mark.parametrize("die", ["after closed+report_filed", "inserted request_finished+released"])
def test_killed_between_close_and_recording(arena: Arena, die: str) -> None:
    """Case 124: the next process records it and runs nothing; the document shows it once."""
    plan = arena.file([a_step("a")])
    victim = dead(arena, plan, die=die)
    assert words(arena)[-1] == "report_filed"
    run = after(arena, plan)
    assert (run["resolution"], run["run_token"]) == ("finalized", 0)
    assert ran(arena) == ["a"]
    assert words(arena).count("request_finished") == words(arena).count("held") == 1
    document = told(arena.run("plan", "show", "p", "--json"))
    assert document["last_finalized_execution"]["execution_id"] == run["execution_id"]
    held = next(r.event for r in events(arena) if r.name.endswith("held"))
    assert (held.execution_id, held.holder) == (run["execution_id"], victim.holder)


def test_killed_after_recording(arena: Arena) -> None:
    """The result is the first run's; the next one is a request of its own that reuses all."""
    plan = arena.file([a_step("a")])
    dead(arena, plan, die="after request_finished+released")
    run = after(arena, plan)
    assert run["run_token"] == 1
    assert run["report"]["step_outcomes"] == {"a": "reused"}


@pytest.mark.parametrize("die", ["before views", "before view", "after view"])
def test_killed_while_the_views_catch_up(arena: Arena, die: str) -> None:
    """The next reader goes on where the views are."""
    plan = arena.file([a_step("a")])
    dead(arena, plan, die=die)
    check_views(arena.store, catch_up=False)
    document = told(arena.run("plan", "show", "p", "--json"))
    assert document["latest_request_succeeded"] is True
    assert arena.run("views", "verify").code == 0


def test_a_stopped_process_keeps_its_plan(arena: Arena) -> None:
    """Case 123: a second run is refused, an adopting one waits; the first goes on and records."""
    plan = arena.file([a_step("a", "waits"), a_step("b", "ok", "a")])
    first = arena.start("run", plan, "--json")
    with ended(first):
        assert first.until("after step_started")
        first.signal(signal.SIGSTOP)
        first.until_stopped()
        stopped = words(arena)
        adopting = arena.start("run", plan, "--adopt", "--json")
        with ended(adopting):
            until(lambda: adopting.said("waiting for execution"))
            time.sleep(3)
            refused = arena.run("run", plan, "--json")
            assert refused.code == 1
            assert told(refused)["resolution"] == "not_authorized"
            assert f"pid {first.process.pid}" in told(refused)["reason"]
            assert words(arena) == stopped
            (arena.work() / "a" / "go").touch()
            first.signal(signal.SIGCONT)
            one, other = first.end(), adopting.end()
    assert one.code == 0, one.err
    assert told(one)["report"]["step_outcomes"] == {"a": "succeeded", "b": "succeeded"}
    assert other.code == 0
    assert told(other)["report"]["step_outcomes"] == {"a": "reused", "b": "reused"}
    assert ran(arena) == ["a", "b"]
    all_words = words(arena)
    assert all_words.index("request_finished") < all_words.index("adopted")
    assert all_words.count("request_finished") == 2


def test_a_stopped_process_that_is_killed_frees_its_plan_at_once(arena: Arena) -> None:
    """Nobody waits for a time to pass: the next run's first writes take it over."""
    plan = arena.file([a_step("a", "waits")])
    first = arena.start("run", plan, "-q")
    with ended(first):
        assert first.until("after step_started")
        first.signal(signal.SIGSTOP)
        first.until_stopped()
        first.kill()
        assert first.end().code == -9
    before = len(words(arena))
    (arena.work() / "a" / "go").touch()
    after(arena, plan)
    assert words(arena)[before : before + 5] == ["closed", "released", "adopted", "held", "started"]


@pytest.mark.parametrize("kind", ["plain", "deaf"])
def test_killed_while_an_external_command_runs(arena: Arena, kind: str) -> None:
    """Case 133: the command is ended before the plan runs again, also one that ignores TERM."""
    plan = arena.file([a_step("a", "commands", params={"kind": kind})])
    dead(arena, plan)
    pid = int((arena.work() / "a" / "again").read_text())
    done = arena.run("run", plan, "--json")
    assert done.code == 0, done.err
    assert ran(arena) == ["a"]
    assert f"ended its commands [{pid}]" in done.err


def test_json_is_json_also_after_a_takeover(arena: Arena) -> None:
    """What is said of a takeover goes to stderr."""
    plan = arena.file([a_step("a")])
    dead(arena, plan, die="after started")
    done = arena.run("run", plan, "--json")
    assert json.loads(done.out)["outcome"] == "succeeded"
    assert "whose process is gone" in done.err
