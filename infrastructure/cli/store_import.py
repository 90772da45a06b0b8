"""`statelog store import`: spool directories and plan documents of elsewhere come into the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.common import FAILED, OK, Settings, command
from statelog.infrastructure.cli.output import emit, printable, show, tell
from statelog.infrastructure.cli.tables import table

if TYPE_CHECKING:
    from statelog.infrastructure.execution.importing import Item

EXAMPLES: Final = """
\b
Examples:
  statelog store import spool/
  statelog store import plans.jsonl
  statelog store import spool/ --json | jq 'select(.result == "skipped")'
"""
_EVERY_S: Final = 1.0


def add_to(store: click.Group) -> None:
    """Register the command."""

    @command(store, "import", epilog=EXAMPLES)
    @click.argument("path", metavar="DIR_OR_FILE", type=click.Path(exists=True, path_type=Path))
    @click.option("--all", "everything", is_flag=True, help="Also list what is passed over.")
    def import_store(settings: Settings, *, path: Path, everything: bool) -> int:
        """Bring in spool directories (REALM/PLAN/attempts/...) and plan documents.

        DIR_OR_FILE is a folder of realms, or of documents, or both; or one file: .json with a
        document or a list of them, .jsonl with one a line. Attempts become history: they are never
        executed or recorded again. The same again adds nothing. Exit code 1 when something was
        skipped, with the reason: it is damaged, or in the way of something.
        """
        from statelog.infrastructure.execution.importing import Importer

        report = _Report(settings.as_json, everything)
        with settings.journal(create=True) as journal:
            Importer(journal, settings.who, report).take(path, _pace(report))
        report.end()
        return FAILED if report.results["skipped"] else OK


class _Report:
    """Hears what becomes of each thing: JSON lines at once, tables at the end."""

    def __init__(self, as_json: bool, everything: bool) -> None:
        self._as_json = as_json
        self._everything = everything
        self._left: list[Item] = []
        self._plans: dict[str, Counter[str]] = {}
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.results: Counter[str] = Counter()
        self.events = 0

    def __call__(self, item: Item) -> None:
        """Take one item."""
        self.results[item.result] += 1
        self.kinds[item.kind, item.result] += 1
        self.events += item.events
        if self._as_json:
            emit({"kind": item.kind, **asdict(item)})
            return
        if item.result in ("skipped", "passed over"):
            if self._everything or item.result == "skipped":
                self._left.append(item)
        elif item.plan_id is not None:
            plan = self._plans.setdefault(item.plan_id, Counter())
            plan["events"] += item.events
            plan[f"{item.kind} {item.result}"] += 1

    def end(self) -> None:
        """Say all of it, and how much it was."""
        counts = self._counts()
        if self._as_json:
            emit(counts)
            return
        if self._plans:
            rows = [[id, _came(seen), seen["events"]] for id, seen in self._plans.items()]
            show(table(["plan", "came in", "events"], rows) + "\n")
        if self._left:
            rows = [[each.result, each.place, each.why] for each in self._left]
            show(table(["result", "what", "why"], rows) + "\n")
        said = ", ".join(f"{count:,} {result}" for result, count in self.results.items())
        show(printable(f"{self.events:,} events written; {said or 'nothing to import'}"))
        hidden = 0 if self._everything else self.results["passed over"]
        if hidden:
            tell(f"{hidden:,} passed over as the layout has it; --all lists them")

    def _counts(self) -> dict[str, Any]:
        counted: dict[str, dict[str, int]] = {}
        for (kind, result), count in self.kinds.items():
            counted.setdefault(kind, {})[result] = count
        return {"events": self.events, "counts": counted, "ok": not self.results["skipped"]}


def _came(seen: Counter[str]) -> str:
    """`document imported, 3 attempts imported`: a word a result."""
    parts = []
    for what, count in seen.items():
        kind, _, result = what.partition(" ")
        if what == "events":
            continue
        if kind == "floor":
            parts.append("floor raised")
        else:
            parts.append(f"{count} {kind}{'s' * (count != 1)} {result}".replace("ys ", "ies "))
    return ", ".join(parts)


def _pace(report: _Report) -> Callable[[int, int], None]:
    last = monotonic()

    def pace(done: int, size: int) -> None:
        nonlocal last
        now = monotonic()
        if done < size and now - last < _EVERY_S:
            return
        last = now
        tell(f"importing: {done:,} of {size:,} files and plans, {report.events:,} events")

    return pace
