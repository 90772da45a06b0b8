"""A close or release that a living process owes because its append failed (D9)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from statelog.domain.errors import Conflict, StatelogError
from statelog.domain.execution import slot as slots
from statelog.domain.execution.attempt import ATTEMPT, AttemptStatus
from statelog.domain.execution.faults import Fenced, PublicationError
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.domain.times import iso
from statelog.infrastructure.execution.closing import Ending, close
from statelog.infrastructure.execution.engine import Ended, Engine
from statelog.infrastructure.execution.writer import AttemptWriter
from statelog.infrastructure.logs import about

log = logging.getLogger("statelog.execution")


@dataclass(frozen=True)
class Owed:
    """The close of an attempt whose report is not in the log, tried again until it is."""

    engine: Engine
    ended: Ended

    def pay(self) -> bool:
        """Append what is owed, as the log has it by now; whether nothing is owed any more."""
        try:
            self._pay()
        except (Conflict, Fenced) as error:
            log.warning(
                "plan %r: the close is no longer ours to write: %s",
                self.plan_id,
                error,
                extra=about(self.plan_id, self.execution_id),
            )
        except (StatelogError, PublicationError) as error:
            log.error(
                "plan %r: the close is still owed: %s",
                self.plan_id,
                error,
                extra=about(self.plan_id, self.execution_id),
            )
            return False
        return True

    @property
    def plan_id(self) -> str:
        """The plan of the attempt."""
        return str(self.ended.slot.id)

    @property
    def execution_id(self) -> str:
        """The attempt."""
        return self.ended.slot.state.execution_id or ""

    def filed(self) -> Mapping[str, Any] | None:
        """The report, where an append that was taken for failed did land. Raises `StoreError`."""
        slot = self.engine.journal.load(SLOT, self.ended.slot.id).state
        if slot.status is not SlotStatus.REPORTING or slot.execution_id != self.execution_id:
            return None
        return self.engine.journal.load(ATTEMPT, self.ended.attempt.id).state.report

    def _pay(self) -> None:
        journal, execution_id = self.engine.journal, self.execution_id
        slot = journal.load(SLOT, self.ended.slot.id)
        attempt = journal.load(ATTEMPT, self.ended.attempt.id)
        if slot.state.status is not SlotStatus.HELD or slot.state.execution_id != execution_id:
            return
        writer = AttemptWriter(
            journal, attempt, slot, actor=self.engine.actor, listener=self.engine.listener
        )
        if attempt.state.status is AttemptStatus.RUNNING:
            close(
                writer,
                self.ended.owes or Ending("orchestration_error"),
                iso(self.engine.clock()),
                publication_failure=self.ended.failure,
            )
            return
        release = slot.decide(slots.release, execution_id=execution_id, how=slots.NOT_STARTED)
        writer.commit(attempt.guard(), release)
