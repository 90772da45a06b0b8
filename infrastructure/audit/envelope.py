"""The rules of envelopes: what any log keeps to, whatever its events are about.

They are those of docs/reference/file-format.md. `Envelopes` looks at rows one by one, `Order` at
neighbours in the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from hashlib import sha256
from itertools import product
from typing import Any, Final, NamedTuple

import orjson

from statelog.domain.errors import Invalid, Unreadable
from statelog.domain.event import Event, event_type
from statelog.infrastructure import codec
from statelog.infrastructure.audit.gone import Gone
from statelog.infrastructure.audit.violations import Shown, Tally, shown
from statelog.infrastructure.json_types import shape_of
from statelog.infrastructure.json_values import dump
from statelog.infrastructure.store.row import Row, hash_of

POSITIONS: Final = "positions are dense from 1"
TIMES: Final = "time never decreases"
COMMANDS: Final = "a command is carried out once"
APPENDS: Final = "an append has one stamp"
VERSIONS: Final = "versions are dense from 1"
FIELDS: Final = "an envelope is well formed"
STREAMS: Final = "a stream name is well formed"
HEADERS: Final = "a header has its hash"
PAYLOADS: Final = "a payload has its hash"
GONE: Final = "a payload that is gone was erased"
NAMES: Final = "a stored name is declared"
SCHEMAS: Final = "a schema is known"
DECODES: Final = "a payload decodes"
CANONICAL: Final = "a payload is written canonically"
CAUSES: Final = "a cause is an earlier event"
LINES: Final = "a line is an event"
INTACT: Final = "the file is intact"

_STREAM: Final = re.compile(
    r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+(?:/(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+)*"
)
_CAUSE: Final = re.compile(r"(.+)@([1-9][0-9]{0,18})")
_TEXT, _NONE = (str,), (type(None),)
_KINDS: Final = {
    "position": (int,),
    "stream": _TEXT,
    "version": (int,),
    "name": _TEXT,
    "schema": (int,),
    "time": (int,),
    "actor": _TEXT,
    "command": _TEXT,
    "correlation": _TEXT + _NONE,
    "cause": _TEXT + _NONE,
    "meta": _TEXT + _NONE,
    "data": (bytes, *_NONE),
    "data_hash": (bytes,),
    "hash": (bytes,),
}
_SOUND: Final = frozenset(product(*_KINDS.values()))

Find = Callable[[str, int], int | None]
"""The position of a stream's event with a version, None when there is none."""


class Reader(NamedTuple):
    """How payloads of one name and schema are read; `why` they cannot be, and by what rule."""

    event: type[Event] | None
    take: Callable[[Any], Any] | None
    rule: str = ""
    why: str = ""


class Envelopes:
    """Looks at rows one by one. Events of `private` names may have been exported without data."""

    def __init__(
        self, tally: Tally, find: Find, gone: Gone, private: Container[str] = frozenset()
    ) -> None:
        self._tally = tally
        self._find = find
        self._gone = gone
        self._private = private
        self._readers: dict[tuple[str, int], Reader] = {}
        self._stream = ""

    def sound(self, row: Row) -> bool:
        """Whether every column has a value of its type: of another row nothing more is judged."""
        if tuple(map(type, row)) in _SOUND:
            return True
        self._tally.add(row, FIELDS, _unsound(row))
        return False

    def event(self, row: Row) -> Event | None:
        """Judge a sound row; its event, None when it cannot be read or is gone."""
        for rule, why in _header(row):
            self._tally.add(row, rule, why)
        if row.stream != self._stream:
            self._stream = row.stream
            if not well_formed(row.stream):
                why = "its parts are not percent-encoded as they should be, or one is empty"
                self._tally.add(row, STREAMS, why)
        if row.cause is not None:
            self._cause(row, row.cause)
        key = row.name, row.schema
        reader = self._readers.get(key)
        if reader is None:
            reader = self._readers[key] = _reader(*key)
        if reader.take is None:
            self._tally.add(row, reader.rule, reader.why)
            return None
        if row.data is not None:
            return self._payload(row, row.data, reader)
        if row.name not in self._private and not self._gone.explained(row):
            self._tally.add(row, GONE, "its payload is gone, and no erasure says why")
        return None

    def known(self, row: Row) -> type[Event] | None:
        """The type of a row's event that was judged before."""
        reader = self._readers.get((row.name, row.schema))
        return None if reader is None else reader.event

    def _payload(self, row: Row, data: bytes, reader: Reader) -> Event | None:
        if sha256(data).digest() != row.data_hash:
            self._tally.add(row, PAYLOADS, "the payload is not the one that was hashed")
        try:
            value = orjson.loads(data)
            if orjson.dumps(value, option=orjson.OPT_SORT_KEYS) != data and dump(value) != data:
                why = "its keys are not sorted or not unique, or it has spaces that nobody needs"
                self._tally.add(row, CANONICAL, why)
            event: Event = reader.take(value)  # type: ignore[misc]
        except (orjson.JSONDecodeError, orjson.JSONEncodeError, Invalid, TypeError) as error:
            self._tally.add(row, DECODES, f"it is no {row.name} of schema {row.schema}: {error}")
            return None
        return event

    def _cause(self, row: Row, cause: str) -> None:
        named = _CAUSE.fullmatch(cause)
        if named is None:
            self._tally.add(row, CAUSES, f"{cause!r} does not name an event as stream@version")
            return
        stream, version = named[1], int(named[2])
        at = self._find(stream, version)
        if at is None:
            self._tally.add(row, CAUSES, f"there is no event {cause}")
        elif at >= row.position:
            later = Shown(at, stream, version, "")
            self._tally.add(row, CAUSES, f"{cause} is at {at}, which is not before it", (later,))


