"""Many events of one row at once give the state that they give one after the other."""

from __future__ import annotations

from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st

from statelog.infrastructure.json_values import dump_ordered
from statelog.projections.execution import EXECUTION_VIEWS, plan_status
from tests.projections.execution.stories import FIRST, SECOND, Run, closed, started
from tests.projections.execution.test_folds import ATTEMPT, HISTORIES, SLOT, Told, logged
from tests.projections.recorded import Log

SHOWN = st.lists(
    st.tuples(st.sampled_from([FIRST, SECOND]), ATTEMPT) | st.tuples(st.just("slot"), SLOT),
    max_size=12,
).map(lambda told: [(FIRST, started(FIRST)), *told])
"""Histories in which an attempt is shown from the beginning, and a newer one may take its place."""


@given(SHOWN | HISTORIES)
@settings(max_examples=150, deadline=None)
def test_together_is_one_after_the_other(history: list[Told]):
    """Wherever they are cut in two: the stored state is the same to the byte."""
    events = logged(history).events
    for view in EXECUTION_VIEWS:
        if view.together is None:
            continue
        own = [recorded for recorded in events if view.reads(recorded) and view.key(recorded)]
        for upto in range(len(own) + 1):
            expected = dump_ordered(reduce(view.evolve, own[:upto], view.blank))
            for cut in {0, upto // 2}:
                before = reduce(view.evolve, own[:cut], view.blank)
                assert dump_ordered(view.together(before, own[cut:upto])) == expected


def test_an_attempt_that_is_replaced_takes_its_steps_with_it():
    """Steps of an older, a shown and a newer attempt, in turns, and a second start."""
    log = Log()
    log.attempt(SECOND, started(SECOND))
    newer = Run(log, SECOND)
    older = Run(log, FIRST)
    for step_id in "abc":
        newer.succeed(step_id, metrics={"n": 1})
        older.succeed(step_id)
    log.attempt(SECOND, closed(SECOND))
    newer.close()
    own = [recorded for recorded in log.events if plan_status.reads(recorded)]
    assert plan_status.together is not None
    for cut in range(len(own)):
        before = reduce(plan_status.evolve, own[:cut], plan_status.blank)
        at_once = plan_status.together(before, own[cut:])
        assert at_once == reduce(plan_status.evolve, own, plan_status.blank)
