"""A worker inside a service: executes the plans its authority covers, in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from statelog.domain.execution.request import DAEMON, Claim
from statelog.infrastructure.execution.coordinator import Coordinator
from statelog.infrastructure.execution.engine import Engine
from statelog.infrastructure.execution.resolved import Resolved, heard
from statelog.infrastructure.execution.settle import Settler
from statelog.infrastructure.execution.writer import Listener
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal


class Worker:
    """Executes plans of the daemon's authority from one journal, as one living holder.

    `work_root` holds the work directories, `path` the folders of step modules. `listener` is told
    of the events of its attempts once they are committed, `on_resolution` of what became of each
    `run`, in its thread. Use it as a context manager or `close` it: a closed worker counts as dead,
    and what it had not finished may be taken over.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        work_root: Path | str,
        path: Sequence[Path | str],
        actor: str,
        listener: Listener | None = None,
        on_resolution: Callable[[Resolved], None] | None = None,
    ) -> None:
        self._on_resolution = on_resolution
        self._cancel = threading.Event()
        holders = Holders.for_journal(journal)
        holders.sweep()
        self._holder = holders.take("worker")
        engine = Engine(
            journal,
            Path(work_root).absolute(),
            [Path(folder).absolute() for folder in path],
            actor,
            clock=journal.clock,
            listener=listener,
        )
        settler = Settler(journal, holders, actor, clock=journal.clock, interrupt=self._cancel)
        self._coordinator = Coordinator(engine, settler, self._holder, Claim(DAEMON), self._cancel)

    def run(self, plan_id: str) -> Resolved:
        """Take one plan as far as it goes now: settle, admit, execute, record.

        What it cannot do is the resolution's to say (`not_eligible`, `duplicate` ...), not an
        exception's.
        """
        resolved = self._coordinator.cycle(plan_id)
        if self._on_resolution is not None:
            heard(self._on_resolution, resolved)
        return resolved

    def pay(self) -> bool:
        """Append what is owed because an append failed; whether nothing is owed any more (D9).

        `run` does it first. A worker that stays alive and may not be asked to run for long calls
        this from time to time, because nobody else may write for it while it lives.
        """
        self._coordinator.pay()
        return not self._coordinator.owes

    def stop(self) -> None:
        """Ask, from any thread, to end the running attempt after its running step."""
        self._cancel.set()

    def close(self) -> None:
        """Stop being alive. Safe to call twice."""
        self._holder.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
