"""The document of a plan, field by field, and who writes which."""

from __future__ import annotations

from typing import Any

import pytest

from statelog.domain.event import Event
from statelog.domain.execution.plan import (
    Adopted,
    Approved,
    Deleted,
    GenerationAssigned,
    Imported,
    RequestFinished,
    ReturnedToDraft,
    RunRequested,
    Touched,
)
from statelog.domain.execution.slot import Reporting
from statelog.domain.times import iso_seconds
from statelog.projections.execution import last_finalized, plan_document, plan_summary
from statelog.projections.projection import fold
from statelog.projections.replay import replay
from tests.projections.execution.stories import FIRST, SECOND, Run, closed, finished, record, saved
from tests.projections.recorded import Log


def document(log: Log) -> dict[str, Any]:
    return replay(plan_document, log.events)["p"]


def succeed(log: Log, execution_id: str = FIRST, **start: Any) -> dict[str, Any]:
    run = Run(log, execution_id, **start)
    for step in "abc":
        run.succeed(step)
    return run.close()


def test_a_saved_plan_has_the_fields_of_the_specification():
    """1.2, and the computed one; optional fields only when given."""
    log = Log()
    at = iso_seconds(log.plan(saved()).time)
    assert document(log) == {
        "_id": "p",
        "_rev": "1",
        "realm": "lab",
        "scope": {"kind": "run", "id": "r1"},
        "status": "draft",
        "plan": {"plan_id": "p", "realm": "lab", "steps": []},
        "preview": {},
        "plan_generation": "g1",
        "run_token": 0,
        "executed_run_token": -1,
        "execution_authority": "daemon",
        "execution_owner": None,
        "created_at": at,
        "updated_at": at,
        "latest_request_succeeded": False,
    }


def test_optional_fields_are_there_when_given():
    """Where the plan came from, and notes."""
    log = Log()
    log.plan(saved(source_doc_id="d", source_doc_rev="3-x", notes="for bob"))
    shown = document(log)
    assert (shown["source_doc_id"], shown["source_doc_rev"]) == ("d", "3-x")
    assert shown["notes"] == "for bob"


def test_the_revision_is_the_version_of_the_plans_stream():
    """A string; events of slot and attempts do not move it (D3)."""
    log = Log()
    log.plan(saved(), Approved(), Touched())
    succeed(log)
    log.slot(Reporting(FIRST))
    assert document(log)["_rev"] == "3"


CHANGES: list[tuple[Event, dict[str, Any]]] = [
    (ReturnedToDraft(), {"status": "draft"}),
    (RunRequested(1), {"run_token": 1, "run_requested_by": "alice"}),
    (Touched(), {}),
    (
        Adopted("run_once", "run_once:1"),
        {"execution_authority": "run_once", "execution_owner": "run_once:1"},
    ),
    (GenerationAssigned("g9"), {"plan_generation": "g9"}),
]


@pytest.mark.parametrize(("event", "changes"), CHANGES)
def test_each_event_changes_its_own_fields(event: Event, changes: dict[str, Any]):
    """Only saving and recording move `updated_at`; every event moves the revision."""
    log = Log()
    log.plan(saved(), Approved())
    before = document(log)
    at = iso_seconds(log.plan(event, actor="alice").time)
    if isinstance(event, RunRequested):
        changes = {**changes, "run_requested_at": at}
    assert document(log) == {**before, "_rev": "3", **changes}


def test_an_approval_says_who_and_when():
    """From the envelope."""
    log = Log()
    log.plan(saved())
    at = iso_seconds(log.plan(Approved(), actor="alice").time)
    shown = document(log)
    assert (shown["status"], shown["approved_by"], shown["approved_at"]) == (
        *("approved", "alice", at),
    )


def test_a_regeneration_keeps_only_when_the_plan_was_created():
    """Tokens, approval, request and result are gone (1.2)."""
    log = Log()
    log.plan(saved(notes="old"), Approved())
    created = document(log)["created_at"]
    record(log, succeed(log))
    log.plan(RunRequested(1))
    at = iso_seconds(log.plan(saved("g2")).time)
    fresh = Log()
    fresh.plan(saved("g2"))
    renewed = {"_rev": "5", "created_at": created, "updated_at": at}
    assert document(log) == {**document(fresh), **renewed}
    assert replay(last_finalized, log.events) == {}


def test_a_recorded_result_is_there_with_its_report():
    """1.10: the identity, when, and the report as the attempt closed it; status unchanged."""
    log = Log()
    log.plan(saved(), Approved())
    report = succeed(log)
    log.slot(Reporting(FIRST))
    at = iso_seconds(log.plan(finished(report)).time)
    shown = document(log)
    assert shown["last_finalized_execution"] == {
        "execution_id": FIRST,
        "plan_id": "p",
        "plan_generation": "g1",
        "run_token": 0,
        "failure_policy": "continue_independent",
        "outcome": "succeeded",
        "termination_reason": "completed",
        "finalized_at": at,
        "report": report,
    }
    assert (shown["last_executed_at"], shown["updated_at"]) == (at, at)
    assert (shown["status"], shown["executed_run_token"]) == ("approved", 0)
    assert shown["latest_request_succeeded"] is True
    assert replay(last_finalized, log.events)["p"] == shown["last_finalized_execution"]


