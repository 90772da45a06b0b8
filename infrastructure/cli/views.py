"""`statelog views`: where they are, making them anew, and comparing them with the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.cli.common import FAILED, OK, Settings, command, group
from statelog.infrastructure.cli.output import emit, printable, show, tell
from statelog.infrastructure.cli.tables import table

if TYPE_CHECKING:
    from statelog.infrastructure.views import Views, ViewStatus

HELP: Final = "Look after the views: projections of the log, kept beside it."
EXAMPLES: Final = """
\b
Examples:
  statelog views list
  statelog views verify
  statelog views rebuild plan_status
"""
_COLUMNS: Final = ("name", "version", "position", "lag", "rows", "error")


def add_to(app: click.Group) -> None:
    """Register the group and its commands."""
    views = group(app, "views", HELP, EXAMPLES)
    _list(views)
    _rebuild(views)
    _verify(views)


def _list(group: click.Group) -> None:
    @command(group, "list", epilog="Example: statelog views list --json")
    def list_views(settings: Settings) -> None:
        """List the views: how far each is, and why it is no further.

        With --json one line a view.
        """
        with settings.journal() as journal, settings.views(journal, all_views()) as views:
            _show(settings, statuses(views))
            if not views.stored and not settings.as_json:
                show("\nthe store or its file of views is read-only: reads fold the log in memory")


def _rebuild(group: click.Group) -> None:
    @command(group, "rebuild", epilog="Example: statelog views rebuild plan_status")
    @click.argument("name", required=False)
    def rebuild(settings: Settings, *, name: str | None) -> None:
        """Make the view NAME, or all of them, anew from the log.

        Readers see the old rows until the new ones replace them at once; writers do not wait.
        """
        from statelog.domain.errors import StoreError

        with settings.journal() as journal, settings.views(journal, all_views()) as views:
            if not views.stored:
                raise StoreError("read-only", f"{views.path} cannot be written")
            views.rebuild(name, lambda view, at, last: tell(f"{view}: {at} of {last}"))
            _show(settings, [each for each in views.status() if name in (None, each.name)])


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
            seen = [each for each in statuses(views) if name in (None, each.name)]
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


def statuses(views: Views) -> list[ViewStatus]:
    """Where each view is in the file, also in one that can only be read."""
    from statelog.infrastructure.catch_up import View
    from statelog.infrastructure.view_store import ViewStore
    from statelog.infrastructure.views import ViewStatus

    if views.stored or views.path is None or not views.path.exists():
        return views.status()
    file, head, found = ViewStore(views.path, read_only=True), views.journal.head(), []
    for view in (View(projection, file) for projection in all_views()):
        mark = file.mark(view.name)
        if mark is not None:
            place = (mark.version, mark.position, head - mark.position)
            found.append(ViewStatus(view.name, *place, file.count(view.format), mark.error))
    file.close()
    return found


def _show(settings: Settings, views: Sequence[ViewStatus]) -> None:
    if settings.as_json:
        for each in views:
            emit(vars(each))
        return
    rows: list[list[Any]] = [[getattr(each, column) for column in _COLUMNS] for each in views]
    show(table(("view", *_COLUMNS[1:]), rows))
