"""Plan, slot and attempts under two processes, an operator and crashes, by random histories.

The real decisions and the real recovery run on an in-memory journal; only the step functions are
missing. The exhaustive model with seeded bugs belongs to the coordinator's own tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from statelog.domain.aggregate import Loaded
from statelog.domain.execution import attempt as attempts
from statelog.domain.execution import slot as slots
from statelog.domain.execution.attempt import ATTEMPT, AttemptStatus
from statelog.domain.execution.endings import finishes_request
from statelog.domain.execution.faults import Fenced
from statelog.domain.execution.plan import PLAN, Plan, PlanStatus
from statelog.domain.execution.request import DAEMON, Claim, RunRequest
from statelog.domain.execution.slot import SLOT, Slot, SlotStatus
from statelog.infrastructure.execution.closing import Ending, close
from statelog.infrastructure.execution.coordinator import Coordinator
from statelog.infrastructure.execution.engine import Engine
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.execution.resolved import Resolved
from statelog.infrastructure.execution.settle import Settler
from statelog.infrastructure.execution.writer import AttemptWriter
from statelog.infrastructure.holders import Holder, Holders
from statelog.infrastructure.journal import Journal
from statelog.projections.execution import EXECUTION_VIEWS
from statelog.projections.projection import apply, fold

BODIES = [
    {
        "plan_id": "p",
        "realm": "lab",
        "failure_policy": policy,
        "steps": [
            {"step_id": "a", "name": "A", "fn_ref": "m:f", "params": {"v": version}},
            {"step_id": "b", "name": "B", "fn_ref": "m:f", "params": {}, "deps": ["a"]},
        ],
    }
    for policy in ("fail_fast", "continue_independent")
    for version in (1, 2)
]


@dataclass
class Process:
    """One worker that may die at any moment; `writer` is its view of its attempt."""

    holder: Holder
    coordinator: Coordinator
    request: RunRequest | None = None
    slot: Loaded[Slot] | None = None
    writer: AttemptWriter | None = None
    closed: bool = False


class PlanMachine(RuleBasedStateMachine):
    """Random histories of one plan."""

    processes = Bundle("processes")

    def __init__(self) -> None:
        super().__init__()
        self.time = 1_000_000
        self.journal = Journal(clock=self.tick)
        self.holders = Holders.for_journal(self.journal)
        self.plans = Plans(self.journal, "alice")
        self.executed = -1
        self.generation: Any = None
        self.rows: dict[str, dict[str, Any]] = {view.name: {} for view in EXECUTION_VIEWS}
        self.folded = 0
        self.dead: list[Process] = []

    def tick(self) -> int:
        """A clock that moves a microsecond a look."""
        self.time += 1
        return self.time

    @initialize()
    def first(self) -> None:
        self.plans.save(BODIES[0], approve=True)

    # --- the operator, one rule of many so that work gets its share

    @rule(
        what=st.sampled_from(
            [
                "save",
                "save draft",
                "delete",
                "approve",
                "draft",
                "request",
                "touch",
                "adopt",
                "give",
            ]
        ),
        body=st.sampled_from(BODIES),
    )
    def operator(self, what: str, body: dict[str, Any]) -> None:
        self.operate(what, body)

    def operate(self, what: str, body: dict[str, Any]) -> None:
        absent = self.plan.status is PlanStatus.ABSENT
        if what.startswith("save") or absent:
            self.plans.save(body, approve=what != "save draft", force=True)
        elif what == "adopt":
            self.plans.adopt("p")
        elif what == "give":
            self.plans.adopt("p", authority="run_once", owner="run_once:x")
        else:
            getattr(self.plans, what)("p")

    @rule()
    def make_it_due(self) -> None:
        """An operator who wants the plan to run."""
        if self.plan.status is PlanStatus.ABSENT:
            self.plans.save(BODIES[1], approve=True)
        self.plans.adopt("p")
        if self.plan.status is PlanStatus.DRAFT:
            self.plans.approve("p")
        if not self.plan.open:
            self.plans.request("p")

    # --- processes

    @initialize(target=processes)
    def a_process(self) -> Process:
        return self.start_process()

    @rule(target=processes)
    def another_process(self) -> Process:
        return self.start_process()

    def start_process(self) -> Process:
        holder = self.holders.take()
        engine = Engine(self.journal, Path("unused"), [], "bob", clock=self.tick)
        settler = Settler(self.journal, self.holders, "bob", clock=self.tick, delays_s=())
        return Process(holder, Coordinator(engine, settler, holder, Claim(DAEMON)))

    def crash_now(self, process: Process) -> None:
        process.holder.release()
        self.dead.append(process)

    @rule(process=processes)
    def recover(self, process: Process) -> None:
        if process.slot is None:
            process.coordinator.settle("p")

    @rule(
        process=processes,
        times=st.integers(1, 12),
        ending=st.sampled_from(["completed", "failed_fast", "cancelled"]),
    )
    def advance(self, process: Process, times: int, ending: str) -> None:
        """The natural next commits of a process."""
        for _ in range(times):
            self._advance(process, ending)

    @rule(
        process=processes,
        what=st.sampled_from(["save", "give", "request", "draft", "delete", "touch"]),
        body=st.sampled_from(BODIES),
        records=st.booleans(),
    )
    def operate_while_a_result_waits(
        self, process: Process, what: str, body: dict[str, Any], records: bool
    ) -> None:
        self.make_it_due()
        for _ in range(12):
            if not process.closed:
                self._advance(process, "completed")
        self.operate(what, body)
        if process.closed and records:
            self._record(process)

    @rule(process=consumes(processes), times=st.integers(1, 8))
    def advance_and_crash(self, process: Process, times: int) -> None:
        for _ in range(times):
            self._advance(process, "completed")
        self.crash_now(process)

    def _advance(self, process: Process, ending: str) -> None:
        if process.closed:
            self._record(process)
        elif process.slot is None:
            self._admit(process)
        elif process.writer is None:
            self._start(process)
        elif process.writer.attempt.state.running is not None:
            step_id = process.writer.attempt.state.running
            self._work(process, step_id, "succeed" if ending == "completed" else "fail")
        elif len(process.writer.attempt.state.outcomes) == 2 or ending == "cancelled":
            self._close(process, ending)
        else:
            self._work(process, "b" if process.writer.attempt.state.outcomes else "a", "start_step")

    @rule(
        process=processes,
        step_id=st.sampled_from(["a", "b"]),
        what=st.sampled_from(["start_step", "succeed", "fail", "skip_step", "completed"]),
    )
    def try_anything(self, process: Process, step_id: str, what: str) -> None:
        if what == "completed":
            self._close(process, what)
        else:
            self._work(process, step_id, what)

    @precondition(lambda self: self.dead)
    @rule(data=st.data(), what=st.sampled_from(["start", "step", "close"]))
    def late_write(self, data: st.DataObject, what: str) -> None:
        """A dead holder's late write lands only while nobody took its plan over."""
        process = data.draw(st.sampled_from(self.dead))
        if process.slot is None:
            return
        taken = self.journal.load(SLOT, "p").version != process.slot.version
        before = self.journal.head()
        if what == "start":
            self._start(process)
        elif what == "step":
            self._work(process, "a", "start_step")
        else:
            self._close(process, "cancelled")
        if taken:
            assert self.journal.head() == before

    def _admit(self, process: Process) -> None:
        process.coordinator.settle("p")
        admitted = process.coordinator._admit("p")
        if not isinstance(admitted, Resolved):
            process.request, process.slot = admitted

    def _record(self, process: Process) -> None:
        assert process.slot is not None
        assert process.slot.state.execution_id is not None
        process.coordinator.settler.record("p", process.slot.state.execution_id)
        process.slot, process.closed = None, False

    def _start(self, process: Process) -> None:
        if process.slot is None or process.writer is not None or process.request is None:
            return
        blank = ATTEMPT.blank_of(("p", process.slot.state.execution_id or ""))
        writer = AttemptWriter(self.journal, blank, process.slot, actor="bob")
        try:
            writer.commit(
                blank.decide(
                    attempts.start,
                    plan=process.request.plan,
                    slot=process.slot.state,
                    started_at="2026-01-01T00:00:00.000000Z",
                )
            )
        except Fenced:
            self._must_be_dead(process)
            process.slot = None
        else:
            process.writer = writer

    def _work(self, process: Process, step_id: str, what: str) -> None:
        if process.writer is None:
            return
        given: dict[str, Any] = {"step_id": step_id}
        if what in ("start_step", "skip_step"):
            given |= {"run_id": "run_1", "fingerprint": "sha256:1"}
        if what == "start_step":
            given |= {"params": {}}
        if what == "fail":
            given |= {"kind": "permanent", "error": "no", "error_type": "E"}
        try:
            process.writer.commit(process.writer.attempt.decide(getattr(attempts, what), **given))
        except Fenced:
            self._must_be_dead(process)
            process.writer = process.slot = None
        except Exception as no:
            if type(no).__name__ not in ("Refused", "IllegalTransition"):
                raise

    def _close(self, process: Process, reason: str) -> None:
        if process.writer is None or process.slot is None:
            return
        try:
            report = close(process.writer, Ending(reason), "2026-01-01T00:00:01.000000Z")
        except Fenced:
            self._must_be_dead(process)
            process.writer = process.slot = None
            return
        except Exception as no:
            if type(no).__name__ != "OrchestrationError":
                raise
            return
        process.closed = finishes_request(report)
        process.writer = None
        process.slot = process.slot if process.closed else None

    def _must_be_dead(self, process: Process) -> None:
        assert process in self.dead, "a living holder lost its plan"

    # --- what always holds

    @property
    def plan(self) -> Plan:
        return self.journal.load(PLAN, "p").state

    @property
    def slot(self) -> Slot:
        return self.journal.load(SLOT, "p").state

    @invariant()
    def the_executed_token_never_lowers_within_a_generation(self) -> None:
        plan = self.plan
        if plan.plan_generation == self.generation:
            assert plan.executed_run_token >= self.executed
        self.generation, self.executed = plan.plan_generation, plan.executed_run_token

    @invariant()
    def outcome_and_token_stand_together(self) -> None:
        plan = self.plan
        assert (plan.last is None) == (plan.executed_run_token == -1)
        if plan.last is not None:
            assert plan.last["run_token"] == plan.executed_run_token
            assert plan.last["plan_generation"] == plan.plan_generation

    @invariant()
    def at_most_one_attempt_is_open_and_it_has_the_slot(self) -> None:
        slot = self.slot
        open_ids = []
        for stream in {r.stream for r in self.journal.history("plan/p/attempt")}:
            execution_id = stream.rsplit("/", 1)[1]
            attempt = self.journal.load(ATTEMPT, ("p", execution_id)).state
            if attempt.status is AttemptStatus.RUNNING:
                open_ids.append(execution_id)
        assert open_ids in ([], [slot.execution_id])
        if open_ids:
            assert slot.status is SlotStatus.HELD

    @invariant()
    def a_filed_report_is_never_lost(self) -> None:
        """Every attempt that finished its request was recorded, superseded, or is reporting."""
        filed = [r for r in self.journal.history("plan/p/slot") if r.name.endswith("report_filed")]
        ended = {
            r.event.execution_id
            for r in self.journal.history("plan/p/slot")
            if r.name.endswith("released") and r.event.how in (slots.RECORDED, slots.SUPERSEDED)
        }
        slot = self.slot
        finishing = {
            r.event.report["execution_id"]
            for r in self.journal.history("plan/p/attempt")
            if r.name.endswith("closed") and finishes_request(r.event.report)
        }
        assert finishing == {recorded.event.execution_id for recorded in filed}
        for recorded in filed:
            waits = slot.status is SlotStatus.REPORTING
            waiting = slot.execution_id if waits else None
            assert recorded.event.execution_id in {*ended, waiting}

    @invariant()
    def execution_ids_only_rise(self) -> None:
        held = [r for r in self.journal.history("plan/p/slot") if r.name.endswith("held")]
        ids = [recorded.event.execution_id for recorded in held]
        assert ids == sorted(set(ids))

    @invariant()
    def every_view_folded_as_it_goes_equals_its_fold_from_nothing(self) -> None:
        for recorded in self.journal.read(after=self.folded):
            for view in EXECUTION_VIEWS:
                apply(view, self.rows[view.name], recorded)
        self.folded = self.journal.head()
        log = list(self.journal.read())
        for view in EXECUTION_VIEWS:
            assert fold(view, log) == self.rows[view.name]

    def teardown(self) -> None:
        """Whatever was left, one living process brings the plan to rest."""
        for process in self.dead:
            process.holder.release()
        holder = self.holders.take()
        settler = Settler(self.journal, Holders(None), "bob", clock=self.tick, delays_s=())
        settler.recover("p")
        assert self.journal.load(SLOT, "p").state.status is SlotStatus.FREE
        holder.release()
        self.journal.close()


TestPlanMachine = PlanMachine.TestCase
TestPlanMachine.settings = settings(
    max_examples=70, stateful_step_count=50, deadline=None, print_blob=True
)
