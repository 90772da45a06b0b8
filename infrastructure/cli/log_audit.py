"""`statelog log audit`: a whole log against lifecycles and rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.all_rules import RULEBOOKS, WITH, folders_of
from statelog.infrastructure.cli.common import FAILED, OK, Settings, command
from statelog.infrastructure.cli.loading import PATHS
from statelog.infrastructure.cli.output import emit, printable, show

if TYPE_CHECKING:
    from statelog.infrastructure.audit.conformance import Audit
    from statelog.infrastructure.audit.violations import Violation

EXAMPLES: Final = """
\b
Examples:
  statelog log audit
  statelog log audit dump.jsonl --json | jq .rule
  statelog log audit --with desk:TICKET
"""


def add_to(log: click.Group) -> None:
    """Register the command."""

    @command(log, "audit", epilog=EXAMPLES)
    @click.argument("dump", metavar="[FILE.jsonl]", required=False, type=click.Path(path_type=Path))
    @WITH
    @PATHS
    @click.option(
        "--limit",
        type=click.IntRange(min=1),
        default=100,
        show_default=True,
        metavar="N",
        help="Print the first N violations of each rule; all are counted.",
    )
    @click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many processes audit (default: one for each core, one for a short log).",
    )
    def audit_log(
        settings: Settings,
        *,
        dump: Path | None,
        more: Sequence[str],
        folders: Sequence[Path],
        limit: int,
        jobs: int | None,
    ) -> int:
        """Check every event of the log, or of a dump as JSON lines, against all that is declared.

        Envelopes and hashes, lifecycles, payloads, causes, what decisions keep, and the rules
        between streams. Each violation has its position, the rule by name, a sentence, and the
        events that show it. Exit code 1 when there is one.
        """
        given = (*RULEBOOKS, *more)
        options = {"folders": folders_of(folders), "jobs": jobs, "limit": limit}
        found = _store(settings, given, options) if dump is None else _dump(dump, given, options)
        _print(settings, found)
        return OK if found.good else FAILED


def _store(settings: Settings, given: Sequence[str], options: dict[str, Any]) -> Audit:
    from statelog.infrastructure.audit.conformance import audit

    with settings.journal() as journal:
        return audit(journal, given, progress=_pace("auditing"), **options)


def _dump(dump: Path, given: Sequence[str], options: dict[str, Any]) -> Audit:
    from statelog.infrastructure.audit.conformance import audit
    from statelog.infrastructure.audit.staging import stage
    from statelog.infrastructure.audit.violations import Tally

    tally = Tally(options["limit"])
    with dump.open("rb") as lines, TemporaryDirectory(prefix="statelog-audit-") as folder:
        size, reading = max(1, dump.stat().st_size), _pace("reading")
        place = stage(
            lines,
            Path(folder),
            tally,
            lambda count, read: reading(count, max(count, count * size // read)),
        )
        return audit(place, given, tally=tally, progress=_pace("auditing"), **options)


def _pace(what: str) -> Callable[[int, int], None]:
    from statelog.infrastructure.cli.pace import Pace

    pace = Pace()
    return lambda done, size: pace(what, done, size)


def _print(settings: Settings, found: Audit) -> None:
    if settings.as_json:
        for each in found.violations:
            emit(each.json())
        emit({"events": found.events, "violations": sum(found.counts.values()), **_ruled(found)})
        return
    for each in found.violations:
        show(_text(each))
    if found.good:
        show(f"{found.events:,} events audited: no rule is broken")
        return
    show("")
    for rule, count in sorted(found.counts.items(), key=lambda pair: -pair[1]):
        show(printable(f"{count:>8,}  {rule}"))
    total = sum(found.counts.values())
    show(f"{found.events:,} events audited: {total:,} violation{'s' * (total != 1)}")


def _ruled(found: Audit) -> dict[str, Any]:
    return {"rules": dict(found.counts), "ok": found.good}


def _text(violation: Violation) -> str:
    lines = [str(violation), *(f"    {each}" for each in violation.events)]
    return "\n".join(map(printable, lines))
