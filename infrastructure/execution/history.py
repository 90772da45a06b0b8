"""What earlier attempts of a plan say about its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from statelog.domain.execution.attempt_events import StepSucceeded
from statelog.domain.execution.plan import PLAN
from statelog.infrastructure.journal import Journal

LastParts = Callable[[str], Mapping[str, str] | None]


def last_successes(journal: Journal, plan_id: str) -> LastParts:
    """A look-up of the fingerprint parts of each step's last success (D15).

    The log is read from its end when the first step asks, no further than each answer needs.
    What was erased is passed over.
    """
    found: dict[str, Mapping[str, str]] = {}
    prefix = f"{PLAN.stream_of(plan_id)}/attempt"
    events = journal.latest(prefix, StepSucceeded.stored_name)

    def parts_of(step_id: str) -> Mapping[str, str] | None:
        while step_id not in found:
            recorded = next(events, None)
            if recorded is None:
                return None
            if recorded.data is None:
                continue
            event = recorded.event
            assert isinstance(event, StepSucceeded)
            found.setdefault(event.step_id, event.parts)
        return found[step_id]

    return parts_of
