"""What holds for any history, also ones no lifecycle allows: views never enforce lifecycles."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.domain.event import Event
from statelog.domain.execution.attempt_events import (
    StepArtifact,
    StepBlocked,
    StepEmitted,
    StepFailed,
    StepProgress,
    StepRetryUnimplemented,
    StepSkipped,
    StepStarted,
    StepSucceeded,
    Voided,
)
from statelog.domain.execution.plan import (
    Adopted,
    Approved,
    Deleted,
    GenerationAssigned,
    Imported,
    RequestFinished,
    ReturnedToDraft,
    RunRequested,
    Touched,
)
from statelog.domain.execution.slot import FloorRaised, GaveUp, Released, Reporting
from statelog.domain.execution.step import Artifact
from statelog.infrastructure.codec import from_json, parse
from statelog.infrastructure.json_values import dump_plain
from statelog.projections.execution import EXECUTION_VIEWS, plan_status
from statelog.projections.execution.plan_status import attempts_of, snapshot_of
from statelog.projections.execution.spool import spool
from statelog.projections.plain import to_json
from statelog.projections.projection import Projection, fold
from statelog.projections.replay import document, replay
from tests.projections.execution import oracle
from tests.projections.execution.stories import (
    FIRST,
    SECOND,
    THIRD,
    Run,
    closed,
    held,
    planned,
    saved,
    started,
)
from tests.projections.recorded import Log

Told = tuple[str, Event]

STEPS = st.sampled_from(["a", "b", "stray"])
IDS = st.sampled_from([FIRST, SECOND, THIRD, "by-hand"])
RUNS = st.sampled_from(["r1", "r2"])
PRINTS = st.sampled_from(["f1", "f2"])
SMALL = st.integers(0, 3)
TEXT = st.sampled_from(["", "x", "y é"])
TYPES = st.sampled_from(["step.mapped", "hpc.queued", "step.", "stepping"])
PAYLOADS = st.fixed_dictionaries(
    {}, optional={"job": st.sampled_from([7, "j", {"id": 1}, None, ""]), "progress": SMALL}
)
OUTCOMES = st.sampled_from(["succeeded", "reused", "failed", "blocked", "strange"])
LISTS = st.lists(STEPS, max_size=2)
AUTHORITIES = st.sampled_from(["daemon", "run_once"])
REASONS = st.sampled_from(["completed", "failed_fast", "cancelled", "orchestration_error"])


def running(cls: type[Event], **more: Any) -> st.SearchStrategy[Event]:
    return st.builds(cls, step_id=STEPS, seq=SMALL, run_id=RUNS, fingerprint=PRINTS, **more)


STEP = st.one_of(
    running(StepStarted, params=st.just({})),
    running(StepProgress, progress=SMALL.map(float)),
    running(StepArtifact, artifact=st.just(Artifact("k", "p"))),
    running(StepEmitted, type=TYPES, payload=PAYLOADS),
    running(StepSucceeded, metrics=st.fixed_dictionaries({}, optional={"n": SMALL})),
    running(StepSkipped),
    st.builds(
        StepFailed,
        step_id=STEPS,
        seq=SMALL,
        run_id=st.none() | RUNS,
        fingerprint=st.none() | PRINTS,
        kind=st.just("permanent"),
        error=TEXT,
        error_type=st.just("OSError"),
    ),
    st.builds(
        StepRetryUnimplemented, step_id=STEPS, seq=SMALL, run_id=st.none() | RUNS, error=TEXT
    ),
    st.builds(
        StepBlocked,
        step_id=STEPS,
        seq=SMALL,
        direct_blockers=LISTS.map(tuple),
        failed_ancestors=LISTS.map(tuple),
    ),
)
PLANNED = st.lists(st.sampled_from(["a", "b", 7, None]), max_size=4).map(
    lambda ids: tuple(planned(id) for id in ids)
)
REPORTS = st.builds(
    closed,
    termination_reason=REASONS,
    step_ids=st.lists(st.sampled_from(["a", "b", 7]), max_size=3),
    step_outcomes=st.dictionaries(STEPS, OUTCOMES, max_size=2),
    direct_blockers=st.dictionaries(STEPS, LISTS, max_size=1),
    failed_ancestors=st.dictionaries(STEPS, LISTS, max_size=1),
    failures=st.dictionaries(STEPS, st.just({"error": "said"}), max_size=1),
    diagnostic=st.none() | st.builds(lambda id: {"details": {"running_step_id": id}}, STEPS),
)
ATTEMPT = st.one_of(
    STEP, STEP, STEP, st.builds(started, IDS, steps=PLANNED, run_token=SMALL), REPORTS
) | st.builds(Voided)
SLOT = st.one_of(
    st.builds(held, IDS, SMALL),
    st.builds(Reporting, IDS),
    st.builds(GaveUp, IDS, TEXT),
    st.builds(Released, IDS, st.just("unfinished"), st.sampled_from([None, "abandoned"])),
    st.builds(FloorRaised, IDS),
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "_id": TEXT,
        "status": st.sampled_from(["approved", 7]),
        "run_token": st.sampled_from([1, "2", None, "many"]),
        "plan_generation": st.sampled_from(["g1", 7]),
        "execution_authority": st.sampled_from(["daemon", "run_once", 3]),
        "execution_owner": st.sampled_from(["run_once:1", 3]),
        "last_finalized_execution": st.sampled_from([{"outcome": "succeeded"}, 7]),
    },
)
PLAN = st.one_of(
    st.builds(saved, st.sampled_from(["g1", "g2"])),
    st.builds(Approved),
    st.builds(ReturnedToDraft),
    st.builds(RunRequested, SMALL),
    st.builds(Touched),
    st.builds(Adopted, AUTHORITIES, st.none() | st.just("run_once:1")),
    st.builds(GenerationAssigned, st.just("g3")),
    st.builds(Deleted),
    st.builds(Imported, DOCUMENTS),
    st.builds(
        RequestFinished,
        execution_id=IDS,
        plan_generation=st.just("g1"),
        run_token=SMALL,
        failure_policy=st.just("fail_fast"),
        outcome=st.sampled_from(["succeeded", "failed"]),
        termination_reason=st.just("completed"),
    ),
)
ATTEMPTS = st.lists(st.tuples(IDS, ATTEMPT), max_size=25)
HISTORIES = st.lists(
    st.one_of(
        st.tuples(st.just("plan"), PLAN),
        st.tuples(st.just("slot"), SLOT),
        st.tuples(IDS, ATTEMPT),
    ),
    max_size=25,
)


def logged(history: list[Told]) -> Log:
    log = Log()
    for where, event in history:
        if where in ("plan", "slot"):
            getattr(log, where)(event)
        else:
            log.attempt(where, event)
    return log


def stored(view: Projection[Any], state: Any) -> Any:
    """A state as it comes back from a store."""
    written = parse(dump_plain(to_json(state)))
    return from_json(type(view.blank), written) if view.name != "plan_summary" else written


@given(HISTORIES)
@settings(max_examples=80, deadline=None)
def test_event_by_event_equals_at_once(history: list[Told]):
    """Every state is stored and read back between two events, and the documents are the same."""
    log = logged(history)
    for view in EXECUTION_VIEWS:
        state: Any = None
        for recorded in log.events:
            if view.reads(recorded) and view.key(recorded) is not None:
                before = view.blank if state is None else stored(view, state)
                state = view.evolve(before, recorded)
        at_once = fold(view, log.events).get("p")
        assert (state is None) == (at_once is None)
        if state is not None:
            one, other = (document(view, "p", each) for each in (state, at_once))
            assert json.dumps(one) == json.dumps(other)
            columns = [column(one) for column in view.columns.values()] if one else []
            assert json.dumps(columns)


@given(ATTEMPTS)
@settings(max_examples=150, deadline=None)
def test_the_snapshot_is_what_section_seven_says(history: list[Told]):
    """The fold in constant space agrees with a reading of the whole list of events."""
    log = logged(history)
    expected = oracle.newest_attempt(list(spool(log.events)))
    shown = replay(plan_status, log.events).get("p")
    if expected is None:
        assert shown is None
        return
    assert shown is not None
    attempt, steps = expected
    assert shown["attempt"] == attempt
    assert list(shown["steps"]) == list(steps)
    assert shown["steps"] == to_json(steps)


@given(ATTEMPTS)
@settings(max_examples=50, deadline=None)
def test_the_newest_attempt_is_the_first_of_the_list(history: list[Told]):
    """The snapshot of it alone is the snapshot."""
    log = logged(history)
    listed = attempts_of(log.events)
    shown = replay(plan_status, log.events).get("p")
    assert (shown is None) == (listed == [])
    if shown is not None:
        newest = listed[0]["execution_id"]
        assert shown["attempt"] == to_json(listed[0])
        alone = snapshot_of(log.events, newest)
        assert alone is not None
        assert to_json(alone["steps"]) == shown["steps"]


@pytest.mark.parametrize("view", EXECUTION_VIEWS, ids=lambda view: view.name)
def test_a_view_has_a_name_and_columns_of_its_own(view: Projection[Any]):
    """Columns answer for every document they may see."""
    assert [other.name for other in EXECUTION_VIEWS].count(view.name) == 1
    assert view.columns


def test_the_state_of_a_step_does_not_grow_with_its_events():
    """case 103: ten thousand events, numbered on, and the row is as large as after ten."""
    sizes = []
    for count in (10, 10_000):
        log = Log()
        run = Run(log, steps=(planned("a"),))
        run.start("a")
        seq = run.state.steps["a"].seq
        for at in range(count):
            log.attempt(FIRST, StepProgress("a", seq + 1 + at, "r", "f", 50.0))
        state = fold(plan_status, log.events)["p"]
        sizes.append(len(dump_plain(to_json(state))))
        assert list(spool(log.events))[-1]["seq"] == seq + count
    assert sizes[0] == sizes[1]
