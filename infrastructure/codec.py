"""Events to the bytes that are stored, and back: one encoder, one decoder a class, upcasters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import orjson

from statelog.domain.errors import Invalid, Unreadable
from statelog.domain.event import Event, Recorded, event_type
from statelog.infrastructure.json_types import from_json, shape_of
from statelog.infrastructure.json_values import dump, parse
from statelog.projections.plain import Json, escaped, to_json

__all__ = [
    "Json",
    "decode",
    "decoded",
    "decoder",
    "dump",
    "encode",
    "escaped",
    "from_json",
    "parse",
    "to_json",
]


def encode(event: Event) -> bytes:
    """The stored payload of an event: JSON with sorted keys, proved to read back.

    Raises `Invalid` naming the place for a value JSON cannot hold or the field's type does not
    allow, and `TypeError` for a field whose type has no JSON form.
    """
    try:
        return orjson.dumps(shape_of(type(event)).plain(event), option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return dump(event)


def decode(name: str, schema: int, data: bytes | None, position: int = 0) -> Event:
    """The event of a stored payload, brought up to the schema the code has.

    Raises `Unreadable` with position and name: no such event, a newer schema, a payload that is
    erased, is no JSON or does not fit the class.
    """
    try:
        return _reader(name, schema)(orjson.loads(data))  # type: ignore[arg-type]
    except (orjson.JSONDecodeError, Invalid, TypeError) as error:
        raise _unreadable(position, name, data, error) from error


def decoded(rows: Iterable[tuple[int, int, str, int, bytes | None]]) -> Iterator[Event]:
    """The events of rows of position, version, name, schema and data, as `decode` makes them."""
    readers = Readers()
    loads = orjson.loads
    for position, _version, name, schema, data in rows:
        try:
            event = readers[name, schema](loads(data))  # type: ignore[arg-type]
        except (orjson.JSONDecodeError, Invalid, TypeError) as error:
            raise _unreadable(position, name, data, error) from error
        yield event


def _unreadable(position: int, name: str, data: bytes | None, error: Exception) -> Unreadable:
    if event_type(name) is None:
        return Unreadable(position, name, "no event of this name is declared")
    if data is None:
        return Unreadable(position, name, "its payload was erased or archived")
    if isinstance(error, orjson.JSONDecodeError):
        return Unreadable(position, name, f"is not JSON: {error}")
    return Unreadable(position, name, str(error))


def decoder(recorded: Recorded) -> Event:
    """The decoder of a `Recorded`: `Recorded(..., decoder=decoder)`. Raises `Unreadable`."""
    return decode(recorded.name, recorded.schema, recorded.data, recorded.position)


class Readers(dict[tuple[str, int], Callable[[Any], Event]]):
    """Readers of payloads by stored name and schema, found when they are needed."""

    def __missing__(self, kind: tuple[str, int]) -> Callable[[Any], Event]:
        reader = self[kind] = _reader(*kind)
        return reader


def _reader(name: str, schema: int) -> Callable[[Any], Event]:
    cls = event_type(name)
    if cls is None:
        raise TypeError(name)
    take = shape_of(cls).take
    if schema == cls.schema:
        return take
    return lambda payload: cast(Event, take(_upcast(cls, schema, payload)))


def _upcast(cls: type[Event], schema: int, payload: Any) -> Any:
    if not 1 <= schema < cls.schema:
        raise Invalid("schema", f"{schema} is unknown: this code reads 1 to {cls.schema}")
    for step in range(schema, cls.schema):
        try:
            payload = cls.upcasters[step](payload)
        except Exception as error:
            raise Invalid("schema", f"upcasting from {step} failed: {error!r}") from error
    return payload
