"""`audit`: a whole log against the declared lifecycles, the rules of envelopes, and all others.

The work is cut into pieces: streams by their root, and the order of the log by ranges. A long log
is audited by several processes, each of which reads the file itself and answers violations.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

from statelog.domain.errors import StoreError
from statelog.infrastructure.audit.envelope import COMMANDS, INTACT, Envelopes, Find, Order
from statelog.infrastructure.audit.gone import NAME, Gone
from statelog.infrastructure.audit.rules import Given, Rules, load, root_of
from statelog.infrastructure.audit.source import Place, Source
from statelog.infrastructure.audit.streams import Root
from statelog.infrastructure.audit.violations import Tally, Violation, shown
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import Row

KEPT: Final = 100
"""Violations of each rule that are kept; the others are counted."""

LOWEST: Final = -(2**63)

_PIECE: Final = 4_000
_RANGE: Final = 100_000
_ALONE: Final = 40_000

Progress = Callable[[int, int], None]
"""Told how many events of how many are done, now and then."""


@dataclass(frozen=True)
class Audit:
    """What an audit found: of each rule the first violations, and how many there are of each."""

    events: int
    violations: tuple[Violation, ...]
    counts: Mapping[str, int]

    @property
    def good(self) -> bool:
        """Whether no rule is broken."""
        return not self.counts


def audit(
    log: Journal | Path | Place,
    given: Sequence[Given],
    *,
    folders: Sequence[str] = (),
    jobs: int | None = 1,
    limit: int = KEPT,
    progress: Progress | None = None,
    tally: Tally | None = None,
) -> Audit:
    """Audit a log against rulebooks and aggregates, or names of such as `module:NAME`.

    `folders` are where their modules are looked for first. `jobs` is how many processes do it,
    None for one for each core, and one for a short log; only names can be told to others, and a
    script that asks for several must guard its main module, as `multiprocessing` wants it. `limit`
    is how many violations of each rule are kept; `tally` what was found before. Raises `Invalid`
    for a name that cannot be used, and `StoreError`.
    """
    place = log if isinstance(log, Place) else _place(log)
    if place is None:
        assert isinstance(log, Journal)
        return audit_rows(log.rows(after=LOWEST), load(given, folders), limit=limit)
    found = Tally(limit) if tally is None else tally
    rules = load(given, folders)
    with closing(Source(place)) as source:
        size, seen = source.size, 0
        count = _jobs(jobs, size, given)
        if count > 1:
            told = _Told(place, tuple(map(str, given)), tuple(folders), source.upto, limit)
            answers = _by_processes(_pieces(source), count, told)
        else:
            answers = map(_Judge(source, rules, limit), _pieces(source))
        for events, part in answers:
            found.take(part)
            seen += events
            if progress is not None and events:
                progress(min(seen, size), size)
    return Audit(size, tuple(found.first()), dict(found.counts))


def _place(log: Journal | Path) -> Place | None:
    path = log.store if isinstance(log, Journal) else log
    return None if path is None else Place(path)


def _jobs(wanted: int | None, size: int, given: Sequence[Given]) -> int:
    if not all(isinstance(each, str) for each in given):
        return 1
    if wanted is not None:
        return wanted
    return _cores() if size > _ALONE else 1


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def audit_rows(rows: Iterable[Row], rules: Rules, *, limit: int = KEPT) -> Audit:
    """Audit the rows of a short log, in their order."""
    log, found = list(rows), Tally(limit)
    places = {(row.stream, row.version): row.position for row in reversed(log)}
    order, firsts = Order(found), dict[str, Row]()
    find: Find = lambda stream, version: places.get((stream, version))  # noqa: E731
    told = _erasures(log)
    gone = Gone(lambda stream: told.get(stream, ()))
    envelopes, roots = Envelopes(found, find, gone, rules.book.private), dict[str, Root]()
    before = None
    for place, row in enumerate(log):
        order.take(row, place)
        first = firsts.setdefault(row.command, row)
        if first is not row and before is not None and before.command != row.command:
            found.add(row, COMMANDS, "its command was carried out before", (shown(first),))
        before, name = row, root_of(row.stream)
        if name not in roots:
            roots[name] = Root(rules, envelopes, found)
        roots[name].take(row)
    return Audit(len(log), tuple(found.first()), dict(found.counts))


def _erasures(log: Iterable[Row]) -> dict[str, list[tuple[int, bytes]]]:
    """Version and data of the erasures in each stream, those that are still told."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    for row in log:
        if row.name == NAME and row.data is not None:
            found.setdefault(row.stream, []).append((row.version, row.data))
    return found


