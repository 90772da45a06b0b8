"""Working on sessions: one at a time, run after run, through failures, cancellation and stops."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from statelog.domain.errors import StoreError
from statelog.domain.planning.algorithm_run import RunStatus
from statelog.domain.planning.algorithms.port import Algorithm
from statelog.domain.planning.session import NO_CANDIDATE, SESSION, Created, SessionStatus
from statelog.domain.queue.job import JobStatus
from statelog.domain.workflows.schedule_plan import LifecycleAction
from statelog.domain.workflows.workflow import Dependency
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.planning.turn import KIND, TOKEN
from statelog.infrastructure.queue.worker import Interrupted
from tests.domain.planning.problems import placed, promising
from tests.infrastructure.planning.lab import Lab, broken, ids, making, waited


def statuses(page: dict[str, Any]) -> list[str]:
    """The session's, then those of its runs."""
    return [page["session"]["status"], *(each["status"] for each in page["algorithmRuns"])]


def test_a_run_that_fails_does_not_fail_the_session(lab: Lab):
    """planning case 8."""
    page = lab.planned("s", making("a", ValueError("no")), making("b", placed()))
    assert statuses(page) == ["completed", "failed", "completed"]
    assert page["algorithmRuns"][0]["failureReason"] == "no"
    assert page["session"]["candidateCount"] == 1


def test_every_run_fails(lab: Lab):
    """planning case 9: and the job is done, not tried again (P5)."""
    lab.create("s", *lab.register(making("a", ValueError("no")), making("b", broken())))
    (done,) = lab.work()
    page = lab.sessions.show("s")
    assert statuses(page) == ["failed", "failed", "failed"]
    assert page["session"]["failureReason"] == NO_CANDIDATE
    assert page["session"]["completedAt"]
    assert done.outcome.value == "completed"
    assert lab.job("s").status is JobStatus.COMPLETED


def test_a_run_without_a_candidate_is_completed(lab: Lab):
    """planning case 10: its session has nothing to choose from."""
    assert statuses(lab.planned("s", making("a"))) == ["failed", "completed"]


def test_an_invalid_plan_fails_the_run_and_keeps_what_came_before(lab: Lab):
    """planning case 11."""
    page = lab.planned("s", making("a", placed(), broken()))
    assert statuses(page) == ["completed", "failed"]
    assert "'summarize' is not assigned" in page["algorithmRuns"][0]["failureReason"]
    assert len(lab.sessions.candidates("s")) == 1


def test_a_plan_of_numbers_that_are_none_fails_the_run(lab: Lab):
    """An algorithm of somebody else's may emit anything; the log takes only what can be read."""
    page = lab.planned("s", making("a", promising(float("nan"), 1.0)), making("b", placed()))
    assert statuses(page) == ["completed", "failed", "completed"]


@pytest.mark.parametrize(
    "odd",
    [
        replace(placed(lane=2), metadata={"x": float("nan")}),
        replace(placed(lane=2), metadata={"x": "\ud800"}),
        replace(placed(lane=2), metadata={"x": object()}),
        replace(placed(), assignments=None),  # type: ignore[arg-type]
        replace(placed(), predicted=None),  # type: ignore[arg-type]
        "no plan",
        ValueError("\ud800" * 2000),
    ],
    ids=["nan", "surrogate", "object", "no assignments", "no promise", "no plan", "odd words"],
)
def test_whatever_an_algorithm_does_is_its_own_failure(lab: Lab, odd: Any):
    """The session goes on with the next one, and the log can be read."""
    page = lab.planned("s", making("a", placed(), odd), making("b", placed()))
    assert statuses(page) == ["completed", "failed", "completed"]
    assert 0 < len(page["algorithmRuns"][0]["failureReason"]) <= 1000
    assert page["session"]["candidateCount"] == 2


def test_candidates_that_are_all_infeasible_complete_the_session(lab: Lab):
    """planning case 12: none is Pareto optimal or dominated."""
    plans = (promising(20.0, 1.0), promising(30.0, 2.0))
    page = lab.planned("s", making("a", *plans), deadline_seconds=10.0)
    assert page["session"]["status"] == "completed"
    found = lab.sessions.candidates("s")
    assert [each["rank"] for each in found] == [1, 2]
    assert not any(each["feasible"] or each["paretoOptimal"] or each["dominated"] for each in found)


