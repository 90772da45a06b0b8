"""`store import`, and what the other commands say of what came in."""

from __future__ import annotations

import json
from pathlib import Path

from statelog.projections.execution.spool import spool as spooled
from tests.infrastructure.cli.desk import Desk, a_step
from tests.infrastructure.execution.spools import FIRST, SECOND, Spool, document, marked


def test_a_spool_comes_in_and_every_reading_command_works_on_it(desk: Desk):
    """`plan status`, `attempts`, `explain`, `log audit` and `views verify`."""
    spool = Spool(desk.folder / "spool")
    spool.ran(FIRST)
    spool.start(SECOND)
    done = desk("store", "import", spool.root)
    assert done.code == 0
    assert "2 attempts imported, floor raised" in done.out
    assert "1 of 1 files and plans" in done.err
    status = desk("plan", "status", "p")
    assert (status.code, SECOND in status.out, "running" in status.out) == (0, True, True)
    older = desk("plan", "status", "p", "--attempt", FIRST)
    assert "3.00 s" not in older.out
    assert "2.00 s" in older.out  # from 10:00:01 to 10:00:03, whenever it was imported
    assert desk("plan", "attempts", "p", "--json").lines[1]["execution_id"] == FIRST
    explained = desk("plan", "explain", "p", "a", "--attempt", FIRST, "--json").json
    assert (explained["state"], explained["differ"]) == ("step.succeeded", None)
    assert desk("log", "audit").code == 0
    assert desk("views", "verify").code == 0


def test_json_has_a_line_for_each_thing_and_one_for_all(desk: Desk):
    """And the exit code says whether something was skipped."""
    spool = Spool(desk.folder / "spool")
    spool.ran(FIRST)
    spool.attempt(SECOND)
    done = desk("store", "import", spool.root, "--json")
    *items, last = done.lines
    assert [(each["kind"], each["result"]) for each in items] == [
        ("attempt", "imported"),
        ("file", "passed over"),
        ("floor", "imported"),
    ]
    assert (done.code, last["ok"], last["events"]) == (0, True, 7)
    assert last["counts"]["attempt"] == {"imported": 1}
    spool.start(SECOND).write_text("{")
    done = desk("store", "import", spool.root, "--json")
    skipped = [each for each in done.lines if each.get("result") == "skipped"]
    assert (done.code, done.lines[-1]["ok"]) == (1, False)
    assert skipped[0]["place"] == f"lab/p/attempts/{SECOND}/plan_attempt_started.json"
    assert "is not JSON" in skipped[0]["why"]


def test_people_get_tables_of_what_came_in_and_what_did_not(desk: Desk):
    """What the layout leaves aside is counted, and listed with --all."""
    spool = Spool(desk.folder / "spool")
    spool.ran(FIRST)
    spool.attempt(SECOND)
    (spool.root / "plans.jsonl").write_text(json.dumps(document()) + "\n{\n")
    done = desk("store", "import", spool.root)
    assert done.code == 1
    assert "1 document imported, 1 attempt imported, floor raised" in done.out
    assert "plans.jsonl:2" in done.out
    assert SECOND not in done.out
    assert "1 passed over" in done.err
    assert SECOND in desk("store", "import", spool.root, "--all").out


def test_an_attempt_without_its_plan_is_shown_as_such(desk: Desk):
    """Nobody deleted a plan that never was here."""
    spool = Spool(desk.folder / "spool")
    spool.ran(FIRST)
    desk("store", "import", spool.root)
    status = desk("plan", "status", "p").out
    assert (FIRST in status, "no document here" in status, "deleted" in status) == (
        True,
        True,
        False,
    )


def test_a_history_without_executions_is_shown(desk: Desk):
    """Case 113, for people and as JSON; lists and explanations take it too."""
    spool = Spool(desk.folder / "spool")
    spool.older("a", "run_1", "step.started", 1)
    spool.older("a", "run_1", "step.succeeded", 2)
    (spool.root / "plans.json").write_text(json.dumps(document()))
    assert desk("store", "import", spool.root).code == 0
    status = desk("plan", "status", "p")
    assert (status.code, "without executions" in status.out) == (0, True)
    snapshot = desk("plan", "status", "p", "--json").json
    assert (snapshot["projection"], snapshot["attempt"]) == ("legacy", None)
    assert desk("plan", "list").code == 0
    assert desk("plan", "attempts", "p").out == "no attempts\n"
    assert desk("plan", "explain", "p", "a").code == 0
    assert desk("views", "verify").code == 0


def test_imported_plans_are_listed_whatever_their_documents_hold(desk: Desk):
    """A request whose tokens cannot be read has no state; the others are open."""
    step = a_step("a")
    docs = [
        document("good", plan={"plan_id": "good", "realm": "lab", "steps": [step]}),
        document("other", plan={"plan_id": "good", "realm": "lab", "steps": [step]}),
        document("empty", plan={}),
        document("list", plan=[]),
        document("words", run_token="many"),
        document("nobody", execution_authority=None),
    ]
    path = desk.file(json.dumps(docs), "plans.json")
    assert desk("store", "import", path).code == 0
    listed = {line["plan_id"]: line for line in desk("plan", "list", "--json").lines}
    assert {id: line["request"] for id, line in listed.items()} == {
        **dict.fromkeys(("good", "other", "empty", "list", "nobody"), "open"),
        "words": None,
    }


def test_a_run_comes_back_from_its_spool_as_it_was(desk: Desk, tmp_path: Path):
    """What `spool` shows of our own attempts, written in the layout of 6.4, is the same again."""
    steps = [a_step("a"), a_step("b", deps=["a"])]
    desk("run", desk.plan(*steps))
    desk("plan", "request", "p")
    desk("run", desk.plan(*steps))
    folder = desk.folder / "spool"
    for each in spooled(desk.events()):
        attempt = folder / each["realm"] / each["plan_id"] / "attempts" / each["execution_id"]
        if each["type"].startswith("plan."):
            path = attempt / f"{each['type'].replace('.', '_')}.json"
        else:
            inside = map(marked, each["step_id"].split("/"))
            name = f"{each['seq']:04}_{each['type'].replace('.', '_')}.json"
            path = attempt.joinpath("steps", *inside, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(each))
    before = desk("plan", "status", "p", "--json").json
    other = tmp_path / "other.db"
    done = desk("store", "import", folder, store=other)
    assert (done.code, done.out.count("attempts imported")) == (0, 1)
    after = desk("plan", "status", "p", "--json", store=other).json
    assert {**after, "updated_at": None} == {**before, "updated_at": None}
    pairs = zip(spooled(desk.events()), _spool_of(desk, other), strict=True)
    moved = {"eid", "ts"}
    for ours, theirs in pairs:
        dropped = moved if ours["type"].startswith("plan.") else {"eid"}
        assert {k: v for k, v in ours.items() if k not in dropped} == {
            k: v for k, v in theirs.items() if k not in dropped
        }


def _spool_of(desk: Desk, store: Path) -> list[object]:
    from statelog.infrastructure.journal import Journal

    with Journal(store, read_only=True) as journal:
        return list(spooled(list(journal.history("plan/p/attempt"))))


def test_what_is_not_there_and_what_holds_nothing_is_said(desk: Desk):
    """Exit 2, one line."""
    assert desk("store", "import", "none").code == 2
    (desk.folder / "void").mkdir()
    done = desk("store", "import", "void")
    assert (done.code, "REALM/PLAN/attempts" in done.error) == (2, True)
