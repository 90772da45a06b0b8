"""Payloads that are gone, and the erasures that say why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from statelog.domain.erasure import Erased, erasures_of
from statelog.domain.errors import Invalid
from statelog.infrastructure.store.row import Row

NAME: Final = Erased.stored_name

Read = Callable[[str], Iterable[tuple[int, Any]]]
"""Version and data of each erasure in a stream of erasures whose own payload is there."""


class _Unit(NamedTuple):
    """The version of the newest erasure of a unit, and how far each stream was erased."""

    newest: int
    upto: dict[str, int]


class Gone:
    """Knows which payloads of one log were erased."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._unit = lru_cache(maxsize=16)(self._told)

    def explained(self, row: Row) -> bool:
        """Whether an erasure says why a row has no payload."""
        try:
            erasures = erasures_of(row.stream)
        except (Invalid, UnicodeError):
            return False
        unit = self._unit(erasures)
        if row.stream == erasures:  # the newest one tells all that those before it did
            return row.version < unit.newest
        return row.version <= unit.upto.get(row.stream, 0)

    def _told(self, erasures: str) -> _Unit:
        newest, upto = 0, dict[str, int]()
        for version, data in self._read(erasures):
            newest = max(newest, version)
            for stream, last in _streams(data):
                upto[stream] = max(last, upto.get(stream, 0))
        return _Unit(newest, upto)


def _streams(data: Any) -> list[tuple[str, int]]:
    """How far each stream was erased; none when it cannot be read, which is another violation."""
    try:
        kept = orjson.loads(data)["streams"]
        return [(stream, int(each["version"])) for stream, each in kept.items()]
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError):
        return []
