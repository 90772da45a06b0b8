"""`statelog log bisect`: the event that broke something."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from statelog.infrastructure.cli.common import FAILED, OK, Settings, command
from statelog.infrastructure.cli.loading import PATHS, Load, loader, position, projection
from statelog.infrastructure.cli.log_diff import changed_text
from statelog.infrastructure.cli.output import emit, printable, show, tell
from statelog.infrastructure.cli.pace import EVERY_S

if TYPE_CHECKING:
    from statelog.infrastructure.bisect import Break, Holds
    from statelog.infrastructure.journal import Journal


def add_to(log: click.Group) -> None:
    """Register the command."""

    @command(
        log,
        "bisect",
        epilog="Example: statelog log bisect checks:budget_is_kept --view plan_status",
    )
    @click.argument("predicate", metavar="MODULE:PREDICATE")
    @click.option("--view", metavar="VIEW", help="Ask about the documents of this view.")
    @click.option("--key", metavar="KEY", help="Ask about this row alone; needs --view.")
    @click.option(
        "--good", default="0", metavar="POSITION|TIME", help="Where it holds (default: 0)."
    )
    @click.option(
        "--bad", default="now", metavar="POSITION|TIME", help="Where it is broken (default: now)."
    )
    @PATHS
    def bisect_log(
        settings: Settings,
        *,
        predicate: str,
        view: str | None,
        key: str | None,
        good: str,
        bad: str,
        folders: Sequence[Path],
    ) -> int:
        """Find the first position after which PREDICATE no longer holds.

        It is a function that gets the documents of the view by key, with --key the document of
        that row (None when there is none), without --view the events up to there, and is broken
        when it answers False or an `assert` in it fails. The range is halved: what breaks, mends
        and breaks again is found at one of its breaks. Exit code 1 when it breaks, 0 when it
        holds.
        """
        with settings.journal() as journal, loader(folders) as load:
            found = _search(journal, load, predicate, (view, key), (good, bad))
        _print(settings, found)
        return OK if found_nothing(found) else FAILED


def found_nothing(found: Break | Holds) -> bool:
    """Whether the predicate holds where it was said to be broken."""
    from statelog.infrastructure.bisect import Holds

    return isinstance(found, Holds)


def _search(
    journal: Journal,
    load: Load,
    predicate: str,
    row: tuple[str | None, str | None],
    between: tuple[str, str],
) -> Break | Holds:
    from statelog.domain.errors import Invalid
    from statelog.infrastructure.bisect import bisect

    view, key = row
    if key is not None and view is None:
        raise Invalid("--key", "needs --view, whose row it is")
    asked = load("predicate", predicate)
    if not callable(asked):
        raise Invalid("predicate", f"{predicate} is no function")
    chosen = None if view is None else projection(load, "--view", view)
    good, bad = (
        position(journal, name, text)
        for name, text in zip(("--good", "--bad"), between, strict=True)
    )
    return bisect(journal, asked, chosen, key, good=good, bad=bad, told=_Probes())


class _Probes:
    """Tells of the probes of a search that takes long, at most once a second."""

    def __init__(self) -> None:
        self._last = monotonic()

    def __call__(self, position: int, holds: bool) -> None:
        if monotonic() - self._last >= EVERY_S:
            self._last = monotonic()
            tell(f"position {position:,}: {'holds' if holds else 'broken'}")


def _print(settings: Settings, found: Break | Holds) -> None:
    if settings.as_json:
        emit(_told(found))
        return
    for text in _texts(found):
        show(printable(text))
    show(f"{found.probes} probe{'s' * (found.probes != 1)}")


def _told(found: Break | Holds) -> dict[str, Any]:
    from statelog.infrastructure.bisect import Holds
    from statelog.infrastructure.cli.log import event_line

    told: dict[str, Any] = {"holds": isinstance(found, Holds), "position": found.position}
    if isinstance(found, Holds):
        told |= {"event": None, "before": {}, "after": {}}
    else:
        event = None if found.event is None else event_line(found.event)
        told |= {"event": event, "before": {**found.before}, "after": {**found.after}}
    return {**told, "probes": found.probes}


def _texts(found: Break | Holds) -> Iterator[str]:
    from statelog.infrastructure.bisect import Holds
    from statelog.infrastructure.cli.log import event_text
    from statelog.projections.differences import changes

    if isinstance(found, Holds):
        yield f"it holds at position {found.position}"
        return
    yield f"it breaks at position {found.position}"
    if found.event is not None:
        yield event_text(found.event)
    for side, rows in (("before", found.before), ("after", found.after)):
        for key, document in rows.items():
            yield f"{side:6}  {key}  {json.dumps(document, ensure_ascii=False)}"
    before, after = (
        {key: document for key, document in rows.items() if document is not None}
        for rows in (found.before, found.after)
    )
    yield from map(changed_text, changes(before, after))
