"""Erasing: payloads of finished streams go, and an event keeps what they led to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from statelog.domain.aggregate import Loaded
from statelog.domain.erasure import (
    ERASURE,
    Earlier,
    Erased,
    Erasure,
    ErasureStatus,
    KeptRow,
    KeptStream,
    erase,
    unit_of,
)
from statelog.domain.errors import Conflict, Invalid, NotFound, Refused
from statelog.domain.event import Recorded
from statelog.infrastructure.erasures import packed, unpacked
from statelog.infrastructure.exchange.finished import Desk
from statelog.infrastructure.journal import TRIES, Journal
from statelog.infrastructure.json_values import dump_ordered
from statelog.projections.projection import Projection
from statelog.projections.replay import Fold

Progress = Callable[[int, int], None]
"""Told how many payloads are gone, and how many there are to go."""

_ERASURES: Final = "erasure/"


@dataclass(frozen=True)
class Gone:
    """What an erasure did. `swept` says that no byte of it is left in the files of the log."""

    units: int
    streams: int
    events: int
    swept: bool = True


@dataclass(frozen=True)
class Unit:
    """The payloads of one unit that are to go: positions by stream."""

    name: str
    positions: Mapping[str, Sequence[int]]

    @property
    def every(self) -> list[int]:
        """All positions, in order."""
        return sorted(at for positions in self.positions.values() for at in positions)


class Eraser:
    """Lets payloads below a prefix go.

    `views` are those whose rows are kept; a view that is not among them begins after the erasure.
    """

    def __init__(self, desk: Desk, views: Iterable[Projection[Any]], *, actor: str) -> None:
        self.desk = desk
        self.journal: Journal = desk.journal
        self._views = tuple(views)
        self._actor = actor

    def units(self, prefix: str) -> list[Unit]:
        """What is to go below a prefix, checked.

        Raises `NotFound` when nothing is there, `Refused` naming a stream that is not finished.
        """
        found: dict[str, dict[str, list[int]]] = {}
        there = False
        for recorded in self.journal.history(prefix):
            there = True
            if recorded.stream.startswith(_ERASURES):
                self.desk.erasable(recorded.stream)
            if recorded.data is not None:
                unit = found.setdefault(unit_of(recorded.stream), {})
                unit.setdefault(recorded.stream, []).append(recorded.position)
        if not there:
            raise NotFound("stream", prefix)
        for streams in found.values():
            for stream in streams:
                self.desk.checked(stream)
        return [Unit(name, streams) for name, streams in found.items()]

    def erase(
        self,
        units: Sequence[Unit],
        reason: str,
        *,
        archived: bool = False,
        progress: Progress | None = None,
    ) -> Gone:
        """Let these payloads go, one unit a commit, and leave no byte of them behind.

        After a crash the same again does what is left. Raises `Invalid` for the reason, `Refused`,
        `Conflict` when others keep writing there.
        """
        if not reason.strip():
            raise Invalid("reason", "is a text that says why")
        total = sum(len(unit.every) for unit in units)
        done = 0
        for unit in units:
            self._one(unit, reason, archived=archived)
            done += len(unit.every)
            if progress:
                progress(done, total)
        streams = sum(len(unit.positions) for unit in units)
        return Gone(len(units), streams, done, self.journal.sweep())

    def _one(self, unit: Unit, reason: str, *, archived: bool) -> None:
        for tries_left in reversed(range(TRIES)):
            try:
                self._commit(unit, reason, archived=archived)
                return
            except Conflict:
                if not tries_left:
                    raise

    def _commit(self, unit: Unit, reason: str, *, archived: bool) -> None:
        before = erasure_of(self.journal, unit.name)
        seen = {stream: self.desk.checked(stream) for stream in unit.positions}
        upto = self.journal.head()
        erased = Erased(
            reason=reason,
            upto=upto,
            events=len(unit.every),
            streams=self._streams(before, seen, unit, upto),
            rows=tuple(self._rows(before.state, unit, upto)),
            archived=archived,
            earlier=self._earlier(before),
        )
        guards = {each.stream: each for every in seen.values() for each in every}
        superseded = [each.position for each in _erased(self.journal, before.stream)]
        self.journal.rewrite(
            before.decide(erase, erased=erased),
            *(each.guard() for each in guards.values()),
            actor=self._actor,
            erase=[*unit.every, *superseded],
        )

    def _streams(
        self,
        before: Loaded[Erasure],
        seen: Mapping[str, Sequence[Loaded[Any]]],
        unit: Unit,
        upto: int,
    ) -> dict[str, KeptStream]:
        kept = {} if before.state.kept is None else dict(before.state.kept.streams)
        for stream, (own, *_) in seen.items():
            erasable, _ids = self.desk.erasable(stream)
            state = erasable.remains(own.state)
            text = packed(erasable.aggregate.blank, state)
            if unpacked(erasable.aggregate.blank, text) != state:
                raise Refused(f"what {stream} leaves does not read back", rule="remains")
            kept[stream] = KeptStream(own.version, upto, text)
        return kept

    def _earlier(self, before: Loaded[Erasure]) -> tuple[Earlier, ...]:
        last = before.state.kept
        if last is None:
            return ()
        position = max(each.position for each in _erased(self.journal, before.stream))
        return (*last.earlier, Earlier(position, last.reason))

    def _rows(self, before: Erasure, unit: Unit, upto: int) -> Iterator[KeptRow]:
        events = list(self._heads(unit, upto))
        old = () if before.kept is None else before.kept.rows
        known = {view.name for view in self._views}
        yield from (row for row in old if row.view not in known)
        for view in self._views:
            keys = dict.fromkeys(view.key(each) for each in events if view.reads(each))
            keys |= dict.fromkeys(row.key for row in old if row.view == view.name)
            wanted = [key for key in keys if key is not None]
            if wanted:
                yield from _kept(self.journal, view, wanted, upto)

    def _heads(self, unit: Unit, upto: int) -> Iterator[Recorded]:
        for stream, positions in unit.positions.items():
            wanted = set(positions)
            for recorded in self.journal.history(stream, upto=upto):
                if recorded.position in wanted:
                    yield recorded


def erasure_of(journal: Journal, unit: str) -> Loaded[Erasure]:
    """The erasures of a unit, of which only the newest has a payload that is needed."""
    stream = ERASURE.stream_of(unit)
    version, status, kept = 0, ErasureStatus.NONE, None
    for recorded in journal.history(stream):
        version = recorded.version
        gone = recorded.name == Erased.stored_name
        status = ErasureStatus.GONE if gone else ErasureStatus.BACK
        if gone and recorded.data is not None:
            kept = cast("Erased", recorded.event)
    return Loaded(ERASURE, unit, Erasure(status, kept), version)


def _erased(journal: Journal, stream: str) -> list[Recorded]:
    found = journal.history(stream, names={Erased.stored_name})
    return [each for each in found if each.data is not None]


def _kept(
    journal: Journal, view: Projection[Any], keys: Collection[str], upto: int
) -> Iterator[KeptRow]:
    """The rows of these keys as of a position. Raises what stops the view."""
    fold = Fold(view)
    for events in _sources(journal, view, keys, upto):
        fault = fold.run(events)
        if fault is not None:
            raise Refused(f"view {view.name} would lose a row: {fault}", rule="view_stopped")
    for key in keys:
        if key in fold.states:
            state = fold.states[key]
            text = None if state is None else dump_ordered(state).decode()
            yield KeptRow(view.name, view.version, key, fold.positions[key], text)


def _sources(
    journal: Journal, view: Projection[Any], keys: Collection[str], upto: int
) -> Iterator[Iterator[Recorded]]:
    """The events of these rows: from below each, or one look through the log for all."""
    prefixes = {key: view.below(key) for key in keys}
    rest = {key for key, prefix in prefixes.items() if prefix is None}
    for key, prefix in prefixes.items():
        if prefix is not None:
            found = journal.history(prefix, upto=upto, names=view.names)
            yield (each for each in found if view.key(each) == key)
    if rest:
        found = journal.read(upto=upto, names=view.names)
        yield (each for each in found if view.key(each) in rest)
