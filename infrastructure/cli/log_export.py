"""`statelog log export`: the log as lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.output import emit, printable, show, tell
from statelog.infrastructure.cli.pace import watching
from statelog.infrastructure.cli.prefix import stream_prefix

_FORMATS: Final = ("jsonl", "cloudevents")
STDOUT: Final = "-"


def add_to(log: click.Group) -> None:
    """Register the command."""

    @command(log, "export", epilog="Example: statelog log export --payloads -o log.jsonl")
    @click.argument("prefix", metavar="[PREFIX]", required=False)
    @click.option(
        "--format",
        "form",
        type=click.Choice(_FORMATS),
        default=_FORMATS[0],
        show_default=True,
        help="JSON Lines with every column, or CloudEvents 1.0 in JSON, one a line.",
    )
    @click.option(
        "-o",
        "--output",
        default=STDOUT,
        metavar="FILE",
        help="A new file, mode 0600 (default: stdout).",
    )
    @click.option("--payloads", is_flag=True, help="Write the payloads of queue jobs too.")
    def export(
        settings: Settings, *, prefix: str | None, form: str, output: str, payloads: bool
    ) -> None:
        """Write every event, or those of the stream PREFIX and below, as lines.

        `log import` makes the same log of the lines of a whole one, byte for byte; with --payloads
        that of queue jobs too. `log audit FILE` checks them.
        """
        from statelog.infrastructure.exchange.exporting import Export
        from statelog.projections.queue.payloads import PRIVATE

        stream = None if prefix is None else stream_prefix(prefix)
        with settings.journal() as journal, _file(output) as file:
            exported = Export(journal, format=form, private=() if payloads else PRIVATE)
            exported.write(file, stream, watching("exporting"))
        if exported.left_out:
            tell(f"{exported.left_out:,} payloads of jobs were left out; --payloads writes them")
        if output == STDOUT:
            return
        if settings.as_json:
            left = {"events": exported.events, "left_out": exported.left_out}
            emit({"file": output, "format": form, **left})
        else:
            show(printable(f"{exported.events:,} events exported to {output}"))


@contextmanager
def _file(name: str) -> Iterator[BinaryIO]:
    """Stdout, or a new file that is there once it is whole."""
    if name == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    if os.path.lexists(path):
        from statelog.domain.errors import Refused

        raise Refused(f"{path} is there already; name a new file", rule="file_exists")
    new = path.with_name(f"{path.name}.new-{os.getpid()}")
    try:
        with open(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
    finally:
        new.unlink(missing_ok=True)
