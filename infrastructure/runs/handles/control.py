"""The control directory of an activity: files that are written in one move, and the lock."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def locked(control: Path) -> Iterator[int | None]:
    """The descriptor of the lock, or none when somebody has it. Raises `OSError`."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(control / "lock", flags, 0o600)
    try:
        yield descriptor if _take(descriptor, fcntl.LOCK_EX) else None
    finally:
        os.close(descriptor)


def is_free(control: Path) -> bool:
    """Whether nobody holds the lock; looking shares it, so that lookers do not see each other."""
    descriptor = os.open(control / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return _take(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _take(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read(path: Path) -> dict[str, Any] | None:
    """The object of a file that is written in one move; none when it is not there."""
    try:
        value: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise OSError(errno.EIO, "is damaged", str(path)) from error
    return value


def why(error: OSError) -> str:
    """What the operating system says, with the file it is about."""
    named = f"{error.filename}: " if error.filename else ""
    return f"{named}{error.strerror or error}"
