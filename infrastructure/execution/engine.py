"""The engine: runs one attempt of a plan, step by step, and closes its report once (2.3, 5)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statelog.domain.aggregate import Loaded
from statelog.domain.execution import attempt as decisions
from statelog.domain.execution.attempt import ATTEMPT, Attempt, AttemptStatus
from statelog.domain.execution.execution_ids import can_name_attempt
from statelog.domain.execution.faults import (
    AttemptCancelled,
    Fenced,
    OrchestrationError,
    PreflightRejected,
    PublicationError,
)
from statelog.domain.execution.findings import Aborted, Rejected, Resolver
from statelog.domain.execution.graph import Graph, Scheduler, blockers, newly_blocked
from statelog.domain.execution.outcomes import BLOCKED
from statelog.domain.execution.preflight import preflight
from statelog.domain.execution.slot import Slot, SlotStatus
from statelog.domain.execution.spec import CONTINUE_INDEPENDENT, PlanSpec
from statelog.domain.execution.step import PermanentStepError, TransientStepError
from statelog.domain.times import iso
from statelog.infrastructure.clock import now
from statelog.infrastructure.execution.chance import monotonic_us, run_id
from statelog.infrastructure.execution.closing import Ending, close, diagnostic, final_report
from statelog.infrastructure.execution.fence import marked
from statelog.infrastructure.execution.history import last_successes
from statelog.infrastructure.execution.imports import StepModules
from statelog.infrastructure.execution.params import forget_functions
from statelog.infrastructure.execution.stepping import StepFailure, StepInterrupted, StepRunner
from statelog.infrastructure.execution.workdir import WorkDir
from statelog.infrastructure.execution.writer import AttemptWriter, Listener
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.logs import about

log = logging.getLogger("statelog.execution.engine")


@dataclass(frozen=True)
class Ended:
    """How an attempt ended: its report, and what is owed when the report is not in the log.

    `report` has the fields of 1.7 and is None only when the attempt was fenced. `published` says
    whether the report is in the log; `error` is the original cause of an abnormal end. Of a report
    that could not be published, `owes` is the ending it was to have and `failure` says why.
    """

    report: Mapping[str, Any] | None
    published: bool
    attempt: Loaded[Attempt]
    slot: Loaded[Slot]
    error: BaseException | None = None
    owes: Ending | None = None
    failure: Mapping[str, Any] | None = None

    @property
    def fenced(self) -> bool:
        """Whether another process took the plan over; nothing more may be written."""
        return isinstance(self.error, Fenced)

    def result(self) -> Mapping[str, Any] | None:
        """What a caller of the engine sees (4.1).

        Under `fail_fast` nothing on success, and the error otherwise (a transient one as a
        permanent one that it caused); under `continue_independent` the report. Infrastructure
        failures, cancellation and preflight rejections raise under both.
        """
        if isinstance(self.error, TransientStepError):
            raise PermanentStepError(
                f"{self.error} (retry is not implemented)",
                code=self.error.code,
                advice=self.error.advice,
            ) from self.error
        if self.error is not None:
            raise self.error
        policy = self.report and self.report["failure_policy"]
        return self.report if policy == CONTINUE_INDEPENDENT else None


@dataclass(frozen=True)
class Engine:
    """Runs attempts against one journal.

    `work_root` holds the plans' work directories; `path` are the folders of their step modules.
    """

    journal: Journal
    work_root: Path
    path: Sequence[Path]
    actor: str
    clock: Callable[[], int] = now
    monotonic_us: Callable[[], int] = monotonic_us
    new_run_id: Callable[[int], str] = run_id
    listener: Listener | None = None

    def attempt(
        self, plan: PlanSpec, slot: Loaded[Slot], cancel: threading.Event | None = None
    ) -> Ended:
        """Run the attempt that `slot` was reserved for, to its closed report.

        `cancel` is looked at between steps. Raises `OrchestrationError`, with nothing published,
        for a slot that is not reserved for this plan or whose attempt exists already.
        """
        return _Run(self, plan, slot, cancel or threading.Event()).run()


class _Run:
    """One attempt on its way."""

    def __init__(
        self, engine: Engine, plan: PlanSpec, slot: Loaded[Slot], cancel: threading.Event
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._cancel = cancel
        self._graph = Graph.of([])
        self._first_failure: BaseException | None = None
        self._writer = AttemptWriter(
            engine.journal,
            self._fresh_attempt(slot),
            slot,
            actor=engine.actor,
            listener=engine.listener,
        )

    def _fresh_attempt(self, slot: Loaded[Slot]) -> Loaded[Attempt]:
        if slot.state.status is not SlotStatus.HELD or slot.id != self._plan.plan_id:
            raise OrchestrationError(f"the slot is not reserved for plan {self._plan.plan_id!r}")
        execution_id = slot.state.execution_id or ""
        if not can_name_attempt(execution_id):
            raise OrchestrationError(f"execution ID {execution_id!r} is not one path part")
        attempt = self._engine.journal.load(ATTEMPT, (self._plan.plan_id, execution_id))
        if attempt.version:
            raise OrchestrationError(f"execution {execution_id} exists already")
        return attempt

    def run(self) -> Ended:
        """Run it, whatever happens, to one closed report."""
        try:
            with marked(self._writer.slot.state.execution_id or ""):
                self._publish_start()
                with StepModules(self._engine.path) as resolve:
                    self._execute(resolve)
            ending, error = self._normal_ending()
        except Fenced as fenced:
            log.warning("plan %r: %s", self._plan.plan_id, fenced, extra=self._about())
            return self._ended(None, fenced)
        except BaseException as stopped:
            ending, error = self._abnormal_ending(stopped)
        finally:
            forget_functions()
        return self._close(ending, error)

    def _abnormal_ending(self, error: BaseException) -> tuple[Ending, BaseException]:
        if isinstance(error, PreflightRejected):
            return Ending("preflight_rejected", diagnostic(error)), error
        if isinstance(error, AttemptCancelled):
            return Ending("cancelled", diagnostic(error)), error
        if isinstance(error, StepInterrupted) or not isinstance(error, Exception):
            cause = error.__cause__ or error
            return Ending("cancelled", diagnostic(cause, self._running)), cause
        if not isinstance(error, OrchestrationError):
            log.error(
                "plan %r: unexpected error",
                self._plan.plan_id,
                exc_info=error,
                extra=self._about(),
            )
        return Ending("orchestration_error", diagnostic(error, self._running)), error

    @property
    def _running(self) -> str | None:
        return self._writer.attempt.state.running

    def _publish_start(self) -> None:
        self._writer.commit(
            self._writer.attempt.decide(
                decisions.start,
                plan=self._plan,
                slot=self._writer.slot.state,
                started_at=iso(self._engine.clock()),
            )
        )

    def _execute(self, resolve: Resolver) -> None:
        functions = self._preflight(resolve)
        self._graph = Graph.of((step.step_id, step.deps) for step in self._plan.steps)
        workdir = WorkDir(self._engine.work_root, self._plan.plan_id)
        workdir.write_plan(self._plan.to_json())
        runner = StepRunner(
            self._plan,
            self._writer,
            workdir,
            functions,
            last_parts=last_successes(self._engine.journal, self._plan.plan_id),
            new_run_id=lambda: self._engine.new_run_id(self._engine.clock()),
            monotonic_us=self._engine.monotonic_us,
        )
        scheduler = Scheduler(self._graph)
        while (step_id := scheduler.next()) is not None:
            if self._cancel.is_set():
                raise AttemptCancelled("the attempt was cancelled between two steps")
            try:
                runner.run(step_id)
            except StepFailure as failure:
                if self._plan.failure_policy != CONTINUE_INDEPENDENT:
                    self._first_failure = failure.error
                    return
                scheduler.removed(self._block_dependents(step_id))
            else:
                scheduler.satisfied(step_id)

    def _preflight(self, resolve: Resolver) -> Mapping[str, Callable[..., Any]]:
        found = preflight(self._plan, resolve)
        if isinstance(found, Rejected):
            raise PreflightRejected(found.message, found.check)
        if isinstance(found, Aborted):
            raise OrchestrationError(found.message, {"check": found.check}) from found.error
        return found.functions

    def _block_dependents(self, failed: str) -> tuple[str, ...]:
        """Block every transitive dependent at once, and say so (5.5)."""
        outcomes = self._writer.attempt.state.outcomes
        names = newly_blocked(self._graph, failed, outcomes)
        if names:
            found = blockers(self._graph, {**outcomes, **dict.fromkeys(names, BLOCKED)}, names)
            steps = [(name, found[name].direct, found[name].ancestors) for name in names]
            self._writer.commit(self._writer.attempt.decide(decisions.block, steps=steps))
        log.warning(
            "plan %r: step %r failed; blocked: %s",
            self._plan.plan_id,
            failed,
            ", ".join(names) or "none",
            extra=self._about(failed),
        )
        return names

    def _normal_ending(self) -> tuple[Ending, BaseException | None]:
        if self._first_failure is not None:
            return Ending("failed_fast"), self._first_failure
        if len(self._writer.attempt.state.outcomes) < len(self._graph.order):
            stalled = OrchestrationError("the plan stalled: steps are left and none can run")
            return Ending("orchestration_error", diagnostic(stalled)), stalled
        return Ending("completed"), None

    def _close(self, ending: Ending, error: BaseException | None) -> Ended:
        """Publish the closed report, exactly once; when that fails the close is owed (2.3)."""
        if isinstance(error, PublicationError):
            return self._unpublished(ending, error, error)
        try:
            report = close(self._writer, ending, iso(self._engine.clock()))
        except Fenced as fenced:
            return self._ended(None, fenced)
        except PublicationError as failure:
            return self._unpublished(ending, error, failure)
        log.info(
            "plan %r execution %r ended: %s, %s",
            self._plan.plan_id,
            report["execution_id"],
            report["termination_reason"],
            report["outcome"],
            extra=self._about(),
        )
        return self._ended(report, error, published=True)

    def _about(self, step_id: str | None = None) -> dict[str, Any]:
        return about(self._plan.plan_id, self._writer.slot.state.execution_id, step=step_id)

    def _unpublished(
        self, ending: Ending, error: BaseException | None, failure: PublicationError
    ) -> Ended:
        """The report as it stands in memory; a cancelled attempt keeps its own exception."""
        plan_id = self._plan.plan_id
        log.error("plan %r: the report is not published: %s", plan_id, failure, extra=self._about())
        why, report = diagnostic(failure), None
        if self._writer.attempt.state.status is AttemptStatus.RUNNING:
            ended_at = iso(self._engine.clock())
            report = final_report(self._writer.attempt.state, ending, ended_at, why).to_json()
        if ending.reason == "cancelled" and error is not None:
            error.add_note(f"the report could not be published: {failure}")
            shown = error
        else:
            shown = failure
            if error is not None and error is not failure:
                failure.__context__ = error
        return self._ended(report, shown, owes=ending, failure=why)

    def _ended(
        self, report: Mapping[str, Any] | None, error: BaseException | None, **more: Any
    ) -> Ended:
        return Ended(
            report=report,
            published=more.pop("published", False),
            attempt=self._writer.attempt,
            slot=self._writer.slot,
            error=error,
            **more,
        )