def test_a_completed_session_is_ranked(lab: Lab):
    """planning case 14, 24: over all candidates of all runs."""
    points = {"A": (10.0, 5.0), "B": (8.0, 9.0), "C": (12.0, 4.0), "D": (11.0, 6.0)}
    plans = {name: promising(*point) for name, point in points.items()}
    late = promising(7.0, 300.0)
    page = lab.planned(
        "s",
        making("one", plans["A"], plans["B"]),
        making("two", plans["C"], late, plans["D"]),
        budget=100.0,
    )
    assert page["session"]["progress"] == 1
    assert page["session"]["completedAt"]
    found = lab.sessions.candidates("s")
    order = [(each["predicted"]["makespanSeconds"], each["predicted"]["cost"]) for each in found]
    assert order == [(8.0, 9.0), (10.0, 5.0), (12.0, 4.0), (11.0, 6.0), (7.0, 300.0)]
    assert [each["rank"] for each in found] == [1, 2, 3, 4, 5]
    assert [each["paretoOptimal"] for each in found] == [True, True, True, False, False]
    assert [each["dominated"] for each in found] == [False, False, False, True, True]


def test_equal_candidates_are_both_optimal_in_the_order_they_came(lab: Lab):
    """planning case 25."""
    lab.planned("s", making("a", promising(10.0, 5.0), promising(10.0, 5.0, lane=2)))
    found = lab.sessions.candidates("s")
    assert [each["paretoOptimal"] for each in found] == [True, True]
    assert not any(each["dominated"] for each in found)
    emitted = lab.run("s", "a").emitted
    assert ids(found) == [each.id for each in emitted]


def test_the_same_plan_counts_once_in_a_run_and_twice_in_two(lab: Lab):
    """planning case 26, 27: two algorithms that found the same placement say so by a hash."""
    page = lab.planned("s", making("a", placed(), placed()), making("b", placed()))
    assert [each["candidateCount"] for each in page["algorithmRuns"]] == [1, 1]
    assert page["session"]["candidateCount"] == 2
    first, second = lab.sessions.candidates("s")
    assert first["fingerprint"] != second["fingerprint"]
    assert first["placementHash"] == second["placementHash"]


@pytest.mark.parametrize(
    ("makespan", "limits", "feasible"),
    [
        (10.0, {"deadline_seconds": 10.0}, True),
        (10.0001, {"deadline_seconds": 10.0}, False),
        (10.0001, {"deadline_seconds": 0.0}, True),
        (10.0, {"budget": 1.0}, True),
        (10.0, {"budget": 0.9999}, False),
        (10.0, {"budget": -1.0}, True),
    ],
)
def test_limits_are_inclusive_and_none_is_none(
    lab: Lab, makespan: float, limits: dict[str, float], feasible: bool
):
    """planning case 28."""
    lab.planned("s", making("a", promising(makespan, 1.0)), **limits)
    assert [each["feasible"] for each in lab.sessions.candidates("s")] == [feasible]


def test_a_candidate_has_ids_of_its_own(lab: Lab):
    """planning case 33: lifecycle actions follow their plan, and so does what they depend on."""
    first = LifecycleAction("x-1", "tmp", action="provision")
    last = LifecycleAction("x-2", "tmp", action="stop", depends_on=("x-1", "tmp-prepare"))
    named = placed()
    assignments = tuple(replace(a, id=f"tmp-{a.activity_id}") for a in named.assignments)
    plan = replace(named, id="tmp", assignments=assignments, lifecycle_actions=(first, last))
    lab.planned("s", making("a", plan))
    found = lab.sessions.candidate("s", ids(lab.sessions.candidates("s"))[0])["plan"]
    stop = found["lifecycleActions"][1]
    assert stop["id"] == f"{found['id']}-lifecycle-2"
    assert stop["dependsOn"] == [f"{found['id']}-lifecycle-1", f"{found['id']}-prepare"]


# while it runs


def test_what_is_found_is_visible_at_once_and_selectable(lab: Lab):
    """planning case 13, 18, 32: progress, rank 0, and an early selection."""
    seen: dict[str, Any] = {}

    def look(at: int) -> None:
        if at == 1:
            seen["candidates"] = lab.sessions.candidates("s")
            seen["page"] = lab.sessions.show("s")
            lab.sessions.select("s", ids(seen["candidates"])[0], actor="tester")

    page = lab.planned(
        "s",
        making("first", placed()),
        making("second", placed(), promising(5.0, 1.0), between=look),
    )
    assert statuses(seen["page"]) == ["running", "completed", "running"]
    assert seen["page"]["session"]["progress"] == (1 + 0.25) / 2
    assert [each["rank"] for each in seen["candidates"]] == [0, 0]
    assert not any(each["paretoOptimal"] for each in seen["candidates"])
    assert page["session"]["status"] == "completed"
    assert page["session"]["selectedCandidateId"] == ids(seen["candidates"])[0]


