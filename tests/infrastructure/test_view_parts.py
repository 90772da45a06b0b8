"""A rebuild by several processes gives the rows of one process, whatever is in the log."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.event import Recorded
from statelog.infrastructure import view_parts, view_rebuild
from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing.views_contract import (
    STATEMENTS,
    STORY,
    Opened,
    Paid,
    account_of,
    balances,
    evolve_balance,
    tell,
)
from statelog.infrastructure.view_roots import Slices
from statelog.infrastructure.views import Views
from statelog.projections import Projection
from tests.bench.auditing import fill
from tests.house.repo import ROOT


def below(key: str) -> str:
    return f"account/{key}"


def evolve_by_actor(row: Any, recorded: Recorded) -> Any:
    """A row that needs all of the envelope, and some of it only now and then."""
    after = evolve_balance(row, recorded)
    if after is None or recorded.position % 3:
        return after
    envelope = [recorded.actor, recorded.command, recorded.version, recorded.hash.hex()]
    return {**after, "envelope": envelope}


def evolve_poisoned(row: Any, recorded: Recorded) -> Any:
    if recorded.position == 9:
        raise ZeroDivisionError("poison")
    return evolve_by_actor(row, recorded)


def owner_of(recorded: Recorded) -> str | None:
    """A row with events of several roots."""
    return "all" if account_of(recorded) else None


def projection(name: str, evolve: Any = evolve_by_actor, **more: Any) -> Any:
    given = {"key": account_of, "below": below, "events": (Opened, Paid), **more}
    return Projection(name, {}, evolve, **given)


PARTED = projection("parted")
POISONED = projection("poisoned", evolve_poisoned)
SCATTERED = projection("scattered", evolve_by_actor, key=owner_of)
UNSHOWN = projection("unshown", show=lambda key, row: {"bad": object()} if key == "b" else row)
NOWHERE = projection("nowhere", below=lambda key: None)


@pytest.fixture
def journal(store_path: Path) -> Iterator[Journal]:
    with Journal(store_path) as journal:
        tell(journal, STORY)
        yield journal


@pytest.fixture
def by_parts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Every log is long enough for two processes. Of each rebuild it tells whether they did it."""
    monkeypatch.setattr(view_parts, "LONG", 1)
    monkeypatch.setattr(view_parts, "cores", lambda: 2)
    monkeypatch.syspath_prepend(ROOT)
    done: list[bool] = []
    lay_aside = view_rebuild.lay_aside

    def told(*given: Any) -> bool:
        done.append(lay_aside(*given))
        return done[-1]

    monkeypatch.setattr(view_rebuild, "lay_aside", told)
    return done


def rows(path: Path, name: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(f'SELECT * FROM "{name}" ORDER BY key').fetchall()


def alone(journal: Journal, view: Any, path: Path) -> list[Any]:
    """The rows, status and error included, that one process makes."""
    with Views(journal, [view], path) as views, pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_parts, "LONG", 10**9)
        views.rebuild()
        return [*rows(path, view.name), *map(str, views.status())]


def test_all_views_of_a_log_of_plans_are_the_same_to_the_byte(
    store_path: Path, tmp_path: Path, by_parts: list[bool]
):
    """Each view that keeps to roots is folded by two processes, and every column is as by one."""
    fill(store_path, 1)
    told: list[tuple[str, int, int]] = []
    with Journal(store_path) as journal, Views(journal, all_views(), tmp_path / "v.db") as views:
        views.rebuild(progress=lambda *step: told.append(step))
        assert views.verify() == []
        assert sum(by_parts) >= 4
        for view in all_views():
            one = alone(journal, view, tmp_path / "one.db")
            assert [*rows(tmp_path / "v.db", view.name)] == one[:-1]
        head = journal.head()
    shown = [step for step in told if step[0] == "plan_status"]
    assert len(shown) > 1
    assert all(done <= head == last for _, done, last in shown)
    assert [done for _, done, _ in shown] == sorted(done for _, done, _ in shown)


def test_the_rest_of_an_envelope_is_there_for_views_that_read_it(
    journal: Journal, tmp_path: Path, by_parts: list[bool]
):
    with Views(journal, [PARTED], tmp_path / "v.db") as views:
        views.rebuild()
        assert by_parts == [True]
        assert views.verify() == []
        assert [*rows(tmp_path / "v.db", "parted"), *map(str, views.status())] == alone(
            journal, PARTED, tmp_path / "one.db"
        )


