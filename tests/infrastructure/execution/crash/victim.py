"""A real `statelog` process that says what it is doing, and dies or stops where it is told to.

`python victim.py ORDERS ARGUMENT...` runs the command line with these arguments. It writes a line
to the descriptor `ORDERS["tell"]` at each mark it passes: `ack POSITION HASH` for an event whose
append has returned, `holder ID`, and words such as `before step_started`. Where a mark is the one
in `die` the process kills itself with SIGKILL, where it is the one in `stop` it stops itself once,
and where it is the one in `full` the disk becomes full for it.

With a path in `tell` each line begins with the pid and is appended to that file; the processes of
a daemon's attempts then tell there too, and only `stops` (1) of all stop. `clock` is a file of the
seconds by which the clock goes wrong.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

ORDERS: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
SHARED = isinstance(ORDERS.get("tell"), str)
CHILD = ORDERS.get("child", False)
TELL = (
    os.open(ORDERS["tell"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if SHARED
    else ORDERS.get("tell")
)


def mark(word: str) -> None:
    """Say it, then do what was ordered for this place."""
    os.write(TELL, (f"{os.getpid()} {word}\n" if SHARED else f"{word}\n").encode())
    if word == ORDERS.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if word == ORDERS.get("stop"):
        del ORDERS["stop"]
        if first():
            os.kill(os.getpid(), signal.SIGSTOP)
    if word == ORDERS.get("full"):
        fill()


def first() -> bool:
    """Whether fewer processes that tell into the same file than may stop have done so before."""
    for number in range(ORDERS.get("stops", 1) if SHARED else 0):
        with suppress(FileExistsError):
            os.close(os.open(f"{ORDERS['tell']}.{number}", os.O_CREAT | os.O_EXCL))
            return True
    return not SHARED


def fill() -> None:
    """From now on no file may grow beyond what the log's WAL is now."""
    wal = os.path.getsize(f"{sys.argv[sys.argv.index('--store') + 1]}-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal, resource.RLIM_INFINITY))


def acknowledge(rows: Any) -> None:
    """Say of each event that it is safe."""
    for row in rows:
        mark(f"ack {row.position} {row.hash.hex()}")


def marked(owner: type, name: str, word: Callable[..., str], *, after: bool = True) -> None:
    """Mark the begin, and the end, of each call of a method."""
    original = getattr(owner, name)

    def call(*args: Any, **given: Any) -> Any:
        mark(f"before {word(*args, **given)}")
        done = original(*args, **given)
        if after:
            mark(f"after {word(*args, **given)}")
        return done

    setattr(owner, name, call)


def watch_the_log() -> None:
    """Acknowledge events when `append` has returned; or, as a control, before their commit."""
    from statelog.infrastructure.store.appending import Appending
    from statelog.infrastructure.store.recorder import LogRecorder

    early = ORDERS.get("early", False)
    insert, append = Appending.insert, LogRecorder.append

    def inserting(self: Any, turn: Any, drafts: Any, stamp: Any) -> Any:
        rows, position = insert(self, turn, drafts, stamp)
        if early:
            acknowledge(rows)
        mark(f"inserted {names(drafts)}")
        return rows, position

    def appending(self: Any, batch: Any) -> Any:
        mark(f"before {names(batch.drafts)}")
        done = append(self, batch)
        if not early:
            acknowledge(done.rows)
        mark(f"after {names(batch.drafts)}")
        return done

    Appending.insert = inserting  # type: ignore[method-assign]
    LogRecorder.append = appending  # type: ignore[method-assign]


def names(drafts: Any) -> str:
    """The last words of the stored names of an append."""
    return "+".join(draft.name.rsplit(".", 1)[1] for draft in drafts)


def watch_the_rest() -> None:
    """Mark the making of a store, holders, success markers and views."""
    from statelog.infrastructure.execution.workdir import StepDir
    from statelog.infrastructure.holders import Holders
    from statelog.infrastructure.store import files
    from statelog.infrastructure.view_store import ViewStore
    from statelog.infrastructure.views import Views

    make, take = files._make, Holders.take

    def making(*args: Any) -> None:
        mark("before making")
        make(*args)
        mark("after making")

    def taking(self: Any, *args: Any, **given: Any) -> Any:
        holder = take(self, *args, **given)
        mark(f"holder {holder.id}")
        return holder

    files._make = making  # type: ignore[assignment]
    Holders.take = taking  # type: ignore[method-assign]
    marked(StepDir, "write_marker", lambda *_: "marker")
    marked(StepDir, "delete_marker", lambda *_: "unmark")
    marked(Views, "catch_up", lambda *_: "views")
    marked(ViewStore, "_move", lambda *_: "view")


def follow_children() -> None:
    """Let the processes of attempts tell too."""
    from statelog.infrastructure.execution import children

    orders = json.dumps({**ORDERS, "child": True})
    children.COMMAND = (sys.executable, "-P", __file__, orders)  # type: ignore[misc,assignment]


def go_wrong(offset: str) -> None:
    """A clock that is as many seconds wrong as a file says, from when it says so."""
    right = time.time_ns

    def wrong() -> int:
        try:
            with open(offset, encoding="ascii") as file:
                return right() + int(file.read() or "0") * 1_000_000_000
        except FileNotFoundError:
            return right()

    time.time_ns = wrong


def limit() -> None:
    """Orders about the disk and about patience."""
    from statelog.infrastructure.store.sqlite import SqliteRecorder

    if "patience" in ORDERS:
        SqliteRecorder.patience = ORDERS["patience"]
    if "bytes" in ORDERS:
        resource.setrlimit(resource.RLIMIT_FSIZE, (ORDERS["bytes"], resource.RLIM_INFINITY))


def program() -> Callable[[], None]:
    """The command line, or the process of an attempt."""
    if CHILD:
        from statelog.infrastructure.execution.child import main as child

        return child
    from statelog.__main__ import main

    return main


if __name__ == "__main__":
    mark("up")
    sys.argv[1:] = sys.argv[2:]
    if not sys.flags.safe_path:
        sys.path.pop(0)
    if "clock" in ORDERS:
        go_wrong(ORDERS["clock"])
    run = program()
    if SHARED:
        follow_children()
    limit()
    watch_the_log()
    watch_the_rest()
    run()
