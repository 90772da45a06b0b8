"""Holders of a store in PostgreSQL: advisory locks, each of a session of its own.

A session ends with its process, and with the server, so a row beside the lock says who held it.
Where the process is seen to be gone, the holder is dead at once; where it is not (another host, or
a server that was restarted), its session has a few seconds to come back.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg

from statelog.domain.errors import StoreError
from statelog.infrastructure.holders import Holder, Holders
from statelog.infrastructure.store.postgres_connections import Connections, Session
from statelog.infrastructure.store.postgres_faults import store_error

log = logging.getLogger("statelog.store.holders")

GRACE_S: Final = 5.0
"""So long a session that was lost may take to come back."""
_AGAIN_S: Final = 0.2

_HELD: Final = """
    EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid = ((%s::bigint >> 32) & 4294967295)::oid
        AND objid = (%s::bigint & 4294967295)::oid)
"""
_LOOK: Final = f"SELECT {_HELD}, (SELECT about FROM holders WHERE id = %s)"
_LATE: Final = """
    UPDATE holders SET missing_since = coalesce(missing_since, clock_timestamp())
    WHERE id = %s AND about = %s
    RETURNING clock_timestamp() - missing_since > make_interval(secs => %s)
"""
_ABOUT: Final = "SELECT about FROM holders WHERE id = %s"
_KNOWN: Final = "SELECT id, about FROM holders ORDER BY id"
_ENTER: Final = """
    INSERT INTO holders (id, about) VALUES (%s, %s)
    ON CONFLICT (id) DO UPDATE SET about = excluded.about, missing_since = NULL
