"""Every declared lifecycle, row by row and refusal by refusal."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path

from statelog.domain import Aggregate, Lifecycle, PMap
from statelog.domain.erasure import ERASURE
from statelog.domain.execution.attempt import ATTEMPT, Attempt, AttemptStatus
from statelog.domain.execution.attempt_events import (
    StepArtifact,
    StepEmitted,
    StepProgress,
    StepRetryUnimplemented,
    StepSucceeded,
)
from statelog.domain.execution.plan import PLAN
from statelog.domain.execution.slot import SLOT
from statelog.domain.execution.step_lifecycle import STEP, StepState, StepStatus
from statelog.domain.lifecycle import AnyLifecycle
from statelog.domain.planning.algorithm_run import ALGORITHM_RUN
from statelog.domain.planning.session import SESSION
from statelog.domain.queue.job import JOB
from statelog.domain.runs.handle import HANDLE
from statelog.domain.runs.run import RUN
from statelog.domain.runs.task import TASK
from statelog.domain.workflows.definitions import (
    ENVIRONMENT,
    KINDS,
    RESOURCE,
    SCHEDULE_PLAN,
    SCOPE,
    TOPOLOGY,
    WORKFLOW,
)
from statelog.infrastructure.testing import lifecycle_test
from tests.domain.runs.states import STATES

DOMAIN = Path(__file__).resolve().parents[2] / "domain"


def with_step(status: StepStatus) -> Attempt:
    """A running attempt with one step, whose id is that of every plain sample."""
    return Attempt(AttemptStatus.RUNNING, steps=PMap({"text": StepState(status)}))


IN_RUNNING = (StepProgress, StepArtifact, StepEmitted, StepSucceeded)

test_plan = lifecycle_test(PLAN)
test_slot = lifecycle_test(SLOT)
test_step = lifecycle_test(STEP)
test_environment = lifecycle_test(ENVIRONMENT)
test_resource = lifecycle_test(RESOURCE)
test_scope = lifecycle_test(SCOPE)
test_topology = lifecycle_test(TOPOLOGY)
test_workflow = lifecycle_test(WORKFLOW)
test_schedule_plan = lifecycle_test(SCHEDULE_PLAN)
test_job = lifecycle_test(JOB)
test_session = lifecycle_test(SESSION)
test_algorithm_run = lifecycle_test(ALGORITHM_RUN)
test_run = lifecycle_test(RUN, states=STATES)
test_task = lifecycle_test(TASK)
test_handle = lifecycle_test(HANDLE)
test_erasure = lifecycle_test(ERASURE)
test_attempt = lifecycle_test(
    ATTEMPT,
    states={
        AttemptStatus.RUNNING: with_step(StepStatus.PENDING),
        **{(AttemptStatus.RUNNING, event): with_step(StepStatus.RUNNING) for event in IN_RUNNING},
        (AttemptStatus.RUNNING, StepRetryUnimplemented): with_step(StepStatus.FAILED),
    },
)


def declared() -> Iterator[AnyLifecycle]:
    """Every lifecycle that a module of the domain layer holds, alone or in an aggregate."""
    for path in sorted(DOMAIN.rglob("*.py")):
        parts = path.relative_to(DOMAIN).with_suffix("").parts
        module = import_module(".".join(("statelog", "domain", *parts)).removesuffix(".__init__"))
        for value in vars(module).values():
            found = value.lifecycle if isinstance(value, Aggregate) else value
            if isinstance(found, Lifecycle):
                yield found


def test_every_lifecycle_is_tested():
    """One that is declared and not in this file would have no test."""
    tested = {PLAN.lifecycle, SLOT.lifecycle, ATTEMPT.lifecycle, STEP, JOB.lifecycle}
    tested |= {RUN.lifecycle, TASK, HANDLE, SESSION.lifecycle, ALGORITHM_RUN.lifecycle}
    tested |= {ERASURE.lifecycle}
    tested |= {kind.aggregate.lifecycle for kind in KINDS.values()}
    assert {lifecycle.name for lifecycle in declared()} == {each.name for each in tested}
    assert set(declared()) == tested


def test_every_status_says_what_it_is():
    """In one word that is its own: names of statuses are shown to people."""
    for lifecycle in declared():
        statuses: type[Enum] = lifecycle.statuses
        assert [each.value for each in statuses] == [each.name.lower() for each in statuses]
