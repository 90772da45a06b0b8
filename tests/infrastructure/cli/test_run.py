"""`statelog run`: what it does with a plan, what it prints, how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from statelog.domain.execution.plan import PLAN, save
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from tests.infrastructure.cli.desk import RUN_FIELDS, Desk, a_step


def test_a_new_plan_is_saved_approved_run_and_recorded(desk: Desk):
    """Progress on stderr, a table of steps on stdout, exit 0."""
    done = desk("run", desk.plan(a_step("a"), a_step("b", "ok", "a")))
    assert done.code == 0
    assert "plan 'p' is new: saved and approved" in done.err
    assert "a  succeeded" in done.err
    assert [line.split()[:2] for line in done.out.splitlines()[1:3]] == [
        ["a", "succeeded"],
        ["b", "succeeded"],
    ]
    assert "succeeded (recorded)" in done.out
    assert desk.names()[-1] == "released"


def test_json_is_one_line_with_exactly_these_fields(desk: Desk):
    """The report is whole, and stdout holds nothing else, whatever steps and commands print."""
    done = desk.process("run", desk.plan(a_step("a", "prints")), "--json")
    assert done.code == 0
    assert tuple(done.json) == RUN_FIELDS
    assert done.json["resolution"] == "finalized"
    assert (done.json["outcome"], done.json["termination_reason"]) == ("succeeded", "completed")
    assert done.json["report"]["step_outcomes"] == {"a": "succeeded"}
    assert done.json["report"]["execution_id"] == done.json["execution_id"]
    assert "printed by the step" in done.err
    assert "echoed by its command" in done.err


def test_the_same_plan_again_is_reused_and_a_changed_one_a_new_generation(desk: Desk):
    """Case 33: it says which of the two it does."""
    plan = desk.plan(a_step("a"))
    first = desk("run", plan, "--json")
    again = desk("run", plan, "--json")
    assert "unchanged: run 1 requested" in again.err
    assert again.json["report"]["step_outcomes"] == {"a": "reused"}
    changed = desk("run", desk.plan(a_step("a"), scope={"kind": "other"}), "--json")
    assert "changed: saved and approved as a new generation" in changed.err
    generations = [done.json["plan_generation"] for done in (first, again, changed)]
    assert generations[0] == generations[1] != generations[2]
    assert [done.json["run_token"] for done in (first, again, changed)] == [0, 1, 0]


def test_a_drained_failure_does_the_healthy_work(desk: Desk):
    """Case 114: exit 1, the failure is recorded, and the snapshot is stored."""
    plan = desk.plan(
        *(a_step("x", "bad"), a_step("after", "ok", "x"), a_step("y")),
        policy="continue_independent",
    )
    done = desk("run", plan)
    assert done.code == 1
    rows = {line.split()[0]: line for line in done.out.splitlines()[1:4]}
    assert "failed" in rows["x"]
    assert "it is broken (broken); mend it" in rows["x"]
    assert "blocked" in rows["after"]
    assert "by x" in rows["after"]
    assert "succeeded" in rows["y"]
    views = desk("views", "list", "--json").lines
    assert [(view["name"], view["lag"]) for view in views if view["name"] == "plan_status"] == [
        ("plan_status", 0)
    ]


def test_a_step_that_cancels_itself_ends_the_run(desk: Desk):
    """Case 117: exit 1, not 130, and the request stays open."""
    done = desk("run", desk.plan(a_step("a", "cancelled"), a_step("b")), "--json")
    assert (done.code, done.json["resolution"]) == (1, "cancelled")
    (line,) = desk("plan", "list", "--json").lines
    assert line["request"] == "open"


def test_the_record_and_the_newest_attempt_differ(desk: Desk):
    """Case 136: request 0 succeeded, request 1 failed fast: the record is of the first."""
    flag = desk.file("", "flag")
    plan = desk.plan(a_step("a", "needs", params={"flag": str(flag)}))
    first = desk("run", plan, "--json").json
    flag.unlink()
    (desk.folder / "s.db.work" / "p" / "a" / "success.fingerprint").unlink()
    second = desk("run", plan, "--json")
    assert (second.code, second.json["resolution"]) == (1, "unfinished")
    (line,) = desk("plan", "list", "--json").lines
    assert line["last_finalized_outcome"] == "succeeded"
    assert line["attempt"]["outcome"] == "failed"
    assert line["attempt"]["execution_id"] == second.json["execution_id"]
    document = desk("plan", "show", "p", "--json").json
    last = document["last_finalized_execution"]
    assert (last["execution_id"], last["run_token"]) == (first["execution_id"], 0)
    assert (document["run_token"], document["executed_run_token"]) == (1, 0)
    text = desk("plan", "list").out
    assert "succeeded" in text
    assert "failed (failed_fast)" in text


def test_equal_tokens_are_no_success(desk: Desk):
    """Cases 137 and 140: a recorded failure is finished, and approving it again writes nothing."""
    desk("run", desk.plan(a_step("a", "bad"), policy="continue_independent"))
    document = desk("plan", "show", "p", "--json").json
    assert document["run_token"] == document["executed_run_token"] == 0
    assert document["latest_request_succeeded"] is False
    before = len(desk.events())
    approved = desk("plan", "approve", "p", "--json")
    assert (approved.code, approved.json["changed"]) == (0, False)
    assert len(desk.events()) == before


def test_without_its_marker_only_that_step_runs(desk: Desk):
    """Case 138."""
    plan = desk.plan(a_step("a"), a_step("b"), a_step("c", "ok", "b"))
    desk("run", plan)
    (desk.folder / "s.db.work" / "p" / "b" / "success.fingerprint").unlink()
    again = desk("run", plan, "--json").json["report"]["step_outcomes"]
    assert again == {"a": "reused", "b": "succeeded", "c": "reused"}


def test_a_rejected_plan_is_saved_and_says_why(desk: Desk):
    """Defects that preflight knows are saved, rejected by it, exit 1."""
    done = desk("run", desk.plan(a_step("a", "ok", "nobody")))
    assert done.code == 1
    assert "nobody" in done.out
    assert "unreached" in done.out
    assert desk.names()[:2] == ["saved", "approved"]
    assert not (desk.folder / "s.db.work").exists()


def test_the_daemons_plan_is_refused_unless_adopted(desk: Desk):
    """Not authorized is exit 1, runs nothing, and names the way out."""
    plan = desk.plan(a_step("a"))
    desk("plan", "save", plan, "--approve")
    refused = desk("run", plan, "--json")
    assert (refused.code, refused.json["resolution"]) == (1, "not_authorized")
    assert refused.json["report"] is None
    assert "--adopt" in refused.error
    assert desk.names() == ["saved", "approved"]
    adopted = desk("run", plan, "--adopt", "--json")
    assert (adopted.code, adopted.json["outcome"]) == (0, "succeeded")


def test_the_plan_of_a_living_run_is_refused(desk: Desk):
    """The message names the process that has it; a dead owner's plan is simply taken."""
    plan = desk.plan(a_step("a"))
    with Journal(desk.store) as journal, Holders.of(desk.store).take("run_once") as holder:
        given = {"authority": "run_once", "owner": holder.id, "approved": True}
        body = {"plan_id": "p", "realm": "lab", "steps": []}
        journal.execute(PLAN, "p", save, actor="bob", body=body, generation="g", **given)
        refused = desk("run", plan)
        assert refused.code == 1
        assert "not authorized" in refused.error
        assert "pid" in refused.error
    assert desk("run", plan).code == 0


