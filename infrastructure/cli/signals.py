"""Ctrl-C and SIGTERM while a plan runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

_FIRST: Final = b"finishing the running step; Ctrl-C again interrupts it\n"
_CAUGHT: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Stopped:
    """What was asked for: plain attributes, as a handler may run inside another."""

    asked: bool = False
    interrupted: bool = False
    handlers_before: dict[int, Any] = field(default_factory=dict)

    def restore(self) -> None:
        """Put the handlers back that were there before."""
        for number, handler in self.handlers_before.items():
            signal.signal(number, handler or signal.SIG_DFL)


@contextmanager
def stoppable(cancel: threading.Event) -> Iterator[Stopped]:
    """Let Ctrl-C and SIGTERM end the attempt after the running step; Ctrl-C twice at once.

    Yields what was asked for. A process that a step forks has the handlers of before.
    """
    stopped = Stopped()

    def stop(number: int, _: object) -> None:
        if number == signal.SIGINT:
            if stopped.interrupted:
                raise KeyboardInterrupt
            stopped.interrupted = True
            with suppress(OSError):
                os.write(2, _FIRST)
        if not stopped.asked:
            stopped.asked = True
            cancel.set()

    for caught in _CAUGHT:
        stopped.handlers_before[caught] = signal.getsignal(caught)
        signal.signal(caught, stop)
    _Forks.running = stopped
    try:
        yield stopped
    finally:
        _Forks.running = None
        stopped.restore()


@contextmanager
def ending(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a service; the second one ends its process at once."""
    before = {number: signal.getsignal(number) for number in _CAUGHT}

    def end(number: int, _: object) -> None:
        for caught in _CAUGHT:
            signal.signal(caught, signal.SIG_DFL)
        stop.set()

    for number in _CAUGHT:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


class _Forks(threading.local):
    """Around each fork of a thread while a plan runs.

    Python forgets a signal that reaches a child before it is set up. SIGTERM would have ended it,
    so that one is held back until the child has the handlers of before.
    """

    running: ClassVar[Stopped | None] = None
    mask: Any = None

    def before(self) -> None:
        if _Forks.running is not None:
            self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

    def after_in_parent(self) -> None:
        if self.mask is not None:
            mask, self.mask = self.mask, None
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def after_in_child(self) -> None:
        if _Forks.running is not None:
            _Forks.running.restore()
            _Forks.running = None
        self.after_in_parent()


_forks: Final = _Forks()
os.register_at_fork(
    before=_forks.before,
    after_in_parent=_forks.after_in_parent,
    after_in_child=_forks.after_in_child,
)
