"""The report of an attempt: recording rules, derived fields, closing, JSON (1.7, 2.3, 5.8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.errors import Invalid
from statelog.domain.execution.faults import OrchestrationError
from statelog.domain.execution.graph import Graph, newly_blocked
from statelog.domain.execution.report import AttemptReport
from tests.domain.execution.operations import growth

FIELDS = {
    *("execution_id", "plan_id", "plan_generation", "run_token", "failure_policy"),
    *("started_at", "ended_at", "termination_reason", "outcome", "is_drained", "step_ids"),
    *("step_outcomes", "unreached_step_ids", "failures", "direct_blockers", "failed_ancestors"),
    *("diagnostic", "publication_failure", "counts"),
}
ENDED = "2024-02-29T12:00:01Z"
REASONS = ["completed", "failed_fast", "cancelled", "preflight_rejected", "orchestration_error"]
DIAGNOSTIC = {"message": "the disk is full", "error_type": "StoreError", "details": {}}

Plan = list[tuple[str, list[str]]]


def opened(
    plan: Plan, policy: Any = "continue_independent", step_ids: list[Any] | None = None
) -> AttemptReport:
    return AttemptReport.of(
        execution_id="20240229T120000000000Z_00ff",
        plan_id="p",
        plan_generation="g",
        run_token=0,
        failure_policy=policy,
        started_at="2024-02-29T12:00:00Z",
        step_ids=[step_id for step_id, _ in plan] if step_ids is None else step_ids,
        graph=Graph.of(plan),
    )


def failure(step_id: str) -> dict[str, Any]:
    return {
        **{"step_id": step_id, "error": "no", "kind": "permanent", "code": None, "advice": None},
        "error_type": "PermanentStepError",
    }


def failed(report: AttemptReport, step_id: str) -> AttemptReport:
    return report.with_outcome(step_id, "failed", failure(step_id))


def succeeded(report: AttemptReport, *step_ids: str) -> AttemptReport:
    for step_id in step_ids:
        report = report.with_outcome(step_id, "succeeded")
    return report


def completed(report: AttemptReport) -> AttemptReport:
    return report.closed("completed", ENDED)


def test_all_satisfied_is_drained_and_succeeded():
    report = succeeded(opened([("a", []), ("b", ["a"])]), "a").with_outcome("b", "reused")
    assert (report.outcome, report.is_drained, report.ended_at) == (None, False, None)
    report = completed(report)
    assert (report.outcome, report.is_drained, report.ended_at) == ("succeeded", True, ENDED)
    assert report.counts == dict(succeeded=1, reused=1, failed=0, blocked=0, unreached=0)


def test_an_empty_plan_completes_and_succeeds():
    """E1."""
    report = completed(opened([]))
    assert (report.outcome, report.is_drained, sum(report.counts.values())) == (
        "succeeded",
        True,
        0,
    )


def test_a_drained_failure_has_an_outcome_for_every_step():
    """Case 8."""
    plan: Plan = [("1", []), ("2", []), ("2a", ["2"]), ("2b", ["2a"]), ("3", ["1"])]
    report = failed(succeeded(opened(plan), "1"), "2")
    report = report.with_blocked("2a", ["2"], ["2"]).with_blocked("2b", ["2a"], ["2"])
    report = completed(succeeded(report, "3"))
    assert (report.outcome, report.is_drained) == ("failed", True)
    assert report.unreached_step_ids == ()
    assert report.counts == dict(succeeded=2, reused=0, failed=1, blocked=2, unreached=0)
    assert report.failures == {"2": failure("2")}


def test_a_join_is_blocked_by_its_failed_dependency_only():
    """Case 9."""
    plan: Plan = [("good", []), ("bad", []), ("join", ["good", "bad"])]
    report = failed(succeeded(opened(plan), "good"), "bad").with_blocked("join", ["bad"], ["bad"])
    assert completed(report).direct_blockers == {"join": ("bad",)}


@pytest.mark.parametrize("reason", ["completed", "cancelled", "orchestration_error"])
def test_blockers_are_settled_when_the_report_closes(reason: str):
    """Cases 10 and 11: the block of join named x only; the report names y too, at any ending."""
    plan: Plan = [("x", []), ("y", []), ("join", ["y", "x"]), ("after", ["join"])]
    report = failed(opened(plan), "x")
    report = report.with_blocked("join", ["x"], ["x"]).with_blocked("after", ["join"], ["x"])
    report = failed(report, "y")
    assert report.direct_blockers["join"] == ("x",)
    report = report.closed(reason, ENDED)
    assert report.direct_blockers == {"join": ("x", "y"), "after": ("join",)}
    assert report.failed_ancestors == {"join": ("x", "y"), "after": ("x", "y")}


def test_failing_fast_leaves_dependent_and_unrelated_steps_unreached():
    """Case 12."""
    report = failed(opened([("a", []), ("b", ["a"]), ("c", [])], "fail_fast"), "a")
    report = report.closed("failed_fast", ENDED)
    assert report.unreached_step_ids == ("b", "c")
    assert not report.direct_blockers
    assert report.counts["blocked"] == 0
    assert report.outcome == "failed"


def test_failing_fast_on_the_last_step_covers_all_and_is_not_drained():
    """Case 13."""
    report = failed(succeeded(opened([("a", []), ("b", [])], "fail_fast"), "a"), "b")
    report = report.closed("failed_fast", ENDED)
    assert report.unreached_step_ids == ()
    assert (report.is_drained, report.outcome) == (False, "failed")


def test_a_rejected_empty_plan_has_nothing_unreached_and_is_not_drained():
    """5.8."""
    report = opened([], policy="sometimes").closed("preflight_rejected", ENDED, DIAGNOSTIC)
    assert (report.unreached_step_ids, report.is_drained, report.outcome) == ((), False, "failed")


def test_a_rejected_malformed_plan_lists_its_ids_unreached():
    """Case 20: ids 7, null, list and mapping survive serialization."""
    ids = [7, None, ["a"], {"b": 1}, "ok", True]
    report = opened([], step_ids=ids).closed("preflight_rejected", ENDED, DIAGNOSTIC)
    assert report.unreached_step_ids == tuple(ids)
    assert report.counts["unreached"] == len(ids)
    again = AttemptReport.from_json(orjson.loads(orjson.dumps(report.to_json())))
    assert again == report


def test_a_cancelled_attempt_keeps_what_it_reached():
    """Case 56: during step 3 of 4; the step that was running counts as unreached."""
    plan: Plan = [("1", []), ("2", []), ("3", []), ("4", []), ("1a", ["1"])]
    report = failed(opened(plan), "1").with_blocked("1a", ["1"], ["1"])
    report = succeeded(report, "2", "3").closed("cancelled", ENDED, DIAGNOSTIC)
    assert (report.termination_reason, report.outcome) == ("cancelled", "failed")
    assert report.unreached_step_ids == ("4",)
    assert report.step_outcomes == {
        **{"1": "failed", "2": "succeeded", "3": "succeeded", "1a": "blocked"}
    }


def test_the_same_outcome_again_is_harmless():
    report = failed(succeeded(opened([("a", []), ("b", [])]), "a"), "b")
    assert succeeded(report, "a") == report
    assert report.with_outcome("b", "failed", failure("b") | {"error": "late"}) == report


def test_blocking_again_renews_the_blockers():
    report = opened([("x", []), ("y", []), ("join", ["x", "y"])])
    report = report.with_blocked("join", ["x"], ["x"]).with_blocked("join", ["x", "y"], ["x", "y"])
    assert report.direct_blockers == {"join": ("x", "y")}
    assert report.counts["blocked"] == 1


SEVEN: Any = 7
ONE = opened([("a", []), ("b", [])])
CLOSED = succeeded(ONE, "a").closed("cancelled", ENDED)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(lambda: ONE.with_outcome("c", "succeeded"), id="outside"),
        pytest.param(lambda: ONE.with_blocked("c", [], []), id="outside, blocked"),
        pytest.param(
            lambda: opened([], step_ids=[7]).with_outcome(SEVEN, "reused"), id="no string"
        ),
        pytest.param(lambda: ONE.with_outcome("a", "pending"), id="no outcome"),
        pytest.param(lambda: succeeded(ONE, "a").with_outcome("a", "reused"), id="second"),
        pytest.param(lambda: failed(succeeded(ONE, "a"), "a"), id="second, failed"),
        pytest.param(lambda: succeeded(ONE, "a").with_blocked("a", [], []), id="second, blocked"),
        pytest.param(lambda: succeeded(ONE.with_blocked("a", ["b"], ["b"]), "a"), id="after block"),
        pytest.param(lambda: ONE.with_outcome("a", "failed"), id="failed, no why"),
        pytest.param(lambda: ONE.with_outcome("a", "blocked"), id="blocked, no why"),
        pytest.param(lambda: ONE.with_outcome("a", "reused", failure("a")), id="why, not failed"),
        pytest.param(lambda: CLOSED.with_outcome("b", "succeeded"), id="closed"),
        pytest.param(lambda: CLOSED.with_outcome("a", "succeeded"), id="closed, same again"),
        pytest.param(lambda: CLOSED.with_blocked("b", ["a"], ["a"]), id="closed, blocked"),
        pytest.param(lambda: CLOSED.closed("cancelled", ENDED), id="closed twice"),
        pytest.param(lambda: ONE.closed("done", ENDED), id="unknown reason"),
        pytest.param(lambda: completed(succeeded(ONE, "a")), id="completed, unreached"),
        pytest.param(
            lambda: succeeded(ONE, "a", "b").closed("completed", ENDED, DIAGNOSTIC),
            id="completed, diagnostic",
        ),
        pytest.param(
            lambda: completed(bulk({"a": "reused"}, {"a": failure("a")})), id="not failed"
        ),
        pytest.param(lambda: bulk({"c": "reused"}), id="bulk, outside"),
        pytest.param(lambda: bulk({"a": "running"}), id="bulk, no outcome"),
        pytest.param(lambda: completed(bulk({"a": "blocked"})), id="blocked, no graph"),
        pytest.param(lambda: ONE.with_publication_failure(DIAGNOSTIC), id="published while open"),
        pytest.param(
            lambda: CLOSED.with_publication_failure(DIAGNOSTIC).with_publication_failure({}),
            id="published twice",
        ),
    ],
)
def test_a_rule_of_recording_is_an_orchestration_error(record: Callable[[], object]):
    with pytest.raises(OrchestrationError):
        record()


def bulk(outcomes: dict[str, str], failures: dict[str, Any] | None = None) -> AttemptReport:
    return AttemptReport.of(
        execution_id="e",
        plan_id="p",
        plan_generation=None,
        run_token=None,
        failure_policy="fail_fast",
        started_at="2024-02-29T12:00:00Z",
        step_ids=["a"],
        outcomes=outcomes,
        failures=failures,
    )


def test_a_report_made_at_once_equals_one_recorded_step_by_step():
    plan: Plan = [("x", []), ("y", ["x"]), ("z", [])]
    stepwise = succeeded(failed(opened(plan), "x").with_blocked("y", ["x"], ["x"]), "z")
    at_once = AttemptReport.of(
        execution_id=stepwise.execution_id,
        plan_id="p",
        plan_generation="g",
        run_token=0,
        failure_policy="continue_independent",
        started_at=stepwise.started_at,
        step_ids=["x", "y", "z"],
        graph=Graph.of(plan),
        outcomes={"z": "succeeded", "y": "blocked", "x": "failed"},
        failures={"x": failure("x")},
    )
    assert completed(at_once) == completed(stepwise)
    assert completed(at_once).to_json() == completed(stepwise).to_json()


@pytest.mark.parametrize("reason", [each for each in REASONS if each != "cancelled"])
def test_a_report_that_could_not_be_published_is_an_orchestration_error(reason: str):
    """Case 52: outcomes are kept, the superseded reason stands in the details."""
    before = succeeded(opened([("a", [])]), "a").closed(reason, ENDED)
    report = before.with_publication_failure(DIAGNOSTIC)
    assert (report.termination_reason, report.outcome) == ("orchestration_error", "failed")
    assert report.is_drained is False
    assert report.publication_failure == {**DIAGNOSTIC, "details": {"superseded_reason": reason}}
    assert (report.step_outcomes, report.diagnostic) == (before.step_outcomes, before.diagnostic)


def test_a_cancelled_attempt_whose_report_could_not_be_published_stays_cancelled():
    report = CLOSED.with_publication_failure(DIAGNOSTIC)
    assert (report.termination_reason, report.publication_failure) == ("cancelled", DIAGNOSTIC)


def test_the_details_given_are_kept_beside_the_superseded_reason():
    given_failure = {**DIAGNOSTIC, "details": {"running_step_id": "a"}}
    report = opened([]).closed("completed", ENDED).with_publication_failure(given_failure)
    assert report.publication_failure is not None
    assert report.publication_failure["details"] == {
        "running_step_id": "a",
        "superseded_reason": "completed",
    }
    assert given_failure["details"] == {"running_step_id": "a"}


def test_a_duplicate_entry_counts_each_time():
    """1.7: counts sum to the length of the inventory, whatever the inventory holds."""
    report = opened([], step_ids=["a", "a", 7, "b"]).with_outcome("a", "succeeded")
    assert report.counts == dict(succeeded=2, reused=0, failed=0, blocked=0, unreached=2)
    assert report.unreached_step_ids == (7, "b")


def test_the_json_has_exactly_the_fields_of_a_report():
    report = failed(opened([("x", []), ("y", ["x"])]), "x").with_blocked("y", ["x"], ["x"])
    document = completed(report).to_json()
    assert set(document) == FIELDS
    assert document["step_outcomes"] == {"x": "failed", "y": "blocked"}
    assert document["direct_blockers"] == document["failed_ancestors"] == {"y": ["x"]}
    assert document["counts"] == dict(succeeded=0, reused=0, failed=1, blocked=1, unreached=0)
    assert document["step_ids"] == ["x", "y"]
    assert (document["outcome"], document["is_drained"]) == ("failed", True)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"plan_id": 7}, "report.plan_id"),
        ({"started_at": None}, "report.started_at"),
        ({"step_ids": "abc"}, "report.step_ids"),
        ({"failures": []}, "report.failures"),
    ],
)
def test_a_report_of_another_shape_is_refused_by_field(change: dict[str, Any], field: str):
    with pytest.raises(Invalid) as refused:
        AttemptReport.from_json({**CLOSED.to_json(), **change})
    assert refused.value.field == field
    with pytest.raises(Invalid):
        AttemptReport.from_json([])


def test_a_read_report_derives_again_what_it_is_told():
    """A report that says completed and drained with a step missing is neither."""
    told = {**succeeded(ONE, "a", "b").closed("completed", ENDED).to_json(), "step_outcomes": {}}
    report = AttemptReport.from_json(told)
    assert (report.is_drained, report.outcome) == (False, "failed")
    assert report.unreached_step_ids == ("a", "b")


json_ids = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("abc", max_size=1),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=150)
@given(st.data(), st.lists(json_ids, max_size=8), st.sampled_from(REASONS))
def test_any_report_survives_json_and_its_counts_sum_to_the_inventory(
    data: st.DataObject, step_ids: list[Any], reason: str
):
    names = [step_id for step_id in step_ids if isinstance(step_id, str)]
    report = opened([(name, []) for name in names], step_ids=step_ids)
    for name in dict.fromkeys(names):
        outcome = data.draw(st.sampled_from(["succeeded", "reused", "failed", "blocked", None]))
        if outcome == "blocked":
            report = report.with_blocked(name, [], [])
        elif outcome is not None:
            report = report.with_outcome(
                name, outcome, failure(name) if outcome == "failed" else None
            )
    if reason == "completed" and report.unreached_step_ids:
        reason = "cancelled"
    for each in (report, closed := report.closed(reason, ENDED)):
        assert sum(each.counts.values()) == len(step_ids)
        assert each.counts["unreached"] == len(each.unreached_step_ids)
        again = AttemptReport.from_json(orjson.loads(orjson.dumps(each.to_json())))
        assert again == each
        assert again.to_json() == each.to_json()
    assert (closed.outcome == "succeeded") == (
        reason == "completed" and not closed.counts["failed"] and not closed.counts["blocked"]
    )


def test_a_long_attempt_closes_in_linear_time():
    """Built at once, 5,000 steps blocked by the first."""

    def make(size: int) -> Callable[[], object]:
        plan: Plan = [(str(at), [str(at - 1)] if at else []) for at in range(size)]
        graph = Graph.of(plan)
        blocked = newly_blocked(graph, "0", {})
        return lambda: (
            AttemptReport.of(
                execution_id="e",
                plan_id="p",
                plan_generation=None,
                run_token=None,
                failure_policy="continue_independent",
                started_at="",
                step_ids=graph.order,
                graph=graph,
                outcomes={"0": "failed", **dict.fromkeys(blocked, "blocked")},
                failures={"0": failure("0")},
            )
            .closed("completed", ENDED)
            .to_json()
        )

    assert growth(make, 200) < 2.2
    assert isinstance(make(5_000)(), dict)


def test_recording_a_step_does_not_look_at_all_steps():
    """Four times the steps takes less than twice the work for one of them."""

    def make(size: int) -> Callable[[], object]:
        report = opened([(str(at), []) for at in range(size * size)])
        for at in range(10):
            report = report.with_outcome(str(at), "succeeded")
        return lambda: report.with_outcome("10", "succeeded")

    assert growth(make, 30) < 2
