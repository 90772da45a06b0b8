"""Daemons and runs on one store, that tell into one file what they pass: also their attempts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from statelog.domain.event import Recorded
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from tests.infrastructure.execution.crash.arena import PATIENCE_S, VICTIM, until
from tests.infrastructure.execution.crash.checks import (
    check_attempts,
    check_log,
    check_views,
    lost,
    rows_of,
)
from tests.infrastructure.execution.lab import HEAD
from tests.model.audit import audited

MARK = "STATELOG_FLEET"
"""In the environment of every process of a fleet, and of what they start."""


class Told(NamedTuple):
    """A process passed a mark."""

    pid: int
    word: str


class Unit:
    """One command in a process of its own."""

    def __init__(self, fleet: Fleet, words: tuple[Any, ...], orders: Mapping[str, Any]) -> None:
        self.log = fleet.logs / f"{len(fleet.units)}.err"
        self.out = self.log.with_suffix(".out")
        told = {"tell": str(fleet.told_file), **orders}
        with self.log.open("wb") as err, self.out.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, VICTIM, json.dumps(told), *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=fleet.folder,
                env={**os.environ, "PYTHONWARNINGS": "error", MARK: str(fleet.folder)},
                start_new_session=True,
            )
        self.pid = self.process.pid

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return self.process.poll() is None

    @property
    def err(self) -> str:
        """What it, and its children, wrote to stderr so far."""
        return self.log.read_text(errors="replace")

    def said(self, text: str) -> bool:
        """Whether it has written this by now."""
        return text in self.err

    def end(self, number: int | None = None) -> int:
        """Wait for its end, after a signal if there is one; its exit code."""
        if number is not None:
            self.signal(number)
        return self.process.wait(PATIENCE_S)


class Fleet:
    """One store and every process on it."""

    def __init__(self, folder: Path, steps: str, logs: Path | None = None) -> None:
        folder.chmod(0o700)
        self.logs = logs or folder
        self.folder, self.store, self.work = folder, folder / "s.db", folder / "s.db.work"
        self.told_file = self.logs / "told.log"
        self.told_file.touch()
        self.units: list[Unit] = []
        (folder / "steps.py").write_text(HEAD + textwrap.dedent(steps))
        self.journal = Journal(self.store)
        self.plans = Plans(self.journal, "alice", Holders.of(self.store))
        self._told: list[Told] = []
        self._heard = 0

    def close(self) -> None:
        """End every process that is left, and everything they started."""
        for unit in self.units:
            with suppress(ProcessLookupError):
                os.killpg(unit.pid, signal.SIGKILL)
            unit.process.wait()
        for pid in self.processes():
            self.kill(pid)
        self.journal.close()

    def start(self, *words: Any, orders: Mapping[str, Any] | None = None) -> Unit:
        """Type a command and do not wait."""
        unit = Unit(self, ("--store", self.store, *words), orders or {})
        self.units.append(unit)
        return unit

    def daemon(self, *words: Any, orders: Mapping[str, Any] | None = None) -> Unit:
        """A daemon, which may not be up yet."""
        return self.start("daemon", "--path", self.folder, *words, orders=orders)

    def save(self, *steps: Mapping[str, Any], plan_id: str = "p", **given: Any) -> None:
        """Save and approve a plan."""
        self.plans.save(self.body(*steps, plan_id=plan_id, **given), approve=True, force=True)

    def body(
        self, *steps: Mapping[str, Any], plan_id: str = "p", policy: str = "continue_independent"
    ) -> dict[str, Any]:
        """A plan body of these steps."""
        body = {"plan_id": plan_id, "realm": "lab", "scope": {"kind": "test", "id": "1"}}
        return {**body, "steps": [dict(step) for step in steps], "failure_policy": policy}

    def told(self) -> list[Told]:
        """The marks that were passed so far."""
        with self.told_file.open("rb") as file:
            file.seek(self._heard)
            *lines, _ = file.read().split(b"\n")
        for line in lines:
            self._heard += len(line) + 1
            pid, word = line.decode().split(" ", 1)
            self._told.append(Told(int(pid), word))
        return self._told

    def passed(self, word: str, times: int = 1) -> int:
        """Wait until a mark was passed this many times; the pid of whoever passed it last."""
        found: list[int] = []

        def there() -> bool:
            found[:] = [told.pid for told in self.told() if told.word == word]
            return len(found) >= times

        until(there)
        return found[times - 1]

    @property
    def acks(self) -> dict[int, str]:
        """Hash by position of each event that a process was told is safe."""
        words = (told.word.split() for told in self.told() if told.word.startswith("ack "))
        return {int(position): hash for _, position, hash in words}

    def lives_of(self, holder: str) -> list[int]:
        """Where in what was told the process of a holder told something."""
        told = self.told()
        begin = next((at for at, each in enumerate(told) if each.word == f"holder {holder}"), None)
        if begin is None:
            return []
        pid, found = told[begin].pid, []
        for at, each in enumerate(told[begin:], begin):
            if each.pid == pid:
                if each.word == "up":  # the number is another process's by now
                    break
                found.append(at)
        return found

    def processes(self) -> list[int]:
        """Everything alive that belongs to this fleet, in the order of the pids."""
        mark = f"{MARK}={self.folder}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                ours = mark in (folder / "environ").read_bytes().split(b"\0")
                if ours and state_of(int(folder.name)) not in "ZX":
                    found.append(int(folder.name))
        return sorted(found)

    def attempts(self, daemon: Unit) -> list[int]:
        """The processes of a daemon's attempts."""
        return [pid for pid in self.processes() if parent_of(pid) == daemon.pid]

    def kill(self, pid: int, number: int = signal.SIGKILL) -> bool:
        """Signal a living process of this fleet; False when it is none (any more)."""
        with suppress(ProcessLookupError):
            # the number may be another process's by now; the descriptor stays what it was
            descriptor = os.pidfd_open(pid)
            try:
                if pid in self.processes():
                    signal.pidfd_send_signal(descriptor, number)
                    return True
            finally:
                os.close(descriptor)
        return False

    def end(self) -> None:
        """Stop the daemons that live as one should, and look at what they leave."""
        for unit in self.units:
            if unit.alive:
                assert unit.end(signal.SIGTERM) == 0, unit.err
            assert "Traceback" not in unit.err, unit.err
        self.check_ended()

    def history(self, plan_id: str = "p") -> list[Recorded]:
        """Every event of a plan, its slot and its attempts."""
        return list(self.journal.history(f"plan/{plan_id}"))

    def words(self, plan_id: str = "p") -> list[str]:
        """The last words of their stored names."""
        return [recorded.name.rsplit(".", 1)[1] for recorded in self.history(plan_id)]

    def reports(self, plan_id: str = "p") -> list[Mapping[str, Any]]:
        """The closed reports of a plan."""
        return [r.event.report for r in self.history(plan_id) if r.name.endswith(".closed")]

    def plan_ids(self) -> list[str]:
        """Every plan the log has ever heard of."""
        return sorted({row.stream.split("/")[1] for row in rows_of(self.store)})

    def check(self, acks: Mapping[int, str] | None = None) -> None:
        """The log is whole, has all that was acknowledged, and breaks no rule, at any moment."""
        safe = self.acks if acks is None else {**self.acks, **acks}
        rows = rows_of(self.store)
        check_log(rows)
        assert lost(rows, safe) == []
        for plan_id in self.plan_ids():
            log = [(recorded.stream, recorded.event) for recorded in self.history(plan_id)]
            assert audited(log) == [], plan_id

    def check_ended(self, acks: Mapping[int, str] | None = None) -> None:
        """The same when all have ended: nothing is left alive, and views equal their rebuild."""
        assert not [unit for unit in self.units if unit.alive]
        assert self.processes() == []
        self.check(acks)
        for plan_id in self.plan_ids():
            check_attempts(self.store, plan_id)
        check_views(self.store, catch_up=False)
        check_views(self.store, catch_up=True)


@contextmanager
def fleet_of(folder: Path, steps: str, logs: Path | None = None) -> Iterator[Fleet]:
    """A fleet of which nothing is left alive; `logs` is a folder for what its processes print."""
    fleet = Fleet(folder, steps, logs)
    try:
        yield fleet
    finally:
        fleet.close()


def state_of(pid: int) -> str:
    """The letter of a process's state; X when it is gone."""
    return _stat(pid)[0]


def parent_of(pid: int) -> int:
    """The pid of its parent; 0 when it is gone."""
    return int(_stat(pid)[1])


def _stat(pid: int) -> list[str]:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ["X", "0"]
    return stat[stat.rindex(")") + 2 :].split()


def stopped(pid: int) -> Callable[[], bool]:
    """Asks whether a process is stopped."""
    return lambda: state_of(pid) in "Tt"
