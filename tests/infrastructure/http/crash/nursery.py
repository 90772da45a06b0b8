"""Starts commands by forking a process that has imported all they need: run as a program.

It reads a JSON object a line, `{"words", "out", "err"}`, and answers the process id. What it starts
is a command of its own in every other way, with a session of its own, and dies by itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path


def born(words: list[str], out: str, err: str) -> None:
    """Become a command. Does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for number, path in ((1, out), (2, err)):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    from statelog.infrastructure.cli.app import app

    app.main(words, prog_name="statelog")


def prepare() -> None:
    """Import what servers and workers do, without a thread or an open file."""
    import uvicorn.protocols.http.h11_impl  # noqa: F401

    import statelog.infrastructure.cli.handlers
    import statelog.infrastructure.http.server
    import statelog.infrastructure.planning.coordinator
    import statelog.infrastructure.runs.handler
    import statelog.infrastructure.runs.handles.local  # noqa: F401


def main() -> None:
    """Start commands until nobody asks for more."""
    prepare()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            try:
                born(asked["words"], asked["out"], asked["err"])
            finally:
                os._exit(1)
        print(child, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    main()
