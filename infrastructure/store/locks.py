"""The lock that writers of one store take turns with, in the order in which they came."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from types import TracebackType

from statelog.infrastructure.store.faults import fault, os_error

QUEUE = ".queue"
_EXCLUSIVE, _AT_ONCE, _RELEASE = fcntl.LOCK_EX, fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN


class FileLock:
    """An exclusive `flock` on a file of its own; one instance in a process serves one thread.

    Who finds it taken waits in line at a second file, `<path>.queue`, whose lock is held by the
    one that is next: so nobody who just let go can come again before those who wait. Waits up to
    `patience` seconds, then raises `StoreError` busy. The files are made with mode 0600 and stay;
    locks of a process that ends are free at once. The descriptors belong to the process that
    opened them: after a fork make another.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self.path = path
        self.patience = patience
        self._files = _Files(path)
        self._waiter: _Waiter | None = None

    def __enter__(self) -> FileLock:
        if not self._files.at_once():
            self._wait()
        return self

    def _wait(self) -> None:
        waiter = self._waiter
        if waiter is None or waiter.pid != os.getpid():
            waiter = self._waiter = _Waiter(self._files)
        came = False
        try:
            came = waiter.wait(self.patience)
        finally:
            if not came:
                self._leave(waiter)
        if not came:
            raise fault("busy", self.path)

    def _leave(self, waiter: _Waiter) -> None:
        """A kernel's queue cannot be left: the thread that stands in it lets go when it is served.

        Its files are its own from now on.
        """
        self._waiter = None
        waiter.leave()
        self._files = _Files(self.path)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        fcntl.flock(self._files.main, _RELEASE)

    def close(self) -> None:
        """Give up the descriptors, and the lock with them."""
        if self._waiter is not None:
            self._waiter.leave()
            self._waiter = None
        else:
            self._files.close()


class _Files:
    """The lock itself, and the lock of being next."""

    def __init__(self, path: Path) -> None:
        self.main = _open(path)
        try:
            self.next = _open(Path(f"{path}{QUEUE}"))
        except BaseException:
            os.close(self.main)
            raise

    def at_once(self) -> bool:
        """Take the lock if nobody has it and nobody waits; otherwise this may already be next."""
        try:
            fcntl.flock(self.next, _AT_ONCE)
            fcntl.flock(self.main, _AT_ONCE)
        except BlockingIOError:
            return False
        fcntl.flock(self.next, _RELEASE)
        return True

    def in_line(self) -> None:
        """Take the lock after all who were there before."""
        fcntl.flock(self.next, _EXCLUSIVE)
        fcntl.flock(self.main, _EXCLUSIVE)
        fcntl.flock(self.next, _RELEASE)

    def close(self) -> None:
        """Let go of both; safe to call twice."""
        for file in (self.main, self.next):
            if file >= 0:
                os.close(file)
        self.main = self.next = -1


class _Waiter(threading.Thread):
    """Stands in the kernel's queue for others: only there is an order, and no end of patience."""

    def __init__(self, files: _Files) -> None:
        super().__init__(name="statelog-lock", daemon=True)
        self.pid = os.getpid()
        self._files = files
        self._asked, self._came = threading.Lock(), threading.Lock()
        self._asked.acquire()
        self._came.acquire()
        self._guard = threading.Lock()
        self._left = self._waiting = False
        self.start()

    def wait(self, seconds: float) -> bool:
        """Whether the lock came within so many seconds."""
        self._waiting = True
        self._asked.release()
        return self._came.acquire(timeout=seconds)

    def leave(self) -> None:
        """No longer wanted; the files are closed as soon as nobody stands in line with them."""
        with self._guard:
            self._left = True
            if not self._waiting:
                self._files.close()
                self._asked.release()

    def run(self) -> None:
        """Stand in line whenever somebody asks, until it is left."""
        while True:
            self._asked.acquire()
            with self._guard:
                if self._left and not self._waiting:
                    return
            self._files.in_line()
            with self._guard:
                self._waiting = False
                if self._left:
                    self._files.close()
                    return
            self._came.release()


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except OSError as error:
        raise os_error(error, path) from error
