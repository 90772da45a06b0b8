"""Reading plans, their attempts and steps, and the log: for people, and as JSON."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from statelog.infrastructure import Journal, Views
from statelog.infrastructure.cli.log import stream_prefix
from statelog.projections.execution import EXECUTION_VIEWS
from tests.infrastructure.cli.desk import Desk, a_step

ENVELOPE = {
    *("position", "stream", "version", "name", "schema", "time", "actor", "command"),
    *("correlation", "cause", "meta", "data"),
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A plan that ran twice: the second time a parameter differed and a branch failed."""
    desk = Desk(tmp_path_factory.mktemp("read"))

    def plan(text: str, fn: str) -> Path:
        return desk.plan(
            *(a_step("a", "write", params={"text": text}), a_step("b", "ok", "a")),
            *(a_step("x", fn, params={"v": text}), a_step("y", "ok", "x")),
            policy="continue_independent",
            plan_id="my plan",
        )

    assert desk("run", plan("one", "ok")).code == 0
    assert desk("run", plan("two", "bad")).code == 1
    return desk


def newest(desk: Desk) -> list[str]:
    return [line["execution_id"] for line in desk("plan", "attempts", "my plan", "--json").lines]


def test_status_is_the_snapshot_as_it_is(desk: Desk):
    """--json prints the view's document, in its order; an older attempt has one too."""
    with Journal(desk.store) as journal, Views(journal, EXECUTION_VIEWS) as views:
        snapshot = views.get("plan_status", "my plan")
    done = desk("plan", "status", "my plan", "--json")
    assert done.out == json.dumps(snapshot) + "\n"
    assert list(done.json["steps"]) == ["a", "b", "x", "y"]
    second, first = newest(desk)
    assert done.json["attempt"]["execution_id"] == second
    older = desk("plan", "status", "my plan", "--attempt", first, "--json").json
    assert (older["attempt"]["execution_id"], older["type"]) == (first, "plan_status")
    assert older["steps"]["x"]["outcome"] == "succeeded"
    assert older.keys() == snapshot.keys()


def test_status_for_people(desk: Desk):
    """Facts, then the steps: state, time, why it ran, what failed, what blocks."""
    text = desk("plan", "status", "my plan").out
    assert "2 succeeded" not in text
    rows = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "finished (run 0, executed 0)" in rows["request"]
    assert "text" in rows["a"]
    assert " s " in rows["a"]
    assert "nothing it depends on changed" in rows["b"]
    assert "it is broken (broken); mend it" in rows["x"]
    assert "by x" in rows["y"]


def test_a_plan_that_never_ran(tmp_path: Path):
    """People see the document's facts; the snapshot is null."""
    desk = Desk(tmp_path)
    desk("plan", "save", desk.plan(a_step("a")))
    done = desk("plan", "status", "p")
    assert (done.code, "no attempt yet" in done.out) == (0, True)
    assert desk("plan", "status", "p", "--json").json is None
    assert desk("plan", "attempts", "p").out == "no attempts\n"
    assert desk("plan", "explain", "p", "a").code == 1


def test_a_deleted_plan_keeps_its_history(tmp_path: Path):
    """Snapshots and events stay; the document is gone."""
    desk = Desk(tmp_path)
    desk("run", desk.plan(a_step("a")))
    desk("plan", "delete", "p")
    assert "deleted" in desk("plan", "status", "p").out
    assert desk("plan", "show", "p").code == 1
    assert desk("plan", "explain", "p", "a").code == 0
    assert desk("plan", "list").out == "no plans\n"
    assert desk("plan", "list", "--json").out == ""


def test_attempts_are_the_newest_first(desk: Desk):
    """Each with its run, its result, and what became of its steps."""
    second, first = newest(desk)
    assert second > first
    text = desk("plan", "attempts", "my plan").out.splitlines()
    assert text[1].startswith(second)
    assert "1 succeeded, 1 reused, 1 failed, 1 blocked" in text[1]
    assert "4 succeeded" in text[2]


def test_show_prints_the_document(desk: Desk):
    """Indented for people, one line for programs, the same value."""
    people = desk("plan", "show", "my plan").out
    assert people.startswith('{\n  "_id": "my plan"')
    assert json.loads(people) == desk("plan", "show", "my plan", "--json").json


