"""The lock that writers of one store take turns with."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from statelog.infrastructure.store.faults import fault, os_error


class FileLock:
    """An exclusive `flock` on a file of its own; one instance in a process serves one thread.

    Waits up to `patience` seconds, then raises `StoreError` busy. The file is made with mode 0600
    and stays. The descriptor belongs to the process that opened it: after a fork make another.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self.path = path
        self.patience = patience
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise os_error(error, path) from error

    def __enter__(self) -> FileLock:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait()
        return self

    def _wait(self) -> None:
        end = time.monotonic() + self.patience
        pause = 0.0001
        while time.monotonic() < end:
            time.sleep(pause)
            try:
                return fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pause = min(pause * 2, 0.002)
        raise fault("busy", self.path)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give up the descriptor, and the lock with it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
