"""`statelog log archive` and `restore`: payloads that go into a file, and come back from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from statelog.infrastructure.cli.all_rules import WITH
from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.loading import PATHS
from statelog.infrastructure.cli.log_erase import VIEWS, eraser_for, told
from statelog.infrastructure.cli.output import emit, printable, show
from statelog.infrastructure.cli.pace import watching
from statelog.infrastructure.cli.prefix import stream_prefix


def add_to(log: click.Group) -> None:
    """Register the commands."""
    _archive(log)
    _restore(log)


def _archive(log: click.Group) -> None:
    @command(log, "archive", epilog="Example: statelog log archive plan/reads-qc -o reads-qc.jsonl")
    @click.argument("prefix", metavar="PREFIX")
    @click.option(
        "-o",
        "--output",
        required=True,
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="The new file that gets the payloads, mode 0600.",
    )
    @click.option(
        "--reason", default="archived", show_default=True, help="Why, as the log will say."
    )
    @WITH
    @VIEWS
    @PATHS
    def archive(
        settings: Settings,
        *,
        prefix: str,
        output: Path,
        reason: str,
        more: Sequence[str],
        own_views: Sequence[str],
        folders: Sequence[Path],
    ) -> int:
        """Move the payloads of the finished stream PREFIX, and of all below it, into a file.

        The log is then as after `log erase`; `log restore FILE` puts the payloads back. The file
        holds one event a line, as `log export` writes it. When the command was stopped, the same
        again finishes it.
        """
        from statelog.infrastructure.exchange.archiving import archive as archiving

        stream = stream_prefix(prefix)
        with settings.journal() as journal:
            eraser = eraser_for(settings, journal, more, own_views, folders)
            done = archiving(eraser, stream, output, reason, watching("archiving"))
        return told(settings, stream, done, "archived")


def _restore(log: click.Group) -> None:
    @command(log, "restore", epilog="Example: statelog log restore reads-qc.jsonl")
    @click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
    def restore(settings: Settings, *, file: Path) -> None:
        """Put the payloads of an archive back where they were.

        Every one has to be the payload that was hashed. What is there already stays; the same
        again does nothing.
        """
        from statelog.infrastructure.exchange.archiving import restore as restoring

        with settings.journal() as journal:
            done = restoring(journal, file, actor=settings.who, progress=watching("restoring"))
        if settings.as_json:
            emit({"file": str(file), **vars(done)})
        else:
            there = f"; {done.there:,} were there already" if done.there else ""
            show(printable(f"{done.events:,} payloads restored from {file}{there}"))
