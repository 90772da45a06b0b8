"""`statelog log erase`: payloads of finished streams go, and the log says who did it and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.all_erasable import all_erasable
from statelog.infrastructure.cli.all_rules import WITH, all_rules
from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.cli.common import FAILED, OK, Settings, command
from statelog.infrastructure.cli.loading import PATHS, loader, projection
from statelog.infrastructure.cli.output import emit, show, tell
from statelog.infrastructure.cli.pace import watching
from statelog.infrastructure.cli.prefix import stream_prefix

if TYPE_CHECKING:
    from statelog.domain.aggregate import Aggregate
    from statelog.infrastructure.exchange.erasing import Eraser, Gone
    from statelog.infrastructure.journal import Journal

VIEWS: Final = click.option(
    "--view",
    "own_views",
    multiple=True,
    metavar="MODULE:NAME",
    help="A projection of your own whose rows are to be kept. Repeatable.",
)


def add_to(log: click.Group) -> None:
    """Register the command."""

    @command(
        log, "erase", epilog="Example: statelog log erase plan/reads-qc --reason 'GDPR request 17'"
    )
    @click.argument("prefix", metavar="PREFIX")
    @click.option("--reason", required=True, metavar="TEXT", help="Why, as the log will say.")
    @click.option("--yes", is_flag=True, help="Do not ask.")
    @WITH
    @VIEWS
    @PATHS
    def erase(
        settings: Settings,
        *,
        prefix: str,
        reason: str,
        yes: bool,
        more: Sequence[str],
        own_views: Sequence[str],
        folders: Sequence[Path],
    ) -> int:
        """Erase the payloads of the finished stream PREFIX and of all below it, for ever.

        Headers and hashes stay, so that every seal still holds; the rows of views stay as they
        are, and so does what later decisions need. An event says who erased what and why. A bare
        plan id stands for plan/ID. A stream that is not finished is refused.
        """
        stream = stream_prefix(prefix)
        with settings.journal() as journal:
            eraser = eraser_for(settings, journal, more, own_views, folders)
            units = eraser.units(stream)
            count = sum(len(unit.every) for unit in units)
            if units and not (yes or _agreed(f"Erase {count:,} payloads below {stream} for ever?")):
                tell("nothing was erased")
                return FAILED
            done = eraser.erase(units, reason, progress=watching("erasing"))
        return told(settings, stream, done, "erased")


def _asks() -> bool:
    return sys.stdin.isatty()


def _agreed(question: str) -> bool:
    if not _asks():
        raise click.UsageError("erasing asks first, and nobody is there to answer: give --yes")
    return click.confirm(question, err=True)


def eraser_for(
    settings: Settings,
    journal: Journal,
    more: Sequence[str],
    own_views: Sequence[str],
    folders: Sequence[Path],
) -> Eraser:
    """An eraser that knows this program's domains and what was named besides. Raises `Invalid`."""
    from statelog.infrastructure.exchange.erasing import Eraser
    from statelog.infrastructure.exchange.finished import Desk

    rules = all_rules(more, folders)

    def find(stream: str) -> tuple[Aggregate[Any], tuple[str, ...]] | None:
        found = rules.subject(stream)
        return None if found is None else (found[0].aggregate, found[1])

    views = [*all_views()]
    if own_views:
        with loader(folders) as load:
            views += [projection(load, "view", name) for name in own_views]
    return Eraser(Desk(journal, find, all_erasable()), views, actor=settings.who)


def told(settings: Settings, stream: str, done: Gone, word: str) -> int:
    """Say what went; a failure while bytes of it are left."""
    if settings.as_json:
        emit({"prefix": stream, "action": word, **vars(done)})
    elif done.events:
        show(f"{done.events:,} payloads of {done.streams:,} streams below {stream} {word}")
    else:
        show(f"nothing is left to be {word} below {stream}")
    if done.swept:
        return OK
    tell("warning: a reader holds old pages in the store's WAL; do the same again when it is done")
    return FAILED
