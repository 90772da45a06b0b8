"""A place where commands run for tests: a local runtime over a folder, and eyes on `/proc`."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from statelog.infrastructure.runs.folders import RunFolder
from statelog.infrastructure.runs.handles.local import LocalRuntime
from statelog.infrastructure.runs.handles.port import RUN_ID, Observation, Ref, Seen, Spec

SOON_S = 20.0


class Place:
    """Starts shell lines as activities of one run whose id nobody else has."""

    def __init__(self, root: Path, **limits: float) -> None:
        self.root = root
        self.run_id = f"run-{uuid4().hex[:12]}"
        self.runtime = LocalRuntime(root, **{"grace_s": 0.5, **limits})
        self.folder = RunFolder(root, self.run_id)
        self.started: set[str] = set()

    def ref(self, activity: str) -> Ref:
        return Ref(self.run_id, activity)

    def spec(self, activity: str, line: str | tuple[str, ...], **given) -> Spec:
        workspace = self.folder.workspace(activity)
        workspace.mkdir(parents=True, exist_ok=True)
        argv = ("/bin/sh", "-c", line) if isinstance(line, str) else line
        given = {"environment": {}, **given}
        return Spec(self.ref(activity), "here", "local", 1, argv, workspace=workspace, **given)

    def start(self, activity: str, line: str | tuple[str, ...], **given) -> Observation:
        self.started.add(activity)
        return self.runtime.start(self.spec(activity, line, **given))

    def ended(self, activity: str) -> Observation:
        """Look until it is over."""
        deadline = time.monotonic() + SOON_S
        while not (found := self.runtime.inspect(self.ref(activity))).seen.over:
            assert time.monotonic() < deadline, found
            time.sleep(0.01)
        return found

    def ran(self, activity: str, line: str | tuple[str, ...], **given) -> Observation:
        self.start(activity, line, **given)
        return self.ended(activity)

    def control(self, activity: str, name: str) -> Path:
        return self.folder.control(activity) / name

    def told(self, activity: str, name: str):
        return json.loads(self.control(activity, name).read_text())

    def file(self, activity: str, name: str) -> Path:
        return self.folder.workspace(activity) / name

    def alive(self) -> list[int]:
        """Living processes of this run's commands, by what their environment says."""
        return processes(f"{RUN_ID}={self.run_id}")

    def close(self) -> None:
        for activity in self.started:
            with suppress(Exception):
                self.runtime.stop(self.ref(activity))
        self.runtime.close()


def processes(mark: str) -> list[int]:
    """Living processes with a mark in their environment, zombies left out."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                stat = (folder / "stat").read_text(errors="replace")
                if stat[stat.rindex(")") + 2] != "Z":
                    found.append(int(folder.name))
    return found


def soon(condition, why: str = "") -> None:
    """Wait until something holds, and fail when it does not come to pass."""
    deadline = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < deadline, why or "did not come to pass"
        time.sleep(0.01)


def lives(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] != "Z" and os.getpid() != pid


__all__ = ["Place", "Seen", "lives", "processes", "soon"]
