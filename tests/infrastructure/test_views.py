"""Views in memory and in a file, by the one contract, and what is the same for both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain import Event, Invalid
from statelog.infrastructure import catch_up, view, view_rebuild
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.views_contract import (
    STATEMENTS,
    STORY,
    Closed,
    Noted,
    Opened,
    Paid,
    Statement,
    ViewsContract,
    account_of,
    balances,
    evolve_statement,
    tell,
)
from statelog.infrastructure.views import Views
from statelog.projections import Projection, replay

ViewsOf = Callable[..., Views]


class TestInAFile(ViewsContract):
    @pytest.fixture
    def journal(self, store_path: Path) -> Iterator[Journal]:
        with Journal(store_path) as journal:
            yield journal

    def test_it_is_in_the_file(self, journal: Journal, views_of: ViewsOf, store_path: Path):
        """Or the contract would be run on memory twice."""
        views = views_of(balances())
        assert views.stored
        assert views.path == store_path.with_name("statelog.db.views.db")


class TestInMemory(ViewsContract):
    @pytest.fixture
    def journal(self) -> Iterator[Journal]:
        with Journal() as journal:
            yield journal

    def test_it_is_in_memory(self, views_of: ViewsOf):
        """A journal in memory leaves nothing behind."""
        assert not views_of(balances()).stored


class TestInSmallChunks(TestInAFile):
    """The contract again, with transactions of one event each."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(catch_up, "CHUNK", 1)
        monkeypatch.setattr(view_rebuild, "BATCH", 1)
        monkeypatch.setattr(view_rebuild, "NEAR", 1)
        monkeypatch.setattr(view, "KEPT", 1)
        monkeypatch.setattr("statelog.infrastructure.view_store.PAGE", 1)


def stories() -> st.SearchStrategy[list[tuple[str, Event]]]:
    """Legal histories of a few accounts."""
    steps = st.tuples(
        st.sampled_from("abc"),
        st.one_of(
            st.builds(Paid, st.integers(-9, 9), st.sampled_from(["rent", "gift", "é"])),
            st.builds(Noted, st.just("x")),
            st.just(Closed()),
        ),
    )
    return st.lists(steps, max_size=20).map(_legal)


def _legal(steps: list[tuple[str, Event]]) -> list[tuple[str, Event]]:
    story: list[tuple[str, Event]] = []
    seen: dict[str, bool] = {}
    for account, event in steps:
        if account not in seen:
            story.append((account, Opened(account.upper())))
        if seen.get(account, True):
            story.append((account, event))
            seen[account] = not isinstance(event, Closed)
    return story


@settings(max_examples=25, deadline=None)
@given(story=stories(), cuts=st.lists(st.integers(0, 30), max_size=5))
def test_wherever_the_catch_ups_fall_the_rows_are_those_of_a_replay(story, cuts):
    """Whole histories, cut into catch-ups at any places."""
    with Journal() as journal, Views(journal, [balances(), STATEMENTS]) as views:
        for start, end in pairwise([0, *sorted(cuts), len(story)]):
            tell(journal, story[start:end])
            assert views.verify() == []
        for projection in (balances(), STATEMENTS):
            assert dict(views.rows(projection.name)) == replay(projection, journal.read())


def test_events_a_view_does_not_read_are_never_decoded(monkeypatch: pytest.MonkeyPatch):
    """A name nobody declares passes untouched, and stops only the views that read it."""
    with Journal() as journal:
        tell(journal, STORY)
        monkeypatch.delitem(_registry(), Noted.stored_name)
        with Views(journal, [balances()]) as views:
            assert views.verify() == []
            assert views.status()[0].error is None
        monkeypatch.delitem(_registry(), Closed.stored_name)
        with Views(journal, [balances()]) as views:
            views.catch_up()
            (status,) = views.status()
            assert status.position == 7
            assert status.error == (
                "event 8 (testing.account.closed) cannot be read: no event of this name is declared"
            )


