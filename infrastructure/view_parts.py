"""The bulk of a rebuild by several processes: streams parted by their roots, rows laid aside.

A log that is long enough, in a file, and a view that a module declares and whose rows keep to one
root each (`below`): anything else is left to whoever folds in one process, and so is whatever goes
wrong on the way, which that one then finds in the order of the log.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Final

from statelog.infrastructure.view import Log, View
from statelog.infrastructure.view_part import Answer
from statelog.infrastructure.view_rows import Row
from statelog.projections.projection import Projection

LONG = 40_000
"""A log of so many events is worth the start of other processes."""

PIECE: Final = 4_000
_MOST: Final = 8
_AHEAD: Final = 2

_WORKER: Final = (
    "import sys; sys.path[:] = {path!r}; "
    "from statelog.infrastructure.view_part import work; work({link})"
)


class _Alone(Exception):
    """One process has to do it."""


def lay_aside(view: View[Any], log: Log, upto: int, progress: Any) -> bool:
    """Fold the log up to a position and lay the rows aside; False when that cannot be done here.

    Raises `StoreError` when the rows cannot be kept.
    """
    jobs, address = min(cores(), _MOST), address_of(view.projection)
    if upto < LONG or jobs < 2 or address is None or log.store is None:
        return False
    try:
        with ExitStack() as stack:
            told = (address, view.version, log.store, upto)
            links = [stack.enter_context(_worker(stack, told)) for _ in range(jobs)]
            links[0].send(PIECE)
            answers = _answers(links, iter(links[0].recv()))
            view.store.stage(view.format, _rows(view.name, answers, upto, progress))
    except (_Alone, OSError, EOFError):
        view.store.unstage()
        return False
    return True


def cores() -> int:
    """How many processes may run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def address_of(projection: Projection[Any]) -> str | None:
    """`module:NAME` of a projection that a module holds, by which others find it; else None."""
    module = getattr(projection.evolve, "__module__", None)
    found = sys.modules.get(module or "")
    if found is None or module == "__main__":
        return None
    names = (name for name, value in vars(found).items() if value is projection)
    return next((f"{module}:{name}" for name in names), None)


def _worker(stack: ExitStack, told: tuple[Any, ...]) -> Connection[Any, Any]:
    """A process that ends with its link. Ctrl-C is not for it, and the main module not imported."""
    ours, theirs = Pipe()
    with theirs:
        code = _WORKER.format(path=sys.path, link=theirs.fileno())
        child = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    stack.callback(child.wait)
    stack.callback(child.kill)
    ours.send(told)
    return ours


def _answers(links: list[Any], pieces: Iterator[list[str]]) -> Iterator[Answer]:
    """The answers as they come. Each process has a piece to go on with, and no more wait."""
    waiting = dict.fromkeys(links, 0)
    for link in links:
        for piece in islice(pieces, _AHEAD):
            link.send(piece)
            waiting[link] += 1
    while busy := [link for link, count in waiting.items() if count]:
        for link in wait(busy):
            assert isinstance(link, Connection)
            answer = link.recv()
            waiting[link] -= 1
            for piece in islice(pieces, 1):
                link.send(piece)
                waiting[link] += 1
            yield answer


def _rows(name: str, answers: Iterable[Answer], upto: int, progress: Any) -> Iterator[list[Row]]:
    """The rows of all answers; of the events only the number is known, and so the progress."""
    done = 0
    for answer in answers:
        if answer is None:
            raise _Alone
        events, rows = answer
        done += events
        if progress is not None:
            progress(name, min(done, upto), upto)
        yield rows
