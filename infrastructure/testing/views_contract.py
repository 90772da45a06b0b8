"""The tests that every store of views passes: subclass it, and give it a journal and views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from statelog.domain import Aggregate, Event, Lifecycle, NotFound, Recorded
from statelog.domain.aggregate import changed
from statelog.domain.lifecycle import SAME
from statelog.domain.pmap import PMap
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.views import Views
from statelog.projections import Projection, replay


class Opened(Event, name="testing.account.opened"):
    """Somebody has an account."""

    owner: str


class Paid(Event, name="testing.account.paid"):
    """Money came in, for something."""

    amount: int
    purpose: str


class Noted(Event, name="testing.account.noted"):
    """Somebody wrote something down, which changes no balance."""

    text: str


class Closed(Event, name="testing.account.closed"):
    """Nobody has the account any more."""


class Status(Enum):
    """Where an account is."""

    NEW, OPEN, CLOSED = "new", "open", "closed"


@dataclass(frozen=True)
class Account:
    """What decisions need: nothing but the status."""

    status: Status = Status.NEW


ACCOUNT = Aggregate(
    "account",
    Account(),
    lambda account, event: account,
    Lifecycle(
        Status.NEW,
        [
            (Opened, Status.NEW, Status.OPEN),
            (Paid, Status.OPEN, SAME),
            (Noted, Status.OPEN, SAME),
            (Closed, Status.OPEN, Status.CLOSED),
        ],
        final={Status.CLOSED},
        name="account",
    ),
)


def account_of(recorded: Recorded) -> str | None:
    """The row of an event: its account; None for those of other things."""
    kind, _, rest = recorded.stream.partition("/")
    return rest if kind == "account" else None


def evolve_balance(row: Any, recorded: Recorded) -> Any:
    """A row that is its document; closing removes it."""
    match recorded.event:
        case Opened(owner=owner):
            return {"owner": owner, "balance": 0, "payments": []}
        case Paid(amount=amount, purpose=purpose):
            paid = [*row["payments"], [purpose, amount]]
            return {**row, "balance": row["balance"] + amount, "payments": paid}
    return None


def balances(version: int = 1, evolve: Callable[[Any, Recorded], Any] = evolve_balance) -> Any:
    """A view whose state is a mapping, with columns of it."""
    return Projection(
        "balances",
        {},
        evolve,
        key=account_of,
        events=(Opened, Paid, Closed),
        version=version,
        columns={"owner": lambda row: row["owner"], "balance": lambda row: row["balance"]},
    )


@dataclass(frozen=True)
class Statement:
    """A row that needs more than it shows."""

    owner: str = ""
    status: Status = Status.NEW
    by_purpose: PMap[str, tuple[int, ...]] = field(default_factory=PMap)
    times: tuple[int, ...] = ()


def evolve_statement(row: Statement, recorded: Recorded) -> Statement:
    """Payments by purpose, and the recorded times of the last three."""
    match recorded.event:
        case Opened(owner=owner):
            return changed(row, owner=owner, status=Status.OPEN)
        case Paid(amount=amount, purpose=purpose):
            paid = (*(row.by_purpose.get(purpose) or ()), amount)
            times = (*row.times, recorded.time)[-3:]
            return changed(row, by_purpose=row.by_purpose.set(purpose, paid), times=times)
    return changed(row, status=Status.CLOSED)


def show_statement(key: str, row: Statement) -> dict[str, Any] | None:
    """Shown once something was paid."""
    if not row.by_purpose:
        return None
    purposes = {name: row.by_purpose[name] for name in sorted(row.by_purpose, reverse=True)}
    return {"account": key, "status": row.status, "purposes": purposes, "last": row.times[-1]}


STATEMENTS = Projection(
    "statements",
    Statement(),
    evolve_statement,
    key=account_of,
    events=(Opened, Paid, Closed),
    show=show_statement,
    columns={"status": lambda shown: shown["status"]},
)

Story = Sequence[tuple[str, Event]]
"""Events by account, in the order they happen."""

STORY: Story = (
    ("a", Opened("alice")),
    ("b", Opened("bob")),
    ("a", Paid(5, "rent")),
    ("a", Noted("late")),
    ("c", Opened("alice")),
    ("a", Paid(7, "rent")),
    ("b", Paid(1, "gift")),
    ("c", Closed()),
    ("a", Paid(2, "gift")),
    ("b", Closed()),
)


def tell(journal: Journal, story: Iterable[tuple[str, Event]]) -> None:
    """Record a story."""
    for account, event in story:
        journal.execute(ACCOUNT, account, _said, event=event, actor="bob")


def _said(account: Account, *, event: Event) -> list[Event]:
    return [event]


class Poisoned(Exception):
    """What the fold of `poisoned` raises."""


def poisoned(purpose: str) -> Any:
    """The view of balances that cannot fold payments for a purpose."""

    def evolve(row: Any, recorded: Recorded) -> Any:
        if getattr(recorded.event, "purpose", None) == purpose:
            raise Poisoned(f"nobody pays for {purpose}")
        return evolve_balance(row, recorded)

    return balances(evolve=evolve)


class ViewsContract:
    """Override the fixtures `journal` (an empty one) and `views_of` (opens `Views` over it)."""

    @pytest.fixture
    def journal(self) -> Iterator[Journal]:
        """An empty journal that can be written."""
        raise NotImplementedError

    @pytest.fixture
    def views_of(self, journal: Journal) -> Callable[..., Views]:
        """Called with projections: their views over the journal."""
        raise NotImplementedError

    def test_a_view_is_the_replay_of_the_log(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """Rows by key; get and rows agree; what is removed or not shown is not there."""
        tell(journal, STORY)
        views = views_of(balances(), STATEMENTS)
        for projection in (balances(), STATEMENTS):
            rows = dict(views.rows(projection.name))
            assert rows == replay(projection, journal.read())
            assert all(views.get(projection.name, key) == row for key, row in rows.items())
        assert dict(views.rows("balances")).keys() == {"a"}
        assert dict(views.rows("statements")).keys() == {"a", "b"}
        assert views.get("balances", "b") is None
        assert views.get("statements", "c") is None

    def test_documents_keep_the_order_their_projection_gives(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """Whether the row was folded at once or stored in between."""
        views = views_of(STATEMENTS)
        for event in (Opened("alice"), Paid(1, "gift"), Paid(2, "rent"), Paid(3, "food")):
            tell(journal, [("a", event)])
            views.catch_up()
        shown = views.get("statements", "a")
        assert shown is not None
        assert list(shown["purposes"]) == ["rent", "gift", "food"]

    def test_each_read_sees_what_is_recorded(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """Nobody has to catch up by hand."""
        views = views_of(balances(), STATEMENTS)
        assert views.get("balances", "a") is None
        tell(journal, STORY[:3])
        assert views.get("balances", "a") == {
            "owner": "alice",
            "balance": 5,
            "payments": [["rent", 5]],
        }
        tell(journal, STORY[3:6])
        assert [row["balance"] for _, row in views.rows("balances") if row["balance"]] == [12]
        tell(journal, STORY[6:])
        assert dict(views.states("statements"))["c"] == Statement("alice", Status.CLOSED)

    def test_a_little_at_a_time_is_the_same_as_at_once(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """After every event a catch-up, and after every catch-up a verification."""
        views = views_of(balances(), STATEMENTS)
        for step in STORY:
            tell(journal, [step])
            views.catch_up()
            assert views.verify() == []
        little = {name: list(views.states(name)) for name in views.names}
        views.rebuild()
        assert {name: list(views.states(name)) for name in views.names} == little

    def test_an_event_a_view_cannot_fold_stops_that_view_alone(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """At the position before it, with the reason to be seen, until it can be folded."""
        tell(journal, STORY)
        views = views_of(poisoned("gift"), STATEMENTS)
        views.catch_up()
        stopped, free = views.status()
        assert (stopped.position, stopped.lag, free.lag) == (6, 4, 0)
        assert stopped.error == "event 7 (testing.account.paid): Poisoned: nobody pays for gift"
        assert free.error is None
        assert dict(views.rows("balances")) == replay(balances(), journal.read(upto=6))
        assert views.verify() == []
        tell(journal, [("d", Opened("bob"))])
        assert (views.get("balances", "d"), views.status()[0].position) == (None, 6)
        assert views.get("balances", "b") == {"owner": "bob", "balance": 0, "payments": []}

    def test_a_document_that_cannot_be_made_stops_its_view_too(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """Also when later events would have mended it: the first that breaks it is named."""

        def show(key: str, row: Statement) -> dict[str, Any]:
            return {"mean": float("nan") if "gift" in row.by_purpose else 1.5}

        broken: Projection[Statement] = Projection(
            "statements",
            Statement(),
            evolve_statement,
            key=account_of,
            events=(Opened, Paid, Closed),
            show=show,
        )
        views = views_of(broken)
        tell(journal, STORY[:5])
        views.catch_up()
        tell(journal, STORY[5:])
        for _ in range(2):
            views.catch_up()
            (status,) = views.status()
            assert (status.position, status.rows) == (6, 3)
            assert status.error is not None
            assert "event 7 (testing.account.paid)" in status.error
            assert "mean: is nan" in status.error
            assert views.verify() == []
            views.rebuild()

    def test_a_raised_version_is_made_anew(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """Rows of the older version are gone."""
        tell(journal, STORY)
        views_of(balances()).catch_up()
        doubled = balances(
            version=2,
            evolve=lambda row, recorded: {
                "owner": "",
                "balance": 2 * getattr(recorded.event, "amount", 0),
            },
        )
        views = views_of(doubled)
        assert views.get("balances", "a") == {"owner": "", "balance": 4}
        assert [(each.version, each.error) for each in views.status()] == [(2, None)]

    def test_rebuild_tells_how_far_it_is(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """View, position, and the last position."""
        tell(journal, STORY)
        views = views_of(balances(), STATEMENTS)
        told: list[tuple[str, int, int]] = []
        views.rebuild("statements", lambda *progress: told.append(progress))
        assert told[-1] == ("statements", 10, 10)
        assert {name for name, _, _ in told} == {"statements"}

    def test_a_view_of_an_empty_log_is_empty(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """And has no lag."""
        views = views_of(balances())
        assert list(views.rows("balances")) == []
        assert [(each.position, each.lag, each.rows) for each in views.status()] == [(0, 0, 0)]

    def test_what_nobody_declared_is_not_found(self, views_of: Callable[..., Views]) -> None:
        """Every call that names a view."""
        views = views_of(balances())
        for call in (
            lambda: views.catch_up("balances", "nothing"),
            lambda: views.get("nothing", "a"),
            lambda: list(views.rows("nothing")),
            lambda: list(views.states("nothing")),
            lambda: views.rebuild("nothing"),
            lambda: views.verify("nothing"),
        ):
            with pytest.raises(NotFound, match="no view 'nothing'"):
                call()
