"""Archives: erased payloads in a file that puts them back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from statelog.domain.erasure import restore as restoring
from statelog.domain.erasure import unit_of
from statelog.domain.errors import Conflict, Malformed, Refused
from statelog.infrastructure.exchange.erasing import Eraser as _Eraser
from statelog.infrastructure.exchange.erasing import Gone, Progress, Unit, erasure_of
from statelog.infrastructure.exchange.lines import Lines, checked
from statelog.infrastructure.journal import TRIES, Journal
from statelog.infrastructure.jsonl import line_of
from statelog.infrastructure.store.row import Row

_CHUNK: Final = 500
_RULE: Final = "archive_exists"


@dataclass(frozen=True)
class Back:
    """What a restore did: payloads that are back, and those that were never away."""

    units: int
    events: int
    there: int


def archive(
    eraser: _Eraser, prefix: str, path: Path, reason: str, progress: Progress | None = None
) -> Gone:
    """Write the payloads below a prefix into a new file, then erase them.

    The file is on the disk before the first payload goes. A command that was stopped is done
    again with the same file. Raises `Refused` (`archive_exists`) when a file of the name does not
    hold all that is to go, and as `Eraser.erase`.
    """
    units = eraser.units(prefix)
    if path.exists():
        _check(eraser.journal, path, units)
    elif units:
        _write(eraser.journal, path, units)
    return eraser.erase(units, reason, archived=True, progress=progress)


def restore(journal: Journal, path: Path, *, actor: str, progress: Progress | None = None) -> Back:
    """Put the payloads of an archive back; those that are there stay.

    Every line is of this log, and every payload the one that was hashed. Raises `Malformed` naming
    line and field, `Refused` (`other_log`).
    """
    units = done = there = 0
    with path.open("rb") as file:
        lines = Lines(file)
        for unit, rows in groupby(lines.rows(), key=lambda row: unit_of(row.stream)):
            back, stayed = _unit(journal, unit, list(rows), lines, actor)
            units, done, there = units + bool(back), done + back, there + stayed
            if progress:
                progress(done + there, max(done + there, lines.guess(path.stat().st_size)))
    return Back(units, done, there)


def _unit(
    journal: Journal, unit: str, rows: list[Row], lines: Lines, actor: str
) -> tuple[int, int]:
    for tries_left in reversed(range(TRIES)):
        before = erasure_of(journal, unit)
        missing = _missing(journal, rows, lines)
        if not missing:
            return 0, len(rows)
        change = before.decide(restoring, events=len(missing))
        try:
            journal.rewrite(change, actor=actor, put_back=missing)
        except Conflict:
            if not tries_left:
                raise
        else:
            return len(missing), len(rows) - len(missing)
    raise AssertionError("unreachable")


def _missing(journal: Journal, rows: Sequence[Row], lines: Lines) -> dict[int, bytes]:
    found = {}
    for row in rows:
        checked(row, lines.number)
        own = next(journal.rows(after=row.position - 1, upto=row.position), None)
        if own is None or own.hash != row.hash:
            raise Refused(f"event {row.position} of the archive is none of this log", "other_log")
        if row.data is None:
            raise Malformed(f"line {lines.number}: data", "is not there")
        if own.data is None:
            found[row.position] = row.data
    return found


def _rows(journal: Journal, units: Sequence[Unit]) -> Iterator[Row]:
    for unit in units:
        for position in unit.every:
            yield from journal.rows(after=position - 1, upto=position)


def _write(journal: Journal, path: Path, units: Sequence[Unit]) -> None:
    new = path.with_name(f"{path.name}.new-{os.getpid()}")
    try:
        descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(descriptor, "wb") as file:
            for row in _rows(journal, units):
                file.write(line_of(row) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    finally:
        new.unlink(missing_ok=True)


def _check(journal: Journal, path: Path, units: Sequence[Unit]) -> None:
    """The file is what an earlier try wrote, or it is somebody else's."""
    left = {position for unit in units for position in unit.every}
    with path.open("rb") as file:
        for row in Lines(file).rows():
            if row.position in left and row.data is not None:
                own = next(journal.rows(after=row.position - 1, upto=row.position), None)
                if own is not None and own.hash == row.hash:
                    left.discard(row.position)
    if left:
        reason = f"{path} is there and has not event {min(left)}; name a new file"
        raise Refused(reason, rule=_RULE)
