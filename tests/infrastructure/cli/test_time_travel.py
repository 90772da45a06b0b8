"""`log at`, `log diff` and `log bisect`: the past, what changed, and what broke it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statelog.domain.times import iso
from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.cli.loading import projection
from statelog.infrastructure.journal import Journal
from statelog.projections import replay
from statelog.projections.execution import plan_status, plan_summary
from tests.infrastructure.cli.desk import Desk, a_step

MINE = """
from statelog.projections.execution.document import PLAN_EVENTS
from statelog.projections import Projection
from helper import told

touches = Projection(
    "touches", {}, lambda row, recorded: {"n": row.get("n", 0) + told(recorded)},
    key=lambda recorded: recorded.stream.split("/")[1], events=PLAN_EVENTS,
)
twice = Projection(
    "touches", {}, lambda row, recorded: {"n": row.get("n", 0) + 2 * told(recorded)},
    key=touches.key, events=PLAN_EVENTS,
)
broken = Projection(
    "broken", {}, lambda row, recorded: row["n"], key=touches.key, events=PLAN_EVENTS,
)

def at_most_four(row):
    assert row is None or row["n"] <= 4, row

def few(events):
    return sum(1 for _ in events) < 3

def fails(row):
    return row["nothing"]
"""
HELPER = """
def told(recorded):
    return 1
"""


@pytest.fixture
def ran(desk: Desk) -> Desk:
    """A desk where a plan was run and then touched, with modules of its own."""
    assert desk("run", desk.plan(a_step("a"))).code == 0
    for _ in range(3):
        assert desk("plan", "touch", "p").code == 0
    desk.file(MINE, "mine.py")
    desk.file(HELPER, "helper.py")
    return desk


def mine(desk: Desk, name: str) -> tuple[str, str, Path]:
    """What is typed to name one of the desk's own objects."""
    return f"mine:{name}", "--path", desk.folder


def test_a_row_of_the_past_is_its_replay(ran: Desk):
    """By position, by time, and now; alone, and among all rows."""
    with Journal(ran.store, read_only=True) as journal:
        for recorded in journal.read():
            upto = journal.position_at(recorded.time)
            expected = replay(plan_status, journal.read(upto=upto)).get("p")
            for moment in (str(upto), iso(recorded.time), iso(recorded.time)[:-1]):
                rows = ran("log", "at", moment, "plan_status", "--json").lines
                known = [] if expected is None else [expected]
                assert [row["document"] for row in rows] == known
                one = ran("log", "at", moment, "plan_status", "p", "--json")
                assert one.code == (1 if expected is None else 0)
                if expected is not None:
                    assert one.json == {"position": upto, "key": "p", "document": expected}
        now = replay(plan_summary, journal.read())["p"]
    assert json.loads(ran("log", "at", "now", "plan_summary", "p").out) == now
    assert ran("log", "at", "now", "plan_summary").out.startswith('p  {"')


def test_every_view_can_be_asked(ran: Desk):
    """By the name that `views list` shows."""
    names = [line["name"] for line in ran("views", "list", "--json").lines]
    assert names == [view.name for view in all_views()]
    for name in names:
        assert ran("log", "at", "now", name).code == 0


def test_what_changed_is_told_by_row_and_place(ran: Desk):
    """Between two positions, in either direction, and for one row."""
    with Journal(ran.store, read_only=True) as journal:
        head = journal.head()
    changed = ran("log", "diff", head - 1, "now", "plan_document", "p", "--json").lines
    fields = {line["field"]: (line["before"], line["after"]) for line in changed}
    assert int(fields["_rev"][1]) == int(fields["_rev"][0]) + 1
    assert {(line["key"], line["change"]) for line in changed} == {("p", "changed")}
    back = ran("log", "diff", "now", head - 1, "plan_document", "--json").lines
    assert {line["field"]: (line["after"], line["before"]) for line in back} == fields
    (new,) = ran("log", "diff", "0", "1", "plan_document", "--json").lines
    assert (new["key"], new["field"], new["change"], new["before"]) == ("p", "", "added", None)
    (gone,) = ran("log", "diff", "1", "0", "plan_document", "--json").lines
    assert (gone["change"], gone["after"]) == ("removed", None)
    text = ran("log", "diff", head - 1, "now", "plan_document").out
    assert "~ p  _rev: " in text
    assert ran("log", "diff", "now", "now", "plan_document").out == "nothing differs\n"
    assert ran("log", "diff", "now", "now", "plan_document", "--json").out == ""