def test_explain_says_why(desk: Desk):
    """A step that ran again names the parameter; a blocked one what failed; events by position."""
    told = desk("plan", "explain", "my plan", "a", "--json").json
    assert told["why"]
    assert any("text" in part for part in told["differ"])
    text = desk("plan", "explain", "my plan", "a").out
    assert "not reused because" in text
    assert "step.started" in text
    blocked = desk("plan", "explain", "my plan", "y").out
    assert "failed upstream  x: it is broken" in blocked
    _, first = newest(desk)
    older = desk("plan", "explain", "my plan", "y", "--attempt", first)
    assert "succeeded" in older.out


def test_history_is_the_log_below_a_prefix(desk: Desk):
    """Every event in log order with its envelope, the data as JSON; --since is exclusive."""
    lines = desk("log", "history", "my plan", "--json").lines
    with Journal(desk.store) as journal:
        everything = list(journal.read())
    assert [line["position"] for line in lines] == [recorded.position for recorded in everything]
    assert {frozenset(line) for line in lines} == {frozenset(ENVELOPE)}
    assert lines[0]["data"]["plan_id"] == "my plan"
    assert lines[0]["stream"] == "plan/my%20plan"
    assert {line["stream"].split("/")[2] for line in lines if line["stream"].count("/") > 1} == {
        "slot",
        "attempt",
    }
    last = lines[-1]["position"]
    later = desk("log", "history", "my plan", "--since", last - 3, "--json").lines
    assert [line["position"] for line in later] == [last - 2, last - 1, last]
    none = desk("log", "history", "my plan", "--since", last)
    assert (none.code, none.out) == (0, "")


def test_history_for_people_is_one_line_an_event(desk: Desk):
    """Position, time, actor, name, stream and data."""
    lines = desk("log", "history", "my plan").out.splitlines()
    assert len(lines) == len(desk("log", "history", "my plan", "--json").lines)
    assert "execution.plan.saved  plan/my%20plan@1  {" in lines[0]


def test_history_shows_what_no_code_can_read(tmp_path: Path, damaged_store: Callable[[Path], None]):
    """A name that nothing declares, and a payload that is gone."""
    desk = Desk(tmp_path)
    damaged_store(desk.store)
    desk("plan", "save", desk.plan(a_step("a")), "--approve")
    with closing(sqlite3.connect(desk.store)) as db:
        db.execute("UPDATE events SET name = 'another.thing.happened' WHERE position = 1")
        db.execute("UPDATE events SET data = NULL WHERE position = 2")
        db.commit()
    first, second = desk("log", "history", "p", "--json").lines
    assert (first["name"], first["data"]["plan_id"]) == ("another.thing.happened", "p")
    assert second["data"] is None
    assert "(erased)" in desk("log", "history", "p").out
    broken = desk("plan", "explain", "p", "a")
    assert broken.code == 1


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("reads-qc", "plan/reads-qc"),
        ("my plan", "plan/my%20plan"),
        ("a%20b", "plan/a%2520b"),
        ("plan/my plan", "plan/my%20plan"),
        ("plan/my%20plan/slot", "plan/my%20plan/slot"),
        ("plan/50%", "plan/50%25"),
        ("plan/", "plan"),
        ("plan/é/attempt", "plan/%C3%A9/attempt"),
    ],
)
def test_a_prefix_is_what_was_meant(given: str, meant: str):
    """A bare id is a plan; parts that are not encoded are encoded."""
    assert stream_prefix(given) == meant


@pytest.mark.parametrize("given", ["", "/", "plan//slot", "\udcff", "plan/\udcff"])
def test_a_prefix_that_names_nothing(desk: Desk, given: str):
    """Exit 2 naming it."""
    done = desk("log", "history", given)
    assert (done.code, "prefix" in done.error) == (2, True)


def test_refusals_are_listed(tmp_path: Path):
    """What a rule forbade: who, what, where, which rule and why."""
    desk = Desk(tmp_path)
    desk("plan", "save", desk.plan(a_step("a")))
    assert desk("log", "refusals").out == "nothing was refused\n"
    with Journal(desk.store) as journal:
        for at in range(3):
            journal.refuse(
                actor="alice", stream="plan/p", version=at, command=None, rule="r", reason="\x1b[2J"
            )
    assert len(desk("log", "refusals", "--json").lines) == 3
    (line,) = desk("log", "refusals", "--limit", 1, "--json").lines
    assert (line["actor"], line["version"], line["rule"]) == ("alice", 2, "r")
    assert tuple(line) == ("time", "actor", "stream", "version", "command", "rule", "reason")
    text = desk("log", "refusals").out
    assert "\\x1b[2J" in text
    assert "\x1b" not in text
