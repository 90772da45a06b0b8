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


class Crash(BaseException):
    """A process that dies, as far as a test can tell: nothing below may catch it."""


def crashing(at: int, where: str) -> Any:
    """The view of statements whose fold dies at a position, or whose `show` at that row."""

    def evolve(row: Statement, recorded: Recorded) -> Statement:
        if where == "evolve" and recorded.position == at:
            raise Crash
        after = evolve_statement(row, recorded)
        dies = where == "show" and recorded.position == at
        return changed(after, owner=f"{at}") if dies else after

    def show(key: str, row: Statement) -> dict[str, Any] | None:
        if where == "show" and row.owner == f"{at}":
            raise Crash
        return show_statement(key, row)

    given: Any = {"key": account_of, "events": STATEMENTS.events, "columns": STATEMENTS.columns}
    return Projection("statements", Statement(), evolve, show=show, **given)


class ViewsContract:
    """Override the fixture `journal` (an empty one), and `open` where views are not `Views`."""

    @pytest.fixture
    def journal(self) -> Iterator[Journal]:
        """An empty journal that can be written."""
        raise NotImplementedError

    def open(self, journal: Journal, projections: Sequence[Projection[Any]]) -> Views:
        """Views of these projections over the journal."""
        return Views(journal, projections)

    @pytest.fixture
    def views_of(self, journal: Journal) -> Iterator[Callable[..., Views]]:
        """Called with projections: their views over the journal, closed at the end."""
        opened: list[Views] = []

        def views_of(*projections: Projection[Any]) -> Views:
            opened.append(self.open(journal, projections))
            return opened[-1]

        yield views_of
        for views in opened:
            views.close()

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

    def test_an_event_that_is_delivered_twice_or_late_counts_once(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """Three that catch up the same views: at each event, twice at each third, at the end."""
        eager, slow, late = (views_of(balances(), STATEMENTS) for _ in range(3))
        for number, step in enumerate(STORY):
            tell(journal, [step])
            eager.catch_up()
            if number % 3 == 2:
                slow.catch_up()
                slow.catch_up()
                eager.catch_up()
        for views in (late, slow, eager):
            for projection in (balances(), STATEMENTS):
                assert dict(views.rows(projection.name)) == replay(projection, journal.read())
            assert views.verify() == []

    @pytest.mark.parametrize("where", ["evolve", "show"])
    def test_a_crash_while_an_event_is_delivered_leaves_no_half_of_it(
        self, journal: Journal, views_of: Callable[..., Views], where: str
    ) -> None:
        """At every event: rows and position are those of before, and the next one goes on."""
        healthy, crashed = views_of(STATEMENTS), list[int]()
        for number, step in enumerate(STORY, 1):
            tell(journal, [step])
            before = healthy.status()[0]
            try:
                views_of(crashing(number, where)).catch_up()
            except Crash:
                crashed.append(number)
                after = healthy.status()[0]
                assert (after.position, after.rows) == (before.position, before.rows)
            assert dict(healthy.rows("statements")) == replay(STATEMENTS, journal.read())
            assert healthy.verify() == []
        assert crashed == [1, 2, 3, 5, 6, 7, 8, 9, 10]

    def test_a_stopped_view_is_retried_when_it_is_told_to(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """It stays parked, is not folded meanwhile, and goes on where it was."""
        folded: list[int] = []
        poison = [7]

        def evolve(row: Any, recorded: Recorded) -> Any:
            folded.append(recorded.position)
            if recorded.position in poison:
                raise Poisoned("not yet")
            return evolve_balance(row, recorded)

        tell(journal, STORY)
        views = views_of(balances(evolve=evolve))
        views.catch_up()
        folded.clear()
        views.catch_up()
        assert folded == []
        poison.clear()
        views.retry("balances")
        assert folded == [7, 8, 9, 10]
        assert views.status()[0].error is None

    def test_a_view_can_be_waited_for(
        self, journal: Journal, views_of: Callable[..., Views]
    ) -> None:
        """Until it has seen a position; not for one that nobody writes, nor behind a poison."""
        tell(journal, STORY)
        views = views_of(poisoned("gift"), STATEMENTS)
        assert views.wait("statements", journal.head(), timeout_s=0)
        assert not views.wait("statements", journal.head() + 1, timeout_s=0)
        assert views.wait("balances", 6, timeout_s=0)
        assert not views.wait("balances", 7, timeout_s=60)

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
            lambda: views.retry("nothing"),
            lambda: views.wait("nothing", 1),
            lambda: views.follow(lambda: False, "nothing"),
        ):
            with pytest.raises(NotFound, match="no view 'nothing'"):
                call()
