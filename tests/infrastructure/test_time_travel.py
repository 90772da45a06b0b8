"""The past of a view: any position, any row, from the log alone; and where something broke."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain import Invalid, Recorded, Unreadable
from statelog.domain.ids import stream_name
from statelog.infrastructure import time_travel
from statelog.infrastructure.bisect import Break, Holds, bisect
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.views_contract import (
    ACCOUNT,
    STATEMENTS,
    STORY,
    Opened,
    Paid,
    account_of,
    balances,
    evolve_balance,
    poisoned,
    tell,
)
from statelog.infrastructure.time_travel import Past
from statelog.projections import Projection, replay
from statelog.projections.differences import ABSENT, Changed, changes


def declared() -> Projection[Any]:
    """The view of balances that says where the events of a row are."""
    return Projection(
        "balances",
        {},
        evolve_balance,
        key=account_of,
        events=balances().events,
        below=lambda key: stream_name("account/{}", key),
    )


@pytest.fixture
def journal() -> Iterator[Journal]:
    with Journal() as journal:
        tell(journal, STORY)
        yield journal


@pytest.mark.parametrize("view", [declared(), balances(), STATEMENTS], ids=["below", "no", "state"])
def test_a_view_of_the_past_is_the_replay_of_a_shorter_log(journal: Journal, view: Projection[Any]):
    """At every position, for all rows and for each alone."""
    for upto in range(journal.head() + 1):
        expected = replay(view, journal.read(upto=upto))
        assert dict(Past(journal, view).at(upto).documents) == expected
        for key in "abcx":
            past = Past(journal, view, key).at(upto)
            assert past.document == expected.get(key)
            assert set(past.documents) <= {key}


@given(steps=st.lists(st.integers(0, len(STORY)), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_wherever_one_comes_from_the_past_is_the_same(steps: list[int]):
    """Forwards it folds on, backwards from the beginning; what was asked before stays as it was."""
    with Journal() as journal:
        tell(journal, STORY)
        past, seen = Past(journal, STATEMENTS), list[tuple[int, Mapping[str, Any]]]()
        for position in steps:
            past = past.at(position)
            seen.append((position, past.documents))
        for position, documents in seen:
            assert dict(documents) == replay(STATEMENTS, journal.read(upto=position))


def test_one_row_is_folded_from_its_own_streams(journal: Journal):
    """Events of other rows are not even read, let alone decoded."""
    read: list[str] = []

    class Watched(Journal):
        def history(self, prefix: str, **bounds: Any) -> Iterator[Recorded]:
            read.append(prefix)
            return super().history(prefix, **bounds)

        def read(self, **bounds: Any) -> Iterator[Recorded]:
            raise AssertionError("the whole log")

    with Watched() as watched:
        tell(watched, STORY)
        document = Past(watched, declared(), "a").at(watched.head()).document
        assert (document or {})["balance"] == 14
        assert read == ["account/a"]


def test_one_row_of_a_long_log_takes_no_longer_than_of_a_short_one():
    """Beside the fold of the whole log, in one run: twenty times less at the least."""
    with Journal() as journal:
        tell(journal, [("a", Opened("alice")), ("a", Paid(1, "rent"))])
        for number in range(40):
            first = journal.load(ACCOUNT, f"x{number}").decide(lambda _: [Opened("bob")])
            paid = first.after.decide(lambda _: [Paid(1, "rent")] * 500)
            journal.commit(first, paid, actor="bob")

        def took(view: Projection[Any]) -> float:
            begin = time.perf_counter()
            assert Past(journal, view, "a").at(journal.head()).document is not None
            return time.perf_counter() - begin

        alone = min(took(declared()) for _ in range(5))
        assert alone * 20 < min(took(balances()) for _ in range(2))


def test_an_event_that_cannot_be_folded_is_named(journal: Journal):
    """Before it the past is there; after it there is none to be told."""
    past = Past(journal, poisoned("gift"))
    assert past.at(6).documents.keys() == {"a", "b", "c"}
    with pytest.raises(Unreadable, match=r"event 7 .*balances raises Poisoned: nobody pays"):
        past.at(7)


def test_changes_are_told_by_row_and_place(journal: Journal):
    """What is new, what is gone, what has another value; the order of entries is no change."""
    view = balances()
    before, after = (Past(journal, view).at(position).documents for position in (6, 10))
    assert list(changes(before, after)) == [
        Changed("a", ("balance",), 12, 14),
        Changed("a", ("payments",), [["rent", 5], ["rent", 7]],
                [["rent", 5], ["rent", 7], ["gift", 2]]),
        Changed("b", (), {"balance": 0, "owner": "bob", "payments": []}, ABSENT),
        Changed("c", (), {"balance": 0, "owner": "alice", "payments": []}, ABSENT),
    ]  # fmt: skip
    assert list(changes(after, before))[2].before is ABSENT
    assert list(changes({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}})) == []


class Numbered:
    """A log of so many events that are all alike, and which positions were read."""

    def __init__(self, head: int) -> None:
        self._head = head
        self.folded = 0

    def head(self) -> int:
        return self._head

    def read(self, *, after: int = 0, upto: int | None = None, names: Any = None) -> Iterator[Any]:
        until = self._head if upto is None else upto
        self.folded += max(0, until - after)
        return iter([Event(until)] if until > after else [])


class Event:
    """An envelope of which only the position is there."""

    name = Opened.stored_name
    keeper = None

    def __init__(self, position: int) -> None:
        self.position = position


COUNTED: Projection[Any] = Projection(
    "counted", {}, lambda _, recorded: {"n": recorded.position}, key=lambda _: "n", events=(Opened,)
)


@pytest.mark.parametrize("first_bad", [1, 2, 3, 500_000, 777_777, 999_999, 1_000_000])
def test_a_million_events_take_21_probes_and_two_folds(first_bad: int):
    """Wherever it breaks; each probe folds on from the last position that was good."""
    log: Any = Numbered(1_000_000)
    asked: list[int] = []

    def small(rows: Mapping[str, Any]) -> bool:
        asked.append(rows["n"]["n"] if rows else 0)
        return asked[-1] < first_bad

    found = bisect(log, small, COUNTED)
    assert isinstance(found, Break)
    assert found.position == first_bad
    assert found.probes == len(asked) <= 21
    assert (found.before["n"], found.after["n"]) == (
        {"n": first_bad - 1} if first_bad > 1 else None,
        {"n": first_bad},
    )
    assert log.folded <= 2_000_000 + 3


@given(events=st.integers(1, 40), data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_first_break_is_found_at_any_place(events: int, data: st.DataObject):
    """In logs of any length, between any two bounds."""
    good = data.draw(st.integers(0, events - 1))
    first_bad = data.draw(st.integers(good + 1, events))
    log: Any = Numbered(events)
    found = bisect(
        log, lambda rows: not rows or rows["n"]["n"] < first_bad, COUNTED, good=good, bad=events
    )
    assert (type(found), found.position) == (Break, first_bad)


def balance_below(limit: int) -> Callable[[Any], bool]:
    return lambda document: document is None or document["balance"] < limit


def test_a_row_is_asked_about_by_its_document(journal: Journal):
    """What is printed is the event, and the row before and after it."""
    for view in (declared(), balances()):
        found = bisect(journal, balance_below(12), view, "a")
        assert isinstance(found, Break)
        assert found.event is not None
        assert (found.position, found.event.event) == (6, Paid(7, "rent"))
        (before,), (after,) = found.before.values(), found.after.values()
        assert (before["balance"], after["balance"]) == (5, 12)
    assert bisect(journal, balance_below(15), balances(), "a") == Holds(10, 1)


def test_a_whole_view_is_asked_about_by_all_its_documents(journal: Journal):
    """An assertion that fails is a break; a predicate that answers nothing holds."""

    def two_at_most(rows: Mapping[str, Any]) -> None:
        assert len(rows) <= 2

    found = bisect(journal, two_at_most, balances(), bad=7)
    assert isinstance(found, Break)
    assert (found.position, found.before, set(found.after)) == (5, {"c": None}, {"c"})
    assert bisect(journal, two_at_most, balances(), bad=4) == Holds(4, 1)


def test_without_a_view_the_events_are_asked_about(journal: Journal):
    """And no rows are shown."""
    found = bisect(journal, lambda events: all(e.name != Paid.stored_name for e in events))
    assert isinstance(found, Break)
    assert (found.position, found.before, found.after) == (3, {}, {})


def test_what_is_broken_from_the_start_is_said_to_be(journal: Journal):
    """Not laid at the door of the first event."""
    found = bisect(journal, lambda rows: False, balances())
    assert isinstance(found, Break)
    assert (found.position, found.event) == (0, None)
    late = bisect(journal, lambda rows: False, balances(), good=4)
    assert (late.position, type(late)) == (4, Break)


def test_what_mends_is_found_at_one_of_its_breaks(journal: Journal):
    """It holds before that position and not after it: more is not said of such a predicate."""
    broken = {2, 3, 6, 7, 8, 9, 10}
    found = bisect(journal, lambda events: len(list(events)) not in broken)
    assert isinstance(found, Break)
    assert found.position in {2, 6}


@pytest.mark.parametrize("answer", [0, "no", ()])
def test_an_answer_that_is_none_is_refused(journal: Journal, answer: object):
    """A predicate that answers with something else was meant otherwise."""
    with pytest.raises(Invalid, match="answers True, False or None"):
        bisect(journal, lambda _: answer, balances())


def test_a_predicate_that_fails_is_no_break(journal: Journal):
    """It says where it failed, as a bug in it would else be taken for one in the log."""
    with pytest.raises(Invalid, match="raises KeyError after position 10: 'x'"):
        bisect(journal, lambda rows: rows["x"], balances())
    with pytest.raises(Invalid, match="good: 9 is after 3"):
        bisect(journal, lambda rows: True, balances(), good=9, bad=3)


def test_a_long_fold_and_each_probe_can_be_watched(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    """Positions as they are folded, and what each probe found."""
    monkeypatch.setattr(time_travel, "EVERY", 3)
    seen: list[tuple[int, int]] = []
    Past(journal, balances(), watch=lambda at, last: seen.append((at, last))).at(10)
    assert seen == [(3, 10), (7, 10), (10, 10)]
    probes: list[tuple[int, bool]] = []
    found = bisect(
        journal, balance_below(12), balances(), "a", told=lambda *probe: probes.append(probe)
    )
    assert probes[0] == (10, False)
    assert len(probes) == found.probes
    assert [holds for at, holds in probes] == [at < 6 for at, _ in probes]


def test_a_document_is_made_again_only_when_its_row_changed(journal: Journal):
    """Probes look at many rows that are the same as in the one before."""
    shown: list[str] = []

    def show(key: str, row: Any) -> Any:
        shown.append(key)
        return row

    view: Projection[Any] = Projection(
        "balances", {}, evolve_balance, key=account_of, events=balances().events, show=show
    )
    past = Past(journal, view).at(5)
    for position in (5, 5, 6, 7):
        past = past.at(position)
        assert dict(past.documents) == replay(balances(), journal.read(upto=position))
    assert [shown.count(key) for key in "abc"] == [2, 2, 1]