def test_what_another_projection_would_give_is_told(ran: Desk):
    """What if: the same events, folded by two versions."""
    view, *path = mine(ran, "touches")
    told = ran("log", "diff", "now", "now", view, "--with", "mine:twice", "--json", *path).lines
    (line,) = told
    assert (line["field"], line["after"]) == ("n", 2 * line["before"])


def test_a_projection_of_ones_own_is_folded(ran: Desk):
    """With the modules beside it; nothing of it is stored."""
    view, *path = mine(ran, "touches")
    assert ran("log", "at", "1", view, "p", "--json", *path).json["document"] == {"n": 1}
    assert "touches" not in ran("views", "list").out


def test_the_event_that_broke_something_is_found(ran: Desk):
    """Exit 1, with the event, and the row before and after it."""
    view, *path = mine(ran, "touches")
    words = ("log", "bisect", "mine:at_most_four", "--view", view, "--key", "p", *path)
    done = ran(*words, "--json")
    assert done.code == 1
    found = done.json
    assert (found["before"], found["after"]) == ({"p": {"n": 4}}, {"p": {"n": 5}})
    assert found["event"]["position"] == found["position"]
    assert not found["holds"]
    text = ran(*words).out
    for part in ("breaks at position", '{"n": 4}', '{"n": 5}', "~ p  n: 4 -> 5", "probes"):
        assert part in text
    held = ran(*words, "--bad", found["position"] - 1, "--json")
    assert (held.code, held.json["holds"], held.json["probes"]) == (0, True, 1)
    few = ran("log", "bisect", *mine(ran, "few"), "--json")
    assert (few.code, few.json["position"], few.json["after"]) == (1, 3, {})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("at", "99999", "due"), "position: the log ends at position"),
        (("at", "yesterday", "due"), "position: 'yesterday' is no position, time such as"),
        (("at", "now", "nothing"), "no view 'nothing'; `statelog views list`"),
        (("at", "now", "due", "q"), "no row of due at position"),
        (("at", "now", "mine:few"), "view: mine:few is no Projection but of type function"),
        (("at", "now", "nowhere:x"), "cannot be imported: ModuleNotFoundError: No module named"),
        (("at", "now", "mine:nothing"), "module 'mine' has no attribute 'nothing'"),
        (("at", "now", "mine:"), "view: 'mine:' is not module:NAME"),
        (("at", "now", "mine:broken"), "view broken raises KeyError: 'n'"),
        (("diff", "1", "x", "due"), "b: 'x' is no position"),
        (("diff", "1", "2", "due", "--with", "slots"), "--with: 'slots' is not module:NAME"),
        (("bisect", "mine:touches"), "predicate: mine:touches is no function"),
        (("bisect", "mine:few", "--key", "p"), "--key: needs --view"),
        (("bisect", "mine:few", "--good", "4", "--bad", "2"), "good: 4 is after 2"),
        (("bisect", "mine:fails", "--view", "due", "--key", "p"), "raises KeyError after"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(ran: Desk, words: tuple[str, ...], said: str):
    """Naming what was given wrong; nothing is printed beside it."""
    done = ran("log", *words, "--path", ran.folder)
    assert said in done.error
    assert (done.code, done.out) == (1 if done.error.startswith(("no ", "event ")) else 2, "")


def test_modules_are_taken_from_the_current_folder(ran: Desk):
    """And installed ones wherever they are."""
    done = ran.process("log", "at", "1", "mine:touches", "--json")
    assert (done.err, done.json["document"]) == ("", {"n": 1})
    view = "statelog.projections.execution:plan_summary"
    assert ran("log", "at", "now", view, "p").code == 0


def test_reading_the_past_makes_no_file(ran: Desk):
    """Not even the file of views."""
    for path in ran.folder.glob("s.db.views.db*"):
        path.unlink()
    before = ran.files
    assert ran("log", "at", "now", "plan_status", "p").code == 0
    assert ran("log", "diff", "1", "now", "plan_status").code == 0
    assert ran.files == before


def test_a_view_is_named_as_it_is():
    """Without a module nothing is imported."""

    def load(field: str, reference: str) -> object:
        raise AssertionError(reference)

    assert projection(load, "view", "plan_status") is plan_status
