"""A supervisor in a process of its own, to be killed: `python -c` runs `main`.

The workflow is the same every time, so that each process can make the request again; `die` names
the moment at which the process kills itself, and `-` none.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from statelog.domain.runs.admission import admitted
from statelog.domain.runs.request import RunRequest
from statelog.domain.runs.run import RUN, start
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.runs.handles.local import LocalRuntime
from statelog.infrastructure.runs.supervisor import supervise
from tests.house.repo import ROOT
from tests.infrastructure.runs.lab import activity, request

ONCE = "echo x >> times-$STATELOG_ACTIVITY_ID; (setsid sleep 1000 &) ; sleep {}; echo out"
NAMES = ("a", "b", "c", "d", "e", "f")
PROGRAM = "import sys; from tests.infrastructure.runs.crashing import main; main(*sys.argv[1:])"


def asked(run_id: str) -> RunRequest:
    """Two diamonds' worth of commands, each of which leaves a process behind."""
    steps = [activity(name, ONCE.format(0.1 * (1 + at % 3))) for at, name in enumerate(NAMES)]
    data = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e"), ("d", "f")]
    return request(run_id, steps, data=data)


class Mortal:
    """A local runtime whose process dies at a moment of the first start."""

    def __init__(self, runtime: LocalRuntime, die: str) -> None:
        self._runtime, self._die = runtime, die

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def start(self, spec):
        """Start, and die before or after, if this is the moment."""
        if self._die == "before start":
            os.kill(os.getpid(), signal.SIGKILL)
        found = self._runtime.start(spec)
        if self._die == "after start":
            os.kill(os.getpid(), signal.SIGKILL)
        return found


def main(store: str, work_root: str, run_id: str, die: str) -> None:
    """Begin the run if it has not begun, and supervise it to its end."""
    wanted = asked(run_id)
    runtime: Any = Mortal(LocalRuntime(Path(work_root), grace_s=0.3), die)
    with Journal(store) as journal:
        if not journal.load(RUN, run_id).version:
            started = admitted(wanted, at=time.time())
            journal.execute(RUN, run_id, start, actor="test", started=started)
        supervise(
            journal,
            wanted,
            work_root=Path(work_root),
            runtimes={"local": runtime},
            actor="test",
            stop=threading.Event(),
        )


def launched(store: Path, work_root: Path, run_id: str, die: str = "-") -> subprocess.Popen[bytes]:
    """Such a process."""
    words = [sys.executable, "-c", PROGRAM, str(store), str(work_root), run_id, die]
    with work_root.with_name("stderr").open("ab") as errors:
        return subprocess.Popen(words, cwd=ROOT, stderr=errors)
