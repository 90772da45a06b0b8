"""Recording a result: what may be asked, and how one read of the plan is judged (2.6)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from statelog.domain.errors import Invalid
from statelog.domain.execution.finalization import (
    IDENTITY,
    Finalization,
    FinalizationRequest,
    Supersession,
    Verdict,
    judge,
)
from statelog.domain.execution.plan import Plan, PlanStatus, RequestFinished, evolve
from tests.domain.execution.documents import document, report

AT = "2025-01-01T00:00:02Z"
CONTINUE = "continue_independent"


def asked(authority: str = "daemon", owner: str | None = None, **told: Any) -> FinalizationRequest:
    """The request to record a success of request 0, or what the report says instead."""
    return FinalizationRequest.of(report(**told), authority, owner)


def recorded(request: FinalizationRequest, plan: Plan | None = None) -> Plan:
    """The plan once that result was recorded, as the plan's own fold makes it."""
    fields = {field: value for field, value in request.identity.items() if field != "plan_id"}
    return evolve(plan or document(), RequestFinished(**fields))


def reason(verdict: Verdict) -> str | None:
    return verdict.reason.value if verdict.reason else None


def test_an_open_request_is_written():
    """Both tokens of the document are as captured, or a newer request waits."""
    for token in (0, 1, "1"):
        verdict = judge(asked(), document(run_token=token))
        assert verdict == Verdict(Finalization.COMMITTED)
        assert verdict.writes


def test_after_a_lost_race_the_same_is_a_conflict():
    """Nothing was written; the next try judges again (case 77)."""
    verdict = judge(asked(), document(), lost_race=True)
    assert verdict == Verdict(Finalization.CONFLICT)
    assert not verdict.writes


def test_a_lost_race_ends_by_the_same_rules():
    """What the winner wrote decides."""
    assert judge(asked(), recorded(asked()), lost_race=True) == Verdict(
        Finalization.ALREADY_COMMITTED
    )
    changed = document(plan_generation="g2")
    assert reason(judge(asked(), changed, lost_race=True)) == "generation_changed"


def test_a_landed_write_that_reported_failure_is_settled_without_writing():
    """case 83, and case 85 when the authority changed afterwards."""
    plan = recorded(asked())
    assert judge(asked(), plan) == Verdict(Finalization.ALREADY_COMMITTED)
    moved = document(
        executed_run_token=0, last=plan.last, execution_authority="run_once", execution_owner="x"
    )
    assert judge(asked(), moved) == Verdict(Finalization.ALREADY_COMMITTED)


def test_an_imported_record_that_names_the_plan_counts_too():
    """1.10 stores the plan's id in the record; another plan's record is not this completion."""
    record = asked().record(AT)
    plan = document(executed_run_token="0", last=record)
    assert judge(asked(), plan) == Verdict(Finalization.ALREADY_COMMITTED)
    other = document(executed_run_token=0, last={**record, "plan_id": "q"})
    assert reason(judge(asked(), other)) == "request_already_finalized"


def test_a_record_without_its_token_is_no_completion():
    """Both are recorded together, so a document that has one of them is judged by its token."""
    last = asked().record(AT)
    assert judge(asked(), document(executed_run_token=-1, last=last)).writes
    newer = document(executed_run_token=1, last=last)
    assert reason(judge(asked(), newer)) == "request_already_finalized"


@pytest.mark.parametrize("field", [field for field in IDENTITY if field != "plan_id"])
def test_a_record_that_differs_in_one_field_is_another_completion(field: str):
    """case 84, and the same execution with another outcome: refused either way."""
    plan = document(executed_run_token=0, last={**asked().identity, field: "other"})
    assert reason(judge(asked(), plan)) == "request_already_finalized"


@pytest.mark.parametrize(
    "plan", [None, document(status=PlanStatus.ABSENT)], ids=["none", "deleted"]
)
def test_a_missing_plan_supersedes(plan: Plan | None):
    """2.6"""
    assert reason(judge(asked(), plan)) == "plan_missing"


@pytest.mark.parametrize("generation", ["g2", "", None, 7], ids=repr)
def test_another_or_no_generation_supersedes(generation: Any):
    """case 78, and case 87 for an imported document without one."""
    plan = document(plan_generation=generation, execution_authority=None)
    assert reason(judge(asked(), plan)) == "generation_changed"


@pytest.mark.parametrize(
    ("authority", "owner"),
    [("run_once", "s1"), ("daemon", "s1"), (None, None)],
    ids=repr,
)
def test_another_executor_supersedes(authority: Any, owner: Any):
    """An adoption while the attempt ran; owners count, also under the same authority."""
    plan = document(execution_authority=authority, execution_owner=owner, executed_run_token=5)
    assert reason(judge(asked(), plan)) == "authority_changed"


