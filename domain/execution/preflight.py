"""Preflight: is the plan well-formed? The first finding wins (4.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from statelog.domain.execution.findings import (
    Aborted,
    Accepted,
    Finding,
    Rejected,
    Resolved,
    Resolver,
    Unresolved,
    kind_of,
    text_of,
)
from statelog.domain.execution.graph import Graph, cycle
from statelog.domain.execution.spec import POLICIES, Json, PlanSpec, StepSpec
from statelog.domain.execution.step_functions import check_function, check_outputs
from statelog.domain.execution.step_ids import check_step_ids

__all__ = [
    "UNKNOWN_POLICY",
    "Aborted",
    "Accepted",
    "Finding",
    "Rejected",
    "Resolved",
    "Resolver",
    "Unresolved",
    "preflight",
]

UNKNOWN_POLICY: Final = "P9"
"""The check whose rejection finishes a request under neither policy (E5)."""


def preflight(plan: PlanSpec, resolve: Resolver) -> Accepted | Rejected | Aborted:
    """Check a plan: P1 to P5 per step, P6 and P7 per step, P8 and P9, then P10 to P20 per step.

    `resolve` is called once for each step that gets so far. A malformed shape outside the list
    (`deps` that is no list or holds what cannot be an ID, an unhashable policy) aborts.
    """
    functions: dict[str, Callable[..., Any]] = {}
    first = next(_findings(plan, resolve, functions), None)
    return Accepted(functions) if first is None else first


def _findings(
    plan: PlanSpec, resolve: Resolver, functions: dict[str, Callable[..., Any]]
) -> Iterator[Finding]:
    """Every finding in order; what follows the first is not to be relied on."""
    yield from check_step_ids(step.step_id for step in plan.steps)
    planned = frozenset(step.step_id for step in plan.steps)
    for position, step in enumerate(plan.steps):
        yield from _check_deps(step, _place(position, step), planned)
    yield from _check_cycle(plan)
    yield from _check_policy(plan)
    for position, step in enumerate(plan.steps):
        yield from _check_step(step, _place(position, step), resolve, functions)


def _place(position: int, step: StepSpec) -> str:
    return f"step {step.step_id!r} (position {position})"


def _check_deps(step: StepSpec, place: str, planned: frozenset[str]) -> Iterator[Finding]:
    if not isinstance(step.deps, list | tuple):
        wrong = TypeError(f"deps must be a list of step IDs, not {kind_of(step.deps)}")
        yield Aborted("P6", f"{place}: {wrong}", step.step_id, wrong)
        return
    for dep in step.deps:
        if not _hashable(dep):
            wrong = TypeError(f"deps holds {kind_of(dep)}, which is no step ID")
            yield Aborted("P6", f"{place}: {wrong}", step.step_id, wrong)
        elif dep not in planned:
            yield Rejected("P6", f"{place}: depends on {dep!r}, which is no step", step.step_id)
    if step.step_id in step.deps:
        yield Rejected("P7", f"{place}: depends on itself", step.step_id)


def _check_cycle(plan: PlanSpec) -> Iterator[Rejected]:
    found = cycle(Graph.of((step.step_id, step.deps) for step in plan.steps))
    if found is not None:
        path = " -> ".join(found)
        yield Rejected("P8", f"steps need each other in a cycle: {path}")


def _check_policy(plan: PlanSpec) -> Iterator[Finding]:
    policy = plan.failure_policy
    if not _hashable(policy):
        wrong = TypeError(f"failure_policy must be a string, not {kind_of(policy)}")
        yield Aborted("P9", str(wrong), None, wrong)
    elif policy not in POLICIES:
        known = " or ".join(POLICIES)
        yield Rejected(UNKNOWN_POLICY, f"failure_policy {policy!r} is not {known}")


def _hashable(value: Json) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _check_step(
    step: StepSpec, place: str, resolve: Resolver, functions: dict[str, Callable[..., Any]]
) -> Iterator[Finding]:
    yield from check_outputs(step, place)
    try:
        yield from check_function(step, place, resolve, functions)
    except Exception as error:
        message = f"{place}: resolving {step.fn_ref!r} failed: {text_of(error)}"
        yield Aborted("P17", message, step.step_id, error)
