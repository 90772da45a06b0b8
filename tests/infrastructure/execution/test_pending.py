"""A result that cannot be recorded now is pending; within its process each newer token buys a try.

Also what a living process owes because an append failed: it pays before anything else, and nobody
is left waiting for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from statelog.domain.errors import Conflict, OutcomeUnknown, StoreError
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.endings import Resolution
from statelog.domain.execution.request import DAEMON
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.infrastructure.cli.status import pending_result
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.execution.resolved import Resolved
from statelog.infrastructure.execution.run_once import RunOnce
from statelog.infrastructure.execution.settle import Settler
from statelog.infrastructure.execution.worker import Worker
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from tests.infrastructure.execution.lab import Failing, Lab, a_step

BUSY = StoreError("busy", "the store is locked")
FULL = StoreError("full", "the disk is full")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def stored(tmp_path: Path, store_path: Path) -> Iterator[Lab]:
    with Journal(store_path) as journal:
        yield Lab(tmp_path, journal)


def recording(names: list[str]) -> bool:
    return "request_finished" in names


def pend(lab: Lab, session: RunOnce, error: Exception = BUSY) -> Resolved:
    """Run step a, whose result cannot be recorded."""
    with Failing(lab.journal, recording, error):
        resolved = session.run(lab.body(a_step("a")))
    assert resolved.resolution is Resolution.FINALIZATION_PENDING
    return resolved


class Landing(Failing):
    """Makes commits land and be reported as unknown."""

    def commit(self, *changes: Any, **given: Any) -> Any:
        names = [event.stored_name.rsplit(".", 1)[1] for ch in changes for event in ch.events]
        done = self._commit(*changes, **given)
        if self.when(names):
            self.failed += 1
            raise self.error
        return done


# --- 2.7, in one process


def test_an_error_that_cannot_pass_is_tried_once_and_pending(lab: Lab):
    """Case 79."""
    with lab.session() as session, Failing(lab.journal, recording, FULL) as failing:
        resolved = session.run(lab.body(a_step("a")))
    assert (failing.failed, resolved.resolution) == (1, Resolution.FINALIZATION_PENDING)


def test_a_duplicate_of_a_pending_request_neither_runs_nor_retries(lab: Lab):
    """Case 80: three tries, then none, also when the store would take it by now."""
    with lab.session() as session:
        with Failing(lab.journal, recording, BUSY) as failing:
            session.run(lab.body(a_step("a")))
        assert failing.failed == 3
        again = session.coordinator.cycle("p")
        assert again.resolution is Resolution.FINALIZATION_PENDING
        assert again.reason == "the store is locked"
        assert lab.plan.last is None
        assert lab.ran() == ["a"]


def test_each_newer_token_buys_one_round(lab: Lab):
    """Case 81: the new request waits, its repeats retry nothing, a still newer one tries again."""
    with lab.session() as session:
        pend(lab, session)
        plans = Plans(lab.journal, "alice")
        plans.request("p")
        with Failing(lab.journal, recording, BUSY) as failing:
            for expected in (3, 3, 3):
                resolved = session.coordinator.cycle("p")
                assert resolved.resolution is Resolution.FINALIZATION_PENDING
                assert failing.failed == expected
            plans.request("p")
            session.coordinator.cycle("p")
            assert failing.failed == 6
        plans.request("p")
        ran = session.coordinator.cycle("p")
        assert (ran.succeeded, ran.run_token) == (True, 3)
    assert lab.names("plan/p").count("request_finished") == 2
    assert lab.plan.executed_run_token == 3


def test_a_token_raised_during_a_round_still_buys_its_own(lab: Lab):
    """2.7: a token is spent by the round that it bought, and by no other."""
    with lab.session() as session:
        pend(lab, session)
        plans = Plans(lab.journal, "alice")
        plans.request("p")
        tries: list[int] = []

        def raise_token(names: list[str]) -> bool:
            if not recording(names):
                return False
            if not tries:
                plans.request("p")
            tries.append(lab.plan.run_token)
            return True

        with Failing(lab.journal, raise_token, BUSY):
            session.coordinator.cycle("p")
            assert tries == [2, 2, 2]
            session.coordinator.cycle("p")
        assert len(tries) == 6


def test_a_pending_result_of_a_regenerated_plan_is_dropped_in_the_same_process(lab: Lab):
    """Case 82: without writing to the document; the new version runs."""
    with lab.session() as session:
        pend(lab, session)
        owner = session.coordinator.holder.id
        Plans(lab.journal, "alice").save(
            lab.body(a_step("b")), approve=True, force=True, authority="run_once", owner=owner
        )
        before = lab.journal.load(SLOT, "p")
        resolved = session.coordinator.cycle("p")
    assert resolved.succeeded
    assert lab.ran() == ["a", "b"]
    released = next(lab.journal.history("plan/p/slot", after=0, names={"execution.slot.released"}))
    assert (released.event.how, released.event.reason) == ("superseded", "generation_changed")
    assert released.version == before.version + 1


def test_a_last_try_that_had_landed_is_settled_without_writing(lab: Lab):
    """Case 83: the next request writes nothing and is not eligible."""
    tries: list[int] = []

    def third(names: list[str]) -> bool:
        return recording(names) and len(tries) == 3

    def count(names: list[str]) -> bool:
        if recording(names):
            tries.append(1)
        return recording(names) and len(tries) < 3

    with lab.session() as session:
        unknown = OutcomeUnknown("c")
        with Landing(lab.journal, third, unknown), Failing(lab.journal, count, BUSY):
            resolved = session.run(lab.body(a_step("a")))
        assert len(tries) == 3
        assert resolved.resolution is Resolution.FINALIZATION_PENDING
        assert lab.plan.last["execution_id"] == resolved.execution_id
        before = lab.journal.head()
        again = session.coordinator.cycle("p")
        assert again.resolution is Resolution.NOT_ELIGIBLE
        assert lab.journal.head() == before
    assert lab.names("plan/p").count("request_finished") == 1


def test_another_process_gets_one_round_of_its_own(lab: Lab):
    """D10: a restart, or a daemon, settles what the first process may not try again."""
    with lab.session() as session:
        pend(lab, session)
        assert session.coordinator.cycle("p").resolution is Resolution.FINALIZATION_PENDING
        settled = Settler(lab.journal, session.holders, "svc").recover("p")
        assert settled is not None
        assert settled.recording.value == "recorded"


def test_a_pending_plan_does_not_hold_up_another(lab: Lab, caplog: pytest.LogCaptureFixture):
    """Case 139: B runs and records; of A the snapshot is finished and the document is not."""
    from statelog.infrastructure.views import Views
    from statelog.projections.execution import EXECUTION_VIEWS

    with lab.session() as session:
        pended = pend(lab, session, FULL)
        assert session.run(lab.body(a_step("a"), plan_id="b")).succeeded
    with Views(lab.journal, EXECUTION_VIEWS) as views:
        snapshot, document = views.get("plan_status", "p"), views.get("plan_document", "p")
    assert snapshot is not None
    assert document is not None
    assert snapshot["attempt"]["state"] == "finished"
    assert snapshot["attempt"]["outcome"] == "succeeded"
    assert document["executed_run_token"] == -1
    assert document.get("last_finalized_execution") is None
    line = (
        f"Plan 'p' execution '{pended.execution_id}' succeeded finished, but its result could not "
        "be recorded; keeping it pending, and not executing the plan again until it is recorded "
        "or superseded."
    )
    (record,) = [r for r in caplog.records if r.getMessage() == line]
    assert (record.levelname, record.plan, record.execution) == (
        "ERROR",
        "p",
        pended.execution_id,
    )


def test_a_healthy_attempt_is_never_shown_as_pending(stored: Lab):
    """Case 129: neither running, nor while it is recorded; only once it gave up, or is dead."""
    shown: dict[str, Any] = {}

    def look(names: list[str]) -> bool:
        shown[names[0]] = pending_result(stored.journal, "p")
        return recording(names)

    with stored.session() as session:
        with Failing(stored.journal, look, FULL):
            resolved = session.run(stored.body(a_step("a")))
        assert "request_finished" in shown
        assert "step_started" in shown
        assert set(map(str, shown.values())) == {"None"}
        pending = pending_result(stored.journal, "p")
        assert pending is not None
        assert pending["execution_id"] == resolved.execution_id
        assert pending["reason"] == "the disk is full"
    assert Settler(stored.journal, Holders.of(stored.journal.store), "bob").recover("p")
    assert pending_result(stored.journal, "p") is None


# --- what is owed


def worker(lab: Lab, **given: Any) -> Worker:
    return Worker(lab.journal, work_root=lab.work, path=[lab.path], actor="svc", **given)


def approved(lab: Lab, *steps: Any) -> Plans:
    plans = Plans(lab.journal, "alice")
    plans.save(lab.body(*steps), approve=True)
    return plans


@pytest.mark.parametrize("step", ["ok", "bad"])
def test_a_close_that_failed_lands_once_there_is_space(stored: Lab, step: str):
    """Case 134: without a restart, with its outcomes, and the request stays open."""
    approved(stored, a_step("a", step))
    with worker(stored) as living:
        with Failing(stored.journal, lambda names: "closed" in names, FULL):
            assert living.run("p").resolution is Resolution.UNFINISHED
            assert not living.pay()
            assert stored.slot.status is SlotStatus.HELD
        assert living.pay()
        assert stored.slot.status is SlotStatus.FREE
        report = stored.events()[-1].event.report
        assert report["termination_reason"] == "orchestration_error"
        assert "the disk is full" in report["publication_failure"]["message"]
        assert report["publication_failure"]["details"]["superseded_reason"] in (
            *("completed", "failed_fast"),
        )
        assert report["step_outcomes"] == {"a": "succeeded" if step == "ok" else "failed"}
        assert stored.plan.open
        again = living.run("p")
    assert again.report is not None
    assert again.run_token == 0


def test_a_release_that_failed_is_owed(stored: Lab):
    """D9: a reservation that was cancelled before its start does not stay for ever."""
    approved(stored, a_step("a"))
    with worker(stored) as living:
        coordinator = living._coordinator
        admit = coordinator._admit

        def admit_and_cancel(*given: Any) -> Any:
            admitted = admit(*given)
            living.stop()
            return admitted

        coordinator._admit = admit_and_cancel  # type: ignore[method-assign,assignment]
        with Failing(stored.journal, lambda names: "released" in names, FULL):
            assert living.run("p").resolution is Resolution.CANCELLED
            assert stored.slot.status is SlotStatus.HELD
        assert living.pay()
    assert stored.slot.status is SlotStatus.FREE
    assert stored.names("plan/p/slot") == ["held", "released"]
    assert stored.events() == []


def test_a_verdict_that_failed_is_owed_and_the_result_is_pending_all_the_same(stored: Lab):
    """D9, D10: nobody takes it for a healthy attempt that is about to be recorded."""
    plans = approved(stored, a_step("a"))
    with worker(stored) as living:
        with Failing(stored.journal, lambda n: recording(n) or "gave_up" in n, FULL):
            assert living.run("p").resolution is Resolution.FINALIZATION_PENDING
            repeated = living.run("p")
            assert repeated.resolution is Resolution.FINALIZATION_PENDING
            assert repeated.reason == "the disk is full"
        assert stored.slot.gave_up is None
        assert living.pay()
        assert stored.slot.gave_up == "the disk is full"
        plans.request("p")
        assert living.run("p").succeeded
    assert stored.names("plan/p").count("request_finished") == 2


def test_a_close_that_landed_after_all_is_recorded(stored: Lab):
    """2.6 for the close: what was reported as unknown is read again, and nothing runs twice."""
    approved(stored, a_step("a"))
    with worker(stored) as living:
        with Landing(stored.journal, lambda names: "closed" in names, OutcomeUnknown("c")):
            resolved = living.run("p")
        assert resolved.succeeded
        assert living.pay()
    assert stored.plan.last["execution_id"] == resolved.execution_id
    assert stored.ran() == ["a"]


def test_a_reservation_that_landed_after_all_is_given_back(stored: Lab):
    """A living process is never in its own way."""
    approved(stored, a_step("a"))
    with worker(stored) as living:
        with Landing(stored.journal, lambda names: "held" in names, OutcomeUnknown("c")):
            assert living.run("p").resolution is Resolution.ADMISSION_FAILED
        assert stored.slot.status is SlotStatus.HELD
        assert living.run("p").succeeded
    hows = [r.event.how for r in stored.events("plan/p/slot") if r.name.endswith("released")]
    assert hows == ["not_started", "recorded"]


def test_no_free_id_is_a_failed_admission(lab: Lab):
    """6.3: under a coordinator it is a resolution, not an exception."""
    with lab.session() as session:
        session.prepare("p", lab.body(a_step("a")), adopt=False)
        session.coordinator._journal.load = taken(lab.journal.load)
        resolved = session.coordinator.cycle("p")
        del lab.journal.load
    assert resolved.resolution is Resolution.ADMISSION_FAILED
    assert "no execution ID is free" in resolved.reason


def taken(load: Callable[..., Any]) -> Callable[..., Any]:
    def loaded(aggregate: Any, id: Any, **given: Any) -> Any:
        found = load(aggregate, id, **given)
        return found if aggregate is not ATTEMPT else type(found)(aggregate, id, found.state, 1)

    return loaded


# --- hooks and fields


def test_the_hook_of_a_worker_hears_every_resolution_and_changes_nothing(
    stored: Lab, caplog: pytest.LogCaptureFixture
):
    """A hook that fails is one line."""
    approved(stored, a_step("a"))
    heard: list[Resolved] = []

    def hook(resolved: Resolved) -> None:
        heard.append(resolved)
        raise ZeroDivisionError("a metric")

    with worker(stored, on_resolution=hook) as living:
        resolved = living.run("p")
        assert resolved.succeeded
        living.run("p")
    assert [each.resolution for each in heard] == [Resolution.FINALIZED, Resolution.NOT_ELIGIBLE]
    assert heard[0] is resolved
    assert sum("on_resolution failed" in r.getMessage() for r in caplog.records) == 2


def test_every_line_about_a_plan_names_it_in_its_fields(lab: Lab, caplog: pytest.LogCaptureFixture):
    """4.3: plan, execution, step and resolution."""
    with caplog.at_level(logging.DEBUG, "statelog"), lab.session() as session:
        with Failing(lab.journal, recording, BUSY):
            session.run(lab.body(a_step("x", "bad"), a_step("y"), policy="continue_independent"))
        session.coordinator.cycle("p")
    ours = [record for record in caplog.records if record.name.startswith("statelog.execution")]
    assert {record.levelname for record in ours} == {"INFO", "WARNING", "ERROR"}
    assert {record.plan for record in ours} == {"p"}
    failed = next(record for record in ours if "failed; blocked" in record.getMessage())
    assert (failed.step, failed.execution) == ("x", lab.slot.execution_id)
    resolved = [record.resolution for record in ours if record.resolution]
    assert resolved == ["finalization_pending", "finalization_pending"]


# --- documents


def test_of_two_regenerations_the_loser_is_not_replayed(lab: Lab):
    """Case 90: it was conditional on what it read."""
    plans = Plans(lab.journal, "alice")
    first = plans.save(lab.body(a_step("a")), approve=True)
    plans.save(lab.body(a_step("b")), approve=True, rev=first.version)
    before = lab.journal.head()
    with pytest.raises(Conflict):
        plans.save(lab.body(a_step("c")), approve=True, rev=first.version)
    assert lab.journal.head() == before
    assert [step["step_id"] for step in lab.plan.body["steps"]] == ["b"]


def test_a_stale_regeneration_cannot_overwrite_a_recorded_result(lab: Lab):
    """Case 91."""
    lab.run(a_step("a"))
    stale = lab.journal.load(SLOT, "p").state.plan_version
    with pytest.raises(Conflict):
        Plans(lab.journal, "alice").save(lab.body(a_step("b")), rev=stale)
    assert lab.plan.last["outcome"] == "succeeded"


@pytest.mark.parametrize("command", ["save", "approve", "draft", "request", "adopt", "delete"])
def test_a_rejected_conditional_write_changes_nothing(lab: Lab, command: str):
    """Case 92: neither the body, nor the revision, nor a position."""
    lab.run(a_step("a"))
    plans = Plans(lab.journal, "alice")
    before = (lab.journal.head(), lab.plan)
    given = lab.body(a_step("b")) if command == "save" else "p"
    with pytest.raises(Conflict):
        getattr(plans, command)(given, rev=1)
    assert (lab.journal.head(), lab.plan) == before


def test_approval_and_tokens_keep_the_generation(lab: Lab):
    """Case 93: only a save makes a new one."""
    plans = Plans(lab.journal, "alice")
    generations = [plans.save(lab.body(a_step("a"))).state.plan_generation]
    for act in (plans.approve, plans.request, plans.touch, plans.draft, plans.adopt):
        act("p")
        generations.append(lab.plan.plan_generation)
    assert len(set(generations)) == 1
    assert lab.plan.execution_authority == DAEMON
    plans.save(lab.body(a_step("a")), force=True)
    assert lab.plan.plan_generation != generations[0]
