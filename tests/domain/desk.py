"""A help desk's ticket: small, with every kind of row, for tests of the framework."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from statelog.domain import SAME, Aggregate, Event, Invalid, Lifecycle, Refused, changed


class Opened(Event, name="test.desk.opened"):
    """Somebody asked for help."""

    title: str


class Noted(Event, name="test.desk.noted"):
    """Somebody wrote a note."""

    text: str


class Closed(Event, name="test.desk.closed"):
    """It was answered."""

    answer: str


class Merged(Event, name="test.desk.merged"):
    """It was the same as another ticket; no longer done."""

    into: str


class Status(Enum):
    """Where a ticket is."""

    NEW, OPEN, CLOSED, LOST = "new", "open", "closed", "lost"


@dataclass(frozen=True)
class Ticket:
    """A ticket."""

    status: Status = Status.NEW
    title: str = ""
    notes: tuple[str, ...] = ()
    answer: str | None = None


TicketEvent = Opened | Noted | Closed | Merged


def evolve(ticket: Ticket, event: TicketEvent) -> Ticket:
    """The ticket after an event."""
    match event:
        case Opened(title=title):
            return changed(ticket, title=title)
        case Noted(text=text):
            return changed(ticket, notes=(*ticket.notes, text))
        case Closed(answer=answer):
            return changed(ticket, answer=answer)
        case Merged(into=into):
            return changed(ticket, answer=f"see {into}")
        case _:
            assert_never(event)


LIFECYCLE = Lifecycle(
    Status.NEW,
    [
        # event  from         to
        (Opened, Status.NEW, Status.OPEN),
        (Noted, Status.OPEN, SAME),
        (Closed, Status.OPEN, Status.CLOSED),
        (Noted, Status.CLOSED, SAME),
    ],
    final={Status.CLOSED},
    reserved={Status.LOST},
    retired=[(Merged, Status.OPEN, Status.CLOSED)],
    name="ticket",
)

TICKET = Aggregate("ticket", Ticket(), evolve, LIFECYCLE)


def open_ticket(ticket: Ticket, *, title: str) -> list[Opened]:
    """Open it. Raises `Invalid` for an empty title."""
    if not title.strip():
        raise Invalid("title", "is empty")
    return [Opened(title)]


def note(ticket: Ticket, *, text: str) -> list[Noted]:
    """Write a note; nothing when it is there already."""
    return [] if text in ticket.notes else [Noted(text)]


def close(ticket: Ticket, *, answer: str) -> list[Closed]:
    """Close it. Raises `Refused` (`answer`)."""
    if not answer.strip():
        raise Refused("a ticket is closed with an answer", rule="answer")
    return [Closed(answer)]


def merge(ticket: Ticket, *, into: str) -> list[Merged]:
    """Merge it, as long ago."""
    return [Merged(into)]
