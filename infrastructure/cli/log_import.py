"""`statelog log import`: an exported log becomes a store."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.output import emit, show, tell
from statelog.infrastructure.cli.pace import Pace

STDIN: Final = "-"


def add_to(log: click.Group) -> None:
    """Register the command."""

    @command(log, "import", epilog="Example: statelog log import log.jsonl --store copy.db")
    @click.argument("file", metavar="FILE")
    def import_log(settings: Settings, *, file: str) -> None:
        """Make the log that FILE was exported from; - reads stdin.

        JSON Lines and CloudEvents are told apart. The store is new or empty, or its events are the
        first ones of the file: then the rest is added, so the same again goes on where it was
        stopped. Every hash, position and version is checked.
        """
        from statelog.infrastructure.exchange.importing import Import

        with _file(file) as (lines, size), settings.journal(create=True) as journal:
            pace = Pace()

            def progress(count: int, read: int) -> None:
                pace("importing", count, max(count, count * size // max(1, read)))

            done = Import(journal).read(lines, progress)
        if done.without_data:
            tell(f"{done.without_data:,} events came without their payloads, as they were exported")
        if settings.as_json:
            emit({"file": file, **vars(done)})
        else:
            there = f"; {done.there:,} were there already" if done.there else ""
            show(f"{done.events:,} events imported into {settings.named}{there}")


@contextmanager
def _file(name: str) -> Iterator[tuple[BinaryIO, int]]:
    """The file and its size, which of stdin nobody knows."""
    if name == STDIN:
        yield sys.stdin.buffer, 0
        return
    path = Path(name)
    with path.open("rb") as file:
        yield file, path.stat().st_size
