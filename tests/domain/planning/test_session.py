"""What may be asked of a planning session, and when (2.1)."""

from __future__ import annotations

import pytest

from statelog.domain.event import Event
from statelog.domain.planning import session as decisions
from statelog.domain.planning.ranking import Ranked
from statelog.domain.planning.session import (
    NO_CANDIDATE,
    SESSION,
    Cancelled,
    CandidateSelected,
    Completed,
    Created,
    Failed,
    Requeued,
    Selection,
    Started,
)
from statelog.infrastructure.testing import scenario
from tests.domain.planning.problems import problem

HEFT = Selection("heft")
CREATED = Created(problem(), (HEFT,))
RANKED = (Ranked("candidate-1", 1, pareto_optimal=True, dominated=False),)
QUEUED: tuple[Event, ...] = (CREATED,)
RUNNING: tuple[Event, ...] = (CREATED, Started())
ENDS: dict[str, tuple[Event, ...]] = {
    "completed": (*RUNNING, Completed(RANKED)),
    "failed": (*RUNNING, Failed("no")),
    "cancelled": (*QUEUED, Cancelled()),
}
KNOWN = {"heft", "cpop"}


def create(*given: Event, algorithms: tuple[Selection, ...]):
    asked = {"problem": problem(), "algorithms": algorithms, "known": KNOWN}
    return scenario(SESSION, *given).when(decisions.create, **asked)


def test_a_session_is_created_with_all_that_planning_reads():
    """P3: the resolved problem is in the event."""
    create(algorithms=(HEFT,)).then(CREATED)


@pytest.mark.parametrize(
    ("algorithms", "field"),
    [
        ((), "algorithms"),
        ((HEFT, HEFT), "algorithms[1].id"),
        ((HEFT, Selection("cpop"), Selection("prism")), "algorithms[2].id"),
    ],
    ids=["none", "twice", "unregistered"],
)
def test_algorithms_are_checked(algorithms: tuple[Selection, ...], field: str):
    """planning case 1, 2, 3: none, one named twice, one that nobody registered."""
    create(algorithms=algorithms).then_invalid(field)


def test_an_id_is_taken_once():
    """planning case 4."""
    create(CREATED, algorithms=(HEFT,)).then_invalid("id")


def test_work_begins_and_begins_again():
    """An interrupted session goes running -> queued -> running."""
    scenario(SESSION, *QUEUED).when(decisions.start).then(Started())
    scenario(SESSION, *RUNNING).when(decisions.start).then(Requeued(), Started())
    scenario(SESSION, *RUNNING).when(decisions.requeue).then(Requeued())
    scenario(SESSION, *QUEUED).when(decisions.requeue).then_nothing()


def test_it_ends_completed_with_candidates_and_failed_without():
    """planning case 9, 10: nothing to choose from is a failure that is not tried again (P5)."""
    finish = decisions.finish
    scenario(SESSION, *RUNNING).when(finish, candidates=RANKED).then(Completed(RANKED))
    scenario(SESSION, *RUNNING).when(finish, candidates=()).then(Failed(NO_CANDIDATE))


@pytest.mark.parametrize("end", ENDS)
def test_terminal_is_terminal(end: str):
    """P1: whatever comes late is refused by a rule, so that it is kept as evidence."""
    ended = scenario(SESSION, *ENDS[end])
    ended.when(decisions.start).then_refused("ended")
    ended.when(decisions.finish, candidates=RANKED).then_refused("ended")
    ended.when(decisions.finish, candidates=()).then_refused("ended")
    ended.when(decisions.fail, reason="late").then_refused("ended")
    ended.when(decisions.requeue).then_nothing()


def test_who_may_be_cancelled():
    """planning case 19, 20, 21: what waits or runs; again is nothing; an end is a conflict."""
    scenario(SESSION, *QUEUED).when(decisions.cancel).then(Cancelled())
    scenario(SESSION, *RUNNING).when(decisions.cancel).then(Cancelled())
    scenario(SESSION, *ENDS["cancelled"]).when(decisions.cancel).then_nothing()
    scenario(SESSION, *ENDS["completed"]).when(decisions.cancel).then_refused("ended")
    scenario(SESSION, *ENDS["failed"]).when(decisions.cancel).then_refused("ended")


@pytest.mark.parametrize("given", [QUEUED, RUNNING, *ENDS.values()])
def test_a_selection_changes_no_status(given: tuple[Event, ...]):
    """planning case 23, 31, 32: early, late, again, and another one."""
    chosen = CandidateSelected("candidate-1", "plan-1")
    one = {"candidate_id": "candidate-1", "plan_id": "plan-1"}
    other = {"candidate_id": "candidate-2", "plan_id": "plan-2"}
    before = scenario(SESSION, *given).state.status
    assert scenario(SESSION, *given).when(decisions.select, **one).then(chosen).state.status is (
        before
    )
    scenario(SESSION, *given, chosen).when(decisions.select, **one).then_nothing()
    after = scenario(SESSION, *given, chosen).when(decisions.select, **other).state
    assert (after.selected_candidate_id, after.selected_plan_id) == ("candidate-2", "plan-2")
