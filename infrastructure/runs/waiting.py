"""Waiting for whichever comes first: the end of an activity, a thread's call, or some time."""

from __future__ import annotations

import os
import select
from contextlib import suppress
from typing import Self


class Waiting:
    """Descriptors by name, and a bell that any thread may ring. Close it, or use it in a `with`."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._names: dict[int, str] = {}
        self._ear, self._bell = os.pipe()
        for descriptor in (self._ear, self._bell):
            os.set_blocking(descriptor, False)
        self._poll.register(self._ear, select.POLLIN)
        self.over: tuple[str, ...] = ()
        """Names whose descriptors were readable when the last wait ended; they are let go."""

    def add(self, name: str, descriptor: int) -> None:
        """Wait for a descriptor too, and close it once it was readable."""
        self._names[descriptor] = name
        self._poll.register(descriptor, select.POLLIN)

    def __contains__(self, name: str) -> bool:
        return name in self._names.values()

    def wake(self) -> None:
        """Let the wait end, or the next one."""
        with suppress(BlockingIOError):
            os.write(self._bell, b"!")

    def wait(self, timeout_s: float) -> None:
        """Wait at most so long."""
        ready = [descriptor for descriptor, _ in self._poll.poll(1000 * timeout_s)]
        if self._ear in ready:
            with suppress(BlockingIOError):
                while os.read(self._ear, 4096):
                    pass
        self.over = tuple(self._let_go(each) for each in ready if each != self._ear)

    def _let_go(self, descriptor: int) -> str:
        self._poll.unregister(descriptor)
        os.close(descriptor)
        return self._names.pop(descriptor)

    def close(self) -> None:
        """Close every descriptor."""
        for descriptor in tuple(self._names):
            self._let_go(descriptor)
        os.close(self._ear)
        os.close(self._bell)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