def test_runs_go_in_the_order_they_were_selected(lab: Lab):
    """One at a time: a run ends before the next one starts."""
    lab.planned("s", making("z", placed()), making("a", placed()))
    moves = [
        (each.stream.rsplit("/", 1)[1], each.name.rsplit(".", 1)[1])
        for each in lab.journal.history("session/s")
        if each.name.endswith((".started", "run.completed")) and "/run/" in each.stream
    ]
    assert moves == [("z", "started"), ("z", "completed"), ("a", "started"), ("a", "completed")]


def test_progress_never_goes_down(lab: Lab):
    """P7: over a failure, an interruption and a second delivery."""
    stop = threading.Event()

    def interrupt(at: int) -> None:
        if at == 1:
            stop.set()

    bad = making("bad", placed(), ValueError("no"))
    slow = making("slow", placed(), promising(5.0, 1.0), between=interrupt)
    lab.create("s", *lab.register(bad, slow, making("last", placed())))
    with pytest.raises(Interrupted):
        lab.deliver("s", stop)
    lab.deliver("s")
    told, seen = [], []
    for recorded in lab.journal.history("session/s"):
        seen.append(recorded)
        told.append(_page(seen)["session"]["progress"])
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, 1.0)


def _page(events: list[Any]) -> dict[str, Any]:
    from statelog.projections.planning import planning_session
    from statelog.projections.replay import replay

    return replay(planning_session, events)["s"]


# cancellation


def test_a_cancellation_ends_a_computation_that_reports(lab: Lab):
    """It goes on at most until the next look, and nothing it finds later is kept."""
    reported = threading.Event()
    ended: list[bool] = []

    def endless(problem: Any, configuration: Any, report: Any) -> Iterator[Any]:
        yield placed()
        reported.set()
        try:
            while True:
                report(0.5)
        finally:
            ended.append(True)

    algorithm = Algorithm("endless", "Endless", "time", True, "Never ends.", endless)
    lab.create("s", *lab.register(algorithm, making("next", placed())))
    thread = threading.Thread(target=lab.deliver, args=("s",))
    thread.start()
    assert reported.wait(20)
    lab.sessions.cancel("s", actor="tester")
    thread.join(20)
    assert not thread.is_alive()
    assert ended == [True]
    assert statuses(lab.sessions.show("s")) == ["cancelled"] * 3
    assert len(lab.sessions.candidates("s")) == 1


def test_a_candidate_that_comes_after_the_cancellation_is_refused(lab: Lab):
    """P1: it conflicts with the run that moved on, and leaves one row of evidence."""
    calls = 0

    def plans(problem: Any, configuration: Any, report: Any) -> Iterator[Any]:
        nonlocal calls
        calls += 1
        lab.sessions.cancel("s", actor="tester")
        yield placed()
        raise AssertionError("nobody asks for more")

    lab.planned("s", Algorithm("late", "Late", "time", True, "Too late.", plans))
    assert calls == 1
    assert statuses(lab.sessions.show("s")) == ["cancelled", "cancelled"]
    assert lab.sessions.candidates("s") == []
    (refusal,) = lab.journal.refusals()
    assert (refusal.stream, refusal.rule) == ("session/s/run/late", "ended")


def test_a_session_that_is_cancelled_before_its_ranking_is_not_completed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    """P6: ranks, flags and completion are refused as one, and that is kept."""
    from statelog.infrastructure.planning import coordinator

    rank = coordinator.rank

    def cancel_first(candidates: Any) -> Any:
        lab.sessions.cancel("s", actor="tester")
        return rank(candidates)

    monkeypatch.setattr(coordinator, "rank", cancel_first)
    page = lab.planned("s", making("a", placed()))
    assert statuses(page) == ["cancelled", "completed"]
    assert [each["rank"] for each in lab.sessions.candidates("s")] == [0]
    (refusal,) = lab.journal.refusals()
    assert (refusal.stream, refusal.rule) == ("session/s", "ended")


# delivery


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_a_job_that_is_delivered_again_changes_nothing(lab: Lab, end: str):
    """planning case 15, 16, 17: success, whatever the end was, and no row of evidence."""
    if end == "cancelled":
        lab.create("s", *lab.register(making("a", placed())))
        lab.sessions.cancel("s", actor="tester")
    else:
        lab.planned("s", making("a", *([placed()] if end == "completed" else [])))
    assert lab.sessions.show("s")["session"]["status"] == end
    before = lab.log()
    lab.deliver("s")
    assert lab.log() == before
    assert lab.journal.refusals() == []


