"""Rows of the log, and the hashes over them; see docs/reference/file-format.md."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from statelog.domain.errors import Invalid
from statelog.domain.event import Event, Recorded

_HEAD = struct.Struct(">BBqqqq7I").pack
_LEAF, _ENCODING, _NULL = 0, 1, 0xFFFFFFFF


class Row(NamedTuple):
    """One row of `events`, in the order of its columns; `meta` is JSON text."""

    position: int
    stream: str
    version: int
    name: str
    schema: int
    time: int
    actor: str
    command: str
    correlation: str | None
    cause: str | None
    meta: str | None
    data: bytes | None
    data_hash: bytes
    hash: bytes


COLUMNS = Row._fields


class Draft(NamedTuple):
    """An event waiting for its position and time."""

    stream: str
    version: int
    name: str
    schema: int
    data: bytes


class Folded(NamedTuple):
    """What a fold needs of an event."""

    position: int
    version: int
    name: str
    schema: int
    data: bytes | None


class Stamp(NamedTuple):
    """What all events of one append share; `meta` is JSON text."""

    actor: str
    command: str
    correlation: str | None = None
    cause: str | None = None
    meta: str | None = None

    def checked(self) -> Stamp:
        """This stamp. Raises `Invalid` for text that cannot be stored."""
        for field, text in zip(self._fields, self, strict=True):
            if text is None:
                continue
            if not text or "\0" in text:
                raise Invalid(field, "is a text that is not empty and has no NUL character")
            if not text.isascii():
                _check_encodable(field, text)
        return self


def _check_encodable(field: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid(field, "is not encodable in UTF-8") from None


class Batch(NamedTuple):
    """One atomic append.

    `expect` maps streams to the version each must have, those without drafts included. With
    `lookup` the command may have been carried out before; then nothing is appended.
    """

    drafts: Sequence[Draft]
    expect: Mapping[str, int]
    stamp: Stamp
    lookup: bool = True


class Appended(NamedTuple):
    """Rows of a command, the position they brought the log to, and whether it was done before."""

    rows: Sequence[Row]
    position: int
    repeated: bool = False


def leaf_hash(
    numbers: tuple[int, int, int, int], texts: Sequence[bytes | None], data_hash: bytes
) -> bytes:
    """The RFC 6962 leaf hash of a header.

    `numbers` are position, version, schema and time; `texts` are stream,
    name, actor, command, correlation, cause and meta in UTF-8, None for NULL.
    """
    lengths = [_NULL if text is None else len(text) for text in texts]
    head = _HEAD(_LEAF, _ENCODING, *numbers, *lengths)
    return sha256(b"".join((head, *filter(None, texts), data_hash))).digest()


def hash_of(row: Row) -> bytes:
    """The leaf hash that a row should have, from its header and `data_hash`."""
    texts = (row.stream, row.name, row.actor, row.command, row.correlation, row.cause, row.meta)
    encoded = [None if text is None else text.encode() for text in texts]
    return leaf_hash((row.position, row.version, row.schema, row.time), encoded, row.data_hash)


def stamped(drafts: Iterable[Draft], stamp: Stamp, position: int, time: int) -> list[Row]:
    """Rows of an append that follows `position`."""
    shared = [None if text is None else text.encode() for text in stamp]
    rows = []
    for stream, version, name, schema, data in drafts:
        position += 1
        data_hash = sha256(data).digest()
        texts = (stream.encode(), name.encode(), *shared)
        leaf = leaf_hash((position, version, schema, time), texts, data_hash)
        rows.append(
            Row(position, stream, version, name, schema, time, *stamp, data, data_hash, leaf)
        )
    return rows


def recorded(row: Sequence[Any], decoder: Callable[[Recorded], Event]) -> Recorded:
    """The envelope of a row. It skips `__init__`, which costs more than the rest of a read."""
    new = object.__new__(Recorded)
    fields = new.__dict__
    fields.update(zip(COLUMNS, row, strict=True))
    if fields["meta"] is not None:
        fields["meta"] = orjson.loads(fields["meta"])
    fields["decoder"] = decoder
    return new
