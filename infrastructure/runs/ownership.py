"""Whose a run is: one process supervises it, and one run has its folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from statelog.domain.aggregate import Loaded
from statelog.domain.runs.run import Run
from statelog.infrastructure.holders import Holder, Holders
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.runs.folders import RunFolder

_AGAIN_S: Final = 0.5


@contextmanager
def alone(journal: Journal, run_id: str, stop: threading.Event) -> Iterator[Holder | None]:
    """The kernel's lock of the run: whatever a lease says, only one process has it.

    Waits for another process that has it; None when `stop` is set first.
    """
    holders = Holders.for_journal(journal)
    while (holder := holders.try_take("run", run_id)) is None:
        if stop.wait(_AGAIN_S):
            yield None
            return
    with holder:
        yield holder


def refusal(journal: Journal, run: Loaded[Run], folder: RunFolder) -> str:
    """Why the run's folder cannot be used; empty when it can."""
    first = next(iter(journal.history(run.stream)))
    try:
        if folder.claim(first.hash.hex()):
            return ""
    except OSError as error:
        return f"the folder {folder.path} cannot be used: {error.strerror or error}"
    return (
        f"the folder {folder.path} is that of another run of this id; move it, or take another id"
    )
