"""An account: a small aggregate as most are, in the framework, in dictionaries, and raw."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from enum import Enum
from typing import Any, assert_never

import orjson

from statelog.domain import SAME, Aggregate, Event, Lifecycle, Refused, changed
from statelog.infrastructure.store import schema


class Opened(Event, name="bench.account.opened"):
    """Somebody opened it."""

    owner: str
    currency: str


class Deposited(Event, name="bench.account.deposited"):
    """Money came in."""

    amount: int
    booked: str
    counterparty: str
    reference: str


class Withdrawn(Event, name="bench.account.withdrawn"):
    """Money went out."""

    amount: int
    booked: str
    counterparty: str
    reference: str


class Closed(Event, name="bench.account.closed"):
    """It is no longer used."""

    reason: str


AccountEvent = Opened | Deposited | Withdrawn | Closed


class Status(Enum):
    """Where an account is."""

    NEW, OPEN, CLOSED = "new", "open", "closed"


@dataclass(frozen=True)
class Account:
    """Who owns how much, and what moved it last."""

    status: Status = Status.NEW
    owner: str = ""
    currency: str = ""
    balance: int = 0
    movements: int = 0
    booked: str | None = None
    note: str | None = None


def evolve(account: Account, event: AccountEvent) -> Account:
    """The account after an event."""
    match event:
        case Deposited():
            return changed(
                account,
                balance=account.balance + event.amount,
                movements=account.movements + 1,
                booked=event.booked,
                note=event.reference,
            )
        case Withdrawn():
            return changed(
                account,
                balance=account.balance - event.amount,
                movements=account.movements + 1,
                booked=event.booked,
                note=event.reference,
            )
        case Opened():
            return changed(account, owner=event.owner, currency=event.currency)
        case Closed():
            return changed(account, note=event.reason)
        case _:
            assert_never(event)


ACCOUNT = Aggregate(
    "account",
    Account(),
    evolve,
    Lifecycle(
        Status.NEW,
        [
            (Opened, Status.NEW, Status.OPEN),
            (Deposited, Status.OPEN, SAME),
            (Withdrawn, Status.OPEN, SAME),
            (Closed, Status.OPEN, Status.CLOSED),
        ],
        final={Status.CLOSED},
    ),
)


def live(account: Account, *, movements: int) -> list[AccountEvent]:
    """A whole life: opened, money in and out, closed. Raises `Refused` for an account in use."""
    if account.status is not Status.NEW:
        raise Refused("the account is in use", rule="new_account")
    opened = Opened("alice", "EUR")
    return [opened, *map(_movement, range(movements)), Closed("moved to another bank")]


def _movement(number: int) -> Deposited | Withdrawn:
    booked, reference = f"2026-{number % 12 + 1:02}-15", f"invoice {number} of 2026"
    if number % 3 == 2:
        return Withdrawn(number, booked, "bob", reference)
    return Deposited(2 * number, booked, "Fine Goods Limited", reference)


def dict_fold(db: sqlite3.Connection, stream: str) -> dict[str, Any]:
    """The state in a new dictionary for each event, nothing checked."""
    loads = orjson.loads
    state = plain(Account())
    for _position, _version, name, _schema, data in db.execute(schema.FOLDED, (stream,)):
        event = loads(data)
        if name == "bench.account.deposited":
            state = {
                **state,
                "balance": state["balance"] + event["amount"],
                "movements": state["movements"] + 1,
                "booked": event["booked"],
                "note": event["reference"],
            }
        elif name == "bench.account.withdrawn":
            state = {
                **state,
                "balance": state["balance"] - event["amount"],
                "movements": state["movements"] + 1,
                "booked": event["booked"],
                "note": event["reference"],
            }
        elif name == "bench.account.opened":
            opened = {"owner": event["owner"], "currency": event["currency"]}
            state = {**state, **opened, "status": "open"}
        elif name == "bench.account.closed":
            state = {**state, "status": "closed", "note": event["reason"]}
        else:
            raise ValueError(name)
    return state


def plain(account: Account) -> dict[str, Any]:
    """The state that `dict_fold` makes of the same events."""
    return {**vars(account), "status": account.status.value}