def test_a_worker_that_stops_leaves_a_session_that_goes_on(lab: Lab):
    """Completed runs are skipped, the interrupted one starts again, and nothing counts twice."""
    stop = threading.Event()

    def interrupt(at: int) -> None:
        if at == 1:
            stop.set()

    calls: list[int] = []
    first = making("first", placed(), between=calls.append)
    second = making("second", placed(), promising(5.0, 1.0), between=interrupt)
    lab.create("s", *lab.register(first, second))
    with pytest.raises(Interrupted):
        lab.deliver("s", stop)
    assert statuses(lab.sessions.show("s")) == ["running", "completed", "running"]
    lab.deliver("s")
    page = lab.sessions.show("s")
    assert statuses(page) == ["completed"] * 3
    assert [each["candidateCount"] for each in page["algorithmRuns"]] == [1, 2]
    assert calls == [0]
    session = [
        each.name.rsplit(".", 1)[1]
        for each in lab.journal.history("session/s")
        if each.stream == "session/s"
    ]
    assert session == ["created", "started", "requeued", "started", "completed"]


def test_a_worker_gives_the_job_back_when_it_stops(lab: Lab):
    """And the next one finishes it: an interruption is not a failed attempt."""
    stop, reached = threading.Event(), threading.Event()

    def plans(problem: Any, configuration: Any, report: Any) -> Iterator[Any]:
        while not stop.is_set():
            reached.set()
            report(0.5)
        while not drained.is_set():
            report(0.5)
        yield placed()

    drained = threading.Event()
    algorithm = Algorithm("a", "A", "time", True, "Ends with the second delivery.", plans)
    lab.create("s", *lab.register(algorithm))
    thread = threading.Thread(target=lab.worker().run, args=(stop,))
    thread.start()
    assert reached.wait(20)
    stop.set()
    thread.join(20)
    drained.set()
    assert lab.job("s").status is JobStatus.PENDING
    assert lab.job("s").attempts == 0
    assert lab.session("s").status is SessionStatus.RUNNING
    lab.work()
    assert lab.session("s").status is SessionStatus.COMPLETED
    assert lab.job("s").status is JobStatus.COMPLETED


def test_a_store_that_is_full_is_no_failure_of_an_algorithm(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
):
    """What goes wrong with the log is told to the queue, which tries again."""
    lab.create("s", *lab.register(making("a", placed())))
    commit = lab.journal.commit

    def full(*changes: Any, **given: Any) -> Any:
        if any("candidate" in each.stored_name for change in changes for each in change.events):
            raise StoreError("full", "no space is left")
        return commit(*changes, **given)

    monkeypatch.setattr(lab.journal, "commit", full)
    with pytest.raises(StoreError):
        lab.deliver("s")
    assert lab.run("s", "a").status is RunStatus.RUNNING
    monkeypatch.undo()
    lab.deliver("s")
    assert lab.session("s").status is SessionStatus.COMPLETED


def test_an_algorithm_that_is_not_registered_any_more_fails_its_run(lab: Lab):
    """2.2: it was when the session was created; the next one goes on."""
    lab.create("s", *lab.register(making("gone", placed()), making("b", placed())))
    del lab.algorithms["gone"]
    lab.deliver("s")
    page = lab.sessions.show("s")
    assert statuses(page) == ["completed", "failed", "completed"]
    assert "not registered" in page["algorithmRuns"][0]["failureReason"]


def test_an_input_that_cannot_be_planned_fails_the_session_and_completes_the_job(lab: Lab):
    """P5: a cycle that an older release let in; no run waits for ever."""
    lab.create("s", "heft", "cpop")
    problem = lab.session("s").problem
    assert problem is not None
    turned = (*problem.workflow.dependencies, Dependency("prepare", "summarize"))
    cyclic = replace(problem, workflow=replace(problem.workflow, dependencies=turned))
    with Journal() as journal:
        other = Lab(journal)
        other.create("s", "heft", "cpop")
        events = [Created(cyclic, other.session("s").algorithms)]
        stream = SESSION.blank_of("t").decide(lambda _: events)
        runs = [other.sessions._queued("t", each, problem) for each in events[0].algorithms]
        journal.commit(stream, *runs, actor="tester")
        other.deliver("t")
        page = other.sessions.show("t")
        assert statuses(page) == ["failed", "cancelled", "cancelled"]
        assert "cannot be planned" in page["session"]["failureReason"]


