"""Ctrl-C and SIGTERM while a plan runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

_FIRST: Final = b"finishing the running step; Ctrl-C again interrupts it\n"


@dataclass
class Stopped:
    """What was asked for: plain attributes, as a handler may run inside another."""

    asked: bool = False
    interrupted: bool = False


@contextmanager
def stoppable(cancel: threading.Event) -> Iterator[Stopped]:
    """Let Ctrl-C and SIGTERM end the attempt after the running step; Ctrl-C twice at once.

    Yields what was asked for. A forked child is stopped as if nothing had been set up.
    """
    stopped, own = Stopped(), os.getpid()
    before: dict[int, Any] = {}

    def stop(number: int, _: object) -> None:
        if os.getpid() != own:
            signal.signal(number, before[number] or signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        if number == signal.SIGINT:
            if stopped.interrupted:
                raise KeyboardInterrupt
            stopped.interrupted = True
            with suppress(OSError):
                os.write(2, _FIRST)
        if not stopped.asked:
            stopped.asked = True
            cancel.set()

    for caught in (signal.SIGINT, signal.SIGTERM):
        before[caught] = signal.getsignal(caught)
        signal.signal(caught, stop)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
