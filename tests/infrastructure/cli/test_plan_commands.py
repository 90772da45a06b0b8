"""`statelog plan`: the commands that change documents, with revisions and settling."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statelog.domain.execution.slot import SLOT
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from tests.infrastructure.cli.desk import Desk, a_step
from tests.infrastructure.execution.lab import Failing

FIELDS = (
    *("plan_id", "_rev", "changed", "status", "plan_generation", "run_token"),
    *("executed_run_token", "execution_authority", "execution_owner"),
)


def saved(desk: Desk, *words: str) -> Path:
    plan = desk.plan(a_step("a"))
    assert desk("plan", "save", plan, *words).code == 0
    return plan


def crashed_before_recording(desk: Desk) -> None:
    """Leave a result that its process filed and could not record."""
    plan = desk.plan(a_step("a"))
    with Journal(desk.store) as journal:
        from tests.infrastructure.execution.lab import Lab

        lab = Lab(desk.folder, journal)
        body = json.loads(plan.read_text())
        with (
            Failing(journal, lambda names: "request_finished" in names, KeyboardInterrupt()),
            pytest.raises(KeyboardInterrupt),
            lab.session() as session,
        ):
            session.run(body)


def test_a_plan_is_saved_as_the_daemons_draft(desk: Desk):
    """And approved at once when asked for; --json says what it is now."""
    done = desk("plan", "save", desk.plan(a_step("a")), "--json")
    assert done.code == 0
    assert tuple(done.json) == FIELDS
    assert (done.json["status"], done.json["execution_authority"]) == ("draft", "daemon")
    assert (done.json["_rev"], done.json["changed"]) == ("1", True)
    again = desk("plan", "save", desk.plan(a_step("a")), "--force", "--approve", "--json")
    assert (again.json["status"], again.json["_rev"]) == ("approved", "3")
    assert again.json["plan_generation"] != done.json["plan_generation"]


def test_an_existing_plan_needs_force_or_its_revision(desk: Desk):
    """Exit 1 naming both; a wrong revision is a conflict that says what it found."""
    plan = saved(desk)
    refused = desk("plan", "save", plan)
    assert refused.code == 1
    assert "--force" in refused.error
    assert "--rev" in refused.error
    (kept,) = desk("log", "refusals", "--json").lines
    assert (kept["rule"], kept["stream"], kept["version"]) == ("plan_exists", "plan/p", 1)
    stale = desk("plan", "save", plan, "--rev", 7)
    assert (stale.code, "found 1" in stale.error) == (1, True)
    assert desk("plan", "save", plan, "--rev", 1).code == 0


def test_params_are_saved(desk: Desk):
    """`--param` as `run` takes it."""
    plan = desk.plan(a_step("a", params={"n": 1}))
    desk("plan", "save", plan, "--param", "a.n=2")
    (step,) = desk("plan", "show", "p", "--json").json["plan"]["steps"]
    assert step["params"] == {"n": 2}


def test_the_life_of_a_document(desk: Desk):
    """Each command is one event, or none when it would change nothing."""
    saved(desk)
    for name, event, told in (
        ("approve", "approved", "approved"),
        ("approve", "approved", "approved"),
        ("draft", "returned_to_draft", "returned to draft"),
        ("draft", None, "nothing to change"),
        ("request", "run_requested", "plan approve p"),
        ("touch", "touched", "touched"),
        ("adopt", None, "nothing to change"),
        ("delete", "deleted", "deleted"),
    ):
        before = len(desk.events())
        done = desk("plan", name, "p")
        assert (done.code, told in done.out) == (0, True), name
        assert [recorded.name for recorded in desk.events()[before:]] == (
            [f"execution.plan.{event}"] if event else []
        )
    gone = desk("plan", "touch", "p")
    assert (gone.code, "no plan 'p'" in gone.error) == (1, True)


@pytest.mark.parametrize("name", ["approve", "draft", "request", "touch", "adopt", "delete"])
def test_a_revision_that_is_not_met(desk: Desk, name: str):
    """Exit 1, nothing written, and the next step is said."""
    saved(desk, "--approve")
    before = len(desk.events())
    done = desk("plan", name, "p", "--rev", 1)
    assert done.code == 1
    assert "--rev" in done.error
    assert len(desk.events()) == before
    assert desk("plan", name, "p", "--rev", 2).code == 0


def test_adopting_settles_a_waiting_result_first(desk: Desk):
    """Case 127: recorded, then given to the daemon."""
    crashed_before_recording(desk)
    assert desk.names()[-1] == "report_filed"
    assert desk("plan", "adopt", "p").code == 0
    assert desk.names()[-3:] == ["request_finished", "released", "adopted"]
    document = desk("plan", "show", "p", "--json").json
    assert document["execution_authority"] == "daemon"
    assert document["latest_request_succeeded"] is True


def test_a_waiting_result_is_shown_as_pending_and_recorded_by_the_next_run(desk: Desk):
    """Case 124: nothing runs again, and the recorded result is what is reported."""
    crashed_before_recording(desk)
    status = desk("plan", "status", "p").out
    assert "pending result" in status
    assert "held by         nobody" in status
    done = desk("run", desk.folder / "plan.json", "--json")
    assert (done.code, done.json["resolution"]) == (0, "finalized")
    assert "nothing is run" in done.err
    assert len(desk("plan", "attempts", "p", "--json").lines) == 1
    assert "pending" not in desk("plan", "status", "p").out


def test_a_healthy_attempt_is_never_pending(desk: Desk):
    """Case 129: while its holder lives it is running or recording, and the pid is named."""
    crashed_before_recording(desk)
    with Journal(desk.store) as journal:
        slot = journal.load(SLOT, "p").state
    kind, token = slot.holder.split(":")
    with Holders.of(desk.store).take(kind, token):
        status = desk("plan", "status", "p").out
    assert "recording its result" in status
    assert "pid " in status
    assert "pending" not in status
