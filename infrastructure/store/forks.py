"""Forks: a store lets go of everything before one, and opens it again when it is next used.

SQLite keeps the locks of a file once for the whole process. A child that inherits open
connections believes that it holds locks which only its parent has, even for connections of its
own; so none may be open at the moment of a fork.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """What must rest while the process forks."""

    def before_fork(self) -> None:
        """Finish what is going on, let go of what cannot be inherited, let nobody in."""

    def after_fork(self) -> None:
        """Let others in again, in the parent and in the child."""


_lock = threading.Lock()
_all: WeakSet[Forkable] = WeakSet()


def watch(store: Forkable) -> None:
    """Tell a store of every fork for as long as it lives."""
    with _lock:
        _all.add(store)


def _before() -> None:
    _lock.acquire()
    for store in list(_all):
        store.before_fork()


def _after() -> None:
    for store in list(_all):
        store.after_fork()
    _lock.release()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
