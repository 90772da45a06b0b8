"""Reading a log from lines: a bounded one at a time, each error with its number and field."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import BinaryIO, Final

import orjson

from statelog.domain.errors import Invalid, Malformed
from statelog.domain.ids import decode_part, encode_part
from statelog.infrastructure.exchange.cloudevents import is_cloudevent, row_of_event
from statelog.infrastructure.jsonl import row_of
from statelog.infrastructure.store.row import Row, Stamp, hash_of

LONGEST: Final = 64 * 2**20
"""Bytes of a line; a longer one is no event, and reading it whole might take all memory."""


class Lines:
    """The rows of a file of lines. `number` is the line read last, `read` the bytes so far."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.number = 0
        self.read = 0

    def rows(self) -> Iterator[Row]:
        """The rows in turn. Raises `Malformed` naming line and field."""
        while line := self._file.readline(LONGEST + 1):
            self.number += 1
            self.read += len(line)
            if len(line) > LONGEST:
                raise Malformed(f"line {self.number}", f"is longer than {LONGEST:,} bytes")
            if not line.isspace():
                yield self._row(line)

    def _row(self, line: bytes) -> Row:
        try:
            row = row_of_event(line) if is_cloudevent(line) else row_of(line)
            if not all(-(2**63) <= each < 2**63 for each in row if type(each) is int):
                raise Malformed("line", "has an integer beyond 64 bits")
        except Malformed as error:
            raise Malformed(_place(self.number, error.field), error.why) from None
        return row

    def guess(self, size: int) -> int:
        """About how many lines a file of so many bytes has."""
        return max(self.number, self.number * size // max(1, self.read))


def checked(row: Row, number: int) -> Row:
    """A row whose columns are well formed and whose hashes are right.

    Raises `Malformed` for a field that cannot be stored so, `Invalid` for a hash that is wrong.
    """
    try:
        Stamp(row.actor, row.command, row.correlation, row.cause, row.meta).checked()
        _check_texts(row)
        _check_hashes(row)
    except Malformed as error:
        raise Malformed(_place(number, error.field), error.why) from None
    except Invalid as error:
        raise Invalid(_place(number, error.field), error.why) from None
    return row


def _check_texts(row: Row) -> None:
    for field in ("stream", "name"):
        text = getattr(row, field)
        if not text or "\0" in text:
            raise Malformed(field, "is a text that is not empty and has no NUL character")
    if not _is_path(row.stream):
        raise Malformed("stream", f"{row.stream!r} is not a path of percent-encoded parts")
    if row.version < 1 or row.schema < 1:
        field = "version" if row.version < 1 else "schema"
        raise Malformed(field, "is less than 1")
    if row.meta is not None and not _is_object(row.meta):
        raise Malformed("meta", "is not a JSON object")


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _is_path(stream: str) -> bool:
    try:
        return all(encode_part(decode_part(part)) == part for part in stream.split("/"))
    except (Invalid, ValueError):
        return False


def _check_hashes(row: Row) -> None:
    if row.data is not None and sha256(row.data).digest() != row.data_hash:
        raise Invalid("data_hash", "is not that of the data")
    if hash_of(row) != row.hash:
        raise Invalid("hash", "is not that of the event: it was changed, or is of another format")


def _place(number: int, field: str) -> str:
    return f"line {number}" if field == "line" else f"line {number}: {field}"
