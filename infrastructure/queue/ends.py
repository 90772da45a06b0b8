"""The end of a job, and what is recorded together with a failure that is final."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import StoreError
from statelog.domain.queue.job import Failed, Job
from statelog.infrastructure.journal import Journal

log = logging.getLogger("statelog.queue")

OnFailure = Callable[[Loaded[Job], str], Sequence[Change[Any]]]
"""What else is written in the very commit that fails a job for good, given the job and the error.

It may be asked several times and must not write anything itself.
"""


class Ends:
    """Commits changes of jobs; `on_failure` says by event type what belongs to a final failure."""

    def __init__(self, journal: Journal, on_failure: Mapping[str, OnFailure]) -> None:
        self._journal = journal
        self._on_failure = on_failure

    def commit(self, change: Change[Job], actor: str, command: str | None = None) -> Loaded[Job]:
        """Append a change and what belongs to it. Raises what `Journal.commit` raises."""
        self._journal.commit(change, *self._besides(change), actor=actor, command=command)
        return change.after

    def _besides(self, change: Change[Job]) -> Sequence[Change[Any]]:
        """What cannot say what belongs to a failure keeps no job from failing."""
        ask = self._on_failure.get(change.state.event_type)
        for event in change.events:
            if isinstance(event, Failed) and ask is not None:
                try:
                    return ask(change.before, event.error)
                except StoreError:
                    raise
                except Exception as error:
                    log.error("job %s fails and nobody is told: %s", change.before.id, error)
        return ()
