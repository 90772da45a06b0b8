"""`statelog views`: where they are, making them anew, keeping them live, checking them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.cli.common import FAILED, OK, Settings, command, group
from statelog.infrastructure.cli.output import emit, printable, show, tell
from statelog.infrastructure.cli.tables import table

if TYPE_CHECKING:
    from statelog.infrastructure.view_status import ViewStatus
    from statelog.infrastructure.views import Views

HELP: Final = "Look after the views: projections of the log, kept beside it."
EXAMPLES: Final = """
\b
Examples:
  statelog views list
  statelog views verify
  statelog views rebuild plan_status
  statelog views follow
"""
_COLUMNS: Final = ("name", "version", "position", "lag", "rows", "error")


def add_to(app: click.Group) -> None:
    """Register the group and its commands."""
    views = group(app, "views", HELP, EXAMPLES)
    _list(views)
    _rebuild(views)
    _retry(views)
    _follow(views)
    _verify(views)


def _list(group: click.Group) -> None:
    @command(group, "list", epilog="Example: statelog views list --json")
    def list_views(settings: Settings) -> None:
        """List the views: how far each is, and why it is no further.

        With --json one line a view.
        """
        with settings.journal() as journal, settings.views(journal, all_views()) as views:
            _show(settings, views.status())
            if not views.stored and not settings.as_json:
                show("\nthe store or its file of views is read-only: reads fold the log in memory")


def _rebuild(group: click.Group) -> None:
    @command(group, "rebuild", epilog="Example: statelog views rebuild plan_status")
    @click.argument("name", required=False)
    def rebuild(settings: Settings, *, name: str | None) -> int:
        """Make the view NAME, or all of them, anew from the log.

        It is folded beside the live one, which others go on reading and catching up until the new
        one takes its place at once; writers do not wait. Exit code 1 when an event stops a view,
        or a newer release keeps it.
        """
        from statelog.domain.errors import StoreError
        from statelog.infrastructure.cli.pace import Pace

        failed = False
        with settings.journal() as journal, settings.views(journal, all_views()) as views:
            _refuse_read_only(views)
            for each in views.names if name is None else (name,):
                try:
                    views.rebuild(each, Pace())
                except StoreError as error:
                    if error.kind != "newer":
                        raise
                    tell(f"error: {error}")
                    failed = True
            return FAILED if _ended(settings, views, name) or failed else OK


def _retry(group: click.Group) -> None:
    @command(group, "retry", epilog="Example: statelog views retry plan_status")
    @click.argument("name", required=False)
    def retry(settings: Settings, *, name: str | None) -> int:
        """Let the view NAME, or all of them, go on where an event stopped it.

        What was right before is not folded again. Exit code 1 when it is still stopped.
        """
        with settings.journal() as journal, settings.views(journal, all_views()) as views:
            _refuse_read_only(views)
            views.retry(*([] if name is None else [name]))
            return FAILED if _ended(settings, views, name) else OK


def _follow(group: click.Group) -> None:
    @command(group, "follow", epilog="Example: statelog views follow plan_status plan_summary")
    @click.argument("names", metavar="[NAME]...", nargs=-1)
    def follow(settings: Settings, *, names: tuple[str, ...]) -> int:
        """Keep the views NAME, or all of them, at the end of the log until Ctrl-C or SIGTERM.

        For those who read their tables with SQL; the commands here catch up by themselves. Exit
        code 1 when an event stops a view at the end.
        """
        from threading import Event

        from statelog.infrastructure.cli.signals import ending

        stop = Event()
        with settings.journal() as journal, settings.views(journal, all_views()) as views:
            _refuse_read_only(views)
            with ending(stop):
                views.catch_up(*names)
                tell(f"following {settings.named}")
                views.follow(stop.is_set, *names)
            stopped = _stopped(each for each in views.status() if each.name in names or not names)
        return FAILED if stopped else OK


def _refuse_read_only(views: Views) -> None:
    from statelog.domain.errors import StoreError

    if not views.stored:
        raise StoreError("read-only", f"{views.path} cannot be written")


def _stopped(seen: Iterable[ViewStatus]) -> bool:
    """Tell which views an event stops, and whether there are any."""
    stopped = [each for each in seen if each.error]
    for each in stopped:
        tell(f"error: {each.name} stops at position {each.position}: {each.error}")
    return bool(stopped)


def _ended(settings: Settings, views: Views, name: str | None) -> bool:
    """Errors first, then where the views are; whether there were errors."""
    seen = [each for each in views.status() if name in (None, each.name)]
    stopped = _stopped(seen)
    _show(settings, seen)
    return stopped


def _verify(group: click.Group) -> None:
    @command(group, "verify", epilog="Example: statelog views verify")
    @click.argument("name", required=False)
    def verify(settings: Settings, *, name: str | None) -> int:
        """Rebuild the view NAME, or all of them, in memory and compare byte by byte.

        Exit code 1 when a stored row differs, naming view, key, field and the event that gave the
        field its right value, or when an event stops a view.
        """
        with settings.journal() as journal, settings.views(journal, all_views()) as views:
            differences = views.verify(name)
            seen = [each for each in views.status() if name in (None, each.name)]
        stopped = [each for each in seen if each.error]
        if settings.as_json:
            emit(
                {
                    "views": [vars(each) for each in seen],
                    "differences": [vars(each) for each in differences],
                }
            )
        else:
            for each in differences:
                show(printable(str(each)))
            for view in stopped:
                show(printable(f"{view.name} stops at position {view.position}: {view.error}"))
            if not differences and not stopped:
                rows = sum(each.rows for each in seen)
                show(f"{len(seen)} views, {rows} rows: each byte-identical to its rebuild")
        return FAILED if differences or stopped else OK


def _show(settings: Settings, views: Sequence[ViewStatus]) -> None:
    if settings.as_json:
        for each in views:
            emit(vars(each))
        return
    rows: list[list[Any]] = [[getattr(each, column) for column in _COLUMNS] for each in views]
    show(table(("view", *_COLUMNS[1:]), rows))
