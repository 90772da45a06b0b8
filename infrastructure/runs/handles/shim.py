"""The program that stands over one command: `python -I shim.py CONTROL_DIR` (P19).

It outlives the supervisor that started it and needs the standard library only. It inherits a locked
file as descriptor 3 and keeps it as long as it lives: whoever finds the file unlocked knows that
the shim is gone. In the control directory it reads `order.json` and writes, each in one move:

    shim.json     its pid, start time in kernel ticks and boot; before anything can run
    started.json  the same of the command, and when it started; before the command runs
    ended.json    how, when and with which status it ended; when nothing it started is left
    stdout.log, stderr.log   the beginning and the end of its output

The room for `ended.json` is taken before the command runs, so that a full disk cannot hide an end.
SIGTERM asks it to end the command: TERM, then KILL after the grace. Descendants that outlive the
command are ended the same way; as child subreaper the shim inherits each of them, so that
having no children means that none is left.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any, Final, NoReturn

LOCK_FD: Final = 3
ROOM: Final = 4096
TAIL: Final = 65536
_CHUNK: Final = 65536
_AGAIN_S: Final = 0.02
_BEYOND_S: Final = 5.0
_OURS: Final = (
    *(signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE),
    *(signal.SIGINT, signal.SIGHUP, signal.SIGXFSZ),
)
"""Signals that mean something else here, or to Python, than to a fresh command."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


def start_ticks(pid: int) -> int:
    """When a process started, in kernel ticks since boot. Raises `OSError` when it is gone."""
    return _stat(pid)[1]


def is_zombie(pid: int) -> bool:
    """Whether a process has ended and waits to be noticed. Raises `OSError` when it is gone."""
    return _stat(pid)[2] == "Z"


def boot_id() -> str:
    """Which boot of the machine this is: pids of another mean nothing."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def write_json(folder: str, name: str, value: object) -> None:
    """Write a file in one move, on the disk before it is there. Raises `OSError`."""
    temporary = f"{folder}/.{name}.tmp"
    _store(temporary, json.dumps(value).encode(), os.O_CREAT | os.O_TRUNC)
    os.replace(temporary, f"{folder}/{name}")


def send(pid: int, ticks: int, number: int) -> bool:
    """Signal a process unless it is another one by now; whether there is one that may be."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if start_ticks(pid) == ticks:
            signal.pidfd_send_signal(descriptor, number)
        return True
    except OSError as error:
        return error.errno != errno.EPERM
    finally:
        os.close(descriptor)


