"""Runs in DBOS's own environment: for each number read, a workflow of so many no-op steps."""

from __future__ import annotations

import logging
import sys
from time import perf_counter

import pysqlite3  # type: ignore[import-not-found]

sys.modules["sqlite3"] = pysqlite3

from dbos import DBOS  # type: ignore[import-not-found]  # noqa: E402


@DBOS.step()
def nothing(number: int) -> None:
    """Do nothing."""


@DBOS.workflow()
def chain(length: int) -> int:
    """Take steps, one after the other."""
    for number in range(length):
        nothing(number)
    return length


def main() -> None:
    """Answer the seconds of each workflow."""
    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{sys.argv[1]}",
            "log_level": "ERROR",
            "run_admin_server": False,
        }
    )
    DBOS.launch()
    logging.disable()
    print("ready", flush=True)
    for line in sys.stdin:
        start = perf_counter()
        chain(int(line))
        print(perf_counter() - start, flush=True)
    DBOS.destroy()


if __name__ == "__main__":
    main()