Piece = list[str] | tuple[int, int] | bool
"""Roots, a range of places, or all of it: its commands (False), or the file itself (True)."""


def _pieces(source: Source) -> Iterator[Piece]:
    yield True
    yield False
    yield LOWEST, _RANGE  # also where no event can be
    for first in range(_RANGE + 1, source.upto + 1, _RANGE):
        yield first, first + _RANGE - 1
    roots, events = list[str](), 0
    for root, count in source.roots():
        roots.append(root)
        events += count
        if events >= _PIECE:
            yield roots
            roots, events = [], 0
    if roots:
        yield roots


class _Judge:
    """Judges pieces of one log, each with a tally of its own."""

    def __init__(self, source: Source, rules: Rules, limit: int) -> None:
        self._source, self._rules, self._limit = source, rules, limit

    def __call__(self, piece: Piece) -> tuple[int, Tally]:
        """How many events were seen below roots, and what is wrong."""
        tally = Tally(self._limit)
        if isinstance(piece, bool):
            (self._file if piece else self._commands)(tally)
            return 0, tally
        if isinstance(piece, tuple):
            self._order(tally, *piece)
            return 0, tally
        return self._roots(tally, piece), tally

    def _roots(self, tally: Tally, roots: Sequence[str]) -> int:
        private = self._rules.book.private
        envelopes = Envelopes(tally, self._source.find, Gone(self._source.erasures), private)
        events = 0
        for name in roots:
            root = Root(self._rules, envelopes, tally)
            for row in self._source.below(name):
                root.take(row)
                events += 1
        return events

    def _order(self, tally: Tally, first: int, upto: int) -> None:
        order = Order(tally, self._source.previous(first - 1) if first > 1 else None)
        for place, row in self._source.heads(first, upto):
            order.take(row, place)

    def _file(self, tally: Tally) -> None:
        """What is read by an index is only right if the index is."""
        for damage in self._source.damages():
            tally.line(0, INTACT, damage)

    def _commands(self, tally: Tally) -> None:
        for first, last in self._source.scattered():
            one, other = self._source.previous(first), self._source.previous(last)
            assert one is not None and other is not None
            why = "its command was carried out before"
            tally.add(other, COMMANDS, why, (shown(one),), place=last)


class _Told(NamedTuple):
    """What another process needs to know."""

    place: Place
    given: tuple[str, ...]
    folders: tuple[str, ...]
    upto: int
    limit: int


_judge: _Judge | None = None


def _begin(*told: Any) -> None:
    """In each process: the file, the rules, and no ear for Ctrl-C, which is the parent's."""
    global _judge  # noqa: PLW0603
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    place, given, folders, upto, limit = _Told(*told)
    _judge = _Judge(Source(place, upto), load(given, folders), limit)
    gc.freeze()


def _work(piece: Piece) -> tuple[int, Tally]:
    assert _judge is not None
    return _judge(piece)


def _by_processes(pieces: Iterator[Piece], jobs: int, told: _Told) -> Iterator[tuple[int, Tally]]:
    """The answers to all pieces as they come; only a few pieces wait at any time."""
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=told
    )
    waiting: set[Future[tuple[int, Tally]]] = set()
    try:
        for piece in pieces:
            waiting.add(pool.submit(_work, piece))
            if len(waiting) >= 4 * jobs:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in done)
        yield from (each.result() for each in waiting)
    except BrokenProcessPool as error:
        raise StoreError("io", "a process of the audit was killed") from error
    finally:
        pool.shutdown(cancel_futures=True)