class Log:
    """A file with the first `limit` bytes of a stream, and once it is closed also the last ones."""

    def __init__(self, path: str, limit: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._room = limit
        self._tail = b""
        self._left_out = 0
        self.total = 0
        self.lost = ""

    def add(self, data: bytes) -> None:
        """Keep what fits. A disk that is full loses output and nothing else."""
        self.total += len(data)
        head, rest = data[: self._room], data[self._room :]
        self._room -= len(head)
        self._put(head)
        if rest:
            self._left_out += len(rest)
            self._tail = (self._tail + rest)[-TAIL:]

    def close(self) -> None:
        """Say how much was left out, and how it ended."""
        gap = self._left_out - len(self._tail)
        if gap:
            self._put(f"\n[... {gap} bytes left out ...]\n".encode())
        self._put(self._tail)
        os.close(self._file)

    def _put(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            self.lost = error.strerror or str(error)


class Shim:
    """One command from its start to the end of the last process it left."""

    def __init__(self, folder: str) -> None:
        with open(f"{folder}/order.json", "rb") as file:
            self._order: dict[str, Any] = json.load(file)
        self._folder = folder
        self._grace = float(self._order["grace"])
        self._poll = select.poll()
        self._logs: dict[int, Log] = {}
        self._leader = 0
        self._status: int | None = None
        self._usage: Any = None
        self._why = ""
        self._kill_at = 0.0
        self._gave_up: list[int] = []
        self._stop_asked = False
        self._failed = -1
        self._said = b""
        self._started = self._began = self._finished = 0.0
        self._left = 0

    def run(self) -> None:
        """Take room for the end, run the command, and tell how it ended. Raises `OSError`."""
        self._reserve()
        self._wake = _wakened(self._asked_to_stop)
        self._poll.register(self._wake, select.POLLIN)
        write_json(self._folder, "shim.json", identity(os.getpid()))
        failure = ""
        try:
            self._spawn()
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            failure = f"{name}{error.strerror or error}"
        self._watch()
        for log in self._logs.values():
            log.close()
        self._tell(failure or self._refused())

    def _asked_to_stop(self) -> None:
        self._stop_asked = True

    def _reserve(self) -> None:
        _store(f"{self._folder}/.ended.tmp", b" " * ROOM, os.O_CREAT | os.O_TRUNC)

    def _spawn(self) -> None:
        """Start the command, its identity on the disk before it runs."""
        outputs = [self._captured(name) for name in ("stdout", "stderr")]
        go, failed = os.pipe(), os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become(self._order, parent, outputs, go, failed)
        self._leader = pid
        for descriptor in (*outputs, go[0], failed[1]):
            os.close(descriptor)
        try:
            self._started, self._began = time.time(), time.monotonic()
            write_json(self._folder, "started.json", {**identity(pid), "startedAt": self._started})
            os.write(go[1], b"!")
        finally:
            os.close(go[1])
        os.set_blocking(failed[0], False)
        self._failed = failed[0]
        self._poll.register(self._failed, select.POLLIN)

    def _captured(self, name: str) -> int:
        log = Log(f"{self._folder}/{name}.log", int(self._order["logBytes"]))
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self._logs[reading] = log
        self._poll.register(reading, select.POLLIN)
        return writing

    def _watch(self) -> None:
        """Until there is no child: then there is no descendant either."""
        while self._children_left():
            now = time.monotonic()
            self._judge(now)
            if self._why and now >= self._kill_at + _BEYOND_S and not self._endable():
                break
            for descriptor, _ in self._poll.poll(self._patience_ms(now)):
                self._hear(descriptor)
        for descriptor in (*self._logs, self._failed):
            while descriptor >= 0 and self._hear(descriptor):
                pass

    def _children_left(self) -> bool:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._leader and self._status is None:
                self._status, self._usage = status, usage
                self._finished = time.monotonic()

    def _judge(self, now: float) -> None:
        """Begin an end when there is a reason for one, and force it after the grace."""
        if not self._why:
            limit = float(self._order["timeout"])
            if self._status is not None:
                self._begin("left", now, min(self._grace, 1.0))
            elif self._stop_asked:
                self._begin("stopped", now, self._grace)
            elif limit > 0 and now >= self._began + limit:
                self._begin("timed out", now, self._grace)
        elif now >= self._kill_at:
            self._send(signal.SIGKILL)

    def _begin(self, why: str, now: float, grace: float) -> None:
        self._why, self._kill_at = why, now + grace
        if why == "left":
            self._left = len(descendants())
        self._send(signal.SIGTERM)
        self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        refused = [pid for pid, ticks in descendants() if not send(pid, ticks, number)]
        self._gave_up = refused

    def _endable(self) -> bool:
        return any(pid not in self._gave_up for pid, _ in descendants())

    def _patience_ms(self, now: float) -> float | None:
        if self._why:
            return 1000 * max(_AGAIN_S, min(self._kill_at - now, 60.0))
        limit = float(self._order["timeout"])
        return 1000 * max(0.0, min(self._began + limit - now, 3600.0)) + 1 if limit > 0 else None

    def _hear(self, descriptor: int) -> bool:
        """Take what there is; whether there may be more."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if descriptor in self._logs:
            self._logs[descriptor].add(data)
        elif descriptor == self._failed:
            self._said += data
        if not data:
            with suppress(KeyError):
                self._poll.unregister(descriptor)
        return bool(data)

    def _refused(self) -> str:
        """Why the command could not be executed, if that is so: what its process said before."""
        if not self._said:
            return ""
        number, _, name = self._said.decode(errors="replace").partition(" ")
        return f"{name}: {os.strerror(int(number))}"

    def _tell(self, failure: str) -> None:
        """Write the end into its room, again until the disk takes it."""
        seconds = max(0.0, (self._finished or time.monotonic()) - self._began)
        stdout, stderr = (*self._logs.values(), None, None)[:2]
        end = {
            "how": "not started" if failure else _how(self._why),
            "failure": failure[:250],
            **_exit(None if failure else self._status),
            "startedAt": self._started,
            "finishedAt": self._started + seconds if self._started else time.time(),
            "stdoutBytes": stdout.total if stdout else 0,
            "stderrBytes": stderr.total if stderr else 0,
            "outputLost": next((log.lost for log in self._logs.values() if log.lost), ""),
            "leftOver": self._left,
            "notEnded": self._gave_up[:20],
            "cpuSeconds": self._usage.ru_utime + self._usage.ru_stime if self._usage else 0.0,
            "maxRssBytes": self._usage.ru_maxrss * 1024 if self._usage else 0,
        }
        text = json.dumps(end).encode().ljust(ROOM)
        for tries_left in reversed(range(60)):
            try:
                _store(f"{self._folder}/.ended.tmp", text, os.O_CREAT)
                os.replace(f"{self._folder}/.ended.tmp", f"{self._folder}/ended.json")
                return
            except OSError:
                if not tries_left:
                    raise
                time.sleep(1.0)


def identity(pid: int) -> dict[str, Any]:
    """A process that cannot be mistaken for a later one with its pid."""
    return {"pid": pid, "ticks": start_ticks(pid), "boot": boot_id()}


def descendants(root: int = 0) -> list[tuple[int, int]]:
    """Pid and start ticks of each process below `root` (default: this one), zombies left out."""
    below: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError):
                parent, ticks, state = _stat(int(name))
                below.setdefault(parent, []).append((int(name), ticks if state != "Z" else -1))
    found, look = [], [root or os.getpid()]
    while look:
        for pid, ticks in below.get(look.pop(), ()):
            look.append(pid)
            if ticks >= 0:
                found.append((pid, ticks))
    return found


def _stat(pid: int) -> tuple[int, int, str]:
    """Parent, start ticks and state of a process. Its name may hold anything but ends at `)`."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        text = file.read()
    fields = text[text.rindex(b")") + 2 :].split()
    return int(fields[1]), int(fields[19]), fields[0].decode()


def _store(path: str, content: bytes, flags: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o600)
    try:
        while content:
            content = content[os.write(file, content) :]
        os.fsync(file)
    finally:
        os.close(file)


def _wakened(asked: Any) -> int:
    """A descriptor that polls readable after a signal; SIGTERM also calls `asked`."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.signal(signal.SIGTERM, lambda *_: asked())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def _become(
    order: dict[str, Any],
    parent: int,
    outputs: list[int],
    go: tuple[int, int],
    failed: tuple[int, int],
) -> NoReturn:
    """In the child: a session of its own, then the command as soon as the shim says so."""
    name = order["directory"]
    try:
        os.close(go[1])
        signal.set_wakeup_fd(-1)
        for number in _OURS:
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent or not os.read(go[0], 1):
            os._exit(127)
        null = os.open(os.devnull, os.O_RDONLY)
        for target, source in enumerate((null, *outputs)):
            os.dup2(source, target)
        os.chdir(name)
        name = order["argv"][0]
        os.execvpe(name, order["argv"], order["environment"])
    except OSError as error:
        os.write(failed[1], f"{error.errno} {name}".encode(errors="replace")[:500])
    finally:
        os._exit(127)


def _prctl(option: int, value: int) -> None:
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _how(why: str) -> str:
    return why if why in ("stopped", "timed out") else "exited"


def _exit(status: int | None) -> dict[str, Any]:
    """The exit status as a shell tells it: 128 and the number of the signal that ended it."""
    if status is None:
        return {"exitCode": None, "signal": ""}
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return {"exitCode": code, "signal": ""}
    try:
        return {"exitCode": 128 - code, "signal": signal.Signals(-code).name}
    except ValueError:
        return {"exitCode": 128 - code, "signal": f"signal {-code}"}


def main() -> None:
    """Stand over the command that the control directory orders."""
    os.set_inheritable(LOCK_FD, False)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    Shim(sys.argv[1]).run()


if __name__ == "__main__":
    main()
