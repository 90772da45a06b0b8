"""The bell: a writer rings after its commit, and whoever waits for events wakes without polling.

In the folder `<store>.bells` each listener has a datagram socket of its own; a bell of a dead
listener is removed by the next ring. Ringing is a hint and may get lost: whoever waits looks again
after a while in any case.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Self
from uuid import uuid4

SUFFIX: Final = ".bells"
_PROC: Final = Path("/proc/self/fd")
_FRESH_S: Final = 0.001
"""So long a writer believes that nobody listens. A new listener waits twice as long before it
reads, and so misses nothing."""


class Bell:
    """The bell of one store; without a store, of this process's threads."""

    def __init__(self, store: Path | None) -> None:
        self._folder = None if store is None else store.with_name(f"{store.name}{SUFFIX}")
        self._folder_name = str(self._folder)
        self._nobody_until = 0.0
        self._changed = -1
        self._names: tuple[str, ...] = ()
        self._local: set[Listener] = set()
        self._guard = threading.Lock()

    def ring(self) -> None:
        """Wake every listener. Never raises and never waits."""
        for listener in tuple(self._local):
            listener.woken.set()
        now = time.monotonic()
        if self._folder is None or now < self._nobody_until:
            return
        # asked first, because a folder that is not there is the usual case and an error is dear
        if not os.access(self._folder_name, os.F_OK):
            self._nobody_until = now + _FRESH_S
            return
        try:
            changed = self._folder.stat().st_mtime_ns
        except OSError:
            return
        with self._guard, suppress(OSError):
            if changed != self._changed:
                self._names = tuple(os.listdir(self._folder))
                self._changed = changed
            if self._names:
                self._send(self._folder)

    def listen(self) -> Listener:
        """A listener, to be closed. Without sockets it only hears rings of this process."""
        listener = Listener(self)
        self._local.add(listener)
        if self._folder is not None and _PROC.is_dir():
            with suppress(OSError):
                self._folder.mkdir(mode=0o700, exist_ok=True)
                listener.attach(self._folder)
                time.sleep(2 * _FRESH_S)
        return listener

    def forget(self, listener: Listener) -> None:
        """Ring it no more."""
        self._local.discard(listener)

    def _send(self, folder: Path) -> None:
        """Paths of sockets are short: they go by the folder's descriptor."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                for name in self._names:
                    try:
                        sender.sendto(b"!", f"{_PROC}/{descriptor}/{name}")
                    except BlockingIOError:
                        continue
                    except (ConnectionRefusedError, FileNotFoundError):
                        with suppress(OSError):
                            os.unlink(name, dir_fd=descriptor)
        finally:
            os.close(descriptor)


class Listener:
    """Waits for the next ring. Not to be shared between threads."""

    def __init__(self, bell: Bell) -> None:
        self.woken = threading.Event()
        self._bell = bell
        self._socket: socket.socket | None = None
        self._path: Path | None = None

    def attach(self, folder: Path) -> None:
        """Open a socket that other processes ring. Raises `OSError`."""
        name = uuid4().hex[:16]
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            opened.setblocking(False)
            opened.bind(f"{_PROC}/{descriptor}/{name}")
        finally:
            os.close(descriptor)
        self._socket, self._path = opened, folder / name

    def wait(self, timeout_s: float) -> bool:
        """Wait for a ring since the last wait, at most so long; whether there was one."""
        if self._socket is None:
            rung = self.woken.wait(timeout_s)
            self.woken.clear()
            return rung
        ready, _, _ = select.select([self._socket], [], [], timeout_s)
        with suppress(BlockingIOError):
            while self._socket.recv(16):
                pass
        self.woken.clear()
        return bool(ready)

    def close(self) -> None:
        """Stop listening. Safe to call twice."""
        self._bell.forget(self)
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
