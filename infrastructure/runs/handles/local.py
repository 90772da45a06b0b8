"""The runtime of this machine: each command under a shim, in a session of its own (P19).

What is known of an activity lies in its control directory. `lock` is held by the shim as long as it
lives, and by whoever is about to start it: a free lock with no `ended.json` is an activity that
nobody watches over. Then what it left is ended, and that it was lost is written down for good.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.handles import port, shim
from statelog.infrastructure.runs.handles.leftovers import end_leftovers
from statelog.infrastructure.runs.handles.port import Observation, Ref, RuntimeFailure, Seen, Spec

MARK: Final = "STATELOG_MARK"
"""In the environment of a command and so of all it starts: a token of its own."""

PASSED_ON: Final = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
"""Variables that every command has from its worker; others are passed on by name."""

GRACE_S: Final = 5.0
LOG_BYTES: Final = 10 * 1024 * 1024
_PROGRAM: Final = Path(shim.__file__)
_AWAKE_S: Final = 10.0
_LAST_WORDS: Final = 300
_TOLD: Final = (
    *("signal", "stdoutBytes", "stderrBytes", "cpuSeconds", "maxRssBytes"),
    *("outputLost", "leftOver", "notEnded"),
)

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
            control.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(control) as lock:
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
            end = _read(control / "ended.json") or self._lost(control)
            started = _read(control / "started.json")
            order = _read(control / "order.json") or {}
        except OSError as error:
            raise RuntimeFailure(f"cannot look at {control}: {error}") from error
        return _observed(ref, control, order, started, end)

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
            known = _read(self._control(ref) / "shim.json")
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

    def _control(self, ref: Ref) -> Path:
        return RunFolder(self._root, ref.run_id).control(ref.activity_id)

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
        failure = f"start activity: {_why(error)}"
        return Observation(ref, Seen.FAILED, finished_at=time.time(), failure=failure)

    def _lost(self, control: Path) -> dict[str, Any] | None:
        """What became of an activity that nobody watches over; none when somebody does."""
        if not control.is_dir():
            control.mkdir(mode=0o700, parents=True)
        with _locked(control) as lock:
            if lock is None:
                return None
            end = _read(control / "ended.json")
            if end is None:
                end = _verdict(control, end_leftovers(control, MARK))
                shim.write_json(str(control), "ended.json", end)
            return end

    def _ask(self, control: Path, number: int) -> bool:
        """Signal the shim, once it has said which process it is; whether it could be."""
        deadline = time.monotonic() + _AWAKE_S
        while (known := _read(control / "shim.json")) is None:
            if _is_free(control) or time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        same = known["boot"] == shim.boot_id()
        return bool(same and shim.send(known["pid"], known["ticks"], number))

    def _gone(self, control: Path, seconds: float) -> bool:
        """Wait until nobody holds the lock; whether that came to pass."""
        deadline = time.monotonic() + seconds
        while not _is_free(control):
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


def _reap() -> None:
    """Notice shims of this process that have ended, so that none stays a zombie."""
    for pid in tuple(_spawned):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        _spawned.discard(pid)


def _observed(
    ref: Ref,
    control: Path,
    order: Mapping[str, Any],
    started: Mapping[str, Any] | None,
    end: Mapping[str, Any] | None,
) -> Observation:
    metadata: dict[str, Any] = {}
    if order.get("image"):
        metadata["warning"] = f"the image {order['image']} is not used: commands run on the machine"
    if end is not None:
        metadata |= {name: end[name] for name in _TOLD if end.get(name)}
    return Observation(
        ref,
        _seen(started, end),
        external_id=str(started["pid"]) if started else "",
        submitted_at=order.get("submittedAt", 0.0),
        started_at=_start(started, end),
        finished_at=end["finishedAt"] if end else 0.0,
        exit_code=end["exitCode"] if end else None,
        failure=_failure(control, end) if end else "",
        log=f"{control.parent.name}/{control.name}",
        metadata=metadata,
    )


def _start(started: Mapping[str, Any] | None, end: Mapping[str, Any] | None) -> float:
    if started is not None:
        return float(started["startedAt"])
    return float(end["startedAt"]) if end else 0.0


def _seen(started: Mapping[str, Any] | None, end: Mapping[str, Any] | None) -> Seen:
    if end is None:
        return Seen.STARTING if started is None else Seen.RUNNING
    if end["how"] == "stopped":
        return Seen.STOPPED
    return Seen.COMPLETED if end["how"] == "exited" and end["exitCode"] == 0 else Seen.FAILED


def _failure(control: Path, end: Mapping[str, Any]) -> str:
    """Why it failed, and what it said last."""
    if end["how"] == "not started":
        return f"start activity: {end['failure']}"
    if end["how"] == "lost":
        return str(end["failure"])
    if end["how"] == "stopped":
        return "stopped"
    if end["how"] == "timed out":
        seconds = end["finishedAt"] - end["startedAt"]
        return f"timed out after {seconds:.1f} s"
    if end["exitCode"] == 0:
        return ""
    how = f"ended by {end['signal']}" if end["signal"] else f"exit code {end['exitCode']}"
    words = _last_line(control / "stderr.log")
    return f"{how}: {words}" if words else how


def _last_line(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 4096))
        lines = file.read().decode(errors="replace").strip().splitlines()
        return lines[-1][-_LAST_WORDS:] if lines else ""
    return ""


def _verdict(control: Path, ended: list[int]) -> dict[str, Any]:
    """The end of an activity whose shim did not live to tell it."""
    started = _read(control / "started.json")
    if started is not None:
        failure = "the process that watched over the command was ended from outside"
    elif (control / "order.json").exists():
        failure = "the command was never started: whoever was about to start it ended before"
    else:
        failure = "the command was never started: nothing of it was prepared"
    return {
        "how": "lost",
        "failure": f"{failure}, and what it left was ended" if ended else failure,
        "exitCode": None,
        "signal": "",
        "startedAt": started["startedAt"] if started else 0.0,
        "finishedAt": time.time(),
        "leftOver": len(ended),
    }


@contextmanager
def _locked(control: Path) -> Iterator[int | None]:
    """The descriptor of the lock, or none when somebody has it. Raises `OSError`."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(control / "lock", flags, 0o600)
    try:
        yield descriptor if _take(descriptor, fcntl.LOCK_EX) else None
    finally:
        os.close(descriptor)


def _is_free(control: Path) -> bool:
    """Whether nobody holds the lock; looking shares it, so that lookers do not see each other."""
    descriptor = os.open(control / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return _take(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _take(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(path: Path) -> dict[str, Any] | None:
    """The object of a file that is written in one move; none when it is not there."""
    try:
        value: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise OSError(errno.EIO, "is damaged", str(path)) from error
    return value


def _why(error: OSError) -> str:
    named = f"{error.filename}: " if error.filename else ""
    return f"{named}{error.strerror or error}"
