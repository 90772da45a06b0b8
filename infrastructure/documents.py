"""JSON and YAML text as JSON values, to the letter: what is wrong is refused by its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from statelog.domain.errors import Invalid, Malformed
from statelog.infrastructure.json_values import Json, escaped, to_json, within

YAML_SUFFIXES: Final = (".yaml", ".yml")
YAML_LIMIT: Final = 1024 * 1024
"""Bytes a YAML document may have."""

JSON_LIMIT: Final = 32 * 1024 * 1024
"""Bytes a JSON document from elsewhere may have."""

DEPTH_LIMIT: Final = 200
"""Levels of nesting a document may have; what stores it cannot hold many more."""


def read_document(path: Path, place: str, json_limit: int = -1) -> Json:
    """The value in a file, JSON unless its name ends in `.yaml` or `.yml`.

    Raises `Invalid` naming the file and the place in it (line and column, or the path of keys below
    `place`): for a file that cannot be read or is too large, and as `parse_text` does.
    """
    yaml = path.suffix.lower() in YAML_SUFFIXES
    limit = YAML_LIMIT if yaml else json_limit
    data = _bytes(path, limit + 1 if limit >= 0 else -1)
    if 0 <= limit < len(data):
        kind = "YAML" if yaml else "JSON"
        raise Invalid(str(path), f"is larger than {limit} bytes, the limit for {kind}")
    try:
        return parse_text(data, place, yaml=yaml)
    except Invalid as error:
        raise Invalid(f"{path}: {error.field}", error.why) from None


def parse_text(data: bytes, place: str, *, yaml: bool) -> Json:
    """The value of UTF-8 text, YAML or JSON.

    Raises `Malformed` naming line and column, or the path of keys below `place`: for what is not
    UTF-8 or does not parse, duplicate keys, NaN and infinities, integers beyond 64 bits, lone
    surrogates, nesting beyond `DEPTH_LIMIT`; of YAML also keys that are not text, aliases and
    types JSON has not. Raises `Invalid` for YAML when the `yaml` extra is not installed.
    """
    text = _text(data)
    return _parse_yaml(text, place) if yaml else parse_json(text, place)


def parse_json(text: str, place: str) -> Json:
    """The value of JSON text. Raises `Malformed` as `parse_text` does."""
    try:
        value = json.loads(text, object_pairs_hook=_Pairs, parse_int=integer)
    except json.JSONDecodeError as error:
        raise Malformed(_at(error.lineno, error.colno), f"is not JSON: {error.msg}") from None
    except RecursionError:
        raise Malformed(place, "is nested too deeply") from None
    return checked(value, place)


class _Pairs(list[tuple[str, Any]]):
    """The entries of a JSON object as they stand, duplicates included."""


def integer(digits: str) -> int:
    """An integer, or one as far out of range when there are too many digits to convert."""
    return int(digits[:25])


def checked(value: Any, place: str) -> Json:
    """Plain JSON. Raises `Malformed` naming the path of keys of the first fault."""
    plain = _merged(value, place, 0)
    try:
        return to_json(plain)
    except Invalid as error:
        located = within(place, error) if place else error
        raise Malformed(located.field, located.why) from None


def _merged(value: Any, place: str, depth: int) -> Any:
    if depth > DEPTH_LIMIT:
        raise Malformed(shortened(place), f"is nested more than {DEPTH_LIMIT} levels deep")
    if isinstance(value, _Pairs):
        merged: dict[str, Any] = {}
        for key, item in value:
            below = f"{place}.{key}" if place else key
            if key in merged:
                raise Malformed(escaped(below), "appears twice")
            merged[key] = _merged(item, below, depth + 1)
        return merged
    if isinstance(value, list):
        return [_merged(item, f"{place}[{at}]", depth + 1) for at, item in enumerate(value)]
    return value


def _parse_yaml(text: str, place: str) -> Json:
    return checked(_yaml_text().parse_yaml(text, DEPTH_LIMIT), place)


def yaml_of(value: Json) -> str:
    """A JSON value as YAML text. Raises `Invalid` when the `yaml` extra is not installed."""
    text: str = _yaml_text().dump_yaml(value)
    return text


def _yaml_text() -> Any:
    try:
        from statelog.infrastructure import yaml_text
    except ImportError:
        raise Invalid("YAML", "needs an extra: pip install 'statelog[yaml]'") from None
    return yaml_text


def _bytes(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Invalid(str(path), f"cannot be read: {why}") from None


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise Malformed(_at(line, column), "is not UTF-8 text") from None


def _at(line: int, column: int) -> str:
    return f"line {line}, column {column}"


def shortened(text: str) -> str:
    """Text from outside as a message may repeat it."""
    return text if len(text) <= 80 else f"{text[:79]}\N{HORIZONTAL ELLIPSIS}"
