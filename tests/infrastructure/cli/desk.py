"""A desk to type commands at: a store, step modules and plan files, in this process or another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from statelog.domain.event import Recorded
from statelog.infrastructure.cli.app import app
from statelog.infrastructure.journal import Journal
from tests.infrastructure.execution.lab import HEAD, STEPS, a_step

MORE = """
import asyncio, os, sys, time

@step
def count(ctx: StepContext) -> StepResult:
    return StepResult(metrics={"n": 1})

@step
def needs(ctx: StepContext, flag: str) -> None:
    if not Path(flag).exists():
        raise PermanentStepError(f"{flag} is gone", code="flag", advice="touch it")

@step
def cancelled(ctx: StepContext) -> None:
    raise asyncio.CancelledError

@step
def prints(ctx: StepContext) -> None:
    print("printed by the step")
    os.system("echo echoed by its command")

@step
def says(ctx: StepContext, text: str) -> None:
    raise PermanentStepError(text)

@step
def slow(ctx: StepContext, flag: str, seconds: float = 60) -> None:
    Path(flag).write_text(str(os.getpid()))
    end = time.monotonic() + seconds
    while time.monotonic() < end and not Path(flag + ".go").exists():
        time.sleep(0.01)
"""

RUN_FIELDS = (
    *("plan_id", "plan_generation", "run_token", "execution_id", "resolution", "reason"),
    *("outcome", "termination_reason", "report"),
)
"""The fields of a line of `run --json`, in their order."""


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """Its stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        """Its stdout as the one JSON value that it is."""
        (value,) = self.lines
        return value

    @property
    def error(self) -> str:
        """The one line that says what is wrong, without `error: `."""
        assert "Traceback" not in self.err + self.out
        (line,) = [line for line in self.err.splitlines() if line.startswith("error: ")]
        return line.removeprefix("error: ")


class Desk:
    """One folder with a store, `steps.py` and plan files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o700)
        self.store = folder / "s.db"
        (folder / "steps.py").write_text(HEAD + STEPS + MORE)

    def plan(self, *steps: Mapping[str, Any], policy: str = "fail_fast", **more: Any) -> Path:
        """Write a plan file of these steps."""
        body = {"plan_id": "p", "realm": "lab", "scope": {"kind": "test", "id": "1"}}
        return self.file(json.dumps({**body, "failure_policy": policy, "steps": [*steps], **more}))

    def file(self, text: str, name: str = "plan.json") -> Path:
        """Write a file of the desk."""
        path = self.folder / name
        path.write_text(text)
        return path

    def __call__(self, *words: Any, store: Any = None, env: Any = None) -> Done:
        """Type a command in this process."""
        args = ["--store", str(store or self.store), *map(str, words)]
        done = CliRunner().invoke(app, args, prog_name="statelog", env=env)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)

    def start(self, *words: Any, **given: Any) -> subprocess.Popen[str]:
        """Type a command in a process of its own and do not wait."""
        args = [sys.executable, "-m", "statelog", "--store", str(self.store), *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        env = {**os.environ, "PYTHONWARNINGS": "error", **given.pop("env", {})}
        return subprocess.Popen(args, env=env, cwd=self.folder, **{**pipes, **given})

    def process(self, *words: Any, **given: Any) -> Done:
        """Type a command in a process of its own."""
        return ended(self.start(*words, **given))

    def events(self, prefix: str = "plan/p") -> list[Recorded]:
        """The events below a prefix."""
        with Journal(self.store, read_only=True) as journal:
            return list(journal.history(prefix))

    def names(self, prefix: str = "plan/p") -> list[str]:
        """The last words of the stored names of these events."""
        return [recorded.name.rsplit(".", 1)[1] for recorded in self.events(prefix)]

    @property
    def files(self) -> set[str]:
        """What lies on the desk."""
        return {path.name for path in self.folder.iterdir() if path.name != "__pycache__"}


def ended(process: subprocess.Popen[str]) -> Done:
    """How a started command ended."""
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out or "", err or "")


__all__ = ["RUN_FIELDS", "Desk", "Done", "a_step", "ended"]
