"""Parcels with items in them: two kinds of streams below one root, and views of several shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from statelog.domain import SAME, Aggregate, Event, Lifecycle, Recorded, Refused
from statelog.domain.aggregate import changed
from statelog.domain.erasure import ERASURE, Erasable
from statelog.domain.ids import stream_parts
from statelog.infrastructure.exchange.erasing import Eraser
from statelog.infrastructure.exchange.finished import Desk, Subject
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.views import Views
from statelog.projections import Projection


class Sent(Event, name="tests.parcel.sent"):
    """A parcel went off."""

    to: str


class Moved(Event, name="tests.parcel.moved"):
    """It is somewhere else."""

    place: str


class Arrived(Event, name="tests.parcel.arrived"):
    """It is there."""


class Packed(Event, name="tests.parcel.item_packed"):
    """Something is in it."""

    what: str
    grams: int


class Unpacked(Event, name="tests.parcel.item_unpacked"):
    """It was taken out."""


class Status(Enum):
    NEW, ON_ITS_WAY, THERE = "new", "on its way", "there"


class ItemStatus(Enum):
    NEW, IN, OUT = "new", "in", "out"


@dataclass(frozen=True)
class Parcel:
    status: Status = Status.NEW
    to: str = ""
    stops: int = 0


@dataclass(frozen=True)
class Item:
    status: ItemStatus = ItemStatus.NEW
    grams: int = 0


def _parcel(parcel: Parcel, event: Any) -> Parcel:
    match event:
        case Sent(to=to):
            return changed(parcel, to=to)
        case Moved():
            return changed(parcel, stops=parcel.stops + 1)
        case _:
            return parcel


def _item(item: Item, event: Any) -> Item:
    return changed(item, grams=event.grams) if isinstance(event, Packed) else item


PARCEL = Aggregate(
    "parcel",
    Parcel(),
    _parcel,
    Lifecycle(
        Status.NEW,
        [
            (Sent, Status.NEW, Status.ON_ITS_WAY),
            (Moved, Status.ON_ITS_WAY, SAME),
            (Arrived, Status.ON_ITS_WAY, Status.THERE),
        ],
        final={Status.THERE},
    ),
)
ITEM = Aggregate(
    "item",
    Item(),
    _item,
    Lifecycle(
        ItemStatus.NEW,
        [(Packed, ItemStatus.NEW, ItemStatus.IN), (Unpacked, ItemStatus.IN, ItemStatus.OUT)],
        final={ItemStatus.OUT},
    ),
    stream="parcel/{}/item/{}",
)


def send(parcel: Parcel, *, to: str) -> list[Event]:
    return [Sent(to=to)]


def move(parcel: Parcel, *, place: str) -> list[Event]:
    if parcel.status is not Status.ON_ITS_WAY:
        raise Refused("it is not on its way", rule="way")
    return [Moved(place=place)]


def arrive(parcel: Parcel) -> list[Event]:
    return [Arrived()]


def pack(item: Item, *, what: str, grams: int = 1) -> list[Event]:
    return [Packed(what=what, grams=grams)]


def unpack(item: Item) -> list[Event]:
    return [Unpacked()]


def _root(recorded: Recorded) -> str | None:
    first, id, *_ = stream_parts(recorded.stream)
    return id if first == "parcel" else None


@dataclass(frozen=True)
class Seen:
    """All of a parcel: needs each event, and forgets what arrived."""

    sent: str
    places: tuple[str, ...] = ()
    inside: Mapping[str, int] | None = None


def _seen(state: Seen, recorded: Recorded) -> Seen | None:
    match recorded.event:
        case Sent(to=to):
            return changed(state, sent=to)
        case Moved(place=place):
            assert state.sent, "moved before it was sent"
            return changed(state, places=(*state.places, place))
        case Packed(what=what, grams=grams):
            return changed(state, inside={**(state.inside or {}), what: grams})
        case Unpacked():
            return changed(state, inside=dict(list((state.inside or {}).items())[1:]))
        case _:
            return None


contents: Projection[Any] = Projection(
    "contents",
    Seen(""),
    _seen,
    key=_root,
    below=lambda key: f"parcel/{key}",
    events=(Sent, Moved, Arrived, Packed, Unpacked),
    columns={"sent": lambda row: row["sent"]},
)
"""A row a parcel, found by its streams, gone when it is there."""

weights: Projection[Any] = Projection(
    "weights",
    {},
    lambda state, recorded: {
        "z": recorded.event.what,  # type: ignore[attr-defined]
        "grams": state.get("grams", 0) + recorded.event.grams,  # type: ignore[attr-defined]
        "at": recorded.position,
    },
    key=lambda recorded: "all",
    events=(Packed,),
    show=lambda key, state: dict(sorted(state.items())),
)
"""One row of all parcels, whose keys are not in order."""

stops: Projection[Any] = Projection(
    "stops",
    {},
    lambda state, recorded: {"stops": [*state.get("stops", []), type(recorded.event).__name__]},
    key=_root,
    events=(Sent, Moved, Arrived),
)
"""A row a parcel, found by looking through the whole log."""

streams: Projection[Any] = Projection(
    "streams",
    {},
    lambda state, recorded: {"events": [*state.get("events", []), recorded.version]},
    key=lambda recorded: recorded.stream,
    below=lambda key: key,
    events=(Sent, Moved, Arrived, Packed, Unpacked),
)
"""A row a stream."""

VIEWS = (contents, weights, stops, streams)


def find(stream: str) -> Subject | None:
    match stream_parts(stream):
        case ("parcel", id):
            return PARCEL, (id,)
        case ("parcel", id, "item", item):
            return ITEM, (id, item)
        case ("erasure", unit):
            return ERASURE, (unit,)
        case _:
            return None


def eraser(journal: Journal, *declared: Erasable[Any], views: Any = VIEWS) -> Eraser:
    return Eraser(Desk(journal, find, declared), views, actor="bob")


def erase(journal: Journal, prefix: str, reason: str = "because", **options: Any) -> Any:
    made = eraser(journal, **options)
    return made.erase(made.units(prefix), reason)


def filled(journal: Journal, id: str = "a", *, word: str = "secret") -> None:
    """A parcel that arrived with an item that was unpacked, and one that is on its way."""
    act = {"actor": "bob"}
    journal.execute(PARCEL, id, send, to=f"{word} street", **act)
    journal.execute(PARCEL, f"{id}-live", send, to="elsewhere", **act)
    journal.execute(ITEM, (id, "1"), pack, what=f"{word} cup", grams=300, **act)
    journal.execute(PARCEL, id, move, place=f"{word} harbour", **act)
    journal.execute(ITEM, (id, "1"), unpack, **act)
    journal.execute(PARCEL, f"{id}-live", move, place="hill", **act)
    journal.execute(PARCEL, id, arrive, **act)


def rows(journal: Journal, views: Any = VIEWS, path: Path | None = None) -> dict[str, list[Any]]:
    """Every stored row of the views, made anew from the log, in all its columns."""
    with Views(journal, views, path) as made:
        made.rebuild()
        assert made.verify() == []
        return {view.name: list(_stored(made, view.name)) for view in views}


def _stored(made: Views, name: str) -> Iterator[Any]:
    view = made._views[name]
    with view.store.reading():
        yield from view.store.rows(view.format)