def _registry():
    from statelog.domain import event

    return event._registry


@pytest.mark.parametrize(
    "name", ["view_positions", "Balances", "a-b", "", "x; drop", "é", "sqlite_x"]
)
def test_names_sql_should_not_see_are_refused(name: str):
    """As the name of a view and as that of a column."""
    for given_name, columns in ((name, {}), ("fine", {name: len})):
        if columns and name == "view_positions":
            continue
        projection = Projection(
            given_name, {}, lambda row, _: row, key=account_of, events=(), columns=columns
        )
        with Journal() as journal, pytest.raises(ValueError, match="view"):
            Views(journal, [projection])


@pytest.mark.parametrize("column", ["key", "document", "state", "position", "rowid"])
def test_columns_that_are_ours_are_refused(column: str):
    """A projection cannot overwrite what the store keeps."""
    projection = Projection(
        "fine", {}, lambda row, _: row, key=account_of, events=(), columns={column: len}
    )
    with Journal() as journal, pytest.raises(ValueError, match="are taken"):
        Views(journal, [projection])


def test_two_views_of_one_name_are_refused():
    """Each is a table."""
    with Journal() as journal, pytest.raises(ValueError, match="two views are called balances"):
        Views(journal, [balances(), balances()])


@dataclass(frozen=True)
class Unstorable:
    at: complex = 0j


def test_a_state_without_a_json_form_is_refused_at_once():
    """Not at the first event after the next start."""
    projection = Projection(
        "fine", Unstorable(), lambda row, _: row, key=account_of, events=(Opened,)
    )
    with Journal() as journal, pytest.raises(TypeError, match=r"Unstorable\.at"):
        Views(journal, [projection])


def test_a_mapping_as_state_may_hold_what_json_holds_and_no_more():
    """A number that JSON cannot hold stops the view at the event that gave it."""
    projection: Projection[Any] = Projection(
        "sums",
        {},
        lambda row, recorded: {"sum": row.get("sum", 0) + getattr(recorded.event, "amount", 0)},
        key=account_of,
        events=(Opened, Paid),
    )
    with Journal() as journal, Views(journal, [projection]) as views:
        tell(journal, [("a", Opened("x")), ("a", Paid(2**64 - 1, "x")), ("a", Paid(1, "x"))])
        views.catch_up()
        (status,) = views.status()
        assert (status.position, views.get("sums", "a")) == (2, {"sum": 2**64 - 1})
        assert status.error is not None
        assert "sum: is an integer beyond 64 bits" in status.error
        assert Invalid.__name__ in status.error


def test_threads_may_share_views(store_path: Path):
    """Readers and a writer at once: every read is of one moment, and the end is right."""
    wrong: list[object] = []
    with Journal(store_path) as journal, Views(journal, [balances(), STATEMENTS]) as views:
        tell(journal, [("a", Opened("alice"))])

        def read() -> None:
            for _ in range(20):
                row = views.get("balances", "a") or {}
                if row["balance"] != sum(amount for _, amount in row["payments"]):
                    wrong.append(row)
                list(views.rows("statements"))

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for amount in range(40):
            tell(journal, [("a", Paid(amount, "rent"))])
        for thread in threads:
            thread.join()
        assert wrong == []
        assert views.verify() == []
        assert (views.get("balances", "a") or {})["balance"] == sum(range(40))


def test_evolve_is_asked_once_for_an_event(store_path: Path):
    """Catching up folds what is new, and reading again folds nothing."""
    asked: list[int] = []

    def evolve(row: Statement, recorded):
        asked.append(recorded.position)
        return evolve_statement(row, recorded)

    counted = Projection(
        "statements", Statement(), evolve, key=account_of, events=STATEMENTS.events
    )
    with Journal(store_path) as journal, Views(journal, [counted]) as views:
        for step in STORY:
            tell(journal, [step])
            views.catch_up()
            views.get("statements", "a")
    assert asked == [1, 2, 3, 5, 6, 7, 8, 9, 10]
