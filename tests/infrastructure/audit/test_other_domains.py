"""The rules of jobs, sessions and runs: none is broken by what decisions write, each by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest

from statelog.domain.event import Event
from statelog.domain.execution import rulebook as execution
from statelog.domain.planning import algorithm_run, session
from statelog.domain.planning import rulebook as planning
from statelog.domain.planning.algorithm_run import CandidateEmitted, Progressed, Queued
from statelog.domain.planning.estimate import Estimate
from statelog.domain.planning.ranking import rank
from statelog.domain.planning.session import CandidateSelected, Created, Requeued, Selection
from statelog.domain.queue import job
from statelog.domain.queue import rulebook as queue
from statelog.domain.queue.job import JOB
from statelog.domain.runs import activities, run
from statelog.domain.runs import rulebook as runs
from statelog.domain.runs.events import Completed, Failed, HandleStarting, TaskKept, TaskQueued
from statelog.infrastructure.audit.conformance import Audit, audit_rows
from statelog.infrastructure.audit.rules import Rules, load
from statelog.infrastructure.cli.all_rules import RULEBOOKS
from tests.domain.planning.problems import found, problem, promising
from tests.domain.runs.stories import completed, running, told
from tests.infrastructure.audit.legal import rows_of

Log = list[tuple[str, Any]]


@cache
def rules() -> Rules:
    return load(RULEBOOKS)


def audited(log: Sequence[tuple[str, Event]]) -> Audit:
    """The audit of these events, each appended for itself."""
    return audit_rows(rows_of([[each] for each in log], Random(0)), rules())


def put(log: Log, at: int, *events: tuple[str, Event]) -> Log:
    """With events in place of the one that is there."""
    return [*log[:at], *events, *log[at + 1 :]]


def other(log: Log, at: int, **changes: object) -> Log:
    """With an event that says something else."""
    stream, event = log[at]
    return put(log, at, (stream, replace(event, **changes)))


# jobs


def a_job(*, attempts: int = 2) -> Log:
    """Leased, failed, leased again, and failed for good."""
    state, now = JOB.blank, 1_000_000
    log: Log = []
    asked = {"category": "c", "event_type": "t", "payload": {}, "max_attempts": attempts}
    steps: list[tuple[Any, dict[str, Any]]] = [(job.publish, asked)]
    for _ in range(attempts):
        steps.append((job.lease, {"owner": "w", "expires_at": 9}))
        steps.append((job.fail, {"owner": "w", "error": "e"}))
    for decision, given in steps:
        now += 600_000_000
        events, state = JOB.decide(state, decision, now=now, **given)
        log += [("job/1", event) for event in events]
    return log


def returned(attempts: int) -> Log:
    log = a_job()
    return put(log, 2, ("job/1", job.Returned("why", 0, attempts)))[:3]


JOBS = {
    queue.NEXT_ATTEMPT: other(a_job(), 1, attempt=2),
    queue.WITHIN_MAXIMUM: other(a_job(), 0, max_attempts=1),
    queue.WHEN_AVAILABLE: other(a_job(), 1, leased_at=5),
    queue.LAST_ATTEMPT: other(a_job(), 0, max_attempts=3),
    queue.GIVEN_BACK: returned(7),
}


# sessions

ONE, TWO = found(promising(5.0, 1.0)), found(promising(6.0, 0.5))
S, A, B = "session/s", "session/s/run/heft", "session/s/run/cpop"


def a_session() -> Log:
    """Two algorithms, the first of which finds two candidates; one is chosen."""
    emitted = [
        algorithm_run.Emitted(each.id, at, each.plan.id, each.predicted, each.feasible)
        for at, each in enumerate((ONE, TWO))
    ]
    return [
        (S, Created(problem(), (Selection("heft"), Selection("cpop")))),
        (A, Queued("heft", "time", {}, Estimate())),
        (B, Queued("cpop", "time", {}, Estimate())),
        (S, session.Started()),
        (A, algorithm_run.Started()),
        (A, Progressed(0.5)),
        (A, CandidateEmitted(ONE)),
        (A, CandidateEmitted(TWO)),
        (A, algorithm_run.Completed()),
        (B, algorithm_run.Started()),
        (B, algorithm_run.Failed("no")),
        (S, session.Completed(rank(emitted))),
        (S, CandidateSelected(ONE.id, ONE.plan.id)),
    ]


def without(log: Log, at: int) -> Log:
    return [*log[:at], *log[at + 1 :]]


SESSIONS = {
    planning.ASKED_FOR: other(a_session(), 2, algorithm="min-min"),
    planning.ITS_TURN: without(without(without(a_session(), 8), 7), 6),
    planning.IN_SESSION: put(a_session(), 3, (S, session.Started()), (S, Requeued())),
    planning.ALL_ENDED: without(a_session(), 10),
    planning.ALL_RANKED: without(a_session(), 7),
    planning.WAS_EMITTED: other(a_session(), 12, candidate_id="another"),
    planning.FORWARD: put(a_session(), 5, (A, Progressed(0.5)), (A, Progressed(0.25))),
}


# runs

R = "run/r"


def a_run() -> Log:
    steps = [*completed("a"), *completed("b", 120.0), *completed("c", 140.0)]
    return [(R, each) for each in told(*steps, (run.complete, {"at": 150.0}))]


def a_failed_run() -> Log:
    steps = [
        *running("a"),
        (activities.handle_failed, {"activity_id": "a", "at": 105.0, "failure": "exit 1"}),
        (run.fail, {"at": 106.0, "reason": "a failed"}),
    ]
    return [(R, each) for each in told(*steps)]


def place(log: Log, kind: type[Event], activity_id: str | None = None) -> int:
    return next(
        at
        for at, (_, event) in enumerate(log)
        if isinstance(event, kind) and activity_id in (None, getattr(event, "activity_id", ""))
    )


def moved(log: Log, at: int, to: int) -> Log:
    rest = without(log, at)
    return [*rest[:to], log[at], *rest[to:]]


RUNS = {
    runs.AFTER_NEEDED: moved(a_run(), place(a_run(), TaskQueued, "b"), 1),
    runs.OF_RECOVERY: [
        a_run()[0],
        (R, TaskKept("a", "run-0", "m", "local", 1.0, 2.0)),
    ],
    runs.AS_PLACED: other(a_run(), place(a_run(), HandleStarting), activity_id="none"),
    runs.ALL_COMPLETED: moved(a_run(), len(a_run()) - 1, len(a_run()) - 2),
    runs.ALL_OVER: [each for each in a_failed_run() if not isinstance(each[1], run.TaskCancelled)],
    runs.NOTHING_LIVE: moved(a_failed_run(), place(a_failed_run(), Failed), 5),
    runs.AS_SUMMED: other(a_run(), place(a_run(), Completed), cost=1.0),
}

LEGAL = {
    "a job": a_job(),
    "a job given back": returned(0),
    "a session": a_session(),
    "a run": a_run(),
    "a failed run": a_failed_run(),
}
WRONG = {**JOBS, **SESSIONS, **RUNS}


@pytest.mark.parametrize("name", LEGAL)
def test_what_decisions_write_breaks_no_rule(name: str):
    """A story of each domain."""
    assert list(map(str, audited(LEGAL[name]).violations)) == []


@pytest.mark.parametrize("rule", WRONG)
def test_each_rule_is_broken_by_name(rule: str):
    """One event is missing, moved or says something else."""
    assert audited(WRONG[rule]).counts[rule] >= 1


def test_every_rule_of_these_domains_is_tried():
    """But those of plans, which have forgeries of their own."""
    plans = execution.RULEBOOK
    own = {rule.name for each in plans.aggregates for rule in each.rules}
    own |= {rule.name for family in plans.families for rule in family.rules}
    book = rules().book
    declared = {rule.name for each in book.aggregates for rule in each.rules}
    declared |= {rule.name for family in book.families for rule in family.rules}
    assert set(WRONG) == declared - own
