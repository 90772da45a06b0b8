"""The one writer of an attempt: commits its changes and says what a failed append means."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import Conflict
from statelog.domain.event import Recorded
from statelog.domain.execution.attempt import Attempt
from statelog.domain.execution.faults import Fenced, PublicationError
from statelog.domain.execution.slot import SLOT, Slot
from statelog.infrastructure.journal import Journal

log = logging.getLogger("statelog.execution.writer")

Listener = Callable[[Sequence[Recorded]], None]


class AttemptWriter:
    """Holds an attempt and its slot as last committed; every commit moves them on.

    A lost version means that another process closed the attempt (`Fenced`); any other error of the
    store is a failed publication (`PublicationError`), with the original as its cause.
    """

    def __init__(
        self,
        journal: Journal,
        attempt: Loaded[Attempt],
        slot: Loaded[Slot],
        *,
        actor: str,
        listener: Listener | None = None,
    ) -> None:
        self._journal = journal
        self._actor = actor
        self._listener = listener
        self._cause = f"{slot.stream}@{slot.version}"
        self.attempt = attempt
        self.slot = slot

    def commit(self, change: Change[Attempt], slot: Change[Slot] | None = None) -> None:
        """Append a change of the attempt, with one of the slot in the same transaction."""
        changes: list[Change[Any]] = [change] if slot is None else [change, slot]
        try:
            committed = self._journal.commit(
                *changes,
                actor=self._actor,
                correlation=self.slot.state.execution_id,
                cause=self._cause,
            )
        except Conflict as error:
            raise Fenced(f"another process closed the attempt: {error}") from error
        except Exception as error:
            raise PublicationError(f"an event could not be published: {error}") from error
        self.attempt = committed.loaded[0]
        if slot is not None:
            self.slot = committed.loaded[1]
        if self._listener is not None:
            self._tell(self._listener, committed.recorded)

    def reread_slot(self) -> bool:
        """Read a slot again that moved; whether the attempt has the plan all the same.

        An import may raise the floor of a slot that is held. Raises `PublicationError`.
        """
        try:
            slot = self._journal.load(SLOT, self.slot.id)
        except Exception as error:
            raise PublicationError(f"the slot could not be read: {error}") from error
        before, self.slot = self.slot, slot
        held = (before.state.status, before.state.execution_id)
        moved = slot.version != before.version
        return moved and held == (slot.state.status, slot.state.execution_id)

    def _tell(self, listener: Listener, events: Sequence[Recorded]) -> None:
        """What is committed stays so, whatever becomes of telling it."""
        try:
            listener(events)
        except Exception:
            log.exception("a listener failed on %s", events[-1].name)
