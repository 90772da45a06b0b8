"""The bell of a store in PostgreSQL: commits notify, and listeners have sessions of their own.

A notification is sent in the transaction that adds the rows, so it comes exactly when they can be
read. Sessions get lost and with them what was told: whoever waits looks again after a while.
"""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress

import psycopg

from statelog.domain.errors import StoreError
from statelog.infrastructure.bell import Bell, Listener
from statelog.infrastructure.store.postgres_connections import Connections, Session, abandon


class PostgresBell(Bell):
    """The bell of one store; `ring` only wakes this process, the commit has told all others."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(None)
        self._connections = connections

    def listen(self) -> PostgresListener:
        """A listener, to be closed. It takes a session when it first waits."""
        listener = PostgresListener(self, self._connections)
        self._local.add(listener)
        return listener


class PostgresListener(Listener):
    """Waits for the next commit of anybody. Not to be shared between threads."""

    def __init__(self, bell: Bell, connections: Connections) -> None:
        super().__init__(bell)
        self._connections = connections
        self._db: Session | None = None
        self._open()

    def _open(self) -> None:
        self._pid = os.getpid()
        self._hand = _Hand()
        self.woken = self._hand

    def wait(self, timeout_s: float) -> bool:
        """Wait for a commit since the last wait, at most so long; whether there may be one."""
        if self._pid != os.getpid():
            self._leave()
            self._open()
        if self._db is None and self._began():
            return True
        files = [self._hand.reading, *([] if self._db is None else [self._db.fileno()])]
        ready, _, _ = select.select(files, [], [], timeout_s)
        self._hand.clear()
        if self._db is not None and self._db.fileno() in ready:
            self._hear(self._db)
        return bool(ready)

    def _began(self) -> bool:
        """Listen from now on. What came before was not heard, so the log is to be looked at."""
        try:
            self._db = self._connections.session(f"LISTEN {self._connections.channel}")
        except StoreError:
            return False
        return True

    def _hear(self, db: Session) -> None:
        try:
            for _ in db.notifies(timeout=0):
                pass
        except psycopg.Error:
            self._end()

    def _end(self) -> None:
        if self._db is not None:
            self._connections.end(self._db)
            self._db = None

    def _leave(self) -> None:
        """What a fork inherited is the parent's."""
        if self._db is not None:
            abandon(self._db)
            self._db = None
        self._hand.close()

    def close(self) -> None:
        """Stop listening. Safe to call twice."""
        self._bell.forget(self)
        if self._pid != os.getpid():
            self._leave()
        self._end()
        self._hand.close()


class _Hand(threading.Event):
    """A flag that `select` sees."""

    def __init__(self) -> None:
        super().__init__()
        self.reading, self._writing = os.pipe()
        os.set_blocking(self.reading, False)
        os.set_blocking(self._writing, False)
        self._guard = threading.Lock()

    def set(self) -> None:
        """Wake who waits."""
        super().set()
        with self._guard, suppress(BlockingIOError):
            if self._writing >= 0:
                os.write(self._writing, b"!")

    def clear(self) -> None:
        """Wait again."""
        super().clear()
        with suppress(BlockingIOError):
            while os.read(self.reading, 64):
                pass

    def close(self) -> None:
        """Let go of the pipe. Safe to call twice."""
        with self._guard:
            for file in (self.reading, self._writing):
                if file >= 0:
                    os.close(file)
            self.reading = self._writing = -1
