"""`statelog log audit`: a whole log against lifecycles and rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli.all_rules import RULEBOOKS
from statelog.infrastructure.cli.common import FAILED, OK, Settings, command
from statelog.infrastructure.cli.loading import PATHS
from statelog.infrastructure.cli.output import emit, printable, show, tell

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
_EVERY_S: Final = 2.0

WITH: Final = click.option(
    "--with",
    "more",
    multiple=True,
    metavar="MODULE:NAME",
    help="An Aggregate or Rulebook of your own whose streams are in the log. Repeatable.",
)


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
        places = [str(folder.resolve()) for folder in folders or [Path()]]
        options = {"folders": places, "jobs": jobs, "limit": limit}
        found = _store(settings, given, options) if dump is None else _dump(dump, given, options)
        _print(settings, found)
        return OK if found.good else FAILED


def _store(settings: Settings, given: Sequence[str], options: dict[str, Any]) -> Audit:
    from statelog.infrastructure.audit.conformance import audit

    with settings.journal() as journal:
        return audit(journal, given, progress=Meter("audited", "events"), **options)


def _dump(dump: Path, given: Sequence[str], options: dict[str, Any]) -> Audit:
    from statelog.infrastructure.audit.conformance import audit
    from statelog.infrastructure.audit.staging import stage
    from statelog.infrastructure.audit.violations import Tally

    tally = Tally(options["limit"])
    with dump.open("rb") as lines, TemporaryDirectory(prefix="statelog-audit-") as folder:
        reading, size = Meter("read", "bytes"), dump.stat().st_size
        place = stage(lines, Path(folder), tally, lambda done: reading(done, size))
        meter = Meter("audited", "events")
        return audit(place, given, tally=tally, progress=meter, **options)


class Meter:
    """Tells on stderr how far a long piece of work is: share, rate and time left."""

    def __init__(self, done: str, unit: str, clock: Callable[[], float] = monotonic) -> None:
        self._words, self._clock = (done, unit), clock
        self._begin = self._last = clock()

    def __call__(self, done: int, size: int) -> None:
        """Tell, unless it was told a moment ago."""
        now = self._clock()
        if now - self._last < _EVERY_S or not done:
            return
        self._last = now
        rate = done / (now - self._begin)
        left = max(0, size - done) / rate
        word, unit = self._words
        tell(f"{word} {done:,} of {size:,} {unit}, {rate:,.0f} a second, {left:.0f} s left")


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
