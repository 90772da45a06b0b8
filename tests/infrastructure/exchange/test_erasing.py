"""Erasing: payloads go, and everything that they led to stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain import Invalid, NotFound, Refused, Unreadable
from statelog.domain.erasure import Erasable, Erased
from statelog.infrastructure import catch_up, view_rebuild
from statelog.infrastructure.audit.merkle import Tree
from statelog.infrastructure.exchange.erasing import erasure_of
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store import recorder
from statelog.infrastructure.time_travel import Past
from statelog.infrastructure.views import Views
from statelog.projections import Projection, replay
from statelog.projections.projection import fold
from statelog.projections.replay import Fold
from tests.infrastructure.exchange.parcels import (
    ITEM,
    PARCEL,
    VIEWS,
    Arrived,
    ItemStatus,
    Moved,
    Sent,
    Status,
    arrive,
    contents,
    erase,
    eraser,
    filled,
    find,
    move,
    pack,
    rows,
    send,
    unpack,
    weights,
)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "s.db") as journal:
        filled(journal)
        yield journal


def bytes_of(journal: Journal) -> bytes:
    """All bytes of the store's own files."""
    assert journal.store is not None
    found = (journal.store.with_name(f"{journal.store.name}{end}") for end in ("", "-wal", "-shm"))
    return b"".join(path.read_bytes() for path in found if path.exists())


def headers(journal: Journal) -> list[Any]:
    return [row._replace(data=None) for row in journal.rows()]


def test_payloads_go_and_headers_stay(journal: Journal):
    """Every other column is as it was, so that no hash changes."""
    before = headers(journal)
    done = erase(journal, "parcel/a")
    assert (done.units, done.streams, done.events, done.swept) == (1, 2, 5, True)
    assert headers(journal)[: len(before)] == before
    gone = {row.stream for row in journal.rows() if row.data is None}
    assert gone == {"parcel/a", "parcel/a/item/1"}
    assert all(row.data is None for row in journal.rows() if row.stream in gone)


def test_an_event_says_who_and_why(journal: Journal):
    erase(journal, "parcel/a", "request 17")
    (told,) = journal.history("erasure")
    event = told.event
    assert isinstance(event, Erased)
    assert (told.stream, told.actor) == ("erasure/parcel%2Fa", "bob")
    assert (event.reason, event.events, event.archived) == ("request 17", 5, False)


def test_no_byte_is_left(journal: Journal):
    """Neither in pages that were freed nor in the WAL; what views keep is none of it here."""
    assert b"secret" in bytes_of(journal)
    erase(journal, "parcel/a", views=())
    found = bytes_of(journal)
    assert b"secret cup" not in found
    assert b"secret harbour" not in found
    assert b"elsewhere" in found


def test_no_byte_is_left_of_large_payloads(tmp_path: Path):
    """They lie on pages of their own, which become free."""
    with Journal(tmp_path / "s.db") as journal:
        for at in range(20):
            journal.execute(ITEM, ("b", str(at)), pack, what="secret" * 3000, actor="bob")
            journal.execute(ITEM, ("b", str(at)), unpack, actor="bob")
        assert bytes_of(journal).count(b"secretsecret") > 1000
        assert erase(journal, "parcel/b", views=()).swept
        assert b"secretsecret" not in bytes_of(journal)


def test_a_reader_in_the_way_is_told_and_the_same_again_sweeps(journal: Journal):
    """Old pages stay in the WAL while a transaction reads them."""
    log = journal.recorder
    reader = log.connections._connect("mode=ro")
    log.connections.patience = 0.05
    try:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()
        journal.close()
        with Journal(journal.store) as again:
            again.recorder.connections.patience = 0.05
            assert not erase(again, "parcel/a", views=()).swept
            assert b"secret cup" in bytes_of(again)
            reader.execute("COMMIT")
            done = erase(again, "parcel/a", views=())
            assert (done.events, done.swept) == (0, True)
            assert b"secret cup" not in bytes_of(again)
    finally:
        reader.close()


def test_views_are_rebuilt_as_they_were(journal: Journal):
    """Byte for byte and in every column, also the position of the last event that touched them."""
    before = rows(journal)
    erase(journal, "parcel/a")
    assert rows(journal) == before


def test_views_that_were_there_go_on(journal: Journal, tmp_path: Path):
    """They have seen the events already; nothing about them changes."""
    with Views(journal, VIEWS) as views:
        views.catch_up()
        before = {name: dict(views.rows(name)) for name in views.names}
        erase(journal, "parcel/a")
        assert {name: dict(views.rows(name)) for name in views.names} == before
        assert views.verify() == []
        journal.execute(ITEM, ("a", "2"), pack, what="spoon", grams=5, actor="bob")
        journal.execute(PARCEL, "a-live", arrive, actor="bob")
        assert views.get("weights", "all") == {"at": 9, "grams": 305, "z": "spoon"}
        assert views.verify() == []
    assert rows(journal)["stops"]


