"""Views that are not pure are refused by the kit, each for its own reason."""

from __future__ import annotations

import datetime
import random
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytest

from statelog.domain import Event, Recorded
from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.testing import assert_pure
from statelog.infrastructure.testing.purity import impurities
from statelog.infrastructure.testing.views_contract import (
    STATEMENTS,
    STORY,
    account_of,
    balances,
    evolve_balance,
    tell,
)
from statelog.projections import Projection
from tests.house.repo import ROOT

Evolve = Callable[[Any, Recorded], Any]


@pytest.fixture(scope="module")
def events() -> Iterator[list[Recorded]]:
    with Journal() as journal:
        tell(journal, STORY)
        yield list(journal.read())


def stamped(row: Any, recorded: Recorded) -> Any:
    return {"at": time.time()}


def dated(row: Any, recorded: Recorded) -> Any:
    return {"at": datetime.datetime.now(UTC).isoformat()}


def dated_late(row: Any, recorded: Recorded) -> Any:
    from datetime import date

    return {"at": str(date.today())}


def rolled(row: Any, recorded: Recorded) -> Any:
    return {"at": random.random()}


def read(row: Any, recorded: Recorded) -> Any:
    with open("/dev/null") as file:
        return {"text": file.read()}


def late(row: Any, recorded: Recorded) -> Any:
    import os

    return {"at": os.getpid()}


def indirect(row: Any, recorded: Recorded) -> Any:
    return helper(row, recorded)


@lru_cache
def _cached(position: int) -> Any:
    return position + rolled({}, None)["at"]  # type: ignore[arg-type]


def helper(row: Any, recorded: Recorded) -> Any:
    return {"at": _cached(recorded.position)}


def inner(row: Any, recorded: Recorded) -> Any:
    return next(map(lambda _: {"at": time.monotonic()}, [row]))


COUNT = 0


def counted(row: Any, recorded: Recorded) -> Any:
    global COUNT  # noqa: PLW0603
    COUNT += 1
    return {"n": COUNT}


def closed_over() -> Evolve:
    clock = time.time

    def evolve(row: Any, recorded: Recorded) -> Any:
        return {"at": clock()}

    return evolve


@pytest.mark.parametrize(
    ("evolve", "why"),
    [
        (stamped, "stamped uses time"),
        (dated, "dated uses datetime.now"),
        (dated_late, "dated_late uses datetime.today"),
        (rolled, "rolled uses random"),
        (read, r"read uses open\(\)"),
        (late, "late uses os"),
        (indirect, "rolled uses random"),
        (inner, "inner uses time"),
        (partial(stamped), "stamped uses time"),
        (counted, "counted changes the global COUNT"),
        (closed_over(), "evolve uses time"),
    ],
)
def test_what_a_fold_reaches_for_is_named(events: list[Recorded], evolve: Evolve, why: str):
    """Also in what it calls, imports late, defines inside or closes over."""
    with pytest.raises(AssertionError, match=f"view balances is not pure: .*{why}"):
        assert_pure(balances(evolve=evolve), events)


@pytest.mark.parametrize("part", ["key", "show", "columns", "below"])
def test_every_function_of_a_view_is_looked_at(part: str):
    """Not its fold alone."""
    given: dict[str, Any] = {"key": account_of, "events": balances().events}

    def bad(*_: Any) -> Any:
        return time.time()

    given[part] = {"at": bad} if part == "columns" else bad
    assert impurities(Projection("x", {}, evolve_balance, **given)) != []


def changes_its_state(row: Any, recorded: Recorded) -> Any:
    after = evolve_balance(row, recorded)
    if row and after:
        row["payments"].append("x")
    return after


class Tagged(Event, name="test.purity.tagged"):
    tags: list[str]


def tagged(*events: Tagged) -> list[Recorded]:
    """Envelopes without a store."""
    return [
        Recorded(
            position, "account/a", position, event.stored_name, 1, position, "bob", "c", None,
            None, None, b"", b"", b"", decoder=lambda _, event=event: event,
        )
        for position, event in enumerate(events, 1)
    ]  # fmt: skip


def changes_its_event(row: Any, recorded: Recorded) -> Any:
    recorded.event.tags.sort()  # type: ignore[attr-defined]
    return {"tags": recorded.event.tags}  # type: ignore[attr-defined]


def test_a_fold_that_changes_its_event_is_refused():
    """Others fold the same event; the event itself is not touched by the check."""
    event = Tagged(["b", "a"])
    view: Projection[Any] = Projection(
        "tags", {}, changes_its_event, key=account_of, events=(Tagged,)
    )
    with pytest.raises(AssertionError, match=r"event 1 .*in place \(sort\) a list"):
        assert_pure(view, tagged(event))
    assert event.tags == ["b", "a"]


def test_a_fold_that_changes_what_it_was_given_is_refused(events: list[Recorded]):
    """A list inside a state, and the blank state itself."""
    with pytest.raises(AssertionError, match=r"not pure at event 3 .*in place \(append\) a list"):
        assert_pure(balances(evolve=changes_its_state), events)

    def grows(row: Any, recorded: Recorded) -> Any:
        row["n"] = recorded.position
        return row

    with pytest.raises(AssertionError, match=r"event 1 .*\(__setitem__\) a dict"):
        assert_pure(balances(evolve=grows), events)


def test_a_fold_that_remembers_is_refused(events: list[Recorded]):
    """Nothing it reaches for is wrong, and still two folds differ."""
    seen: list[int] = []

    def evolve(row: Any, recorded: Recorded) -> Any:
        seen.append(recorded.position)
        return {"n": len(seen)}

    with pytest.raises(AssertionError, match="folded twice differs for 'a'"):
        assert_pure(balances(evolve=evolve), events)


def test_a_row_whose_events_are_elsewhere_than_declared_is_refused(events: list[Recorded]):
    """Or one row of the past would be folded from a part of its events."""
    view: Projection[Any] = Projection(
        "balances", {}, evolve_balance, key=account_of, events=balances().events,
        below=lambda key: "account/a",
    )  # fmt: skip
    with pytest.raises(AssertionError, match="'b' are below account/a, and event 2 is in "):
        assert_pure(view, events)


@pytest.mark.parametrize("view", [balances(), STATEMENTS], ids=lambda view: view.name)
def test_a_pure_view_is_accepted(events: list[Recorded], view: Projection[Any]):
    """With states of both kinds."""
    assert_pure(view, events)


@pytest.mark.parametrize("view", all_views(), ids=lambda view: view.name)
def test_every_view_of_ours_is_pure(view: Projection[Any], tmp_path: Path):
    """What its code reaches for, and what it does to the events of the golden log."""
    tmp_path.chmod(0o700)
    for log in sorted((ROOT / "tests" / "golden").glob("*.db")):
        shutil.copy(log, tmp_path / "log.db")
        (tmp_path / "log.db").chmod(0o600)
        with Journal(tmp_path / "log.db", read_only=True) as journal:
            assert_pure(view, journal.read())
        (tmp_path / "log.db").unlink()
