"""Sessions with a server of PostgreSQL: one that writes, and as many readers as read at once."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from statelog.domain.errors import Invalid, NotFound
from statelog.infrastructure.store import postgres_schema as schema
from statelog.infrastructure.store.forks import watch
from statelog.infrastructure.store.postgres_address import shown
from statelog.infrastructure.store.postgres_faults import fault, passes, store_error, unreachable
from statelog.infrastructure.store.postgres_making import Mark, prepare

T = TypeVar("T")
Session = psycopg.Connection[tuple[Any, ...]]

IDLE_READERS: Final = 8
STANDSTILL_S: Final = 30
"""So long a writer may stand still within its turn before the server ends its session."""

_DEFAULTS: Final = {
    "connect_timeout": "10",
    "fallback_application_name": "statelog",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
_EVERY: Final = """
    SET client_encoding = 'UTF8'; SET statement_timeout = 0;
    SET lock_timeout = {patience_ms};
"""
_WRITER: Final = f"""
    SET idle_in_transaction_session_timeout = '{STANDSTILL_S}s';
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') = 'off'
"""
_READER: Final = "SET default_transaction_read_only = on"
_AGAIN_S: Final = 0.1

_left_to_parents: list[Session] = []
"""Sessions a forked child has no part in; kept, so that nobody takes leave of the server for the
parent."""


class Connections:
    """Opened when they are needed; a forked child opens its own.

    A session that is lost is replaced: what only reads is read again, a turn that has not begun
    begins again, for as long as the patience lasts. `doubt` says that a COMMIT was sent and not
    answered, so that only a turn can tell whether it landed. Raises `Invalid`, `NotFound`,
    `StoreError`.
    """

    def __init__(self, url: str, *, read_only: bool, patience: float, create: bool = True) -> None:
        self.url = url
        self.where = shown(url)
        self.patience = patience
        self.closed = False
        self.doubt = False
        self._given = _given(url)
        self._mark: Mark | None = None
        self._reset()
        db = self._open()
        try:
            self._mark = prepare(db, self.where, create=create and not read_only)
            if self._mark is None:
                raise NotFound("store", self.where)
            self.writable = self._mark.writable and not read_only
            self._set(db, _READER)
        except psycopg.Error as error:
            db.close()
            raise store_error(error, self.where) from error
        except BaseException:
            db.close()
            raise
        self._idle.append(db)
        watch(self)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._all: set[Session] = set()
        self._idle: deque[Session] = deque()
        self._writer: Session | None = None
        self._turn = threading.Lock()
        self._opening = threading.Lock()

    @property
    def id(self) -> str:
        """The id of the store, a UUID."""
        assert self._mark is not None
        return self._mark.id

    @property
    def channel(self) -> str:
        """Where commits are told."""
        return f"statelog_{self.id.replace('-', '')}"

    def key(self, purpose: str) -> int:
        """The advisory lock of a purpose in this store; two stores of a database share none."""
        digest = sha256(f"{self.id}:{purpose}".encode()).digest()
        return int.from_bytes(digest[:8], signed=True)

    def read(self, sql: str, given: Sequence[object] = ()) -> list[Any]:
        """All rows of a query. Raises `StoreError`."""
        return self._reading(lambda db: db.execute(sql, given or None, binary=True).fetchall())

    def write(self, sql: str, given: Sequence[object] = ()) -> list[Any]:
        """Run a statement beside the log and without its lock; what it returns. It may run twice.

        Raises `StoreError`.
        """

        def act(db: Session) -> list[Any]:
            db.execute("BEGIN READ WRITE")
            try:
                found = db.execute(sql, given or None)
                rows = found.fetchall() if found.description else []
                db.execute("COMMIT")
                return rows
            except BaseException:
                with suppress(psycopg.Error):
                    db.execute("ROLLBACK")
                raise

        return self._reading(act)

    def _reading(self, act: Callable[[Session], T]) -> T:
        until = time.monotonic() + self.patience
        while True:
            db = self._take()
            try:
                return act(db)
            except psycopg.Error as error:
                if not db.closed or time.monotonic() > until:
                    raise self._why(error) from error
            finally:
                self._give(db)

    def _why(self, error: psycopg.Error) -> Exception:
        if self.closed:
            return fault("closed", self.where)
        return store_error(error, self.where)

    def _take(self) -> Session:
        if self.closed:
            raise fault("closed", self.where)
        while self._idle:
            with suppress(IndexError):
                db = self._idle.pop()
                if not db.closed:
                    return db
        return self.session(_READER)

    def _give(self, db: Session) -> None:
        idle = not db.closed and db.info.transaction_status is TransactionStatus.IDLE
        if idle and not self.closed and len(self._idle) < IDLE_READERS:
            self._idle.append(db)
        else:
            self._drop(db)

    def _drop(self, db: Session) -> None:
        self._all.discard(db)
        db.close()

    def session(self, *settings: str) -> Session:
        """A new session, in autocommit; the caller closes it with `end`. Raises `StoreError`."""
        db = self._open()
        try:
            self._set(db, *settings)
            found = db.execute(schema.MARK).fetchone()
        except psycopg.Error as error:
            self._drop(db)
            raise store_error(error, self.where) from error
        except BaseException:
            self._drop(db)
            raise
        if found is None or found[2] != self.id:
            self._drop(db)
            raise fault("damaged", self.where, "it was replaced while it was open")
        return db

    def end(self, db: Session) -> None:
        """Close a session; a forked child takes no leave for its parent. Safe to call twice."""
        if self._pid == os.getpid() and (db in self._all or not db.closed):
            self._drop(db)

    def keep(self, db: Session) -> None:
        """Let a session stay open in forked children, as a lock file's descriptor does."""
        self._all.discard(db)

    def _open(self) -> Session:
        until = time.monotonic() + self.patience
        while True:
            with self._opening:
                try:
                    db: Session = psycopg.connect(**self._given, autocommit=True)
                    self._all.add(db)
                    return db
                except psycopg.Error as error:
                    again = self._mark is not None or passes(error)
                    if not again or time.monotonic() > until:
                        said = unreachable if self._mark is None else store_error
                        raise said(error, self.where) from error
            time.sleep(_AGAIN_S)

    def _set(self, db: Session, *settings: str) -> None:
        every = _EVERY.format(patience_ms=max(1, int(self.patience * 1000)))
        for setting in (every, *settings):
            db.execute(setting, prepare=False)

    def begin(self, *, durable: bool = True) -> tuple[Session, tuple[int, int]]:
        """Wait for the turn and begin a transaction; `release` must follow, whatever happens.

        Answers the session, and the log's last position and time. Raises `StoreError`.
        """
        if self.closed:
            raise fault("closed", self.where)
        if not self.writable:
            raise fault("read-only", self.where, "it was opened to be read, or may only be read")
        if not self._turn.acquire(timeout=self.patience * 6):
            raise fault("busy", self.where, "its turns take too long")
        try:
            return self._begun(durable=durable)
        except BaseException:
            self.release()
            raise

    def _begun(self, *, durable: bool) -> tuple[Session, tuple[int, int]]:
        until = time.monotonic() + self.patience
        while True:
            if self.closed:
                raise fault("closed", self.where)
            db = self._writer
            if db is None or db.closed:
                db = self._writer = self.session(_WRITER)
            try:
                head = self._locked(db, durable=durable)
                self.doubt = False
                return db, head
            except psycopg.Error as error:
                lost = db.closed
                self.undo(db)
                if not lost or time.monotonic() > until:
                    raise self._why(error) from error
            except BaseException:
                self.undo(db)
                raise

    def _locked(self, db: Session, *, durable: bool) -> tuple[int, int]:
        """One round trip: each statement of it has a snapshot of its own, and the last sees all."""
        relaxed = "" if durable else "SET LOCAL synchronous_commit = off; "
        cursor = db.execute(
            f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {relaxed}"
            f"SELECT pg_advisory_xact_lock({self.key('log')}); {schema.HEAD}",
            prepare=False,
        )
        while cursor.nextset():
            pass
        position, at = cursor.fetchone() or (0, 0)
        return position, at

    def commit(self, db: Session, *, tell: bool) -> None:
        """Commit, and tell who listens. Raises `psycopg.Error`; then it may have landed."""
        told = f"SELECT pg_notify('{self.channel}', ''); " if tell else ""
        self.doubt = True
        cursor = db.execute(f"{told}COMMIT", prepare=False)
        while cursor.nextset():
            pass
        if cursor.statusmessage != "COMMIT":
            raise psycopg.OperationalError("the server rolled back")
        self.doubt = False

    def undo(self, db: Session) -> None:
        """Roll back; a session that cannot is not used again."""
        with suppress(psycopg.Error):
            if not db.closed and db.info.transaction_status is not TransactionStatus.IDLE:
                db.execute("ROLLBACK", prepare=False)
        if db.closed or db.info.transaction_status is not TransactionStatus.IDLE:
            self._drop(db)
            self._writer = None

    def release(self) -> None:
        """End the turn."""
        self._turn.release()

    def close(self) -> None:
        """Close every session, once the turn that is taken has ended."""
        if self.closed:
            return
        self.closed = True
        with self._turn:
            if self._writer is not None:
                self._drop(self._writer)
                self._writer = None
        with suppress(IndexError):
            while True:
                self._drop(self._idle.pop())

    def before_fork(self) -> None:
        """Let no session be opened at this moment."""
        self._opening.acquire()

    def after_fork(self) -> None:
        """The parent goes on; the child gives up its descriptors, without a word to the server."""
        if os.getpid() == self._pid:
            self._opening.release()
            return
        for db in self._all:
            abandon(db)
        self._reset()


def abandon(db: Session) -> None:
    """Give up an inherited session: the server hears nothing, and the parent's goes on."""
    _left_to_parents.append(db)
    with suppress(OSError, psycopg.Error):
        os.close(db.fileno())


def _given(url: str) -> dict[str, Any]:
    try:
        return {**_DEFAULTS, **conninfo_to_dict(url)}
    except psycopg.Error:
        raise Invalid("store", f"{shown(url)} is not a URL of PostgreSQL") from None
