"""What a command left running when its shim was killed: found by its mark, and ended."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from statelog.infrastructure.runs.handles import shim

_GRACE_S = 2.0
_BEYOND_S = 10.0


def marked(name: str, token: str) -> list[tuple[int, int]]:
    """Pid and start ticks of this user's processes that were started with a mark."""
    mark = f"{name}={token}".encode()
    found = []
    for folder in os.listdir("/proc"):
        if folder.isdigit() and int(folder) != os.getpid():
            with suppress(OSError):
                with open(f"/proc/{folder}/environ", "rb") as file:
                    if mark not in file.read().split(b"\0"):
                        continue
                found.append((int(folder), shim.start_ticks(int(folder))))
    return found


def end_leftovers(control: Path, name: str) -> list[int]:
    """End the command and all it started: TERM, KILL after a grace, and wait until it is gone.

    Answers the pids that were there. Found are the command itself, while it lives its descendants,
    and every process that kept its mark; never one that got a pid later. One that became another
    user's cannot be ended and is not waited for.
    """
    seen: dict[int, None] = {}
    begun = time.monotonic()
    while left := _left(control, name):
        late = time.monotonic() - begun
        if late > _BEYOND_S:
            break
        for pid, ticks in left:
            if pid not in seen:
                shim.send(pid, ticks, signal.SIGTERM)
                shim.send(pid, ticks, signal.SIGCONT)
            elif late > _GRACE_S:
                shim.send(pid, ticks, signal.SIGKILL)
            seen[pid] = None
        time.sleep(0.02)
    return list(seen)


def _left(control: Path, name: str) -> list[tuple[int, int]]:
    found: dict[int, int] = {}
    with suppress(OSError, ValueError, KeyError):
        leader = json.loads((control / "started.json").read_bytes())
        if leader["boot"] == shim.boot_id() and _lives(leader["pid"], leader["ticks"]):
            found[leader["pid"]] = leader["ticks"]
            found |= dict(shim.descendants(leader["pid"]))
    with suppress(OSError, ValueError, KeyError):
        order = json.loads((control / "order.json").read_bytes())
        found |= dict(marked(name, order["mark"]))
    return list(found.items())


def _lives(pid: int, ticks: int) -> bool:
    """Whether it is still that process, and not a zombie that only waits to be noticed."""
    with suppress(OSError):
        return shim.start_ticks(pid) == ticks and not shim.is_zombie(pid)
    return False
