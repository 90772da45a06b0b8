"""What the events of one attempt left behind: its start, its report, a trace of each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from statelog.domain.aggregate import changed
from statelog.domain.event import Event
from statelog.domain.execution.attempt_events import Closed, Started
from statelog.domain.pmap import PMap
from statelog.projections.execution.event_types import STEP_EVENTS
from statelog.projections.execution.imported_times import NONE, Times, happened_at, times_of
from statelog.projections.execution.step_trace import StepTrace, fold_step

UNTOUCHED = StepTrace()


@dataclass(frozen=True)
class AttemptTrace:
    """One attempt's events, folded. The first start and the first report stand.

    `times` are those of an imported attempt's step events, which the log got later.
    """

    execution_id: str
    start: Started | None = None
    report: Mapping[str, Any] | None = None
    steps: PMap[str, StepTrace] = field(default_factory=PMap)
    times: Times = field(default_factory=lambda: NONE)

    @property
    def observed(self) -> bool:
        """Whether it has a start or a report; a mere reservation has neither."""
        return self.start is not None or self.report is not None


def fold_attempt(trace: AttemptTrace, event: Event, at: int) -> AttemptTrace:
    """The trace after one of the attempt's events, recorded at this time (microseconds)."""
    if isinstance(event, Started):
        if trace.start is not None:
            return trace
        return changed(trace, start=event, times=times_of(event))
    if isinstance(event, Closed):
        return trace if trace.report is not None else changed(trace, report=event.report)
    if isinstance(event, STEP_EVENTS):
        happened = happened_at(trace.times, event, at)
        step = fold_step(trace.steps.get(event.step_id) or UNTOUCHED, event, happened)
        return changed(trace, steps=trace.steps.set(event.step_id, step))
    return trace
