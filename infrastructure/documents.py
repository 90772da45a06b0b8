"""JSON and YAML text as JSON values, to the letter: what is wrong is refused by its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any, Final

from statelog.domain.errors import Invalid, Malformed
from statelog.infrastructure.json_values import Json, escaped, to_json, within
from statelog.projections.plain import place as place_of

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
        value = json.loads(text, object_pairs_hook=_unique)
        if _is_plain(value):
            return value
    except ValueError:
        pass
    except RecursionError:
        raise Malformed(place, "is nested too deeply") from None
    return _examined(text, place)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises `ValueError` when a key is there twice."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key appears twice")
    return entries


def _is_plain(root: Any) -> bool:
    """Whether nothing in a parsed value has to be refused: level by level, as it may be deep.

    All values of one level are looked at together, which is ten times faster than one by one.
    """
    lists: list[list[Any]] = [[root]]
    dicts: list[dict[str, Any]] = []
    for _ in range(DEPTH_LIMIT + 2):
        items = [*chain.from_iterable(lists), *chain.from_iterable(map(dict.values, dicts))]
        by_kind: dict[type, list[Any]] = {
            kind: [x for x in items if type(x) is kind] for kind in set(map(type, items))
        }
        by_kind.setdefault(str, []).extend(chain.from_iterable(dicts))
        lists, dicts = by_kind.get(list, []), by_kind.get(dict, [])
        if not all(fits(by_kind.get(kind, ())) for kind, fits in _FITTING):
            return False
        if not lists and not dicts:
            return True
    return False


def _in_range(numbers: Sequence[int]) -> bool:
    return not numbers or (min(numbers) >= -(2**63) and max(numbers) < 2**64)


def _finite(numbers: Sequence[float]) -> bool:
    return all(map(isfinite, numbers))


def _encodable(texts: Sequence[str]) -> bool:
    try:
        return all(text.isascii() or text.encode("utf-8") for text in texts)
    except UnicodeEncodeError:
        return False


_FITTING: Final[tuple[tuple[type, Callable[[Any], bool]], ...]] = (
    (int, _in_range),
    (float, _finite),
    (str, _encodable),
)


def _examined(text: str, place: str) -> Json:
    """The value again, slowly: to say where it is wrong."""
    try:
        value = json.loads(text, object_pairs_hook=_Pairs, parse_int=integer)
    except json.JSONDecodeError as error:
        raise Malformed(_at(error.lineno, error.colno), f"is not JSON: {error.msg}") from None
    except RecursionError:
        raise Malformed(place, "is nested too deeply") from None
    try:
        _refuse_first_fault(value, 0)
    except Malformed as error:
        raise Malformed(shortened(_below(place, error.field)), error.why) from None
    return checked(value, place)


def _refuse_first_fault(value: Any, depth: int) -> None:
    """Raise `Malformed` naming the first fault below a parsed value, without a copy of it.

    A large document would need its memory twice over, only to say what is wrong with it.
    """
    if depth > DEPTH_LIMIT:
        raise Malformed("", f"is nested more than {DEPTH_LIMIT} levels deep")
    at: int | str = 0
    try:
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for at, item in value:
                _refuse_key(at, seen)
                _refuse_item(item, depth)
        else:
            for number, item in enumerate(value if isinstance(value, list) else [value]):
                at = number
                _refuse_item(item, depth)
    except Malformed as error:
        if not isinstance(value, list):
            raise
        step = at if isinstance(at, str) and escaped(at) == at else place_of([at])
        raise Malformed(_below(step, error.field), error.why) from None


def _refuse_key(key: str, seen: set[str]) -> None:
    if key in seen:
        raise Malformed("", "appears twice")
    seen.add(key)
    if not key.isascii():
        _refuse_scalar(key)


def _refuse_item(item: Any, depth: int) -> None:
    kind = type(item)
    if kind is list or kind is _Pairs:
        _refuse_first_fault(item, depth + 1)
    elif not _FITS.get(kind, _fits)(item):
        _refuse_scalar(item)


def _refuse_scalar(item: Any) -> None:
    try:
        to_json(item)
    except Invalid as error:
        raise Malformed(error.field, error.why) from None


def _fits(_: Any) -> bool:
    return True


_FITS: Final[dict[type, Callable[[Any], bool]]] = {
    int: lambda number: -(2**63) <= number < 2**64,
    float: isfinite,
    str: lambda text: text.isascii(),
}


class _Pairs(list[tuple[str, Any]]):
    """The entries of a JSON object as they stand, duplicates included."""


def integer(digits: str) -> int:
    """An integer, or one as far out of range when there are too many digits to convert."""
    return int(digits[:25])


def checked(value: Any, place: str) -> Json:
    """Plain JSON. Raises `Malformed` naming the path of keys of the first fault."""
    try:
        plain = _merged(value, 0)
    except Malformed as error:
        raise Malformed(shortened(_below(place, error.field)), error.why) from None
    try:
        return to_json(plain)
    except Invalid as error:
        located = within(place, error) if place else error
        raise Malformed(located.field, located.why) from None


def _merged(value: Any, depth: int) -> Any:
    if depth > DEPTH_LIMIT:
        raise Malformed("", f"is nested more than {DEPTH_LIMIT} levels deep")
    if isinstance(value, _Pairs):
        return _merged_entries(value, depth)
    if isinstance(value, list):
        items: list[Any] = []
        try:
            for item in value:
                items.append(_merged(item, depth + 1))
        except Malformed as error:
            raise Malformed(_below(f"[{len(items)}]", error.field), error.why) from None
        return items
    return value


def _merged_entries(pairs: _Pairs, depth: int) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    key = ""
    try:
        for key, item in pairs:
            if key in merged:
                raise Malformed("", "appears twice")
            merged[key] = _merged(item, depth + 1)
    except Malformed as error:
        raise Malformed(_below(escaped(key), error.field), error.why) from None
    return merged


def _below(place: str, rest: str) -> str:
    return f"{place}{'.' if place and rest and not rest.startswith('[') else ''}{rest}"


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
