"""`statelog log at`: a view as it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from statelog.infrastructure.cli.common import Settings, command
from statelog.infrastructure.cli.loading import PATHS, loader, position, projection
from statelog.infrastructure.cli.output import emit, printable, show, tell
from statelog.infrastructure.cli.pace import watching


def add_to(log: click.Group) -> None:
    """Register the command."""

    @command(log, "at", epilog="Example: statelog log at 2026-01-31T09:30:00Z plan_status reads-qc")
    @click.argument("moment", metavar="POSITION|TIME")
    @click.argument("view")
    @click.argument("key", required=False)
    @PATHS
    def at(
        settings: Settings, *, moment: str, view: str, key: str | None, folders: Sequence[Path]
    ) -> None:
        """Print the row KEY of a view as it was at a position, a time, or `now`.

        Without KEY all rows, one a line. VIEW is a name of `statelog views list`, or a projection
        of yours as module:NAME. A time without a zone is UTC. The log alone is read: what is
        stored of the view does not matter. With --json one line a row: position, key, document.
        """
        from statelog.domain.errors import NotFound
        from statelog.infrastructure.time_travel import Past

        with settings.journal() as journal, loader(folders) as load:
            wanted = projection(load, "view", view)
            upto = position(journal, "position", moment)
            past = Past(journal, wanted, key, watch=watching(wanted.name)).at(upto)
            documents = past.documents
            for unknown, why in past.unknown.items():
                tell(f"row {unknown!r} is left out: {why}")
            if key is not None and key not in documents:
                raise NotFound(f"row of {wanted.name} at position {upto}", key)
            for each in sorted(documents):
                document = documents[each]
                if settings.as_json:
                    emit({"position": upto, "key": each, "document": document})
                elif key is not None:
                    emit(document, pretty=True)
                else:
                    show(printable(f"{each}  {json.dumps(document, ensure_ascii=False)}"))
