"""SQLite connections of one store: one that writes, and as many readers as read at once."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from array import array
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from statelog.infrastructure.store.drivers import Connection, Driver, Stock
from statelog.infrastructure.store.faults import fault, os_error, store_error
from statelog.infrastructure.store.files import beside, uri, writable
from statelog.infrastructure.store.forks import watch
from statelog.infrastructure.store.locks import FileLock
from statelog.infrastructure.store.schema import PAGE_SIZE

CHECKPOINT_PAGES = 1000
IDLE_READERS = 8
_BATCH = 200
LOOK_EVERY = 0.05


class Left(NamedTuple):
    """Where a commit left the log: last position and time, and versions of its streams."""

    head: tuple[int, int]
    versions: Mapping[str, int]


class Connections:
    """Opened when they are needed, and closed before a fork."""

    def __init__(
        self, path: Path, *, writable: bool, patience: float, driver: Driver | None = None
    ) -> None:
        self.path = path
        self.driver = driver or Stock()
        self.writable = writable
        self.patience = patience
        self.closed = False
        self.left: Left | None = None
        self._idle: deque[Connection] = deque()
        self._out: deque[None] = deque()
        self._opening = threading.Lock()
        self._turn = threading.Lock()
        self._lock: FileLock | None = None
        self._writer: Connection | None = None
        self._identity = _identity(path)
        self._seen = time.monotonic()
        self._pages = 0
        watch(self)

    def read(self, sql: str, given: Sequence[object] = ()) -> list[Any]:
        """All rows of a query. Raises `StoreError`."""
        db = self._take()
        try:
            return db.execute(sql, given).fetchall()
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error
        finally:
            self._give(db)

    def batches(self, sql: str, given: Sequence[object]) -> Generator[list[Any], None, None]:
        """The rows of a query, a few at a time: their memory is used again. To be closed.

        Raises `StoreError`.
        """
        db = self._take()
        try:
            with closing(db.execute(sql, given)) as cursor:
                while rows := cursor.fetchmany(_BATCH):
                    yield rows
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error
        finally:
            self._give(db)

    def read_numbers(self, sql: str, given: Sequence[object]) -> array[int]:
        """The one integer column of a query, eight bytes each. Raises `StoreError`."""
        db = self._take()
        try:
            return array("q", (number for (number,) in db.execute(sql, given)))
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error
        finally:
            self._give(db)

    def _take(self) -> Connection:
        if self.closed:
            raise fault("closed", self.path)
        self._out.append(None)
        try:
            return self._idle.pop()
        except IndexError:
            self._out.pop()
        with self._opening:
            self._out.append(None)
            try:
                return self._reader()
            except BaseException:
                self._out.pop()
                raise

    def _give(self, db: Connection) -> None:
        if self.closed or len(self._idle) >= IDLE_READERS:
            db.close()
        else:
            self._idle.append(db)
        self._out.pop()

    def _reader(self) -> Connection:
        if self.writable:
            return self._connect("mode=rw", "query_only = 1")
        # Beside a store that cannot be written SQLite must not make the files of its WAL; when
        # there are none, nobody is writing and the file alone is the whole store.
        alone = not any(beside(self.path, suffix).exists() for suffix in ("-wal", "-shm"))
        fixed = alone and not writable(self.path)
        return self._connect("mode=ro&immutable=1" if fixed else "mode=ro")

    def _connect(self, options: str, *settings: str) -> Connection:
        db = None
        try:
            db = self.driver.connect(uri(self.path, options), self.patience)
            for setting in ("wal_autocheckpoint = 0", *settings):
                db.execute(f"PRAGMA {setting}")
        except sqlite3.Error as error:
            if db is not None:
                db.close()
            raise store_error(error, self.path) from error
        return db

    def begin(self, *, durable: bool = True) -> Connection:
        """Wait for the turn and begin a transaction; `release` must follow, whatever happens.

        Without `durable` its commit does not wait for the disk. Raises `StoreError` read-only,
        busy, closed or damaged.
        """
        if not self.writable:
            raise fault("read-only", self.path)
        if not self._turn.acquire(timeout=self.patience * 6):
            raise fault("busy", self.path)
        try:
            if self._lock is None:
                self._lock = FileLock(beside(self.path, ".lock"), self.patience)
            self._lock.__enter__()
        except BaseException:
            self._turn.release()
            raise
        try:
            db = self._open_writer()
            if not durable:
                db.execute("PRAGMA synchronous = NORMAL")
            db.execute("BEGIN IMMEDIATE")
            return db
        except BaseException as error:
            self.release(durable=durable)
            if isinstance(error, sqlite3.Error):
                raise store_error(error, self.path) from error
            raise

    def _open_writer(self) -> Connection:
        if self.closed:
            raise fault("closed", self.path)
        self._check_identity()
        if self._writer is None:
            self._writer = self._connect("mode=rw", "synchronous = FULL")
            self._pages = _size(beside(self.path, "-wal")) // PAGE_SIZE
        return self._writer

    def _check_identity(self) -> None:
        """Events written into a file that was removed would be lost without a word."""
        now = time.monotonic()
        if now - self._seen > LOOK_EVERY:
            if _identity(self.path) != self._identity:
                raise fault("damaged", self.path, "it was moved or replaced while it was open")
            self._seen = now

    def commit(self, db: Connection, size: int) -> None:
        """Commit about `size` bytes, and checkpoint when it is time to."""
        db.execute("COMMIT")
        if size:
            self._pages += 4 + size // (PAGE_SIZE // 2)
            if self._pages >= CHECKPOINT_PAGES:
                self._checkpoint(db)

    def truncate(self) -> bool:
        """Move what is in the WAL to the file and empty it; no while readers are in the way.

        Alone with the file: two checkpoints at once are not safe with every SQLite. Raises
        `StoreError`.
        """
        db = self.begin()
        try:
            db.execute("ROLLBACK")
            busy: int = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            self._pages = 0
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error
        finally:
            self.release()
        return not busy

    def _checkpoint(self, db: Connection) -> None:
        """What is committed is safe in the WAL, so a checkpoint that fails is only tried later."""
        with suppress(sqlite3.Error):
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._pages = 0

    def undo(self, db: Connection) -> None:
        """Roll back; a connection that cannot is not used again."""
        with suppress(sqlite3.Error):
            if db.in_transaction:
                db.execute("ROLLBACK")
        if db.in_transaction:
            db.close()
            self._writer = None

    def release(self, *, durable: bool = True) -> None:
        """End the turn."""
        try:
            if not durable:
                self._be_durable()
            if self._lock is not None:
                self._lock.__exit__(None, None, None)
        finally:
            self._turn.release()

    def _be_durable(self) -> None:
        if self._writer is not None:
            try:
                self._writer.execute("PRAGMA synchronous = FULL")
            except sqlite3.Error:
                self._writer.close()
                self._writer = None

    def close(self) -> None:
        """Close every connection, once the turn that is taken has ended."""
        if self.closed:
            return
        self.closed = True
        with self._turn:
            self._let_go()

    def _let_go(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()
        if self._writer is not None:
            self._writer.close()
        if self._lock is not None:
            self._lock.close()
        self._writer = self._lock = None

    def before_fork(self) -> None:
        """Close everything as soon as no thread uses it; others wait until the fork is over."""
        self._turn.acquire()
        self._opening.acquire()
        self._let_go()
        while self._out:
            time.sleep(0.0002)
            self._let_go()
        self._let_go()

    def after_fork(self) -> None:
        """Open again what is needed, when it is needed."""
        self._opening.release()
        self._turn.release()


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError as error:
        raise os_error(error, path) from error
    return found.st_dev, found.st_ino


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
