"""The report of an attempt: what is recorded, what follows from it, how it closes (1.7, 5.8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from statelog.domain.aggregate import changed
from statelog.domain.errors import Invalid
from statelog.domain.execution.faults import OrchestrationError
from statelog.domain.execution.graph import Graph, blockers
from statelog.domain.execution.outcomes import (
    BLOCKED,
    CANCELLED,
    COMPLETED,
    FAILED,
    ORCHESTRATION_ERROR,
    SATISFYING,
    STEP_OUTCOMES,
    SUCCEEDED,
    TERMINATION_REASONS,
    UNREACHED,
)
from statelog.domain.execution.spec import Json
from statelog.domain.pmap import PMap

_TEXTS: Final = ("execution_id", "plan_id", "started_at")
_PLAIN: Final = (
    *("plan_generation", "run_token", "failure_policy", "ended_at", "termination_reason"),
    *("diagnostic", "publication_failure"),
)
_PER_STEP: Final = ("step_outcomes", "failures", "direct_blockers", "failed_ancestors")


@dataclass(frozen=True)
class AttemptReport:
    """What an attempt reached. Open until `closed`; then only a publication failure is added.

    `step_ids` is the inventory in plan order, as the plan gave it: it may hold duplicates and
    values that are no strings. A failure is a mapping of `step_id`, `error`, `kind`, `code`,
    `advice`, `error_type`; `diagnostic` and `publication_failure` are mappings of `message`,
    `error_type`, `details`. Times are ISO-8601 UTC.
    """

    execution_id: str
    plan_id: str
    plan_generation: str | None
    run_token: int | None
    failure_policy: Json
    started_at: str
    step_ids: tuple[Json, ...]
    ended_at: str | None = None
    termination_reason: str | None = None
    step_outcomes: PMap[str, str] = field(default_factory=PMap)
    failures: PMap[str, Mapping[str, Any]] = field(default_factory=PMap)
    direct_blockers: PMap[str, tuple[str, ...]] = field(default_factory=PMap)
    failed_ancestors: PMap[str, tuple[str, ...]] = field(default_factory=PMap)
    diagnostic: Mapping[str, Any] | None = None
    publication_failure: Mapping[str, Any] | None = None
    graph: Graph | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        *,
        execution_id: str,
        plan_id: str,
        plan_generation: str | None,
        run_token: int | None,
        failure_policy: Json,
        started_at: str,
        step_ids: Iterable[Json],
        graph: Graph | None = None,
        outcomes: Mapping[str, str] | None = None,
        failures: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> AttemptReport:
        """An open report, with what was reached so far recorded at once.

        `graph` settles the blockers of blocked steps when the report closes. Raises
        `OrchestrationError` for an outcome that is none, or of a step outside the inventory.
        """
        report = cls(
            execution_id=execution_id,
            plan_id=plan_id,
            plan_generation=plan_generation,
            run_token=run_token,
            failure_policy=failure_policy,
            started_at=started_at,
            step_ids=tuple(step_ids),
            step_outcomes=PMap(outcomes),
            failures=PMap(failures),
            graph=graph,
        )
        for step_id, outcome in report.step_outcomes.items():
            report._check_planned(step_id, outcome)
        return report

    @cached_property
    def _inventory(self) -> frozenset[str]:
        return frozenset(step_id for step_id in self.step_ids if isinstance(step_id, str))

    def outcome_of(self, step_id: Json) -> str | None:
        """The outcome of an inventory entry; None for one that has none or is no string."""
        return self.step_outcomes.get(step_id) if isinstance(step_id, str) else None

    @property
    def is_drained(self) -> bool:
        """Whether it ended normally with an outcome for every planned step."""
        return self.termination_reason == COMPLETED and not self.unreached_step_ids

    @property
    def outcome(self) -> str | None:
        """`succeeded`, `failed`, or None while the report is open."""
        if self.termination_reason is None:
            return None
        satisfied = all(outcome in SATISFYING for outcome in self.step_outcomes.values())
        return SUCCEEDED if self.is_drained and satisfied else FAILED

    @property
    def unreached_step_ids(self) -> tuple[Json, ...]:
        """Inventory entries without an outcome, in inventory order."""
        return tuple(step_id for step_id in self.step_ids if self.outcome_of(step_id) is None)

    @property
    def counts(self) -> dict[str, int]:
        """Inventory entries by outcome: a duplicate counts each time, so they sum to its length."""
        found = Counter(self.outcome_of(step_id) or UNREACHED for step_id in self.step_ids)
        return {outcome: found[outcome] for outcome in (*STEP_OUTCOMES, UNREACHED)}

    def with_outcome(
        self, step_id: str, outcome: str, failure: Mapping[str, Any] | None = None
    ) -> AttemptReport:
        """This report with the outcome of a step, a failure together with its reason.

        The same outcome again changes nothing. Raises `OrchestrationError` for a step outside the
        inventory, a second different outcome, a closed report, a failed step without a reason (or
        the reverse), and `blocked`, which `with_blocked` records.
        """
        if outcome == BLOCKED or (outcome == FAILED) is not (failure is not None):
            raise OrchestrationError(f"{outcome!r} of step {step_id!r} is recorded without its why")
        if self._has(step_id, outcome):
            return self
        report = changed(self, step_outcomes=self.step_outcomes.set(step_id, outcome))
        if failure is None:
            return report
        return changed(report, failures=self.failures.set(step_id, failure))

    def with_blocked(
        self, step_id: str, direct_blockers: Sequence[str], failed_ancestors: Sequence[str]
    ) -> AttemptReport:
        """This report with a step blocked; again for the same step, with its blockers renewed.

        Raises `OrchestrationError` as `with_outcome` does.
        """
        self._has(step_id, BLOCKED)
        return changed(
            self,
            step_outcomes=self.step_outcomes.set(step_id, BLOCKED),
            direct_blockers=self.direct_blockers.set(step_id, tuple(direct_blockers)),
            failed_ancestors=self.failed_ancestors.set(step_id, tuple(failed_ancestors)),
        )

    def closed(
        self, reason: str, ended_at: str, diagnostic: Mapping[str, Any] | None = None
    ) -> AttemptReport:
        """The closed report, its blockers settled (5.5).

        Raises `OrchestrationError` for a report that is closed already, an unknown reason, blocked
        steps without a graph, and `completed` while a step has no outcome, an attempt-level
        failure is known, or a step that is not marked failed has a failure.
        """
        self._check_open()
        if reason not in TERMINATION_REASONS:
            raise OrchestrationError(f"{reason!r} is no reason to end an attempt")
        if reason == COMPLETED:
            self._check_complete(diagnostic)
        return changed(
            self._settled(), termination_reason=reason, ended_at=ended_at, diagnostic=diagnostic
        )

    def with_publication_failure(self, failure: Mapping[str, Any]) -> AttemptReport:
        """This closed report with the reason why it could not be published (2.3).

        The ending becomes `orchestration_error`, the old one is kept as `superseded_reason` in
        the failure's details; a cancelled attempt stays cancelled. Raises `OrchestrationError` for
        an open report and for a second failure.
        """
        if self.termination_reason is None:
            raise OrchestrationError("a report that is open cannot have failed to be published")
        if self.publication_failure is not None:
            raise OrchestrationError("a report fails to be published once")
        if self.termination_reason == CANCELLED:
            return changed(self, publication_failure=dict(failure))
        details = {**failure.get("details", {}), "superseded_reason": self.termination_reason}
        return changed(
            self,
            termination_reason=ORCHESTRATION_ERROR,
            publication_failure={**failure, "details": details},
        )

    def to_json(self) -> dict[str, Json]:
        """The report as it is stored and shown: exactly the fields of 1.7."""
        return {
            **{name: getattr(self, name) for name in (*_TEXTS, *_PLAIN)},
            **{name: self._by_step(getattr(self, name)) for name in _PER_STEP},
            "outcome": self.outcome,
            "is_drained": self.is_drained,
            "step_ids": list(self.step_ids),
            "unreached_step_ids": list(self.unreached_step_ids),
            "counts": self.counts,
        }

    @classmethod
    def from_json(cls, value: Json) -> AttemptReport:
        """The report that `to_json` wrote; what is derived is derived again.

        Raises `Invalid` naming the field.
        """
        if not isinstance(value, Mapping):
            raise Invalid("report", "must be a mapping")
        for name in _TEXTS:
            if not isinstance(value.get(name), str):
                raise Invalid(f"report.{name}", "must be a string")
        if not isinstance(value.get("step_ids"), list | tuple):
            raise Invalid("report.step_ids", "must be a list")
        fields: dict[str, Any] = {name: value.get(name) for name in (*_TEXTS, *_PLAIN)}
        fields |= {name: _read_by_step(value, name) for name in _PER_STEP}
        return cls(step_ids=tuple(value["step_ids"]), **fields)

    def _by_step(self, values: Mapping[str, Any]) -> dict[str, Json]:
        planned = (each for each in self.step_ids if isinstance(each, str) and each in values)
        return {step_id: _listed(values[step_id]) for step_id in planned}

    def _check_open(self) -> None:
        if self.termination_reason is not None:
            raise OrchestrationError(f"the report is closed ({self.termination_reason})")

    def _check_planned(self, step_id: object, outcome: str) -> None:
        if not isinstance(step_id, str) or step_id not in self._inventory:
            raise OrchestrationError(f"step {step_id!r} is not in the inventory")
        if outcome not in STEP_OUTCOMES:
            raise OrchestrationError(f"{outcome!r} is no outcome of a step")

    def _has(self, step_id: str, outcome: str) -> bool:
        self._check_open()
        self._check_planned(step_id, outcome)
        before = self.step_outcomes.get(step_id)
        if before not in (None, outcome):
            raise OrchestrationError(f"step {step_id!r} is {before}, and cannot be {outcome} too")
        return before is not None

    def _check_complete(self, diagnostic: Mapping[str, Any] | None) -> None:
        if self.unreached_step_ids:
            raise OrchestrationError(f"steps without an outcome: {list(self.unreached_step_ids)}")
        if diagnostic is not None:
            raise OrchestrationError("an attempt that failed as a whole is not completed")
        wrong = [step_id for step_id in self.failures if self.outcome_of(step_id) != FAILED]
        if wrong:
            raise OrchestrationError(f"steps with a failure that are not failed: {sorted(wrong)}")

    def _settled(self) -> AttemptReport:
        blocked = [step_id for step_id, out in self.step_outcomes.items() if out == BLOCKED]
        if not blocked:
            return self
        if self.graph is None:
            raise OrchestrationError("blocked steps cannot be settled without the plan's graph")
        found = blockers(self.graph, self.step_outcomes, blocked)
        return changed(
            self,
            direct_blockers=PMap({step_id: each.direct for step_id, each in found.items()}),
            failed_ancestors=PMap({step_id: each.ancestors for step_id, each in found.items()}),
        )


def _listed(value: Any) -> Json:
    return list(value) if isinstance(value, tuple) else value


def _read_by_step(report: Mapping[str, Json], name: str) -> PMap[str, Any]:
    values = report.get(name, {})
    if not isinstance(values, Mapping):
        raise Invalid(f"report.{name}", "must be a mapping")
    return PMap(
        {key: tuple(each) if isinstance(each, list) else each for key, each in values.items()}
    )