"""
_BACK: Final = "UPDATE holders SET missing_since = NULL WHERE id = %s AND about = %s"
_LEAVE: Final = "DELETE FROM holders WHERE id = %s AND about = %s"
_SWEEP: Final = f"DELETE FROM holders WHERE id = %s AND about = %s AND NOT {_HELD}"
_TAKE: Final = "SELECT pg_advisory_lock(%s)"
_LET_GO: Final = "SELECT pg_advisory_unlock(%s)"
_TRY: Final = "SELECT pg_try_advisory_lock(%s)"


class SessionHolder(Holder):
    """A lock that one session of this process holds, and takes again when the session is lost."""

    def __init__(
        self,
        id: str,
        about: str,
        connections: Connections,
        db: Session,
        forget: Callable[[str], None],
    ) -> None:
        super().__init__(id, None, -1, forget)
        self._about = about
        self._connections = connections
        self._key = connections.key(id)
        self._db: Session | None = db
        connections.keep(db)
        self._ended, self._end = os.pipe()
        self._watching = threading.Thread(target=self._watch, name="statelog-holder", daemon=True)
        self._watching.start()

    def release(self) -> None:
        """Let go; from now on the holder counts as dead. Safe to call twice.

        In a forked child it gives up the child's part alone.
        """
        if os.getpid() != self._pid:
            self._give_up()
        elif self._end >= 0:
            os.close(self._end)
            self._end = -1
            self._watching.join()
            os.close(self._ended)
            self._leave()
        self._forget(self.id)

    def _give_up(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with suppress(OSError, psycopg.Error):
                os.close(db.fileno())
            _inherited.append(db)

    def _leave(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with suppress(psycopg.Error):
                db.execute(_LEAVE, (self.id, self._about))
                db.execute(_LET_GO, (self._key,))
            db.close()

    def _watch(self) -> None:
        while self._db is not None:
            ready, _, _ = select.select([self._db.fileno(), self._ended], [], [])
            if self._ended in ready:
                return
            try:
                self._db.execute("SELECT 1")
            except psycopg.Error:
                self._db.close()
                self._db = self._again()

    def _again(self) -> Session | None:
        """A session that has the lock again, unless others were told that this holder is dead."""
        log.warning("the session of %s was lost; taking its lock again", self.id)
        while not select.select([self._ended], [], [], _AGAIN_S)[0]:
            db = None
            try:
                db = self._connections.session()
                self._connections.keep(db)
                ((free,),) = db.execute(_TRY, (self._key,)).fetchall()
                if free and db.execute(_BACK, (self.id, self._about)).rowcount:
                    return db
                if free or self._is_anothers(db):
                    log.error("%s was taken for dead, and others may have taken over", self.id)
                    db.close()
                    return None
            except (psycopg.Error, StoreError):
                pass
            if db is not None:
                db.close()
        return None

    def _is_anothers(self, db: Session) -> bool:
        return db.execute(_ABOUT, (self.id,)).fetchone() != (self._about,)


class SessionHolders(Holders):
    """The holders of one store, as those with lock files are."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(None)
        self._connections = connections

    def take(self, kind: str = "holder", token: str | None = None) -> Holder:
        """Become a living holder with the id `<kind>:<token>`. Raises `StoreError`."""
        id = f"{kind}:{token or uuid4()}"
        found = self._taken(id, wait=True)
        assert found is not None
        return found

    def try_take(self, kind: str, token: str) -> Holder | None:
        """Become the holder with this id unless somebody living is it. Raises `StoreError`."""
        return self._taken(f"{kind}:{token}", wait=False)

    def _taken(self, id: str, *, wait: bool) -> Holder | None:
        connections = self._connections
        about = _about()
        db = connections.session("SET lock_timeout = 0")
        try:
            ((got,),) = db.execute(_TAKE if wait else _TRY, (connections.key(id),)).fetchall()
            if got is False:
                connections.end(db)
                return None
            if not wait and self._comes_back(id):
                db.execute(_LET_GO, (connections.key(id),))
                connections.end(db)
                return None
            db.execute(_ENTER, (id, about))
        except psycopg.Error as error:
            connections.end(db)
            raise store_error(error, connections.where) from error
        except BaseException:
            connections.end(db)
            raise
        self._own.add(id)
        return SessionHolder(id, about, connections, db, self._own.discard)

    def _comes_back(self, id: str) -> bool:
        """Whether the one whose lock is free has not been missing for long."""
        found = self._connections.read(_ABOUT, (id,))
        return bool(found) and not self._is_dead(id, found[0][0])

    def alive(self, id: str | None) -> bool:
        """Whether the holder's process lives, stopped or not. Raises `StoreError`."""
        if id is None:
            return False
        key = self._connections.key(id)
        ((held, about),) = self._connections.read(_LOOK, (key, key, id))
        return bool(held) or (about is not None and not self._is_dead(id, about))

    def _is_dead(self, id: str, about: str) -> bool:
        if _is_gone(about) or not self._connections.writable:
            return True
        found = self._connections.write(_LATE, (id, about, GRACE_S))
        return not found or bool(found[0][0])

    def who(self, id: str) -> dict[str, Any] | None:
        """Which process a holder is: its `pid` and `host`; none when nobody knows it."""
        found = self._connections.read(_ABOUT, (id,))
        if not found:
            return None
        about = json.loads(found[0][0])
        return {"pid": about["pid"], "host": about["host"]}

    def sweep(self) -> int:
        """Remove the rows of dead holders; answers how many."""
        swept = 0
        for id, about in self._connections.read(_KNOWN):
            if not self.alive(id):
                key = self._connections.key(id)
                gone = self._connections.write(f"{_SWEEP} RETURNING 1", (id, about, key, key))
                swept += len(gone)
        return swept

    def known(self) -> tuple[str, ...]:
        """Ids of the living holders, and of dead ones whose rows are still there."""
        return tuple(id for id, _ in self._connections.read(_KNOWN))


_inherited: list[Session] = []


def _about() -> str:
    """Who this process is, so that others on its machine can see whether it is gone."""
    facts = {
        "pid": os.getpid(),
        "host": platform.node(),
        "machine": _machine(),
        "started": _started(os.getpid()),
        "token": uuid4().hex,
    }
    return json.dumps(facts)


def _is_gone(about: str) -> bool:
    facts = json.loads(about)
    here = facts["machine"] is not None and facts["machine"] == _machine()
    return here and facts["started"] != _started(facts["pid"])


def _machine() -> str | None:
    """This boot of this machine, as its processes see each other; None where that is not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _started(pid: int) -> str | None:
    """When a process was started; None when there is none, or only its body is left."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else fields[19]
