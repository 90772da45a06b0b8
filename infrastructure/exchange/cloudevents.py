"""Events as CloudEvents 1.0 in JSON, and back: every column has its attribute."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, Final

import orjson

from statelog.domain.errors import Malformed
from statelog.domain.times import iso
from statelog.infrastructure.jsonl import row_of
from statelog.infrastructure.store.row import Row

VERSION: Final = "1.0"

_EXTENSIONS: Final = {
    "streamversion": "version",
    "schemaversion": "schema",
    "actor": "actor",
    "command": "command",
    "correlation": "correlation",
    "cause": "cause",
    "meta": "meta",
    "datahash": "data_hash",
    "leafhash": "hash",
}
"""Extension attributes, whose names have small letters only, and the columns that they hold."""


def event_line(row: Row, source: str) -> bytes:
    """The CloudEvent of a row as a line, without its end; what is NULL is left out."""
    event: dict[str, Any] = {
        "specversion": VERSION,
        "id": str(row.position),
        "source": source,
        "type": row.name,
        "subject": row.stream,
        "time": iso(row.time),
    }
    values = {**row._asdict(), "data_hash": row.data_hash.hex(), "hash": row.hash.hex()}
    for attribute, column in _EXTENSIONS.items():
        if values[column] is not None:
            event[attribute] = str(values[column])
    if row.data is not None:
        event["datacontenttype"] = "application/json"
        event |= _data(row.data)
    return orjson.dumps(event)


def _data(data: bytes) -> dict[str, Any]:
    """The JSON itself where it gives back the very bytes, else those in base 64."""
    try:
        value = orjson.loads(data)
        if orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == data:
            return {"data": orjson.Fragment(data)}
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    return {"data_base64": b64encode(data).decode()}


def is_cloudevent(line: bytes) -> bool:
    """Whether a line says that it is one."""
    return b'"specversion"' in line[:200]


def row_of_event(line: bytes) -> Row:
    """The row of a CloudEvent that came from a log. Raises `Malformed`."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Malformed("line", f"is not JSON: {error}") from None
    if not isinstance(event, dict) or event.get("specversion") != VERSION:
        raise Malformed("specversion", f"is not {VERSION}")
    columns: dict[str, Any] = {
        "position": _integer(event, "id"),
        "stream": event.get("subject"),
        "name": event.get("type"),
        "time": event.get("time"),
        **{column: event.get(attribute) for attribute, column in _EXTENSIONS.items()},
        "version": _integer(event, "streamversion"),
        "schema": _integer(event, "schemaversion"),
        "data": None,
    }
    row = row_of(orjson.dumps(columns))
    return row._replace(data=_bytes(event))


def _integer(event: dict[str, Any], name: str) -> int:
    text = event.get(name)
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 20):
        raise Malformed(name, "must be an integer as text")
    return int(text)


def _bytes(event: dict[str, Any]) -> bytes | None:
    if "data_base64" in event:
        try:
            return b64decode(event["data_base64"], validate=True)
        except (TypeError, ValueError):
            raise Malformed("data_base64", "is not base 64") from None
    if "data" not in event:
        return None
    return orjson.dumps(event["data"], option=orjson.OPT_SORT_KEYS)
