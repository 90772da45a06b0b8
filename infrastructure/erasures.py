"""What the log keeps of erased payloads, found where an event turns up without its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_type_hints

from statelog.domain.aggregate import changed
from statelog.domain.erasure import Erased, KeptRow, KeptStream, erasures_of
from statelog.domain.errors import Invalid, Unreadable
from statelog.domain.event import Kept, Recorded
from statelog.infrastructure import codec
from statelog.infrastructure.json_types import reader_of
from statelog.infrastructure.json_values import dump_ordered, parse

if TYPE_CHECKING:
    from statelog.infrastructure.store.recorder import LogRecorder

T = TypeVar("T")

_CACHED: Final = 64


class _Unit:
    """What the newest erasure of a unit kept, and where in the log that is."""

    def __init__(self, erased: Erased, position: int) -> None:
        self.position = position
        self.streams = erased.streams
        self.rows: Mapping[tuple[str, str], KeptRow] = {
            (row.view, row.key): row for row in erased.rows
        }
        self.upto = erased.upto


class Erasures:
    """The erasures of one log."""

    def __init__(self, log: LogRecorder) -> None:
        self._log = log
        self._unit = lru_cache(_CACHED)(self._read)

    def row(self, recorded: Recorded, projection: Any, key: str) -> Kept:
        """What was kept of a row of a view that an erased event belongs to.

        A view that was not known to whoever erased it has no row then. Raises `Unreadable`.
        """
        unit = self._newest(recorded.stream)
        kept = None if unit is None else unit.streams.get(recorded.stream)
        if unit is None or kept is None or recorded.version > kept.version:
            why = "its payload is gone, and no erasure says why"
            raise Unreadable(recorded.position, recorded.name, why)
        row = unit.rows.get((projection.name, key))
        if row is None:
            return Kept(unit.upto, None, 0, unit.position)
        try:
            state = None if row.state is None else _row_state(projection, row.state)
        except Invalid as error:
            why = (
                f"event {unit.position} erased it and kept the row of version {row.version} of "
                f"{projection.name}, which this is not: {error}"
            )
            raise Unreadable(recorded.position, recorded.name, why) from error
        return Kept(unit.upto, state, row.position, unit.position)

    def stream(self, stream: str) -> KeptStream | None:
        """What was kept of a stream, None when it was not erased."""
        unit = self._newest(stream)
        return None if unit is None else unit.streams.get(stream)

    def _newest(self, stream: str) -> _Unit | None:
        rows = self._log.stream_rows(erasures_of(stream), 0, None, True, None)
        for row in rows:
            if row.name == Erased.stored_name and row.data is not None:
                return self._unit(row.position, row.schema, row.data)
        return None

    def _read(self, position: int, schema: int, data: bytes) -> _Unit:
        erased = codec.decode(Erased.stored_name, schema, data, position)
        return _Unit(cast("Erased", erased), position)


def packed(blank: Any, state: Any) -> str:
    """The fields of a state that are not those of the blank one, as JSON text."""
    fields = {name: value for name, value in vars(state).items() if value != getattr(blank, name)}
    return dump_ordered(fields).decode()


def unpacked(blank: T, text: str) -> T:
    """The state that was packed. Raises `Invalid`."""
    hints = _hints(cast("Any", type(blank)))
    fields = {name: reader_of(hints[name])(value) for name, value in parse(text).items()}
    return changed(blank, **fields)


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _row_state(projection: Any, text: str) -> Any:
    """As the rows of a view are read."""
    kind = type(projection.blank)
    value = parse(text)
    return reader_of(kind)(value) if is_dataclass(kind) else value
