"""JSON bytes: canonical ones for events, ordered ones for documents."""

from __future__ import annotations

from typing import Any

import orjson

from statelog.domain.errors import Invalid
from statelog.projections.plain import Json, escaped, to_json, within

__all__ = ["Json", "dump", "dump_plain", "escaped", "parse", "to_json", "within"]


def dump(value: Any) -> bytes:
    """The canonical bytes of a value: sorted keys, no spaces. Raises `Invalid` as `to_json`."""
    return dump_plain(to_json(value), orjson.OPT_SORT_KEYS)


def dump_plain(value: Json, option: int = 0) -> bytes:
    """The bytes of what `to_json` answered, by default in the order of its keys."""
    try:
        return orjson.dumps(value, option=option)
    except orjson.JSONEncodeError:
        raise Invalid("", "is nested too deeply") from None


def parse(data: bytes | str) -> Json:
    """The value of JSON text. Raises `Invalid` when it is none."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Invalid("", f"is not JSON: {error}") from None
