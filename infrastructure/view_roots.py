"""A log cut by the roots of its streams, read from a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import orjson

from statelog.domain.errors import Invalid
from statelog.domain.event import Recorded
from statelog.domain.ids import below
from statelog.infrastructure import codec
from statelog.infrastructure.erasures import Erasures
from statelog.infrastructure.store.row import COLUMNS, recorded
from statelog.infrastructure.store.schema import SELECT, marks
from statelog.infrastructure.store.sqlite import SqliteRecorder

_FEW: Final = ("position", "stream", "name", "schema", "time", "data")
_NEXT: Final = "SELECT stream FROM events WHERE stream >= ? ORDER BY stream LIMIT 1"
_COUNT: Final = "SELECT count(*) FROM events WHERE stream >= ? AND stream < ?"
_AT: Final = f"{SELECT} WHERE position = ?"

_new, _set = object.__new__, object.__setattr__


def root_of(stream: str) -> str:
    """The first two parts of a stream."""
    first, _, rest = stream.partition("/")
    return f"{first}/{rest.partition('/')[0]}" if rest else first


class _Brief(Recorded):
    """An event without the parts of its envelope that few views read, until one reads them."""

    more: Callable[[int], Recorded]

    def __getattr__(self, name: str) -> Any:
        if name not in COLUMNS:
            raise AttributeError(name)
        whole = self.more(self.position)
        self.__dict__.update({**vars(whole), **vars(self)})
        return self.__dict__[name]


class Slices:
    """Reads a log up to a position, root by root. Raises `StoreError`."""

    def __init__(self, store: Path, names: Collection[str], upto: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its clock, which whoever asks was warned of
            self._log = SqliteRecorder(store, read_only=True)
        self._erasures = Erasures(self._log)
        self._names, self._upto = tuple(names), upto
        self._readers = codec.Readers()
        self._brief = True

    def close(self) -> None:
        """Close the file."""
        self._log.close()

    def pieces(self, size: int) -> Iterator[list[str]]:
        """All roots, as many at a time as have about so many events."""
        roots, events = list[str](), 0
        for root in self._roots():
            roots.append(root)
            events += sum(self._log.connections.read(_COUNT, bounds)[0][0] for bounds in _of(root))
            if events >= size:
                yield roots
                roots, events = [], 0
        if roots:
            yield roots

    def _roots(self) -> Iterator[str]:
        """Each root once. Between its own stream and those below it others may stand."""
        stream = self._first("")
        while stream is not None:
            root = root_of(stream)
            if stream == root:
                yield root
                stream = self._first(f"{stream}\0")
            else:
                if self._first(root) != root:
                    yield root
                stream = self._first(below(root)[2])

    def _first(self, low: str) -> str | None:
        found = self._log.connections.read(_NEXT, (low,))
        return found[0][0] if found else None

    def below(self, root: str) -> Iterator[Recorded]:
        """The events of a root in the order of the log, of the names asked for and decoded."""
        columns = _FEW if self._brief else COLUMNS
        make = self._made if self._brief else self._whole
        among = " UNION ALL ".join(
            ["SELECT position FROM events WHERE stream >= ? AND stream < ?"] * 2
        )
        sql = (
            f"SELECT {', '.join(columns)} FROM events WHERE position IN ({among}) "
            f"AND position <= ? AND +name IN ({marks(len(self._names))}) ORDER BY position"
        )
        own, nested = _of(root)
        given = (*own, *nested, self._upto, *self._names)
        with closing(self._log.connections.batches(sql, given)) as batches:
            for rows in batches:
                yield from map(make, rows)

    def _made(self, row: Sequence[Any]) -> Recorded:
        position, stream, name, schema, time, data = row
        try:
            event = self._readers[name, schema](orjson.loads(data))
        except (orjson.JSONDecodeError, Invalid, TypeError):
            return self._at(position)  # erased, or it says itself what is wrong with it
        fields = {
            "event": event,
            "position": position,
            "stream": stream,
            "name": name,
            "schema": schema,
            "time": time,
            "data": data,
            "decoder": codec.decoder,
            "more": self._more,
        }
        brief = _new(_Brief)
        _set(brief, "__dict__", fields)
        return brief

    def _whole(self, row: Sequence[Any]) -> Recorded:
        found = recorded(row, codec.decoder)
        if found.data is None:
            found.__dict__["keeper"] = self._erasures.row
        return found

    def _more(self, position: int) -> Recorded:
        """Where one event is asked for more, the next ones will be."""
        self._brief = False
        return self._at(position)

    def _at(self, position: int) -> Recorded:
        return self._whole(self._log.connections.read(_AT, (position,))[0])


def _of(root: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Bounds of a root's own stream and of those below it; of a root of one part only its own."""
    exact, low, high = below(root)
    return (exact, f"{exact}\0"), ((low, high) if "/" in root else ("", ""))