def test_a_draft_waits_for_approval(desk: Desk):
    """The message says how it is allowed."""
    plan = desk.plan(a_step("a"))
    desk("run", plan)
    desk("plan", "draft", "p")
    refused = desk("run", plan)
    assert refused.code == 1
    assert "statelog plan approve p" in refused.error


@pytest.mark.parametrize("by", ["option", "environment", "default"])
def test_where_steps_work(desk: Desk, by: str):
    """`--work-root`, then $STATELOG_WORK_ROOT, then beside the store."""
    env, words, root = {}, [], desk.folder / "s.db.work"
    if by != "default":
        root = desk.folder / by
        env = {"STATELOG_WORK_ROOT": str(desk.folder / "environment")}
    if by == "option":
        words = ["--work-root", root]
    assert desk("run", desk.plan(a_step("a")), *words, env=env).code == 0
    assert (root / "p" / "a" / "success.fingerprint").exists()


def test_where_step_modules_are_found(desk: Desk, tmp_path: Path):
    """The folder of the plan file, unless `--path` names others."""
    elsewhere = tmp_path / "code"
    elsewhere.mkdir()
    (elsewhere / "others.py").write_text((desk.folder / "steps.py").read_text())
    plan = desk.plan(a_step("a", "others:ok"))
    assert desk("run", plan).code == 1
    assert desk("run", plan, "--path", elsewhere, "--path", desk.folder).code == 0
    assert desk("run", plan, "--path", desk.folder / "none").code == 2


def test_views_that_cannot_be_kept_change_no_result(
    desk: Desk, damaged_store: Callable[[Path], None]
):
    """The log is the truth: the run is recorded, and the warning says what to do."""
    damaged_store(desk.store)
    Path(f"{desk.store}.views.db").write_text("no views " * 1000)
    done = desk("run", desk.plan(a_step("a")), "--json")
    assert (done.code, done.json["resolution"]) == (0, "finalized")
    assert "warning: the views are behind the log" in done.err
    assert "move it away" in done.err


def test_quiet_keeps_the_result(desk: Desk):
    """No progress, and still the table."""
    done = desk("run", desk.plan(a_step("a")), "-q")
    assert done.err == ""
    assert "succeeded" in done.out


def test_who_did_it(desk: Desk):
    """Every event carries `--actor`; without it, the login name."""
    desk("run", desk.plan(a_step("a")), "--actor", "alice")
    assert {recorded.actor for recorded in desk.events()} == {"alice"}
    desk("plan", "touch", "p", env={"LOGNAME": "bob"})
    assert desk.events()[-1].actor == "bob"
    assert desk("plan", "touch", "p", "--actor", "").code == 2
