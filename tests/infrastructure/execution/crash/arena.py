"""Where processes are killed: a store, a plan of short steps, and `statelog run` as victims."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.infrastructure.cli.desk import Done
from tests.infrastructure.execution.lab import HEAD

VICTIM = Path(__file__).with_name("victim.py")
PATIENCE_S = 90

STEPS = """
import fcntl, os, time

@step
def work(ctx: StepContext, ms: float, round: int = 0) -> StepResult:
    plan = ctx.workdir.parent
    story = os.open(plan / "story.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    def tell(word):
        os.write(story, f"{ctx.execution_id} {ctx.step_id} {word}\\n".encode())
    alone = os.open(plan / "alone", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell("clash")
        raise
    tell("begin")
    ctx.progress(50)
    time.sleep(ms / 1000)
    ctx.outputs["out"].write_text(str(round))
    ctx.artifact("out", ctx.outputs["out"])
    tell("end")
    os.close(alone)
    os.close(story)
    return StepResult(metrics={"round": round})
"""

SHAPE = {"a": [], "b": [], "c": ["a"], "d": ["b", "c"], "e": ["d"]}


class Victim:
    """One command in a process of its own: what it told, and how it ended."""

    def __init__(
        self, folder: Path, words: tuple[Any, ...], orders: Mapping[str, Any], **given: Any
    ) -> None:
        self._read, write = os.pipe()
        self._rest = b""
        self.told: list[str] = []
        self._out, self._err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
        env = {**os.environ, "PYTHONWARNINGS": "error"}
        self.process = subprocess.Popen(
            [sys.executable, VICTIM, json.dumps({**orders, "tell": write}), *map(str, words)],
            **{"stdout": self._out, "stderr": self._err, "stdin": subprocess.DEVNULL, **given},
            env=env,
            cwd=folder,
            pass_fds=[write],
        )
        os.close(write)

    def until(self, word: str, times: int = 1) -> bool:
        """Wait until it has passed a mark this many times; False when it ended before that."""
        while self.told.count(word) < times:
            if not self._hear():
                return False
        return True

    def _hear(self) -> bool:
        if not select.select([self._read], [], [], PATIENCE_S)[0]:
            self.kill()
            raise AssertionError(f"nothing was heard of it after {self.told[-3:]}")
        told = os.read(self._read, 65536)
        *lines, self._rest = (self._rest + told).split(b"\n")
        self.told += [line.decode() for line in lines]
        return bool(told)

    def until_stopped(self) -> None:
        """Wait until it has stopped itself."""
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def said(self, text: str) -> bool:
        """Whether it has printed this on stderr by now, which it goes on writing."""
        return text.encode() in os.pread(self._err.fileno(), 1 << 20, 0)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """`kill -9`."""
        self.process.kill()

    def end(self) -> Done:
        """Wait for its end; how it was."""
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        # Its own lines are all there once it is dead; a command it left may keep the pipe open.
        while select.select([self._read], [], [], 0)[0] and self._hear():
            pass
        os.close(self._read)
        texts = []
        for file in (self._out, self._err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        return Done(code, *texts)

    @property
    def acks(self) -> dict[int, str]:
        """Hash by position of each event it was told is safe."""
        found = (line.split() for line in self.told if line.startswith("ack "))
        return {int(position): hash for _, position, hash in found}

    @property
    def holder(self) -> str | None:
        """Its id among the holders, when it got that far."""
        return next((line.split()[1] for line in self.told if line.startswith("holder ")), None)

    @property
    def last(self) -> str:
        """The last mark it passed."""
        return next((w for w in reversed(self.told) if not w.startswith("ack ")), "start")


class Arena:
    """One store, and plans of five short steps that watch that nobody else is at work."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o700)
        self.folder = folder
        self.store = folder / "s.db"
        self.rounds: dict[str, dict[str, int]] = {}
        self.steps(STEPS)

    def steps(self, code: str) -> None:
        """Write the step module."""
        (self.folder / "steps.py").write_text(HEAD + textwrap.dedent(code))

    def plan(self, plan_id: str = "p", ms: float = 2) -> Path:
        """Write the file of a plan as its rounds are now."""
        rounds = self.rounds.setdefault(plan_id, dict.fromkeys(SHAPE, 0))
        steps = [
            {
                "step_id": step_id,
                "name": f"Step {step_id}",
                "fn_ref": "steps:work",
                "params": {"ms": ms, "round": rounds[step_id]},
                "deps": deps,
                "outputs": {"out": "out.txt"},
            }
            for step_id, deps in SHAPE.items()
        ]
        return self.file(steps, plan_id)

    def file(self, steps: list[dict[str, Any]], plan_id: str = "p") -> Path:
        """Write a plan file of these steps."""
        path = self.folder / f"{plan_id}.json"
        path.write_text(json.dumps({"plan_id": plan_id, "realm": "lab", "steps": steps}))
        return path

    def start(self, *words: Any, orders: Mapping[str, Any] | None = None, **given: Any) -> Victim:
        """Type a command and do not wait."""
        return Victim(self.folder, ("--store", self.store, *words), orders or {}, **given)

    def run(self, *words: Any, orders: Mapping[str, Any] | None = None, **given: Any) -> Done:
        """Type a command, to its end."""
        return self.start(*words, orders=orders, **given).end()

    def work(self, plan_id: str = "p") -> Path:
        """The work directory of a plan."""
        return self.folder / "s.db.work" / plan_id

    def marker(self, step_id: str, plan_id: str = "p") -> Path:
        """The success marker of a step."""
        return self.work(plan_id) / step_id / "success.fingerprint"

    def markers(self, plan_id: str = "p") -> dict[str, str]:
        """Every success marker by step, of those whose output is there too."""
        found = {step_id: self.marker(step_id, plan_id) for step_id in SHAPE}
        return {
            step_id: path.read_text().strip()
            for step_id, path in found.items()
            if path.exists() and path.with_name("out.txt").exists()
        }


@contextmanager
def ended(*victims: Victim) -> Iterator[None]:
    """No process outlives the block."""
    try:
        yield
    finally:
        for victim in victims:
            victim.kill()


def until(happens: Callable[[], bool]) -> None:
    """Wait for something."""
    deadline = time.monotonic() + PATIENCE_S
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.005)
