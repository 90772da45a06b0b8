"""One step of an attempt, from its work directory to its success marker (5.2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from statelog.domain.execution import attempt as decisions
from statelog.domain.execution.faults import RUNNING, Fenced, OrchestrationError, PublicationError
from statelog.domain.execution.reuse import Fingerprint, Reuse, Run, fingerprint, reuse
from statelog.domain.execution.spec import PlanSpec, StepSpec
from statelog.domain.execution.step import (
    PermanentStepError,
    StepContext,
    StepError,
    StepResult,
)
from statelog.infrastructure.codec import escaped
from statelog.infrastructure.execution.channel import StepChannel
from statelog.infrastructure.execution.closing import text_of
from statelog.infrastructure.execution.forked import alone
from statelog.infrastructure.execution.history import LastParts
from statelog.infrastructure.execution.params import coerced, resolved_env
from statelog.infrastructure.execution.storable import storable_artifacts, storable_mapping
from statelog.infrastructure.execution.workdir import StepDir, WorkDir, hash_inputs
from statelog.infrastructure.execution.writer import AttemptWriter
from statelog.infrastructure.logs import about

log = logging.getLogger("statelog.execution.step")

StepFunction = Callable[..., Any]


class StepFailure(Exception):
    """An ordinary failure of a step, published already; `error` is what the step raised."""

    def __init__(self, step_id: str, error: Exception) -> None:
        super().__init__(step_id, error)
        self.step_id = step_id
        self.error = error


class StepInterrupted(Exception):
    """The step was ended by an interrupt outside the ordinary exceptions, its cause (1.12)."""


class Evaluation(NamedTuple):
    """One evaluation of a step: its spec, function, directory, run id and fingerprint."""

    spec: StepSpec
    function: StepFunction
    directory: StepDir
    run_id: str
    fingerprint: Fingerprint


class StepRunner:
    """Runs the steps of one attempt, each at most once."""

    def __init__(
        self,
        plan: PlanSpec,
        writer: AttemptWriter,
        workdir: WorkDir,
        functions: Mapping[str, StepFunction],
        *,
        last_parts: LastParts,
        new_run_id: Callable[[], str],
        monotonic_us: Callable[[], int],
    ) -> None:
        self._plan = plan
        self._writer = writer
        self._workdir = workdir
        self._functions = functions
        self._specs = {step.step_id: step for step in plan.steps}
        self._last_parts = last_parts
        self._new_run_id = new_run_id
        self._monotonic_us = monotonic_us

    def run(self, step_id: str) -> None:
        """Reuse the step or call it.

        Raises `StepFailure` for an ordinary failure, `StepInterrupted`, and `OrchestrationError`
        when the machinery itself failed.
        """
        spec, function = self._specs[step_id], self._functions[step_id]
        directory = self._workdir.step(step_id)
        directory.create()
        run_id = self._new_run_id()
        try:
            print_ = fingerprint(spec.params, spec.outputs, hash_inputs(spec, function))
        except Exception as error:
            raise self._failed(step_id, error, run_id) from error
        evaluation = Evaluation(spec, function, directory, run_id, print_)
        verdict = self._verdict(evaluation)
        if isinstance(verdict, Reuse):
            self._skip(evaluation)
        else:
            self._execute(evaluation, verdict.why)

    def _skip(self, it: Evaluation) -> None:
        self._commit(
            decisions.skip_step,
            step_id=it.spec.step_id,
            run_id=it.run_id,
            fingerprint=it.fingerprint.value,
        )

    def _verdict(self, it: Evaluation) -> Reuse | Run:
        """Whether the last success holds, or what differs from it (D15)."""
        step_id, marker = it.spec.step_id, it.directory.marker()
        stale = marker is not None and marker.strip() != it.fingerprint.value
        verdict = reuse(
            marker,
            it.fingerprint,
            it.directory.missing_outputs(it.spec.outputs),
            self._last_parts(step_id) if stale else None,
        )
        if isinstance(verdict, Run) and verdict.missing_outputs and not stale:
            log.warning(
                "plan %r: step %r is not reused, missing: %s",
                self._plan.plan_id,
                step_id,
                escaped(", ".join(verdict.missing_outputs)),
                extra=self._about(step_id),
            )
        return verdict

    def _about(self, step_id: str) -> dict[str, Any]:
        return about(self._plan.plan_id, self._writer.slot.state.execution_id, step=step_id)

    def _commit(self, decision: Callable[..., Any], **given: Any) -> None:
        self._writer.commit(self._writer.attempt.decide(decision, **given))

    def _execute(self, it: Evaluation, why: Sequence[str]) -> None:
        """Steps 4 to 8 of 5.2: the marker goes as late as possible, and always before the call."""
        step_id = it.spec.step_id
        channel = StepChannel(self._writer, step_id, self._monotonic_us)
        context = self._context(it, channel)
        it.directory.delete_marker()
        self._commit(
            decisions.start_step,
            step_id=step_id,
            run_id=it.run_id,
            fingerprint=it.fingerprint.value,
            params=it.spec.params,
            why=tuple(map(escaped, why)),
        )
        result = self._called(it, context, channel)
        self._writer.commit(
            channel.close().then(
                decisions.succeed,
                step_id=step_id,
                artifacts=result.artifacts,
                metrics=result.metrics,
                extra=result.extra,
                parts=it.fingerprint.parts,
            )
        )
        self._mark(it)

    def _mark(self, it: Evaluation) -> None:
        """A success without its marker is no outcome of this attempt (5.2)."""
        try:
            it.directory.write_marker(it.fingerprint.value)
        except OrchestrationError as error:
            error.details[RUNNING] = it.spec.step_id
            raise

    def _called(self, it: Evaluation, context: StepContext, channel: StepChannel) -> StepResult:
        """The function's result; whatever else comes out of it in the engine's terms (1.12)."""
        step_id = it.spec.step_id
        try:
            result = self._result(it, context, channel)
        except OrchestrationError as error:
            if channel.fault is not None:
                raise channel.fault from channel.fault.__cause__
            if isinstance(error, Fenced):
                raise OrchestrationError(f"the step raised {error!r}") from error
            raise
        except Exception as error:
            if channel.fault is not None:
                raise channel.fault from channel.fault.__cause__
            raise self._failed(step_id, error, it.run_id, channel) from error
        except BaseException as interrupt:
            channel.close()
            raise StepInterrupted(f"step {step_id!r} was interrupted") from interrupt
        if channel.fault is not None:
            raise channel.fault
        return result

    def _context(self, it: Evaluation, channel: StepChannel) -> StepContext:
        start = self._writer.attempt.state.start
        if start is None:
            raise OrchestrationError("the attempt has not started")
        try:
            return StepContext(
                realm=self._plan.realm,
                scope=it.spec.scope or self._plan.scope,
                plan_id=self._plan.plan_id,
                step_id=it.spec.step_id,
                step_name=it.spec.name,
                workdir=it.directory.path,
                fingerprint=it.fingerprint.value,
                run_id=it.run_id,
                outputs=it.directory.outputs(it.spec.outputs),
                execution_id=start.execution_id,
                plan_generation=start.plan_generation,
                run_token=start.run_token,
                channel=channel,
            )
        except Exception as error:
            raise OrchestrationError(f"the step's context cannot be built: {error}") from error

    def _result(self, it: Evaluation, context: StepContext, channel: StepChannel) -> StepResult:
        """Call the function and check what it promised."""
        params = coerced(it.function, resolved_env(it.spec.params))
        with alone():
            returned = it.function(context, **params)
        if returned is not None and not isinstance(returned, StepResult):
            log.warning(
                "plan %r: step %r returned a %s, which is ignored; return a StepResult or nothing",
                self._plan.plan_id,
                it.spec.step_id,
                type(returned).__name__,
                extra=self._about(it.spec.step_id),
            )
            returned = None
        result = returned or StepResult()
        missing = it.directory.missing_outputs(it.spec.outputs)
        if missing:
            raise PermanentStepError(
                f"the function returned without its declared outputs: {', '.join(missing)}",
                code="missing_required_outputs",
            )
        if returned is None and not channel.artifacts:
            return result
        return StepResult(
            artifacts=storable_artifacts(result.artifacts or channel.artifacts),
            metrics=storable_mapping(result.metrics, "metrics"),
            extra=storable_mapping(result.extra, "extra"),
        )

    def _failed(
        self, step_id: str, error: Exception, run_id: str, channel: StepChannel | None = None
    ) -> StepFailure:
        """Publish an ordinary failure; the exception that tells the engine of it."""
        change = self._writer.attempt.guard() if channel is None else channel.close()
        text, kind = text_of(error), error.kind if isinstance(error, StepError) else ""
        try:
            self._writer.commit(
                change.then(
                    decisions.fail,
                    step_id=step_id,
                    run_id=run_id,
                    kind="transient" if kind == "transient" else "permanent",
                    error=text,
                    error_type=escaped(type(error).__name__),
                    code=_said(error, "code"),
                    advice=_said(error, "advice"),
                )
            )
        except PublicationError as failure:
            raise PublicationError(
                f"the failure of step {step_id!r} ({type(error).__name__}: {text}) "
                f"could not be published: {failure}"
            ) from failure
        return StepFailure(step_id, error)


def _said(error: Exception, field: str) -> str | None:
    """The code or advice of a step error; other exceptions have none (1.8)."""
    value = getattr(error, field, None) if isinstance(error, StepError) else None
    return None if value is None else escaped(str(value))
