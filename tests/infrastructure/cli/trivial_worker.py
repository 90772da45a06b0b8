"""`statelog`, whose workers do trivial jobs: run as a program with the command's words.

A job says in its payload how long it takes, in seconds. In the folder `STATELOG_TEST_JOBS` each
holds a lock while it is worked on, and has a line for each time it was done.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Any

from statelog.infrastructure.cli import handlers as composed
from statelog.infrastructure.cli.app import main
from statelog.infrastructure.queue.worker import Interrupted, Work

FOLDER = "STATELOG_TEST_JOBS"


def do(work: Work) -> None:
    """Work alone on the job, or leave a mark that somebody else does."""
    folder = Path(os.environ[FOLDER])
    with (folder / f"{work.job_id}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            (folder / f"{work.job_id}.overlap").touch()
            raise
        (folder / f"{work.job_id}.began").touch()
        end = time.monotonic() + work.payload.get("seconds", 0)
        while time.monotonic() < end:
            if work.stop.wait(0.01):
                raise Interrupted
        with (folder / f"{work.job_id}.done").open("a") as done:
            done.write(f"{work.attempt}\n")


def fail(work: Work) -> None:
    """Be a job that cannot be done."""
    raise ValueError("it cannot be done")


def trivial(*_: Any) -> dict[str, Any]:
    """Handlers that need nothing."""
    return {"trivial": do, "failing": fail}


if __name__ == "__main__":
    vars(composed).update(handlers=trivial, on_failure=lambda _: {})
    main()
