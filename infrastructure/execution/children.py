"""The service's side of the process of one attempt: starts it, stops it, hears what it resolved."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from typing import Any, Final

from statelog.infrastructure.execution.child import Order
from statelog.infrastructure.execution.dispatch import Cancel

COMMAND: Final = (sys.executable, "-P", "-m", "statelog.infrastructure.execution.child")
"""Without the current folder among the places of modules: those of steps may be there."""

_LISTEN_S: Final = 0.2
_CHUNK: Final = 65536


def carried_out(order: Order, cancel: Cancel) -> tuple[dict[str, Any] | None, int]:
    """Run a child to its end and answer what it wrote, if anything, and its exit code.

    `cancel` is handed on as SIGTERM; a terminal's Ctrl-C does not reach the child's session. The
    calling thread must outlive the child, because the child is killed when the thread that started
    it ends. Raises `OSError` when no process can be started.
    """
    reading, writing = os.pipe()
    try:
        child = subprocess.Popen(
            [*COMMAND, str(writing)],
            stdin=subprocess.PIPE,
            stdout=2,
            pass_fds=(writing,),
            start_new_session=True,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    with suppress(BrokenPipeError):
        assert child.stdin is not None
        child.stdin.write(order.line())
        child.stdin.close()
    cancel.then(child.terminate)
    received = _received(reading, child)
    code = child.wait()
    try:
        return json.loads(received), code
    except ValueError:
        return None, code


def _received(reading: int, child: subprocess.Popen[bytes]) -> bytes:
    """What the child wrote until it ended: what it forked may keep the pipe open for longer."""
    received = b""
    with os.fdopen(reading, "rb", buffering=0) as result:
        ended = False
        while not ended:
            ended = child.poll() is not None
            while select.select([result], [], [], 0 if ended else _LISTEN_S)[0]:
                chunk = result.read(_CHUNK)
                if not chunk:
                    return received
                received += chunk
    return received