def test_a_job_that_fails_for_good_fails_its_session(lab: Lab):
    """Nobody will work on it any more, so it does not say for ever that somebody does."""
    lab.create("s", "heft", "cpop")
    queue = lab.worker().queue
    for attempt in range(5):
        (leased,) = queue.lease("other", seconds=30.0)
        assert leased.state.attempts == attempt + 1
        queue.fail(leased.id, "other", "the disk is full")
        later = lab.journal.clock() + 600_000_000
        lab.journal.clock = lambda later=later: later
    page = lab.sessions.show("s")
    assert lab.job("s").status is JobStatus.FAILED
    assert statuses(page) == ["failed", "cancelled", "cancelled"]
    assert "the disk is full" in page["session"]["failureReason"]


# one at a time


def test_a_session_waits_for_the_one_that_runs(lab: Lab):
    """planning case 7: two jobs are consumed at once, and the second session stays queued."""
    go, reached = threading.Event(), threading.Event()

    def wait(at: int) -> None:
        reached.set()
        assert go.wait(20)

    lab.create("s", *lab.register(making("slow", placed(), between=wait)))
    lab.create("t", *lab.register(making("quick", placed())))
    stop = threading.Event()
    thread = threading.Thread(target=lab.worker().run, args=(stop,))
    thread.start()
    assert reached.wait(20)
    waited(lambda: lab.job("t").status is JobStatus.LEASED)
    assert lab.session("t").status is SessionStatus.QUEUED
    go.set()
    waited(lambda: lab.session("t").ended)
    stop.set()
    thread.join(20)
    moves = [
        (each.stream, each.name.rsplit(".", 1)[1])
        for each in lab.journal.history("session")
        if "/run/" not in each.stream and not each.name.endswith("created")
    ]
    assert moves == [
        ("session/s", "started"),
        ("session/s", "completed"),
        ("session/t", "started"),
        ("session/t", "completed"),
    ]


def test_a_session_that_waits_can_be_cancelled(lab: Lab):
    """Its handler stops waiting for a turn that it does not need any more."""
    lab.create("s", "heft")
    with Holders.for_journal(lab.journal).take(KIND, TOKEN):
        thread = threading.Thread(target=lab.deliver, args=("s",))
        thread.start()
        lab.sessions.cancel("s", actor="tester")
        thread.join(20)
        assert not thread.is_alive()
    assert statuses(lab.sessions.show("s")) == ["cancelled", "cancelled"]


def test_whoever_has_the_turn_requeues_what_the_last_one_left(lab: Lab):
    """So at most one session is ever running, also after a worker was killed."""
    stop = threading.Event()
    lab.create("s", *lab.register(making("a", placed(), between=lambda at: stop.set())))
    lab.create("t", *lab.register(making("b", placed())))
    with pytest.raises(Interrupted):
        lab.deliver("s", stop)
    assert lab.session("s").status is SessionStatus.RUNNING
    lab.deliver("t")
    assert lab.session("s").status is SessionStatus.QUEUED
    assert lab.session("t").status is SessionStatus.COMPLETED
    lab.algorithms["a"] = making("a", placed())
    lab.deliver("s")
    assert lab.session("s").status is SessionStatus.COMPLETED


# the same again


def test_candidates_are_the_same_in_every_session_and_log(lab: Lab):
    """Byte by byte in the log, for every algorithm that is shipped."""
    algorithms = ("heft", "cpop", "min-min", "max-min", "moheft")
    lab.create("s", *algorithms)
    lab.deliver("s")
    with Journal() as journal:
        other = Lab(journal)
        other.create("s", *algorithms)
        other.deliver("s")
        ours = [each for each in lab.log() if each[0].startswith("session/")]
        theirs = [each for each in other.log() if each[0].startswith("session/")]
        kept = [each for each in ours if not each[1].endswith(".progressed")]
        assert kept == [each for each in theirs if not each[1].endswith(".progressed")]
    assert len(lab.sessions.candidates("s")) >= len(algorithms)


def test_the_golden_schedule_comes_out_of_a_session(lab: Lab):
    """planning case 41, through a session: HEFT of the section 4.2 example."""
    lab.create("s", "heft")
    lab.deliver("s")
    (summary,) = lab.sessions.candidates("s")
    detail = lab.sessions.candidate("s", summary["id"])
    starts = [each["predictedStartAt"] for each in detail["plan"]["assignments"]]
    assert starts == pytest.approx([0.7, 1.9, 5.1])
    assert detail["predicted"] == {
        "makespanSeconds": pytest.approx(5.6),
        "cost": pytest.approx(0.0045),
        "feasible": True,
    }
