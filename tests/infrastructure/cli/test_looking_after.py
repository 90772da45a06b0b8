"""`views`, `lifecycle` and `store`: what keeps a store trustworthy."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from statelog.domain import describe
from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.cli.lifecycles import NAMES, lifecycles
from statelog.infrastructure.cli.pace import Pace
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from statelog.projections.execution import EXECUTION_VIEWS
from tests.infrastructure.cli.desk import Desk, a_step, ended

OURS = {view.name for view in EXECUTION_VIEWS}
"""The views that commands about plans read."""


@pytest.fixture
def ran(desk: Desk) -> Desk:
    """A desk where a plan was run."""
    assert desk("run", desk.plan(a_step("a"))).code == 0
    return desk


def test_views_are_listed_with_their_lag(ran: Desk):
    """Listing does not catch up: the lag is what it is."""
    names = [view.name for view in all_views()]
    assert [line["name"] for line in ran("views", "list", "--json").lines] == names
    ran("plan", "touch", "p")
    lags = {line["name"]: line["lag"] for line in ran("views", "list", "--json").lines}
    assert {lags[name] for name in OURS} == {1}
    assert "plan_status" in ran("views", "list").out


def test_verified_views_are_byte_identical(ran: Desk):
    """Exit 0, and how much was compared."""
    done = ran("views", "verify")
    assert (done.code, "byte-identical" in done.out) == (0, True)
    told = ran("views", "verify", "--json").json
    assert told["differences"] == []
    assert len(told["views"]) == len(all_views())
    assert [view["name"] for view in ran("views", "verify", "due", "--json").json["views"]] == [
        "due"
    ]


def test_a_changed_row_is_named(ran: Desk, damaged_store: Callable[[Path], None]):
    """Exit 1 naming view, key, field and event; a rebuild mends it."""
    damaged_store(ran.store)
    with closing(sqlite3.connect(f"{ran.store}.views.db")) as db:
        document = json.loads(db.execute("SELECT document FROM plan_status").fetchone()[0])
        document["steps"]["a"]["outcome"] = "failed"
        db.execute(
            "UPDATE plan_status SET document = ?", [json.dumps(document, separators=(",", ":"))]
        )
        db.commit()
    done = ran("views", "verify")
    assert done.code == 1
    for part in ("plan_status", "'p'", "steps.a.outcome", "execution.attempt.", "event "):
        assert part in done.out
    (found,) = ran("views", "verify", "plan_status", "--json").json["differences"]
    assert (found["view"], found["key"], found["field"]) == ("plan_status", "p", "steps.a.outcome")
    assert found["position"] > 0
    assert ran("views", "verify", "due").code == 0
    rebuilt = ran("views", "rebuild", "plan_status")
    assert rebuilt.code == 0
    assert "plan_status: " in rebuilt.err
    assert ran("views", "verify").code == 0


def test_a_stopped_view_is_no_verified_one(ran: Desk, damaged_store: Callable[[Path], None]):
    """An event that cannot be read stops its views: exit 1, and where."""
    damaged_store(ran.store)
    ran("plan", "touch", "p")
    with closing(sqlite3.connect(ran.store)) as db:
        db.execute("UPDATE events SET data = '{\"x\": 1}' WHERE name LIKE '%touched'")
        db.commit()
    for words in (("views", "verify"), ("store", "doctor")):
        done = ran(*words)
        assert done.code == 1, words
        assert "plan_document stops at position" in done.out
    assert ran("plan", "show", "p").code in (0, 1)


def test_a_rebuild_tells_its_pace_and_then_what_is_wrong(
    ran: Desk, damaged_store: Callable[[Path], None]
):
    """Progress, rate and time on stderr; errors before the table; exit code 1 for a stopped view.

    `retry` says the same until the event can be read, and then goes on.
    """
    damaged_store(ran.store)
    fine = ran("views", "rebuild", "plan_status")
    assert (fine.code, "events, " in fine.err, "/s, took " in fine.err) == (0, True, True)
    ran("plan", "touch", "p")
    with closing(sqlite3.connect(ran.store)) as db:
        (data,) = db.execute("SELECT data FROM events WHERE name LIKE '%touched'").fetchone()
        db.execute("UPDATE events SET data = '{\"x\": 1}' WHERE name LIKE '%touched'")
        db.commit()
    for verb in ("rebuild", "retry"):
        done = ran("views", verb)
        assert done.code == 1
        assert "error: plan_document stops at position" in done.err
        assert done.out.splitlines()[0].split()[:2] == ["view", "version"]
    listed = {line["name"]: line for line in ran("views", "list", "--json").lines}
    assert listed["plan_document"]["lag"] == 1
    assert "touched" in listed["plan_document"]["error"]
    with closing(sqlite3.connect(ran.store)) as db:
        db.execute("UPDATE events SET data = ? WHERE name LIKE '%touched'", [data])
        db.commit()
    done = ran("views", "retry", "plan_document", "--json")
    assert (done.code, done.json["lag"], done.json["error"]) == (0, 0, None)
    assert ran("views", "retry", "nothing").error.startswith("no view 'nothing'")


def test_a_view_of_a_newer_release_does_not_keep_the_others_from_being_rebuilt(
    ran: Desk, damaged_store: Callable[[Path], None]
):
    """It is named, and the exit code is 1."""
    damaged_store(ran.store)
    with closing(sqlite3.connect(f"{ran.store}.views.db")) as db:
        db.execute("UPDATE view_positions SET version = 99 WHERE view = 'plan_document'")
        db.commit()
    done = ran("views", "rebuild")
    assert (done.code, "plan_document is kept at version 99" in done.error) == (1, True)
    assert "due: " in done.err


def test_followed_views_are_as_new_as_the_log(ran: Desk):
    """For those who read with SQL; SIGTERM ends it with exit code 0."""
    following = ran.start("views", "follow", "plan_document")
    assert following.stderr is not None
    assert "following" in following.stderr.readline()
    assert ran("plan", "touch", "p").code == 0
    with Journal(ran.store, read_only=True) as journal:
        head = journal.head()

    def position(view: str) -> int:
        with closing(sqlite3.connect(f"file:{ran.store}.views.db?mode=ro", uri=True)) as db:
            sql = "SELECT position FROM view_positions WHERE view = ?"
            return int(db.execute(sql, [view]).fetchone()[0])

    until = time.monotonic() + 60
    while position("plan_document") < head:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert position("due") == head - 1
    following.terminate()
    done = ended(following)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_progress_says_rate_and_time_left():
    """At most once a second, and at the end."""
    now, said = [0.0], list[str]()
    pace = Pace(lambda: now[0], said.append)
    for seconds, done in ((0.5, 50_000), (2, 246_900), (2.5, 300_000), (200, 400_000)):
        now[0] = seconds
        pace("due", done, 1_000_000)
    now[0] = 250
    pace("due", 1_000_000, 1_000_000)
    assert said == [
        "due: 246,900 of 1,000,000 events, 120,000/s, 6.1 s left",
        "due: 400,000 of 1,000,000 events, 2,000/s, 5 min 0 s left",
        "due: 1,000,000 of 1,000,000 events, 4,000/s, took 4 min 10 s",
    ]


def test_every_lifecycle_is_printed(desk: Desk):
    """As a table, as Markdown, as Mermaid, as JSON lines; without a store."""
    for name, lifecycle in lifecycles().items():
        table = desk("lifecycle", name).out
        assert all(row.event.stored_name in table for row in lifecycle.rows)
        assert desk("lifecycle", name, "--format", "markdown").out == describe.markdown(lifecycle)
        assert desk("lifecycle", name, "--format", "mermaid").out == describe.mermaid(lifecycle)
        assert desk("lifecycle", name, "--json").json == describe.data(lifecycle)
    assert tuple(lifecycles()) == NAMES
    assert [line["name"] for line in desk("lifecycle", "--json").lines] == list(NAMES)
    text = desk("lifecycle").out
    assert all(name in text for name in NAMES)
    assert desk.files == {"steps.py"}


def test_the_doctor_says_what_a_store_is_made_of(ran: Desk):
    """Versions, SQLite and its faults, sizes, positions, holders and views."""
    with Journal(ran.store) as journal:
        head = journal.head()
    with Holders.of(ran.store).take("run_once") as holder:
        dead = Holders.of(ran.store)
        path = dead._file("run_once:gone")
        path.write_text('{"pid": 1, "host": "h"}')
        told = ran("store", "doctor", "--check", "--json")
        text = ran("store", "doctor").out
    assert told.code == 0
    found = told.json
    assert (found["position"], found["quick_check"], found["dense"]) == (head, ["ok"], True)
    assert found["sqlite_version"] == sqlite3.sqlite_version
    assert "sqlite_fault" in found
    assert {each["id"]: each["alive"] for each in found["holders"]} == {
        holder.id: True,
        "run_once:gone": False,
    }
    assert {view["lag"] for view in found["views"] if view["name"] in OURS} == {0}
    assert found["problems"] == []
    for part in ("living", "dead", "plan_status", sqlite3.sqlite_version, str(ran.store)):
        assert part in text


def test_the_doctor_makes_nothing(ran: Desk):
    """Views that are not there stay away."""
    for path in ran.folder.glob("s.db.views.db*"):
        path.unlink()
    before = ran.files
    done = ran("store", "doctor")
    assert (done.code, "no views are stored" in done.out) == (0, True)
    assert ran.files == before


def test_the_doctor_finds_what_is_wrong(ran: Desk, damaged_store: Callable[[Path], None]):
    """A hole in the log, and a file of views that is none: exit 1 and both are said."""
    damaged_store(ran.store)
    with closing(sqlite3.connect(ran.store)) as db:
        db.execute("DELETE FROM events WHERE position = 3")
        db.commit()
    Path(f"{ran.store}.views.db").write_text("no views " * 1000)
    done = ran("store", "doctor", "--check")
    assert done.code == 1
    assert "positions are missing" in done.out
    assert "not a file of views" in done.out
