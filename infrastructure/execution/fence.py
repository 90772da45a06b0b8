"""The fence around a work directory: external commands of a dead attempt are ended first (D8)."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

EXECUTION_ID: Final = "STATELOG_EXECUTION_ID"
"""In the environment of a running step, and so of every command it starts."""

GRACE_S: Final = 5.0

_ONE_AT_A_TIME: Final = threading.RLock()


@contextmanager
def marked(execution_id: str) -> Iterator[None]:
    """Mark this process's environment with the running attempt, for children to inherit.

    The environment is one for the whole process, so attempts in other threads wait their turn.
    """
    with _ONE_AT_A_TIME:
        yield from _marked(execution_id)


def _marked(execution_id: str) -> Iterator[None]:
    before = os.environ.get(EXECUTION_ID)
    os.environ[EXECUTION_ID] = execution_id
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(EXECUTION_ID, None)
        else:
            os.environ[EXECUTION_ID] = before


def marked_processes(execution_id: str) -> list[int]:
    """Processes of this user that were started with the attempt's mark; none without `/proc`."""
    mark = f"{EXECUTION_ID}={execution_id}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        if pid == os.getpid():
            continue
        with suppress(OSError):
            if folder.stat().st_uid != os.getuid() or _is_zombie(folder):
                continue
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def end_marked(execution_id: str, grace_s: float = GRACE_S) -> list[int]:
    """End what a dead attempt left running: TERM, KILL after the grace, and wait until it is gone.

    Answers the pids that were there. A process that starts meanwhile is found by the next look;
    one that became somebody else's since cannot be ended and is not waited for.
    """
    ended: list[int] = []
    beyond: set[int] = set()
    deadline = time.monotonic() + grace_s
    while left := [pid for pid in marked_processes(execution_id) if pid not in beyond]:
        late = time.monotonic() >= deadline
        for pid in left:
            if (late or pid not in ended) and not _signalled(pid, kill=late):
                beyond.add(pid)
            if pid not in ended:
                ended.append(pid)
        time.sleep(0.02)
    return ended


def _signalled(pid: int, *, kill: bool) -> bool:
    """Signal a process; whether that is allowed."""
    with suppress(ProcessLookupError):
        try:
            os.kill(pid, signal.SIGKILL if kill else signal.SIGTERM)
        except PermissionError:
            return False
    return True


def _is_zombie(folder: Path) -> bool:
    stat = (folder / "stat").read_text(errors="replace")
    return stat[stat.rindex(")") + 2 :].startswith("Z")
