"""The journal: load, decide, commit. The `eventsourcing` application around one log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from eventsourcing.application import Application
from eventsourcing.persistence import (
    ApplicationRecorder,
    EventStore,
    InfrastructureFactory,
    Mapper,
    Notification,
    Recording,
)
from eventsourcing.utils import Environment, EnvType

from statelog import __version__
from statelog.domain.aggregate import Aggregate, Change, Loaded
from statelog.domain.erasure import KeptStream
from statelog.domain.errors import Conflict, Invalid, NotFound, Refused, StoreError, Unreadable
from statelog.domain.event import Event, Recorded
from statelog.domain.ids import Id
from statelog.infrastructure import codec
from statelog.infrastructure.bell import Bell
from statelog.infrastructure.clock import now, unique_id
from statelog.infrastructure.erasures import Erasures, unpacked
from statelog.infrastructure.follow import Follower
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.store.factory import LogFactory, LogMapper, LogStore
from statelog.infrastructure.store.files import beside
from statelog.infrastructure.store.leases import Leases
from statelog.infrastructure.store.postgres_address import is_url, require, shown
from statelog.infrastructure.store.recorder import LogRecorder, Refusal
from statelog.infrastructure.store.row import Batch, Draft, Row, Stamp, recorded
from statelog.infrastructure.store.schema import REFUSALS_KEPT
from statelog.infrastructure.view_place import SUFFIX

T = TypeVar("T")

TRIES = 5
_REASON = 1000


@dataclass(frozen=True)
class Committed(Generic[T]):
    """What an append did: its events, and each instance as it is after them.

    `position` is that of the last event, or of the log when nothing was written. `repeated` says
    that the command had been carried out before: then all of it is the first result.
    """

    rows: Sequence[Row] = field(repr=False)
    loaded: tuple[Loaded[T], ...]
    position: int
    repeated: bool = False
    events: tuple[Event, ...] = field(default=(), repr=False)

    @cached_property
    def recorded(self) -> tuple[Recorded, ...]:
        """The envelopes of its events, made when somebody asks for them."""
        envelopes = tuple(map(_read, self.rows))
        for envelope, event in zip(envelopes, self.events):  # noqa: B905
            envelope.__dict__["event"] = event
        return envelopes

    @property
    def state(self) -> T:
        """State of the first instance."""
        return self.loaded[0].state

    @property
    def version(self) -> int:
        """Version of the first instance."""
        return self.loaded[0].version


class Journal(Application[str]):
    """One log: in a file, in PostgreSQL when the store is a URL of it, or in memory without one.

    Threads may share it, and a forked child may use its parent's. `clock` gives microseconds UTC,
    `new_id` the ids of commands that have none. A store that is not there is made, unless
    `read_only`, or `create` is off. `driver` is the build of SQLite: `sqlite3`, Python's own, or
    `apsw`, which an extra of that name brings. Raises `NotFound` or `StoreError` when the store
    cannot be opened, and `Invalid` when that needs an extra.
    """

    name = "statelog"
    log_section_size = 500

    def __init__(
        self,
        store: str | Path | None = None,
        *,
        clock: Callable[[], int] = now,
        new_id: Callable[[], str] = unique_id,
        read_only: bool = False,
        driver: str = "sqlite3",
        create: bool = True,
    ) -> None:
        self.url = store if is_url(store) else None
        self.store = None if store is None or self.url else Path(store).absolute()
        if self.url is not None:
            require()
        elif not create and self.store is not None and not os.path.lexists(self.store):
            raise NotFound("store", str(self.store))
        self.clock = clock
        self.new_id = new_id
        self._read_only = read_only
        self._driver = driver
        self._create = create
        super().__init__()
        self._bell = self._log.bell() or Bell(self.store)

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Settings of this object alone: the process's environment changes nothing."""
        module = "postgres" if self.url else "memory" if self.store is None else "sqlite"
        ours = {
            "PERSISTENCE_MODULE": f"statelog.infrastructure.store.{module}",
            "ORIGINATOR_ID_TYPE": "text",
            "STATELOG_STORE": self.url or str(self.store or ""),
            "READ_ONLY": "y" if self._read_only else "n",
            "CREATE": "y" if self._create else "n",
            "SQLITE_DRIVER": self._driver,
        }
        return Environment(name, {**ours, **(env or {})})

    def construct_factory(self, env: Environment) -> InfrastructureFactory:
        """The factory of the persistence module."""
        self._factory = LogFactory.construct(env)
        return self._factory

    def construct_mapper(self) -> Mapper[str]:
        """Stored names instead of topics."""
        return LogMapper()

    def construct_recorder(self) -> ApplicationRecorder:
        """The log itself."""
        self._log: LogRecorder = self._factory.log_recorder(self.clock, self.new_id)
        return self._log

    def construct_event_store(self) -> EventStore[str]:
        """Reads `Recorded` envelopes."""
        return LogStore(self.mapper, self._log)

    @property
    def named(self) -> str:
        """The store, for people: a path, a URL without its password, or that it is in memory."""
        return shown(self.url) if self.url else str(self.store or "memory")

    @property
    def views_path(self) -> Path | None:
        """The file where its views are kept by default: `<store>.views.db`; None in memory.

        Those of a store in PostgreSQL are where `on_this_host` says.
        """
        return self._log.views_path() if self.store is None else beside(self.store, SUFFIX)

    def own_holders(self) -> Holders | None:
        """Holders that the store itself keeps; None where they are locks beside a file."""
        return self._log.holders()

    @cached_property
    def leases(self) -> Leases:
        """Leases beside the log: rows, no events."""
        return Leases(self._log)

    @cached_property
    def erasures(self) -> Erasures:
        """What the log keeps of erased payloads."""
        return Erasures(self._log)

    @property
    def read_only(self) -> bool:
        """Whether nothing can be appended."""
        return self._read_only or not self._log.writable

    def load(self, aggregate: Aggregate[T], id: Id, *, upto: int | None = None) -> Loaded[T]:
        """One instance, at version 0 and blank when it has no events; as of a position with `upto`.

        One whose payloads were erased begins with the state that was kept. Raises `Unreadable`
        naming the position, `IllegalTransition` for a damaged log.
        """
        try:
            return self._loaded(aggregate, id, upto)
        except Unreadable as error:
            kept = self.erasures.stream(aggregate.stream_of(id))
            if kept is None or (upto is not None and upto < kept.position):
                raise
            if error.position > kept.position:
                raise
            return self._loaded(aggregate, id, upto, kept)

    def _loaded(
        self, aggregate: Aggregate[T], id: Id, upto: int | None, kept: KeptStream | None = None
    ) -> Loaded[T]:
        state, version = aggregate.blank, 0
        if kept is not None:
            state, version = unpacked(state, kept.state), kept.version
        with closing(self._log.folded(aggregate.stream_of(id), upto)) as batches:
            for rows in batches:
                new = rows if kept is None else [row for row in rows if row[1] > version]
                state = aggregate.fold(codec.decoded(new), state)
                version = max(version, rows[-1][1])
        return Loaded(aggregate, id, state, version)

    def execute(
        self,
        aggregate: Aggregate[T],
        id: Id,
        decision: Callable[..., Sequence[Event]],
        /,
        *,
        actor: str,
        expect: int | None = None,
        command: str | None = None,
        correlation: str | None = None,
        cause: str | None = None,
        meta: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> Committed[T]:
        """Load, decide and commit; decide again when another writer was first.

        `expect` is the version the caller saw. The same `command` again gives its first result.
        No events: nothing is written. Raises `Refused` (and keeps a row of it), `Conflict` after
        five tries or when `expect` is not met, `Invalid`, `OutcomeUnknown`, `StoreError`.
        """
        Stamp(actor, "-" if command is None else command, correlation, cause).checked()
        for tries_left in reversed(range(TRIES)):
            before = aggregate.blank_of(id)
            if command is not None and (rows := self._log.by_command(command)):
                return self._repeated(command, rows, (before,))
            before = self.load(aggregate, id)
            if expect is not None and before.version != expect:
                raise Conflict(before.stream, expect, before.version)
            try:
                change = before.decide(decision, **given)
            except Refused as refused:
                if command is not None and (rows := self._log.by_command(command)):
                    return self._repeated(command, rows, (before,))
                self._note(refused, before, actor, command)
                raise
            if not change.events:
                if command is not None and (rows := self._log.by_command(command)):
                    return self._repeated(command, rows, (before,))
                return Committed((), (before,), self.head())
            try:
                return self.commit(
                    change,
                    actor=actor,
                    command=command,
                    correlation=correlation,
                    cause=cause,
                    meta=meta,
                )
            except Conflict:
                if expect is not None or not tries_left:
                    raise
        raise AssertionError("unreachable")

    def commit(
        self,
        *changes: Change[Any],
        actor: str,
        command: str | None = None,
        correlation: str | None = None,
        cause: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Committed[Any]:
        """Append the events of all changes as one, if every stream is still where it was read.

        Changes without events are guards and are checked too. Changes of one stream follow each
        other. Raises `Conflict` naming the stream, `Invalid`, `OutcomeUnknown`, `StoreError`.
        """
        stamp = self._stamp(actor, command, correlation, cause, meta)
        drafts, expect = _drafts(changes)
        done = self._log.append(Batch(drafts, expect, stamp, lookup=command is not None))
        if done.repeated:
            return self._repeated(stamp.command, done.rows, [change.before for change in changes])
        self._bell.ring()
        return Committed(
            done.rows,
            tuple([change.after for change in changes]),
            done.position,
            events=tuple([event for change in changes for event in change.events]),
        )

    def rewrite(
        self,
        *changes: Change[Any],
        actor: str,
        erase: Sequence[int] = (),
        put_back: Mapping[int, bytes] | None = None,
    ) -> int:
        """Commit events, and with them let payloads go, or put some back; the last position.

        That is for the events that say so, which nobody else writes. Raises `Conflict` naming the
        stream, `OutcomeUnknown`, `StoreError`.
        """
        stamp = self._stamp(actor, None, None, None, None)
        batch = Batch(*_drafts(changes), stamp, lookup=False)
        done = self._log.rewrite(batch, erase, put_back)
        self._bell.ring()
        return done.position

    def mentions(self, text: str, stream: str, name: str) -> str | None:
        """A stream other than this one that has a text in its payloads, None when none has.

        Events of the stored name do not count.
        """
        return self._log.mentions(text.encode(), stream, name)

    def sweep(self) -> bool:
        """Leave nothing of erased payloads in the files of the log.

        False while a reader is in the way: then it is to be asked again. Raises `StoreError`.
        """
        return self._log.sweep()

    def take(self, rows: Sequence[Row]) -> None:
        """Add rows of another log as they are: they follow the last one, as `row_after` checks.

        Raises `Conflict` when the log is not where the rows begin, and `StoreError`.
        """
        self._log.take(rows)
        self._bell.ring()

    def _stamp(
        self,
        actor: str,
        command: str | None,
        correlation: str | None,
        cause: str | None,
        meta: Mapping[str, Any] | None,
    ) -> Stamp:
        text = None if meta is None else codec.dump(dict(meta)).decode()
        named = self.new_id() if command is None else command
        return Stamp(actor, named, correlation, cause, text).checked()

    def save(self, *objs: Any, **kwargs: Any) -> list[Recording[str]]:
        """`commit`, answered as `eventsourcing` does: one recording for each event."""
        return [
            Recording(
                each,
                Notification(each.stream, each.version, each.name, each.data or b"", each.position),
            )
            for each in self.commit(*objs, **kwargs).recorded
        ]

    def history(
        self,
        prefix: str,
        *,
        after: int = 0,
        upto: int | None = None,
        names: Collection[str] | None = None,
    ) -> Iterator[Recorded]:
        """Events of the stream `prefix` and of all below it, in log order.

        Only those with after < position <= upto (default: the end of the log as it is now) and,
        if given, one of these stored names. Payloads are decoded when they are used.
        """
        if not prefix or prefix.endswith("/"):
            raise Invalid("prefix", "is a stream name or its first parts, without a `/` at its end")
        last = self.head() if upto is None else upto
        if names is not None and not names:
            return iter(())
        return map(self._envelope, self._log.below(prefix, after, last, tuple(names or ())))

    def read(
        self,
        *,
        after: int = 0,
        upto: int | None = None,
        names: Collection[str] | None = None,
        limit: int | None = None,
    ) -> Iterator[Recorded]:
        """Events of the whole log in order, bounded as those of `history`."""
        last = self.head() if upto is None else upto
        if names is not None and not names:
            return iter(())
        return map(self._envelope, self._log.whole(after, last, tuple(names or ()), limit))

    def rows(self, *, after: int = 0, upto: int | None = None) -> Iterator[Row]:
        """Rows of the whole log as they are stored, hashes included, bounded as those of `read`."""
        return self._log.whole(after, self.head() if upto is None else upto, (), None)

    def stray_positions(self) -> list[int]:
        """Positions below 1, where no event can be and nothing else would look."""
        return list(self._log.strays())

    def latest(self, prefix: str, name: str) -> Iterator[Recorded]:
        """Events of one stored name below a prefix, newest first."""
        return map(self._envelope, self._log.newest(prefix, name))

    def follow(
        self, *, after: int = 0, prefix: str | None = None, names: Collection[str] | None = None
    ) -> Follower:
        """Events from a position on and as they come, also those of other processes."""
        return Follower(self, self._bell, after=after, prefix=prefix, names=names)

    def head(self) -> int:
        """The last position, 0 for an empty log."""
        return self._log.head()[0]

    def position_at(self, time_us: int) -> int:
        """The last position whose time is not after a moment, 0 when there is none."""
        return self._log.position_at(time_us)

    def find(self, command: str) -> tuple[Recorded, ...]:
        """The events of a command, none when it was not carried out."""
        Stamp("-", command).checked()
        return tuple(map(self._envelope, self._log.by_command(command)))

    def refuse(
        self, *, actor: str, stream: str, version: int, command: str | None, rule: str, reason: str
    ) -> None:
        """Keep a refusal as evidence. Raises `StoreError`."""
        Stamp(actor, command or "-").checked()
        text = reason[:_REASON].encode(errors="backslashreplace").decode()
        self._log.refuse(Refusal(0, self.clock(), actor, stream, version, command, rule, text))

    def refusals(self, limit: int | None = None) -> list[Refusal]:
        """The newest `limit` refusals (default: all that are kept), oldest of them first."""
        return list(self._log.refusals(REFUSALS_KEPT if limit is None else limit))

    def health(self, *, check: bool = False) -> dict[str, Any]:
        """Facts for a doctor: versions, sizes, positions, clock; with `check` slow checks too."""
        found = {
            "statelog_version": __version__,
            "python_version": sys.version.split()[0],
            "clock": self.clock(),
            **self._log.health(check=check),
        }
        last = found["last_time"]
        return {**found, "behind_us": max(0, last - found["clock"]) if last else 0}

    def _envelope(self, row: Row) -> Recorded:
        found = _read(row)
        if row.data is None:
            found.__dict__["keeper"] = self.erasures.row
        return found

    def _repeated(
        self, command: str, rows: Sequence[Row], instances: Sequence[Loaded[Any]]
    ) -> Committed[Any]:
        """The first result of a command. Raises `Invalid` when it was about something else."""
        position = rows[-1].position
        for stream in {row.stream for row in rows} - {each.stream for each in instances}:
            raise Invalid("command", f"{command} was already carried out on {stream}")
        loaded = [self.load(each.aggregate, each.id, upto=position) for each in instances]
        return Committed(rows, tuple(loaded), position, repeated=True)

    def _note(self, refused: Refused, before: Loaded[Any], actor: str, command: str | None) -> None:
        """Evidence is no reason to hide the refusal itself behind a full disk."""
        with suppress(StoreError):
            self.refuse(
                actor=actor,
                stream=before.stream,
                version=before.version,
                command=command,
                rule=refused.rule,
                reason=refused.reason,
            )


def _drafts(changes: Sequence[Change[Any]]) -> tuple[list[Draft], dict[str, int]]:
    drafts: list[Draft] = []
    expect: dict[str, int] = {}
    at: dict[str, int] = {}
    for change in changes:
        stream, version = change.stream, change.expect
        expect.setdefault(stream, version)
        if at.setdefault(stream, version) != version:
            raise Invalid("changes", f"those of {stream} do not follow each other")
        for event in change.events:
            version += 1
            name = event.stored_name
            if not name:
                raise Invalid("event", f"{type(event).__name__} has no stored name")
            drafts.append(Draft(stream, version, name, event.schema, codec.encode(event)))
        at[stream] = version
    return drafts, expect


def _read(row: Row) -> Recorded:
    return recorded(row, codec.decoder)
