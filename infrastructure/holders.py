"""Liveness by kernel lock: a holder lives exactly as long as its process does (D8)."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote, unquote
from uuid import uuid4
from weakref import WeakKeyDictionary

from statelog.domain.errors import StoreError

_SUFFIX: Final = ".lock"
_LONGEST: Final = 120


class Stored(Protocol):
    """What has a file, or holders of its own, or neither when it is in memory."""

    store: Path | None

    def own_holders(self) -> Holders | None:
        """Holders that are no locks beside the file."""


class Holder:
    """A lock this process holds until it ends or releases it; `id` is what others know it by."""

    def __init__(self, id: str, path: Path | None, descriptor: int, forget: Callable[[str], None]):
        self.id = id
        self._path = path
        self._descriptor = descriptor
        self._forget = forget
        self._pid = os.getpid()

    def release(self) -> None:
        """Let go; from now on the holder counts as dead. Safe to call twice."""
        if self._descriptor >= 0:
            if self._path is not None and os.getpid() == self._pid:
                self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
        self._descriptor = -1
        self._forget(self.id)

    def __enter__(self) -> Holder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


class Holders:
    """The holders of one store: a folder of lock files, or this process alone without a folder.

    A stopped process keeps its lock, a killed one frees it at once, and a forked child shares it.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._own: set[str] = set()
        self._guard = threading.Lock()

    @classmethod
    def of(cls, store: Path | None) -> Holders:
        """The holders of a store: the folder `<store>.holders` beside it."""
        return cls(None if store is None else store.with_name(f"{store.name}.holders"))

    @classmethod
    def for_journal(cls, journal: Stored) -> Holders:
        """The holders of a journal's store; of a journal in memory, the same ones every time."""
        if (own := journal.own_holders()) is not None:
            return own
        if journal.store is not None:
            return cls.of(journal.store)
        return _IN_MEMORY.setdefault(journal, cls(None))

    def take(self, kind: str = "holder", token: str | None = None) -> Holder:
        """Become a living holder with the id `<kind>:<token>` (default: a fresh UUID).

        Raises `StoreError` when the folder cannot be used.
        """
        id = f"{kind}:{token or uuid4()}"
        self._own.add(id)
        if self._folder is None:
            return Holder(id, None, -1, self._own.discard)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            return Holder(id, self._file(id), self._locked(self._file(id)), self._own.discard)
        except OSError as error:
            self._own.discard(id)
            raise self._unusable(error) from error

    def try_take(self, kind: str, token: str) -> Holder | None:
        """Become the holder with this id unless somebody living is it; never waits.

        Raises `StoreError` when the folder cannot be used.
        """
        id = f"{kind}:{token}"
        if self._folder is None:
            with self._guard:
                if id in self._own:
                    return None
                self._own.add(id)
            return Holder(id, None, -1, self._own.discard)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            descriptor = self._locked(self._file(id), wait=False)
        except BlockingIOError:
            return None
        except OSError as error:
            raise self._unusable(error) from error
        self._own.add(id)
        return Holder(id, self._file(id), descriptor, self._own.discard)

    def alive(self, id: str | None) -> bool:
        """Whether the holder's process lives, stopped or not.

        Looking takes a shared lock, so that two who look at once do not see each other.
        """
        if id is None:
            return False
        if self._folder is None:
            return id in self._own
        try:
            descriptor = os.open(self._file(id), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not _lock_now(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def who(self, id: str) -> dict[str, Any] | None:
        """Which process a holder is: its `pid` and `host`; none when its file is gone.

        Where only a forked child keeps the lock of a process that is gone, the pid is the child's.
        """
        if self._folder is None:
            return {"pid": os.getpid(), "host": platform.node()} if id in self._own else None
        try:
            found = json.loads(self._file(id).read_bytes())
        except (OSError, ValueError):
            return None
        if not isinstance(found, dict):
            return None
        keepers = _keepers(self._file(id)) if found.get("host") == platform.node() else ()
        gone = bool(keepers) and found.get("pid") not in keepers
        return {**found, "pid": keepers[0]} if gone else found

    def sweep(self) -> int:
        """Remove the files of dead holders; answers how many."""
        if self._folder is None or not self._folder.is_dir():
            return 0
        return sum(self._swept(path) for path in self._folder.glob(f"*{_SUFFIX}"))

    def living(self) -> tuple[str, ...]:
        """Ids of the living holders."""
        return tuple(id for id in self.known() if self.alive(id))

    def known(self) -> tuple[str, ...]:
        """Ids of the living holders, and of dead ones whose files are still there.

        One that is too long for the name of a file is told as `<kind>:~<its SHA-256>`.
        """
        if self._folder is None:
            return tuple(sorted(self._own))
        names = (path.name.removesuffix(_SUFFIX) for path in self._folder.glob(f"*{_SUFFIX}"))
        return tuple(sorted(map(unquote, names)))

    def _file(self, id: str) -> Path:
        assert self._folder is not None
        name = quote(id, safe="")
        if len(name) > _LONGEST:
            # what `known` makes of this name is an id that has this file too
            kind = quote(id.partition(":")[0], safe="")
            name = f"{kind}%3A~{sha256(id.encode()).hexdigest()}"
        return self._folder / f"{name}{_SUFFIX}"

    def _unusable(self, error: OSError) -> StoreError:
        kind = "full" if error.errno == 28 else "read-only"
        why = error.strerror or error
        return StoreError(kind, f"cannot hold a lock in {self._folder}: {why}")

    def _locked(self, path: Path, *, wait: bool = True) -> int:
        """Create and lock a file, again when a sweep removed it between the two.

        Raises `BlockingIOError` when somebody has it and `wait` is off.
        """
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except OSError:
                os.close(descriptor)
                raise
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    about = {"pid": os.getpid(), "host": platform.node()}
                    os.truncate(descriptor, 0)
                    os.write(descriptor, json.dumps(about).encode())
                    return descriptor
            os.close(descriptor)

    def _swept(self, path: Path) -> bool:
        """Remove a dead holder's file, unless it is another's by now.

        A shared lock tells as well that nobody lives here, and does not look like life itself.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            found = os.fstat(descriptor)
            if not (stat.S_ISREG(found.st_mode) and _lock_now(descriptor, fcntl.LOCK_SH)):
                return False
            if not os.path.samestat(found, path.lstat()):
                return False
            path.unlink()
            return True
        except FileNotFoundError:
            return False
        finally:
            os.close(descriptor)


def _keepers(path: Path) -> tuple[int, ...]:
    """Processes of this user that have a file open, oldest first; none without `/proc`."""
    found = []
    with suppress(OSError):
        wanted = path.stat()
        for link in Path("/proc").glob("[0-9]*/fd/*"):
            with suppress(OSError):
                if os.path.samestat(link.stat(), wanted):
                    found.append(int(link.parts[2]))
    return tuple(sorted(set(found)))


def _lock_now(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_IN_MEMORY: Final[WeakKeyDictionary[Stored, Holders]] = WeakKeyDictionary()