@pytest.mark.parametrize("view", [POISONED, SCATTERED, UNSHOWN], ids=lambda view: view.name)
def test_what_must_be_met_in_order_is_left_to_one_process(
    journal: Journal, tmp_path: Path, by_parts: list[bool], view: Any
):
    """A poison event, a row of several roots, one that cannot be shown: parked as ever."""
    with Views(journal, [view], tmp_path / "v.db") as views:
        views.rebuild()
        assert by_parts[0] is False
        status = list(map(str, views.status()))
        assert [*rows(tmp_path / "v.db", view.name), *status] == alone(
            journal, view, tmp_path / "one.db"
        )
        assert views.status()[0].error is not None or view is SCATTERED


def test_a_view_that_no_module_holds_or_that_names_no_streams_is_folded_in_one_process(
    journal: Journal, tmp_path: Path, by_parts: list[bool]
):
    for view in (balances(), STATEMENTS, NOWHERE):
        with Views(journal, [view], tmp_path / f"{view.name}.db") as views:
            views.rebuild()
            assert views.verify() == []
    assert by_parts == [False] * 3


def test_what_comes_meanwhile_is_folded_on(journal: Journal, tmp_path: Path, by_parts: list[bool]):
    """New rows, changed rows, and a live view that is further than the parts were."""
    path = tmp_path / "v.db"
    with Views(journal, [PARTED], path) as live, Views(journal, [PARTED], path) as views:
        live.catch_up()
        first = journal.head()

        def during(*_: object) -> None:
            if journal.head() == first:
                tell(
                    journal, [("d", Opened("dora")), ("d", Paid(3, "rent")), ("a", Paid(1, "gift"))]
                )
                live.catch_up()

        views.rebuild(progress=during)
        assert by_parts[-1] is True
        assert views.status()[0].position == journal.head() == first + 3
        assert views.verify() == []
        assert live.verify() == []


def test_a_process_that_is_killed_is_done_without(
    journal: Journal, tmp_path: Path, by_parts: list[bool], monkeypatch: pytest.MonkeyPatch
):
    begun: list[int] = []

    class Doomed(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            begun.append(self.pid)
            os.kill(self.pid, signal.SIGKILL)

    monkeypatch.setattr(view_parts.subprocess, "Popen", Doomed)
    with Views(journal, [PARTED], tmp_path / "v.db") as views:
        views.rebuild()
        assert by_parts == [False]
        assert begun
        assert views.verify() == []
        assert rows(tmp_path / "v.db", "parted")


def test_nothing_is_left_beside_the_file(
    journal: Journal, tmp_path: Path, by_parts: list[bool], monkeypatch: pytest.MonkeyPatch
):
    """Neither the rows that were laid aside nor a process, also when the caller gives up."""
    begun: list[Any] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            begun.append(self)

    monkeypatch.setattr(view_parts.subprocess, "Popen", Noted)
    (tmp_path / "views").mkdir()
    path = tmp_path / "views" / "v.db"

    def give_up(*_: object) -> None:
        raise KeyboardInterrupt

    with Views(journal, [PARTED], path) as views:
        with pytest.raises(KeyboardInterrupt):
            views.rebuild(progress=give_up)
        views.rebuild()
        assert views.verify() == []
    assert by_parts == [True]
    assert all(
        each.name in ("v.db", "v.db.lock", "v.db.lock.queue") for each in path.parent.iterdir()
    )
    assert len(begun) == 4
    assert all(each.returncode is not None for each in begun)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_roots_are_cut_once_each(store_path: Path, size: int):
    """Also where a stream stands between a root's own stream and those below it."""
    ids = ["p", "p-1", "p/x", "q/x/y", "q-", "r/1", "r/1/2", "r.1"]
    with Journal(store_path) as journal:
        for id in ids:
            tell(journal, [(id, Opened("bob"))])
        head = journal.head()
    with closing(Slices(store_path, [Opened.stored_name], head)) as slices:
        pieces = list(slices.pieces(size))
        roots = [root for piece in pieces for root in piece]
        seen = [recorded.position for root in roots for recorded in slices.below(root)]
    assert len(set(roots)) == len(roots)
    assert sorted(seen) == list(range(1, head + 1))
    if size == 1:
        assert all(len(piece) == 1 for piece in pieces)