def well_formed(stream: str) -> bool:
    """Whether a stream name is a path of parts as `encode_part` writes them."""
    return _STREAM.fullmatch(stream) is not None


def _unsound(row: Row) -> str:
    wrong = [
        f"{name} is {type(value).__name__}"
        for (name, kinds), value in zip(_KINDS.items(), row, strict=True)
        if type(value) not in kinds
    ]
    return ", ".join(wrong)


def _header(row: Row) -> Iterator[tuple[str, str]]:
    """What is wrong with the header of a row whose columns have the right types."""
    texts = (row.stream, row.name, row.actor, row.command)
    if not all(texts):
        yield FIELDS, "stream, name, actor and command are not empty"
    for text in (*texts, row.correlation, row.cause, row.meta):
        if text is not None and "\0" in text:
            yield FIELDS, "a text has a NUL character"
            break
    if row.meta is not None and not _is_object(row.meta):
        yield FIELDS, "meta is not a JSON object"
    if len(row.data_hash) != 32:
        yield FIELDS, f"data_hash has {len(row.data_hash)} bytes, not 32"
    if hash_of(row) != row.hash:
        yield HEADERS, "the header is not the one that was hashed"


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _reader(name: str, schema: int) -> Reader:
    event = event_type(name)
    if event is None:
        return Reader(None, None, NAMES, f"no event is declared as {name}")
    if not 1 <= schema <= event.schema:
        why = f"schema {schema} of {name} is not one of 1 to {event.schema}, which this code reads"
        return Reader(event, None, SCHEMAS, why)
    if schema == event.schema:
        return Reader(event, shape_of(event).take)
    return Reader(event, lambda value: _upcast(name, schema, value))


def _upcast(name: str, schema: int, value: Any) -> Event:
    try:
        return codec.decode(name, schema, orjson.dumps(value))
    except Unreadable as error:
        raise Invalid("", error.why) from error


class Order:
    """Looks at rows in the order of the log: positions, times, and appends.

    `previous` is the row before the first one, None at the beginning.
    """

    def __init__(self, tally: Tally, previous: Row | None = None) -> None:
        self._tally = tally
        self._previous = previous

    def take(self, row: Row, place: int | None = None) -> None:
        """Judge a row by the one before it."""
        before, self._previous = self._previous, row
        if before is None:
            if row.position != 1:
                why = f"the first event is at {row.position}"
                self._tally.add(row, POSITIONS, why, place=place)
            return
        if row.position != before.position + 1:
            why = f"after {before.position} comes {row.position}"
            self._tally.add(row, POSITIONS, why, (shown(before),), place=place)
        if type(row.time) is not int or type(before.time) is not int:
            return
        if row.time < before.time:
            why = f"it is {before.time - row.time} microseconds earlier than the event before it"
            self._tally.add(row, TIMES, why, (shown(before),), place=place)
        if row.command == before.command and _stamp(row) != _stamp(before):
            why = "two events of one command differ in time, actor, correlation, cause or meta"
            self._tally.add(row, APPENDS, why, (shown(before),), place=place)


def _stamp(row: Row) -> tuple[Any, ...]:
    return row.time, row.actor, row.correlation, row.cause, row.meta