def test_equal_tokens_are_not_success():
    """case 137: the request is finished, and failed."""
    log = Log()
    log.plan(saved(), Approved())
    run = Run(log)
    run.fail("a")
    run.succeed("b")
    run.succeed("c")
    record(log, run.close())
    shown = document(log)
    assert shown["run_token"] == shown["executed_run_token"] == 0
    assert shown["latest_request_succeeded"] is False


def test_an_older_success_is_not_the_latest_requests():
    """All three checks of 2.2."""
    log = Log()
    log.plan(saved(), Approved())
    record(log, succeed(log))
    log.plan(RunRequested(1))
    assert document(log)["latest_request_succeeded"] is False


def test_the_report_is_the_recorded_executions():
    """Not that of another attempt which closed in between, as an import may bring it."""
    log = Log()
    log.plan(saved(), Approved())
    report = succeed(log, SECOND)
    log.slot(Reporting(SECOND))
    log.attempt(FIRST, closed(FIRST))
    log.plan(finished(report))
    assert document(log)["last_finalized_execution"]["report"] == report
    assert replay(last_finalized, log.events)["p"]["report"] == report


def test_a_record_whose_close_is_not_in_the_log_has_no_report():
    """Shown as null rather than as somebody else's."""
    log = Log()
    log.plan(saved(), Approved())
    succeed(log, FIRST)
    log.plan(RequestFinished(SECOND, "g1", 0, "fail_fast", "succeeded", "completed"))
    assert document(log)["last_finalized_execution"]["report"] is None


def test_a_recorded_report_is_kept_once():
    """In the document, not beside it as well."""
    log = Log()
    log.plan(saved(), Approved())
    report = succeed(log)
    assert fold(plan_document, log.events)["p"].filed.reports == {FIRST: report}
    record(log, report)
    assert fold(plan_document, log.events)["p"].filed.reports == {}
    assert fold(last_finalized, log.events)["p"].filed.reports == {}


def test_a_deleted_plan_has_no_document():
    """And a later save does not remember it."""
    log = Log()
    log.plan(saved(), Approved())
    record(log, succeed(log))
    log.plan(Deleted())
    succeed(log, SECOND)
    assert replay(plan_document, log.events) == {}
    assert replay(plan_summary, log.events) == {}
    assert replay(last_finalized, log.events) == {}
    at = iso_seconds(log.plan(saved("g2")).time)
    assert document(log)["created_at"] == at
    assert document(log)["_rev"] == "5"


def test_plans_are_told_apart_by_their_stream():
    """Whatever their ids look like."""
    log = Log()
    log.plan(saved(), id="p")
    log.plan(saved("g2", plan_id="p é%2F"), id="p é%2F")
    shown = replay(plan_document, log.events)
    assert {key: row["plan_generation"] for key, row in shown.items()} == {
        "p": "g1",
        "p é%2F": "g2",
    }


FOREIGN = {
    "_id": "p",
    "_rev": "17-abc",
    "plan": [],
    "run_token": "2",
    "executed_run_token": "2",
    "status": "approved",
    "created_at": "2020-01-01T00:00:00+00:00",
    "updated_at": "2021-01-01T00:00:00+00:00",
    "colour": "blue",
    "last_finalized_execution": {"outcome": "succeeded", "run_token": 2, "report": {}},
}


def test_an_imported_document_is_shown_as_it_came():
    """Verbatim but for our revision; a missing authority is null, and may be nobody's (D5, D20)."""
    log = Log()
    log.plan(Imported(FOREIGN))
    shown = document(log)
    computed = {"_rev": "1", "execution_authority": None, "latest_request_succeeded": True}
    assert shown == {**FOREIGN, **computed}
    assert replay(last_finalized, log.events)["p"] == FOREIGN["last_finalized_execution"]


def test_our_changes_go_on_top_of_an_import():
    """And a regeneration keeps when it was created elsewhere."""
    log = Log()
    log.plan(Imported(FOREIGN), GenerationAssigned("g1"), Adopted("daemon", None))
    shown = document(log)
    assert (shown["plan_generation"], shown["execution_authority"]) == ("g1", "daemon")
    assert (shown["updated_at"], shown["colour"]) == (FOREIGN["updated_at"], "blue")
    log.plan(saved("g2"))
    assert document(log)["created_at"] == FOREIGN["created_at"]
    assert "colour" not in document(log)


def test_the_summary_is_the_line_of_the_specification():
    """7.5."""
    log = Log()
    log.plan(saved(), Approved())
    record(log, succeed(log))
    summary = replay(plan_summary, log.events)["p"]
    assert summary == {
        "plan_id": "p",
        "status": "approved",
        "execution_authority": "daemon",
        "execution_owner": None,
        "updated_at": document(log)["updated_at"],
        "realm": "lab",
        "run_token": 0,
        "executed_run_token": 0,
        "plan_generation": "g1",
        "last_finalized_outcome": "succeeded",
    }
    log.plan(saved("g2"))
    assert replay(plan_summary, log.events)["p"]["last_finalized_outcome"] is None


def test_the_summary_has_defaults_for_what_an_import_lacks():
    """7.5: unknown, daemon, and no generation that is none."""
    log = Log()
    log.plan(Imported({"plan_generation": 7}))
    summary = replay(plan_summary, log.events)["p"]
    assert (summary["status"], summary["execution_authority"]) == ("unknown", "daemon")
    assert summary["plan_generation"] is None
    assert (summary["run_token"], summary["executed_run_token"]) == (0, -1)
