"""A simulated run: computed at once, then recorded in simulated time order (4.2, P11, P18)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import Invalid
from statelog.domain.event import Event
from statelog.domain.runs.admission import admitted
from statelog.domain.runs.request import RunRequest
from statelog.domain.runs.run import RUN, Run, complete, fail, simulated, start
from statelog.domain.runs.simulate import simulate
from statelog.domain.runs.trace import Trace, events_of
from statelog.domain.workflows.validate import validate
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.queue.worker import Interrupted

BATCH: Final = 500
"""Events of one append."""

_LONGEST: Final = 1000


def run_simulation(
    journal: Journal,
    request: RunRequest,
    *,
    actor: str,
    stop: threading.Event | None = None,
    guard: Change[Any] | None = None,
    batch: int = BATCH,
) -> Loaded[Run]:
    """Record the whole run, or what of it is not recorded yet; the run as it ended.

    It is the same each time it is computed, so it goes on where it was interrupted. `guard` holds
    for each append. Raises `Invalid` when it must not begin, `Interrupted` when `stop` is set,
    `Conflict` when another worker has it.
    """
    run = journal.load(RUN, request.run.id)
    if run.state.ended:
        return run
    started = admitted(request, at=0.0)
    change = run.decide(start, started=started)
    try:
        trace = traced(request)
    except Invalid as error:
        return _commit(journal, change.then(fail, reason=_said(error), at=0.0), guard, actor)
    runtimes = {each.activity_id: each.runtime_id for each in started.activities}
    events = events_of(trace, request.run.id, runtimes)[max(0, run.version - 1) :]
    for part in _parts(events, batch):
        if stop is not None and stop.is_set():
            raise Interrupted
        change = change.then(simulated, events=part)
        if len(change.events) >= batch:
            change = _commit(journal, change, guard, actor).guard()
    return _commit(journal, change.then(complete, at=trace.makespan_seconds), guard, actor)


def traced(request: RunRequest) -> Trace:
    """What happens when the plan is simulated. Raises `Invalid` for a plan that cannot be."""
    if request.execution_scope is None:
        raise Invalid("executionScope", "is missing")
    plan, workflow, topology = request.plan, request.workflow, request.network_topology
    validate(plan, workflow, request.resources, request.execution_scope, topology)
    return simulate(plan, workflow, request.resources, topology, request.activity_profiles)


def _parts(events: Sequence[Event], size: int) -> list[Sequence[Event]]:
    return [events[at : at + size] for at in range(0, len(events), size)]


def _commit(
    journal: Journal, change: Change[Run], guard: Change[Any] | None, actor: str
) -> Loaded[Run]:
    guards = () if guard is None else (guard,)
    journal.commit(change, *guards, actor=actor)
    return change.after


def _said(error: Invalid) -> str:
    return f"the plan cannot be simulated: {error}"[:_LONGEST]