def test_a_session_records_its_own():
    """Authority and owner as captured."""
    plan = document(execution_authority="run_once", execution_owner="s1")
    assert judge(asked("run_once", "s1"), plan).writes


@pytest.mark.parametrize("executed", [0, 1, "7"])
def test_an_older_or_equal_request_is_refused(executed: Any):
    """case 86: the executed token is never lowered."""
    plan = document(run_token=9, executed_run_token=executed)
    assert reason(judge(asked(), plan)) == "request_already_finalized"


@pytest.mark.parametrize("executed", [None, "x", True, [], 0.5], ids=repr)
def test_an_unreadable_executed_token_is_an_error(executed: Any):
    """Refuse to write, and do not drop the result either; another generation drops it anyway."""
    with pytest.raises(Invalid, match="executed_run_token"):
        judge(asked(), document(executed_run_token=executed))
    gone = document(executed_run_token=executed, plan_generation="g2")
    assert reason(judge(asked(), gone)) == "generation_changed"


def test_the_order_of_judging():
    """The first rule of 2.6 that applies gives the reason, for every combination of them."""
    request = asked()
    for same_generation, same_authority, fresh in product((True, False), repeat=3):
        verdict = judge(
            request,
            document(
                plan_generation="g1" if same_generation else "g2",
                execution_authority="daemon" if same_authority else "run_once",
                executed_run_token=-1 if fresh else 0,
            ),
        )
        rules = [
            (same_generation, "generation_changed"),
            (same_authority, "authority_changed"),
            (fresh, "request_already_finalized"),
        ]
        assert reason(verdict) == next((why for holds, why in rules if not holds), None)


@pytest.mark.parametrize(
    ("termination_reason", "outcome", "policy"),
    [("completed", "failed", CONTINUE), ("preflight_rejected", "failed", CONTINUE)],
)
def test_a_finished_failure_is_recorded_like_a_success(
    termination_reason: str, outcome: str, policy: str
):
    """case 75: under continue, with its report; and the first line of case 74 for the write."""
    told = report(
        termination_reason,
        outcome,
        failure_policy=policy,
        diagnostic={"message": "P7", "error_type": "PreflightRejected", "details": {}},
    )
    request = FinalizationRequest.of(told, "daemon", None)
    assert judge(request, document()).writes
    record = request.record(AT)
    assert record == {**request.identity, "finalized_at": AT, "report": told}
    assert list(record)[:7] == list(IDENTITY)


WRONG: list[dict[str, Any]] = [
    {"plan_generation": ""},
    {"plan_generation": None},
    {"run_token": -1},
    {"run_token": "0"},
    {"run_token": True},
    {"run_token": None},
]


@pytest.mark.parametrize("told", WRONG, ids=repr)
def test_a_request_without_a_usable_identity_is_refused(told: dict[str, Any]):
    """case 89"""
    with pytest.raises(Invalid, match=next(iter(told))):
        FinalizationRequest.of(report(**told), "daemon", None)


@pytest.mark.parametrize("authority", ["", "me", None])
def test_a_request_of_an_unknown_authority_is_refused(authority: Any):
    """case 89"""
    with pytest.raises(Invalid, match="execution_authority"):
        FinalizationRequest.of(report(), authority, None)


@pytest.mark.parametrize(
    "told",
    [
        report("failed_fast", "failed"),
        report("cancelled", "failed"),
        report("preflight_rejected", "failed"),
        report(None, None),
        report(publication_failure={"message": "full"}),
    ],
    ids=lambda told: str(told["termination_reason"]),
)
def test_an_ending_that_does_not_finish_cannot_be_recorded(told: dict[str, Any]):
    """Nothing is recorded of it, also when only the publication failed (cases 52, 75, 88)."""
    with pytest.raises(Invalid, match="does not finish"):
        FinalizationRequest.of(told, "daemon", None)


@pytest.mark.parametrize("field", IDENTITY)
def test_a_report_that_contradicts_the_identity_is_refused(field: str):
    """case 89, for each of the seven fields."""
    good = asked(failure_policy=CONTINUE)
    other: dict[str, Any] = {"run_token": 5}
    identity = good.identity | {field: other.get(field, "other")}
    with pytest.raises(Invalid, match=field):
        FinalizationRequest(
            **identity, execution_authority="daemon", execution_owner=None, report=good.report
        )


def test_a_reason_belongs_to_superseded_only():
    """1.11: present exactly then."""
    for finalization in Finalization:
        superseded = finalization is Finalization.SUPERSEDED
        with pytest.raises(ValueError, match="reason"):
            Verdict(finalization, None if superseded else Supersession.PLAN_MISSING)
