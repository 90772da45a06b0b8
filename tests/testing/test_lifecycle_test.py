"""`lifecycle_test` passes on a sound aggregate and finds each seeded bug by its own claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import pytest

from statelog.domain import SAME, Aggregate, Event, Lifecycle, PMap, changed
from statelog.domain.lifecycle import AnyLifecycle
from statelog.infrastructure.testing import lifecycle_test
from statelog.infrastructure.testing.lifecycle_test import checks
from tests.domain.desk import (
    TICKET,
    Closed,
    Merged,
    Noted,
    Opened,
    Status,
    Ticket,
    TicketEvent,
    evolve,
)

test_lifecycle = lifecycle_test(TICKET)
test_lifecycle_of_a_table_alone = lifecycle_test(TICKET.lifecycle)


def failures(subject: Any, **options: Any) -> dict[str, str]:
    """Claims that do not hold, with what they say."""
    found = {}
    for check in checks(subject, **options):
        try:
            check.run()
        except AssertionError as error:
            found[check.name] = str(error).splitlines()[0]
    return found


def table() -> Lifecycle[Status]:
    """A lifecycle of its own for each test that breaks one."""
    return Lifecycle(
        Status.NEW,
        [
            (Opened, Status.NEW, Status.OPEN),
            (Noted, Status.OPEN, SAME),
            (Closed, Status.OPEN, Status.CLOSED),
        ],
        final={Status.CLOSED},
        reserved={Status.LOST},
        retired=[(Merged, Status.OPEN, Status.CLOSED)],
    )


def test_every_pair_has_its_claims():
    """Four statuses, four events: each pair twice, then finals, names and folds."""
    names = [check.name for check in checks(TICKET)]
    assert len(names) == len(set(names)) == 2 * 16 + 1 + 4 + 5
    assert "NEW Opened leads to OPEN" in names
    assert "CLOSED Opened is refused" in names
    assert "OPEN Merged is retired" in names
    assert "CLOSED is final" in names
    assert failures(TICKET) == {}


def leads(broken: AnyLifecycle, status: Status, event: type[Event], target: Status) -> None:
    """Make the compiled table say something else than the rows."""
    broken.targets[event][id(status)] = broken._new_targets[event][id(status)] = target


def test_a_compiled_row_that_leads_elsewhere_is_found():
    """By the row, and by the machine."""
    broken = table()
    leads(broken, Status.OPEN, Closed, Status.LOST)
    assert failures(broken) == {
        "OPEN Closed leads to CLOSED": "leads to LOST, declared is CLOSED",
        "OPEN Closed is what the machine says": ("compiled table: ['LOST'], machine: ['CLOSED']"),
    }


def test_a_compiled_row_too_many_is_found():
    """By the refused pair, by the machine, and as a way out of a final status."""
    broken = table()
    leads(broken, Status.CLOSED, Opened, Status.OPEN)
    assert failures(broken) == {
        "CLOSED Opened is refused": "Opened is allowed",
        "CLOSED Opened is what the machine says": "compiled table: ['OPEN'], machine: []",
        "CLOSED is final": "Opened leads out of it, to OPEN",
    }


def test_a_pair_refused_in_words_only_is_found():
    """Each of the questions is asked: may it, after a recorded one, after a new one."""
    broken = table()
    broken.targets[Noted][id(Status.LOST)] = Status.LOST
    found = failures(broken)
    assert found["LOST Noted is refused"] == "leads to LOST, and no row declares it"


def test_a_compiled_row_too_few_is_found():
    """By the row and by the machine."""
    broken = table()
    del broken.targets[Noted][id(Status.OPEN)], broken._new_targets[Noted][id(Status.OPEN)]
    assert set(failures(broken)) == {
        "OPEN Noted leads to OPEN",
        "OPEN Noted is what the machine says",
    }


def test_a_retired_row_that_is_still_written_is_found():
    """Both where it is asked and where it is done."""
    broken = table()
    broken._new_targets[Merged] = broken.targets[Merged]
    assert failures(broken) == {"OPEN Merged is retired": "Merged is allowed"}
    broken = table()
    broken.after_new = broken.after  # type: ignore[method-assign]
    assert failures(broken)["OPEN Merged is retired"] == (
        "a new Merged is accepted, and its row is retired"
    )


def test_a_retired_row_that_leads_elsewhere_is_found():
    """History would be read differently."""
    broken = table()
    broken.targets[Merged][id(Status.OPEN)] = Status.OPEN
    assert failures(broken)["OPEN Merged is retired"] == "leads to OPEN, declared is CLOSED"


def test_a_live_row_that_is_taken_for_retired_is_found():
    """It could never be written."""
    broken = table()
    del broken._new_targets[Opened][id(Status.NEW)]
    assert failures(broken) == {"NEW Opened leads to OPEN": "Opened is not allowed"}


class Nameless(Event):
    """Never stored."""


def test_an_event_without_a_stored_name_is_found():
    """It would fail in production only."""
    broken = Lifecycle(Status.NEW, [(Nameless, Status.NEW, SAME)], reserved=list(Status)[1:])
    assert "Nameless has no stored name" in failures(broken)["Nameless has a stored name"]


def test_an_event_whose_name_means_another_is_found(monkeypatch: pytest.MonkeyPatch):
    """What is written could not be read."""
    monkeypatch.setattr(Noted, "stored_name", "test.desk.closed")
    assert failures(table()) == {"Noted has a stored name": "test.desk.closed is another event"}


def folded(function: Callable[[Ticket, TicketEvent], Any], **options: Any) -> dict[str, str]:
    return failures(replace(TICKET, evolve=function), **options)


def test_a_fold_that_moves_the_status_is_found():
    """Only the lifecycle does that."""
    found = folded(
        lambda ticket, event: changed(evolve(ticket, event), status=Status.OPEN),
    )
    assert found == {
        "NEW Opened is folded": "evolve moved status to OPEN; the lifecycle alone does that",
        "CLOSED Noted is folded": "evolve moved status to OPEN; the lifecycle alone does that",
    }


def test_a_fold_that_forgets_an_event_is_found():
    """Whether it raises or returns nothing."""

    def forgets(ticket: Ticket, event: TicketEvent) -> Ticket:
        if isinstance(event, Merged):
            raise KeyError("merged")
        return evolve(ticket, event)

    assert folded(forgets) == {"OPEN Merged is folded": "evolve raised KeyError: 'merged'"}
    assert folded(lambda ticket, event: None)["OPEN Closed is folded"] == "evolve returned None"


def test_an_aggregate_that_does_not_follow_its_table_is_found():
    """The fold leads where the table says."""

    class Own(Aggregate[Ticket]):
        def apply(self, state: Ticket, event: Event) -> Ticket:
            return self.evolve(state, event)

    own = Own("ticket", Ticket(), evolve, table())
    assert failures(own)["OPEN Closed is folded"] == "the fold leads to OPEN, declared is CLOSED"


class Kind(Enum):
    """An enumeration in a payload."""

    A = "a"


@dataclass(frozen=True)
class Part:
    """A dataclass in a payload."""

    name: str


class Packed(Event, name="test.lifecycle_test.packed"):
    """An event with a field of every kind."""

    kind: Kind
    part: Part
    parts: tuple[Part, ...]
    pair: tuple[int, str]
    map: PMap[str, int]
    maybe: float | None
    free: Any = None


class Sent(Event, name="test.lifecycle_test.sent"):
    """An event that needs a state, and has a field nothing is known about."""

    key: str
    how: Callable[[], None]


class Post(Enum):
    """Statuses of a parcel."""

    NEW, PACKED = "new", "packed"


@dataclass(frozen=True)
class Parcel:
    """A parcel."""

    status: Post = Post.NEW
    sent: PMap[str, bool] = field(default_factory=PMap)


def ship(parcel: Parcel, event: Packed | Sent) -> Parcel:
    """Needs more than a status."""
    if isinstance(event, Packed):
        assert event.pair == (1, "text")
        assert event.maybe is not None
        return changed(parcel, sent=event.map.set(event.part.name, False))
    assert parcel.sent[event.key] is False
    return changed(parcel, sent=parcel.sent.set(event.key, True))


PARCEL = Aggregate(
    "parcel",
    Parcel(),
    ship,
    Lifecycle(Post.NEW, [(Packed, Post.NEW, Post.PACKED), (Sent, Post.PACKED, SAME)]),
)
GIVEN: dict[str, Any] = {
    "samples": {Sent: Sent("a", print)},
    "states": {Post.PACKED: Parcel(Post.PACKED, PMap({"a": False}))},
}

test_lifecycle_with_samples = lifecycle_test(PARCEL, **GIVEN)


def test_what_a_plain_sample_cannot_do_is_given():
    """And the message says so when it is missing."""
    assert failures(PARCEL, **GIVEN) == {}
    assert (
        "evolve raised KeyError"
        in failures(PARCEL, samples=GIVEN["samples"])["PACKED Sent is folded"]
    )
    assert failures(PARCEL, states=GIVEN["states"]) == {
        "PACKED Sent is folded": (
            "samples={Sent: ...} is needed: no sample of Callable for Sent.how; "
            "give one of your own"
        )
    }


def test_a_state_may_be_for_one_event_only():
    """The pair wins over the status."""
    right = GIVEN["states"][Post.PACKED]
    wrong = Parcel(Post.PACKED)
    both = {(Post.PACKED, Sent): right, Post.PACKED: wrong}
    assert failures(PARCEL, samples=GIVEN["samples"], states=both) == {}


def test_a_state_of_another_status_is_no_state():
    """Or the fold would be tested where it never happens."""
    wrong = {**GIVEN, "states": {Post.PACKED: Parcel()}}
    assert failures(PARCEL, **wrong) == {"PACKED Sent is folded": "states[PACKED] is in NEW"}


def test_pytest_collects_one_case_for_each_claim():
    """The one line a user writes is a parametrised test with readable ids."""
    (mark,) = test_lifecycle.pytestmark  # type: ignore[attr-defined]
    assert mark.kwargs["ids"] == [check.name for check in checks(TICKET)]
