"""The process of one attempt: `python -m statelog.infrastructure.execution.child FD` (D8).

Reads one JSON line from standard input, takes the plan through one cycle as a living holder of its
own, and writes the resolution to the descriptor. It dies with the process that started it.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from statelog.domain.errors import StatelogError
from statelog.domain.execution.due import Due
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.request import Claim
from statelog.infrastructure.execution.coordinator import Coordinator
from statelog.infrastructure.execution.engine import Engine
from statelog.infrastructure.execution.resolved import Resolved, tell
from statelog.infrastructure.execution.settle import Settler
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.logs import configure

_PR_SET_PDEATHSIG: Final = 1
_TICK_S: Final = 1.0


@dataclass(frozen=True)
class Order:
    """What a child is told to do."""

    store: str
    plan_id: str
    work_root: str
    path: tuple[str, ...]
    actor: str
    authority: str
    owner: str | None
    when: tuple[str, ...]
    attempted: tuple[str, int] | None
    parent: int
    log_format: str = "text"
    log_level: str = "INFO"

    def line(self) -> bytes:
        """One line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Order:
        """The order of a line."""
        values = json.loads(line)
        attempted = values["attempted"]
        return cls(
            **{
                **values,
                "path": tuple(values["path"]),
                "when": tuple(values["when"]),
                "attempted": None if attempted is None else (attempted[0], attempted[1]),
            }
        )


def die_with_parent(parent: int) -> None:
    """Be killed when the parent dies, where the kernel can do that; leave if it is dead already."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def work(order: Order) -> dict[str, Any]:
    """Carry the order out; what became of it. Raises `StoreError` when there was no chance to."""
    cancel = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: cancel.set())
    with (
        Journal(order.store) as journal,
        Holders.for_journal(journal).take("attempt") as holder,
    ):
        holders = Holders.for_journal(journal)
        engine = Engine(
            journal, Path(order.work_root), [Path(folder) for folder in order.path], order.actor
        )
        settler = Settler(journal, holders, order.actor, interrupt=cancel)
        claim = Claim(order.authority, order.owner)
        coordinator = Coordinator(engine, settler, holder, claim, cancel)
        resolved = coordinator.cycle(
            order.plan_id, when=[Due(word) for word in order.when], attempted=order.attempted
        )
        while coordinator.owes and not cancel.wait(_TICK_S):
            coordinator.pay()
        return resolved.to_json()


def main() -> None:
    """Carry out the order on standard input; without one, its giver is gone and nothing is done."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        sys.exit(1)
    order = Order.read(line)
    die_with_parent(order.parent)
    configure(order.log_format, order.log_level)
    try:
        answer = work(order)
    except StatelogError as error:
        resolved = Resolved(order.plan_id, Resolution.ADMISSION_FAILED, str(error))
        tell(resolved)
        answer = resolved.to_json()
    result = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    with suppress(BrokenPipeError), result:
        json.dump(answer, result)


if __name__ == "__main__":
    logging.captureWarnings(True)
    main()