@pytest.mark.parametrize("seen", range(9))
@pytest.mark.parametrize("chunk", [1, 2000])
@pytest.mark.parametrize("prefix", ["parcel/a", "parcel/a/item/1"])
def test_a_view_that_lags_behind(
    journal: Journal,
    seen: int,
    chunk: int,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    """Wherever it was when the payloads went, and however little it folds at once."""
    with Views(journal, VIEWS, tmp_path / "v.db") as views:
        whole = journal.head
        monkeypatch.setattr(journal, "head", lambda: seen)
        views.rebuild()
        monkeypatch.setattr(journal, "head", whole)
        monkeypatch.setattr(catch_up, "CHUNK", chunk)
        before = rows(journal, path=tmp_path / "other.db")
        erase(journal, prefix)
        with (
            Journal(journal.store, read_only=True) as reader,
            Views(reader, VIEWS, tmp_path / "v.db") as others,
        ):
            assert others.verify() == []
        views.catch_up()
        assert [each.error for each in views.status()] == [None] * len(VIEWS)
        assert views.verify() == []
    assert rows(journal, path=tmp_path / "v.db") == before


def test_what_is_not_finished_is_named_and_nothing_goes(journal: Journal):
    with pytest.raises(Refused, match="parcel/a-live is not finished: it is on its way"):
        erase(journal, "parcel")
    assert all(row.data is not None for row in journal.rows())


def test_streams_beside_have_to_be_finished_too(journal: Journal):
    """A domain says so: here no item goes before its parcel has arrived."""
    parcel: Erasable[Any] = Erasable(PARCEL)
    journal.execute(ITEM, ("a-live", "1"), pack, what="x", actor="bob")
    journal.execute(ITEM, ("a-live", "1"), unpack, actor="bob")
    made = eraser(journal, Erasable(ITEM, beside=(parcel,)))
    with pytest.raises(Refused, match=r"item/1 is not erased: parcel/a-live is not finished"):
        made.units("parcel/a-live/item/1")
    assert made.units("parcel/a/item/1")


def test_a_stream_that_moves_meanwhile_is_looked_at_again(journal: Journal):
    """What was checked holds in the transaction: here it moves once, and may not go any more."""
    armed: list[str] = []

    def unfinished(parcel: Any) -> str | None:
        if armed:
            armed.clear()
            journal.execute(PARCEL, "a-live", move, place="far", actor="bob")
        return None if parcel.stops < 2 else "it has moved"

    made = eraser(journal, Erasable(PARCEL, unfinished))
    units = made.units("parcel/a-live")
    armed.append("once")
    with pytest.raises(Refused, match="it has moved"):
        made.erase(units, "because")
    assert all(row.data is not None for row in journal.rows())


def test_what_others_name_is_needed(journal: Journal):
    journal.execute(PARCEL, "b", send, to="a", actor="bob")
    made = eraser(journal, Erasable(PARCEL, mentioned=True))
    with pytest.raises(Refused, match="parcel/a is needed: parcel/b refers to it"):
        made.units("parcel/a")


def test_refusals(journal: Journal):
    """Nothing is there; nobody declared it; erasures themselves; no reason."""
    with pytest.raises(NotFound):
        erase(journal, "parcel/nobody")
    with pytest.raises(Invalid, match="reason"):
        erase(journal, "parcel/a", " ")
    erase(journal, "parcel/a")
    with pytest.raises(Refused, match="erasures are kept in"):
        erase(journal, "erasure")
    assert erase(journal, "parcel/a").events == 0


def test_streams_go_on_from_what_was_kept(journal: Journal):
    """State and version; an open item beside an erased one as well."""
    states = journal.load(PARCEL, "a"), journal.load(ITEM, ("a", "1"))
    erase(journal, "parcel/a")
    assert (journal.load(PARCEL, "a"), journal.load(ITEM, ("a", "1"))) == states
    assert states[0].state.status is Status.THERE
    assert states[1].state.status is ItemStatus.OUT
    with pytest.raises(Unreadable, match="erased"):
        journal.load(PARCEL, "a", upto=3)


def test_a_finished_stream_that_begins_again(journal: Journal):
    """A domain may let it: then new events are folded onto what was kept."""
    on_its_way: Erasable[Any] = Erasable(PARCEL, unfinished=lambda state: None)
    made = eraser(journal, on_its_way)
    made.erase(made.units("parcel/a-live"), "because")
    before = rows(journal)
    done = journal.execute(PARCEL, "a-live", move, place="far", actor="bob")
    assert (done.state.stops, done.version) == (2, 3)
    assert journal.load(PARCEL, "a-live") == done.loaded[0]
    assert rows(journal) != before
    made.erase(made.units("parcel/a-live"), "again")
    after = journal.execute(PARCEL, "a-live", arrive, actor="bob")
    assert after.state.stops == 2
    assert replay(VIEWS[2], journal.read())["a-live"]["stops"] == [
        "Sent",
        "Moved",
        "Moved",
        "Arrived",
    ]


def test_the_newest_erasure_keeps_all_and_the_older_ones_go(journal: Journal):
    """What they kept is not needed any more; who did it stays in headers, why in the newest."""
    journal.execute(ITEM, ("a", "2"), pack, what="secret spoon", actor="bob")
    journal.execute(ITEM, ("a", "2"), unpack, actor="bob")
    erase(journal, "parcel/a/item/1", "first")
    before = rows(journal)
    erase(journal, "parcel/a", "second")
    first, second = journal.history("erasure")
    assert first.data is None
    assert isinstance(second.event, Erased)
    assert [(each.position, each.reason) for each in second.event.earlier] == [(10, "first")]
    assert set(second.event.streams) == {"parcel/a", "parcel/a/item/1", "parcel/a/item/2"}
    assert rows(journal) == before
    assert journal.load(ITEM, ("a", "1")).version == 2
    assert erasure_of(journal, "parcel/a").version == 2


def test_the_past_is_not_told_falsely(journal: Journal):
    """Before the erasure a row is unknown and says so; other rows, and what follows, are right."""
    was = Past(journal, contents, "a").at(4).document
    assert was is not None
    erase(journal, "parcel/a")
    with pytest.raises(Unreadable, match="payload was erased, as event 8 says"):
        Past(journal, contents, "a").at(4)
    past = Past(journal, contents).at(6)
    assert set(past.documents) == {"a-live"}
    assert set(past.unknown) == {"a"}
    assert set(past.at(journal.head()).unknown) == set()
    assert Past(journal, weights, "all").at(journal.head()).document is not None
    assert set(fold(contents, journal.read())) == {"a-live"}


def test_a_payload_that_nobody_erased_is_not_passed_over(
    journal: Journal, damaged_store: Callable[[Path], None]
):
    """NULL without an erasure is damage: views stop, and say where."""
    assert journal.store is not None
    damaged_store(journal.store)
    with journal.recorder.turn() as turn:
        turn.erase([3])
    with Views(journal, [weights]) as views:
        views.catch_up()
        (status,) = views.status()
        assert status.error is not None
        assert "event 3" in status.error
    with pytest.raises(Unreadable, match="erased or archived"):
        journal.load(ITEM, ("a", "1"))


def test_a_view_that_is_made_later_begins_after_the_erasure(journal: Journal):
    erase(journal, "parcel/a", views=())
    later = rows(journal, (VIEWS[2],))["stops"]
    assert [row[0] for row in later] == ["a-live"]


def test_a_fault_within_what_was_erased(journal: Journal, tmp_path: Path):
    """The view waits before the first erased event, and goes on when the fault is gone."""
    broken = [True]

    def evolve(state: Any, recorded: Any) -> Any:
        if broken[0] and recorded.stream == "parcel/a-live" and isinstance(recorded.event, Moved):
            raise ValueError("cannot")
        return {"n": [*state.get("n", []), recorded.position]}

    view: Projection[Any] = Projection(
        "faulty", {}, evolve, key=lambda recorded: recorded.stream, events=(Sent, Moved, Arrived)
    )
    broken[0] = False
    before = rows(journal, (view,), tmp_path / "0.db")
    erase(journal, "parcel/a", views=(view,))
    broken[0] = True
    for seen in (0, 1, 2):
        with Views(journal, [view], tmp_path / f"{seen}-v.db") as views:
            head = journal.head
            journal.head = lambda seen=seen: seen  # type: ignore[method-assign]
            views.rebuild()
            journal.head = head  # type: ignore[method-assign]
            broken[0] = True
            views.catch_up()
            views.rebuild()
            (status,) = views.status()
            assert (status.position, "cannot" in (status.error or "")) == (0, True)
            broken[0] = False
            views.retry()
            assert views.verify() == []
        assert rows(journal, (view,), tmp_path / f"{seen}-v.db") == before


def test_events_between_are_passed_over(journal: Journal):
    """Those of a row that can still be read are part of what was kept of it."""
    journal.execute(ITEM, ("a-live", "1"), pack, what="cup", actor="bob")
    journal.execute(PARCEL, "a-live", move, place="far", actor="bob")
    journal.execute(ITEM, ("a-live", "1"), unpack, actor="bob")
    journal.execute(PARCEL, "a-live", move, place="off", actor="bob")
    before = fold(contents, journal.read())
    assert before["a-live"].places == ("hill", "far", "off")
    erase(journal, "parcel/a-live/item/1")
    assert fold(contents, journal.read()) == before
    assert replay(contents, journal.read())["a-live"]["places"] == ["hill", "far", "off"]


def test_the_merkle_root_stays(journal: Journal):
    def root() -> bytes:
        tree = Tree()
        for row in journal.rows(upto=7):
            tree.add(row.hash)
        return tree.root

    before = root()
    erase(journal, "parcel/a")
    assert root() == before


IDS = st.sampled_from("pqr")
MOVES = st.one_of(
    st.tuples(st.just("send"), IDS),
    st.tuples(st.just("move"), IDS),
    st.tuples(st.just("arrive"), IDS),
    st.tuples(st.just("pack"), IDS, st.sampled_from("12")),
    st.tuples(st.just("unpack"), IDS, st.sampled_from("12")),
    st.tuples(st.just("erase"), IDS),
    st.tuples(st.just("erase"), IDS, st.sampled_from("12")),
)


def perform(journal: Journal, step: tuple[str, ...], at: int) -> None:
    """Do it if it may be done now."""
    what, id, *rest = step
    decisions: dict[str, Any] = {
        "send": (send, {"to": f"to {at}"}),
        "move": (move, {"place": f"place {at}"}),
        "arrive": (arrive, {}),
        "pack": (pack, {"what": f"thing {at}", "grams": at}),
        "unpack": (unpack, {}),
    }
    decision, given_ = decisions[what]
    aggregate = ITEM if rest else PARCEL
    found = journal.load(aggregate, (id, *rest) if rest else id)
    try:
        change = found.decide(decision, **given_)
    except Exception:
        return
    journal.commit(change, actor="bob")


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(MOVES, max_size=40))
def test_any_log_erased_anywhere_gives_the_same_views(steps: list[tuple[str, ...]]):
    """Beside a log in which the same happens and nothing is ever erased."""
    with Journal(clock=lambda: 1) as plain, Journal(clock=lambda: 1) as journal:
        live = Views(journal, VIEWS)
        for at, step in enumerate(steps):
            if step[0] != "erase":
                perform(journal, step, at)
                perform(plain, step, at)
                continue
            prefix = f"parcel/{step[1]}" + "".join(f"/item/{each}" for each in step[2:])
            before = rows(journal)
            try:
                erase(journal, prefix)
            except (Refused, NotFound):
                assert rows(journal) == before
                continue
            assert rows(journal) == before
            if at % 2:
                live.catch_up()
        assert live.verify() == []
        live.close()
        for view in VIEWS:
            whole = Fold(view)
            assert whole.run(each for each in journal.read() if view.reads(each)) is None
            assert fold(view, journal.read()) == dict(whole.rows())
        mine, others = ([_without_positions(r) for r in _named(each)] for each in (journal, plain))
        assert mine == others
        for stream in {row.stream for row in plain.rows()}:
            aggregate, ids = find(stream) or (PARCEL, ())
            id = ids[0] if len(ids) == 1 else ids
            assert journal.load(aggregate, id).state == plain.load(aggregate, id).state


def _named(journal: Journal) -> list[Any]:
    """Documents by view and key."""
    return [replay(view, journal.read()) for view in VIEWS]


def _without_positions(documents: dict[str, Any]) -> dict[str, Any]:
    return {key: {k: v for k, v in row.items() if k != "at"} for key, row in documents.items()}


def test_a_rebuild_while_it_happens(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Payloads go between two batches of a fold: it goes on with what was kept."""
    journal.execute(ITEM, ("a", "2"), pack, what="spoon", grams=20, actor="bob")
    journal.execute(ITEM, ("a", "2"), unpack, actor="bob")
    monkeypatch.setattr(view_rebuild, "BATCH", 1)
    monkeypatch.setattr(recorder, "PAGE", 1)
    done: list[Any] = []

    def once(*_: Any) -> None:
        if not done:
            journal.execute(ITEM, ("a-live", "1"), pack, what="late", grams=7, actor="bob")
            done.append(rows(journal, path=tmp_path / "v.db"))
            erase(journal, "parcel/a/item")

    with Views(journal, VIEWS) as views:
        views.rebuild("weights", progress=once)
        assert views.get("weights", "all") == {"at": 10, "grams": 327, "z": "late"}
        assert views.verify() == []
    assert [rows(journal)] == done
