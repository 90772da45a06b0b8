"""Workspaces: what a producer left is brought to its consumer before that one starts (4.3)."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statelog.domain.errors import StatelogError

STRATEGY: Final = "runtime-local"
_CHUNK: Final = 1024 * 1024


class WorkspaceError(StatelogError):
    """A workspace cannot be filled: files that differ, links that lead out, or the disk."""


class Abandoned(StatelogError):
    """Whoever filled the workspace was asked to leave; what is there is found again."""


@dataclass(frozen=True)
class Moved:
    """What a synchronisation did. Times are epoch seconds, sizes bytes.

    `logical_bytes` is what the producer left, `bytes` what was not there yet; `skipped` counts
    sockets, pipes and devices, which are not moved.
    """

    bytes: int
    logical_bytes: int
    files: int
    skipped: int
    started_at: float
    finished_at: float
    strategy: str = STRATEGY


def synchronise(
    source: Path, target: Path, spare: Path, leave: Callable[[], bool] = lambda: False
) -> Moved:
    """Bring all of a workspace into another one; files that are there already are left alone.

    Directories, regular files and links that stay inside are moved; nothing is ever followed. A
    file appears in one move, by way of the folder `spare`, so that this may be done again after a
    crash. Raises `WorkspaceError` naming the path: another content, or another kind of thing at
    the same path, a link that leads out; `Abandoned` when `leave` says so.
    """
    begun, filling = time.time(), _Filling(source, target, spare, leave)
    if not source.is_dir() or source.is_symlink():
        raise WorkspaceError(f"the workspace {source.name!r} of a producer is gone")
    try:
        for relative, status in _below(source):
            filling.stay()
            filling.bring(relative, status)
    except OSError as error:
        why = error.strerror or str(error)
        raise WorkspaceError(f"cannot bring {source.name!r} over: {why}") from error
    return Moved(
        filling.bytes,
        filling.logical_bytes,
        filling.files,
        filling.skipped,
        started_at=begun,
        finished_at=max(begun, time.time()),
    )


def _below(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Relative path and own status of everything in a folder, a directory before its content."""
    waiting = [""]
    while waiting:
        here = waiting.pop()
        with os.scandir(folder / here) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                relative = os.path.join(here, entry.name)
                status = entry.stat(follow_symlinks=False)
                yield relative, status
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(relative)


@dataclass
class _Filling:
    """One workspace on its way into another, and what it came to."""

    source: Path
    target: Path
    spare: Path
    leave: Callable[[], bool]
    bytes: int = 0
    logical_bytes: int = 0
    files: int = 0
    skipped: int = 0

    def stay(self) -> None:
        """Raises `Abandoned` when this is to leave; asked for each piece, as files may be huge."""
        if self.leave():
            raise Abandoned("asked to leave while a workspace was filled")

    def bring(self, relative: str, status: os.stat_result) -> None:
        there = _status(self.target / relative)
        if stat.S_ISDIR(status.st_mode):
            self._bring_folder(relative, status, there)
        elif stat.S_ISLNK(status.st_mode):
            self._bring_link(relative, there)
        elif stat.S_ISREG(status.st_mode):
            self._bring_file(relative, status, there)
        else:
            self.skipped += 1

    def _bring_folder(
        self, relative: str, status: os.stat_result, there: os.stat_result | None
    ) -> None:
        if there is None:
            (self.target / relative).mkdir(mode=stat.S_IMODE(status.st_mode) | 0o700)
        elif not stat.S_ISDIR(there.st_mode):
            raise _conflict(relative)

    def _bring_link(self, relative: str, there: os.stat_result | None) -> None:
        text = os.readlink(self.source / relative)
        if not stays_inside(relative, text):
            why = f"{relative!r} is a link that leads out of its workspace: {text!r}"
            raise WorkspaceError(why)
        target = self.target / relative
        if there is None:
            target.symlink_to(text)
        elif not stat.S_ISLNK(there.st_mode) or os.readlink(target) != text:
            raise _conflict(relative)

    def _bring_file(
        self, relative: str, status: os.stat_result, there: os.stat_result | None
    ) -> None:
        source, target = self.source / relative, self.target / relative
        self.logical_bytes += status.st_size
        if there is None:
            _copy(source, target, status, self.spare, self.stay)
            self.bytes += status.st_size
            self.files += 1
        elif not (_alike(status, there) and _same(source, target, self.stay)):
            raise _conflict(relative)


def stays_inside(relative: str, text: str) -> bool:
    """Whether a link at a relative path stays inside, whatever other such links there are.

    It may go up at its beginning alone, and not above the top; its own folder is no link.
    """
    if text.startswith("/"):
        return False
    parts = [part for part in text.split("/") if part not in ("", ".")]
    ups = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return ".." not in parts[ups:] and ups <= relative.count("/")


def _conflict(relative: str) -> WorkspaceError:
    return WorkspaceError(f"{relative!r} is there already with another content")


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _copy(
    source: Path,
    target: Path,
    status: os.stat_result,
    spare: Path,
    stay: Callable[[], None],
) -> None:
    """Copy a file aside and move it into its place, with its mode and its time."""
    spare.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = spare / "transfer.tmp"
    reading = _open(source)
    try:
        writing = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            while data := os.read(reading, _CHUNK):
                stay()
                while data:
                    data = data[os.write(writing, data) :]
            os.fchmod(writing, stat.S_IMODE(status.st_mode) & 0o777)
        finally:
            os.close(writing)
        os.utime(temporary, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.replace(temporary, target)
    finally:
        os.close(reading)
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _alike(status: os.stat_result, there: os.stat_result) -> bool:
    return stat.S_ISREG(there.st_mode) and status.st_size == there.st_size


def _same(one: Path, other: Path, stay: Callable[[], None]) -> bool:
    left, right = _open(one), _open(other)
    try:
        while True:
            stay()
            data = os.read(left, _CHUNK)
            if data != _exactly(right, len(data)):
                return False
            if not data:
                return True
    finally:
        os.close(left)
        os.close(right)


def _exactly(descriptor: int, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := os.read(descriptor, size - len(data))):
        data += more
    return data


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
