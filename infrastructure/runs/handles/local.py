"""The runtime of this machine: each command under a shim, in a session of its own (P19).

What is known of an activity lies in its control directory. `lock` is held by the shim as long as it
lives, and by whoever is about to start it: a free lock with no `ended.json` is an activity that
nobody watches over. Then what it left is ended, and that it was lost is written down for good.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.handles import port, shim
from statelog.infrastructure.runs.handles.control import is_free, locked, read, why
from statelog.infrastructure.runs.handles.leftovers import end_leftovers
from statelog.infrastructure.runs.handles.port import Observation, Ref, RuntimeFailure, Seen, Spec
from statelog.infrastructure.runs.handles.telling import observed, verdict

MARK: Final = "STATELOG_MARK"
"""In the environment of a command and so of all it starts: a token of its own."""

PASSED_ON: Final = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
"""Variables that every command has from its worker; others are passed on by name."""

GRACE_S: Final = 5.0
LOG_BYTES: Final = 10 * 1024 * 1024
_PROGRAM: Final = Path(shim.__file__)
_AWAKE_S: Final = 10.0


_spawned: Final[set[int]] = set()
"""Shims that this process started and has not seen the end of."""


class LocalRuntime:
    """Commands as processes of this machine, below one folder of runs. Needs Linux.

    After the command's end, TERM and `grace_s` later KILL end what it left running. Of each output
    stream the first `log_bytes` are kept, and the last 64 KiB.
    """

    def __init__(
        self,
        root: Path,
        *,
        environ: Mapping[str, str] | None = None,
        grace_s: float = GRACE_S,
        log_bytes: int = LOG_BYTES,
    ) -> None:
        self._root = root
        self._environ = os.environ if environ is None else environ
        self._grace_s = grace_s
        self._log_bytes = log_bytes

    def start(self, spec: Spec) -> Observation:
        """Start a command under a shim of its own, unless its activity was started before."""
        control = self._control(spec.ref)
        try:
            self._folder(spec.ref).made(control)
            with locked(control) as lock:
                if lock is None or (control / "order.json").exists():
                    return self.inspect(spec.ref)
                shim.write_json(str(control), "order.json", self._order(spec))
                self._spawn(control, lock)
        except OSError as error:
            return self._not_started(spec.ref, error)
        return self._awaited(spec.ref)

    def inspect(self, ref: Ref) -> Observation:
        """Look at the files of an activity, and at the lock when they do not tell its end."""
        _reap()
        control = self._control(ref)
        try:
            end = read(control / "ended.json") or self._lost(ref, control)
            started = read(control / "started.json")
            order = read(control / "order.json") or {}
        except OSError as error:
            raise RuntimeFailure(f"cannot look at {control}: {error}") from error
        return observed(ref, control, order, started, end)

    def stop(self, ref: Ref) -> Observation:
        """Ask the shim to end the command, and after twice the grace do it without the shim."""
        found = self.inspect(ref)
        if found.seen.over:
            return found
        control = self._control(ref)
        asked = self._ask(control, signal.SIGTERM)
        if not asked or not self._gone(control, 2 * self._grace_s + 2):
            self._ask(control, signal.SIGKILL)
            self._gone(control, 2.0)
        found = self.inspect(ref)
        if not found.seen.over:
            raise RuntimeFailure(f"{ref.id} cannot be ended: its processes do not die")
        return found

    def watch(self, ref: Ref) -> int | None:
        """A descriptor of the shim's process."""
        known = None
        with suppress(OSError):
            known = read(self._control(ref) / "shim.json")
        if known is None or known["boot"] != shim.boot_id():
            return None
        try:
            descriptor = os.pidfd_open(known["pid"])
        except OSError:
            return None
        with suppress(OSError):
            if shim.start_ticks(known["pid"]) == known["ticks"]:
                return descriptor
        os.close(descriptor)
        return None

    def _folder(self, ref: Ref) -> RunFolder:
        return RunFolder(self._root, ref.run_id)

    def _control(self, ref: Ref) -> Path:
        return self._folder(ref).control(ref.activity_id)

    def _order(self, spec: Spec) -> dict[str, Any]:
        mark = uuid4().hex
        names = (*PASSED_ON, *spec.pass_on)
        passed = {name: self._environ[name] for name in names if name in self._environ}
        ours = {
            port.RUN_ID: spec.ref.run_id,
            port.ACTIVITY_ID: spec.ref.activity_id,
            port.ATTEMPT: str(spec.attempt),
            port.RESOURCE_ID: spec.resource_id,
            MARK: mark,
        }
        return {
            "argv": list(spec.argv),
            "environment": {**passed, **spec.environment, **ours},
            "directory": str(spec.workspace / spec.directory),
            "timeout": spec.timeout_seconds,
            "grace": self._grace_s,
            "logBytes": self._log_bytes,
            "mark": mark,
            "image": spec.image,
            "submittedAt": time.time(),
        }

    def _spawn(self, control: Path, lock: int) -> None:
        """Start the shim in a session of its own; the lock goes with it. Raises `OSError`."""
        log = str(control / "shim.log")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-X", "utf8", str(_PROGRAM), str(control)],
            {"PATH": self._environ.get("PATH", os.defpath)},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, lock, shim.LOCK_FD),
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD),
        )
        _spawned.add(pid)

    def _awaited(self, ref: Ref) -> Observation:
        """The activity once its command runs or will not: the shim needs some milliseconds."""
        deadline = time.monotonic() + _AWAKE_S
        while True:
            found = self.inspect(ref)
            if found.seen is not Seen.STARTING or time.monotonic() >= deadline:
                return found
            time.sleep(0.005)

    def _not_started(self, ref: Ref, error: OSError) -> Observation:
        """Nothing was spawned, and nothing ever will be: the control directory says so."""
        with suppress(OSError):
            self.inspect(ref)
        failure = f"start activity: {why(error)}"
        return Observation(ref, Seen.FAILED, finished_at=time.time(), failure=failure)

    def _lost(self, ref: Ref, control: Path) -> dict[str, Any] | None:
        """What became of an activity that nobody watches over; none when somebody does."""
        if not control.is_dir():
            self._folder(ref).made(control)
        with locked(control) as lock:
            if lock is None:
                return None
            end = read(control / "ended.json")
            if end is None:
                end = verdict(control, end_leftovers(control, MARK))
                _seal(control, end)
            return end

    def _ask(self, control: Path, number: int) -> bool:
        """Signal the shim, once it has said which process it is; whether it could be."""
        deadline = time.monotonic() + _AWAKE_S
        while (known := read(control / "shim.json")) is None:
            if is_free(control) or time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        same = known["boot"] == shim.boot_id()
        return bool(same and shim.send(known["pid"], known["ticks"], number))

    def _gone(self, control: Path, seconds: float) -> bool:
        """Wait until nobody holds the lock; whether that came to pass."""
        deadline = time.monotonic() + seconds
        while not is_free(control):
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        return True

    def close(self) -> None:
        """Let go of the shims that have ended or are just ending; the others live on."""
        for pid in tuple(_spawned):
            with suppress(OSError):
                descriptor = os.pidfd_open(pid)
                select.select([descriptor], [], [], 0.1)
                os.close(descriptor)
        _reap()


def _seal(control: Path, end: Mapping[str, Any]) -> None:
    """Write the verdict down. An order that is there keeps others from starting it just as well."""
    try:
        shim.write_json(str(control), "ended.json", end)
    except OSError:
        if not (control / "order.json").exists():
            raise


def _reap() -> None:
    """Notice shims of this process that have ended, so that none stays a zombie."""
    for pid in tuple(_spawned):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        _spawned.discard(pid)
