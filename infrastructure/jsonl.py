"""A log as JSON Lines: one event a line, with every column of its row.

`data` and `meta` are JSON values: stored payloads are written canonically, so the value gives back
the very bytes. Where it would not, `data` or `meta` is the stored text itself, as a JSON string.
`data_hash` and `hash` are hexadecimal, `time` is in microseconds; ISO 8601 is read too.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from statelog.domain.errors import Malformed
from statelog.domain.times import iso
from statelog.infrastructure.store.row import COLUMNS, Row

_INTEGERS: Final = ("position", "version", "schema")
_TEXTS: Final = ("stream", "name", "actor", "command")
_OPTIONAL: Final = ("correlation", "cause")
_HEX: Final = re.compile(r"[0-9a-fA-F]{64}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_AMBIGUOUS: Final = (str, type(None))


def line_of(row: Row) -> bytes:
    """The line of a row, without its end."""
    fields: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    fields["time"] = iso(row.time)
    fields["meta"] = None if row.meta is None else _value(row.meta.encode())
    fields["data"] = None if row.data is None else _value(row.data)
    fields["data_hash"], fields["hash"] = row.data_hash.hex(), row.hash.hex()
    return orjson.dumps(fields)


def row_of(line: bytes) -> Row:
    """The row of a line.

    Raises `Malformed` for what is no JSON object with every column, each of its type.
    """
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Malformed("line", f"is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise Malformed("line", "is not a JSON object")
    missing = [name for name in COLUMNS if name not in found]
    if missing:
        raise Malformed(missing[0], "is missing")
    return _row(found)


def _row(found: dict[str, Any]) -> Row:
    for names, kinds, what in (
        (_INTEGERS, (int,), "an integer"),
        (_TEXTS, (str,), "text"),
        (_OPTIONAL, (str, type(None)), "text or null"),
    ):
        for name in names:
            if type(found[name]) not in kinds:
                raise Malformed(name, f"must be {what}")
    meta, data = _bytes(found["meta"]), _bytes(found["data"])
    return Row(
        **{name: found[name] for name in (*_INTEGERS, *_TEXTS, *_OPTIONAL)},
        time=_time(found["time"]),
        meta=None if meta is None else meta.decode(),
        data=data,
        data_hash=_hash("data_hash", found["data_hash"]),
        hash=_hash("hash", found["hash"]),
    )


def _value(text: bytes) -> Any:
    """The value of canonical JSON; of any other text the text itself."""
    try:
        value = orjson.loads(text)
        if (
            orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == text
            and type(value) not in _AMBIGUOUS
        ):
            return orjson.Fragment(text)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    return text.decode(errors="backslashreplace")


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _time(value: Any) -> int:
    if type(value) is int:
        return value
    try:
        moment = datetime.fromisoformat(value)
        return (moment - _EPOCH) // _MICROSECOND
    except (TypeError, ValueError):
        why = "must be microseconds or ISO 8601 with a zone"
        raise Malformed("time", why) from None


def _hash(field: str, value: Any) -> bytes:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise Malformed(field, "must be 64 hexadecimal digits")
    return bytes.fromhex(value)
