"""Lifecycles with one mistake each, to see whether any test notices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from statelog.domain.aggregate import Aggregate
from statelog.domain.lifecycle import AnyLifecycle, Lifecycle, Row


@dataclass(frozen=True)
class Mutant:
    """A lifecycle with one mistake.

    `kind` is `removed`, `retargeted`, `added` or `live`; `name` says what differs; `changed` is
    None when `Lifecycle` refuses to build such a table, so that nobody can make this mistake.
    """

    kind: str
    name: str
    original: AnyLifecycle
    changed: AnyLifecycle | None

    @contextmanager
    def applied(self) -> Iterator[AnyLifecycle]:
        """Everybody who holds the original has the mistake meanwhile, wherever they got it from.

        Not for several threads: they share the lifecycle. Raises `ValueError` for a mutant that
        cannot be built.
        """
        if self.changed is None:
            raise ValueError(f"{self.name} cannot be built")
        table = self.original.__dict__
        kept = dict(table)
        try:
            _become(table, self.changed.__dict__)
            yield self.original
        finally:
            _become(table, kept)


def mutants(subject: Aggregate[Any] | AnyLifecycle) -> Iterator[Mutant]:
    """Every mutant of a lifecycle, in the order of its rows.

    Each row removed; each row led to each other status; a row added for each pair of status and
    event that has none, to each status; each final status made live.
    """
    lifecycle = subject.lifecycle if isinstance(subject, Aggregate) else subject
    yield from _removed(lifecycle)
    yield from _retargeted(lifecycle)
    yield from _added(lifecycle)
    for status in sorted(lifecycle.final, key=lambda status: status.name):
        final = lifecycle.final - {status}
        yield _mutant(lifecycle, "live", f"{status.name} is not final", lifecycle.rows, final)


def _removed(lifecycle: AnyLifecycle) -> Iterator[Mutant]:
    for row in lifecycle.rows:
        rest = [each for each in lifecycle.rows if each is not row]
        yield _mutant(lifecycle, "removed", f"no {_shown(row)}", rest)


def _retargeted(lifecycle: AnyLifecycle) -> Iterator[Mutant]:
    for row in lifecycle.rows:
        for target in lifecycle.statuses:
            if target is not row.target:
                rows = [
                    each._replace(target=target) if each is row else each for each in lifecycle.rows
                ]
                name = f"{_shown(row)} leads to {target.name}"
                yield _mutant(lifecycle, "retargeted", name, rows)


def _added(lifecycle: AnyLifecycle) -> Iterator[Mutant]:
    declared = {(row.source, row.event) for row in lifecycle.rows}
    for source in lifecycle.statuses:
        for event in lifecycle.events:
            if (source, event) in declared:
                continue
            for target in lifecycle.statuses:
                row = Row(event, source, target, retired=False)
                name = f"also {event.__name__} from {source.name} to {target.name}"
                yield _mutant(lifecycle, "added", name, [*lifecycle.rows, row])


def _mutant(
    lifecycle: AnyLifecycle,
    kind: str,
    name: str,
    rows: Sequence[Row[Any]],
    final: Iterable[Enum] | None = None,
) -> Mutant:
    try:
        changed = Lifecycle[Any](
            lifecycle.new,
            [row[:3] for row in rows if not row.retired],
            final=lifecycle.final if final is None else final,
            reserved=lifecycle.reserved,
            retired=[row[:3] for row in rows if row.retired],
            name=lifecycle.name,
        )
    except ValueError:
        changed = None
    return Mutant(kind, f"{lifecycle.name}: {name}", lifecycle, changed)


def _shown(row: Row[Any]) -> str:
    return f"{row.event.__name__} from {row.source.name} to {row.target.name}"


def _become(table: dict[str, Any], other: dict[str, Any]) -> None:
    table.clear()
    table.update(other)
