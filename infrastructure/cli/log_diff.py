"""`statelog log diff`: what changed in a view between two positions, or would in another one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.loading import PATHS, Load, loader, position, projection
from statelog.infrastructure.cli.output import emit, printable, show
from statelog.infrastructure.cli.pace import watching
from statelog.infrastructure.logs import shortened

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal
    from statelog.projections.differences import Changed
    from statelog.projections.projection import Projection

_LONG = 120


def add_to(log: click.Group) -> None:
    """Register the command."""

    @command(log, "diff", epilog="Example: statelog log diff 120 now plan_status reads-qc")
    @click.argument("a", metavar="A")
    @click.argument("b", metavar="B")
    @click.argument("view")
    @click.argument("key", required=False)
    @click.option(
        "--with",
        "other",
        metavar="MODULE:NAME",
        help="What if: fold B with this projection instead.",
    )
    @PATHS
    def diff(
        settings: Settings,
        *,
        a: str,
        b: str,
        view: str,
        key: str | None,
        other: str | None,
        folders: Sequence[Path],
    ) -> None:
        """Print what differs in a view, or in its row KEY, between A and B, place by place.

        A and B are positions, times, or `now`; VIEW is as of `log at`. With --json one line a
        place: key, field (empty for a whole row), change, before, after.
        """
        with settings.journal() as journal, loader(folders) as load:
            views = _views(load, view, other)
            upto = [position(journal, name, text) for name, text in (("a", a), ("b", b))]
            nothing = True
            for each in _changes(journal, views, upto, key):
                nothing = False
                if settings.as_json:
                    emit(changed_line(each))
                else:
                    show(printable(changed_text(each)))
        if nothing and not settings.as_json:
            show("nothing differs")


def _views(load: Load, view: str, other: str | None) -> tuple[Projection[Any], Projection[Any]]:
    from statelog.domain.errors import Invalid

    one = projection(load, "view", view)
    if other is None:
        return one, one
    if ":" not in other:
        raise Invalid("--with", f"{other!r} is not module:NAME")
    return one, projection(load, "--with", other)


def _changes(
    journal: Journal,
    views: tuple[Projection[Any], Projection[Any]],
    upto: Sequence[int],
    key: str | None,
) -> Iterator[Changed]:
    """With one projection the later side is folded on from the earlier one."""
    from statelog.infrastructure.time_travel import Past
    from statelog.projections.differences import changes

    def past(view: Projection[Any]) -> Past[Any]:
        return Past(journal, view, key, watch=watching(view.name))

    one, other = views
    if one is not other:
        sides = [past(v).at(at) for v, at in zip(views, upto, strict=True)]
    elif upto[0] <= upto[1]:
        before = past(one).at(upto[0])
        sides = [before, before.at(upto[1])]
    else:
        after = past(one).at(upto[1])
        sides = [after.at(upto[0]), after]
    return changes(sides[0].documents, sides[1].documents)


def changed_line(each: Changed) -> dict[str, Any]:
    """One change as a JSON line."""
    from statelog.projections.differences import ABSENT
    from statelog.projections.plain import place

    added, removed = each.before is ABSENT, each.after is ABSENT
    return {
        "key": each.key,
        "field": place(each.path),
        "change": "added" if added else "removed" if removed else "changed",
        "before": None if added else each.before,
        "after": None if removed else each.after,
    }


def changed_text(each: Changed) -> str:
    """One change for people, long values cut."""
    line = changed_line(each)
    place = f"{each.key}  {line['field']}".rstrip()
    before, after = (
        shortened(json.dumps(line[side], ensure_ascii=False), _LONG) for side in ("before", "after")
    )
    if line["change"] == "added":
        return f"+ {place}: {after}"
    if line["change"] == "removed":
        return f"- {place}: {before}"
    return f"~ {place}: {before} -> {after}"
