"""A close that a living process owes because its append failed (D9)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from statelog.domain.errors import Conflict, StatelogError
from statelog.domain.execution import slot as slots
from statelog.domain.execution.attempt import ATTEMPT, AttemptStatus
from statelog.domain.execution.faults import Fenced, PublicationError
from statelog.domain.execution.slot import SLOT, SlotStatus
from statelog.domain.times import iso
from statelog.infrastructure.execution.closing import Ending, close
from statelog.infrastructure.execution.engine import Ended, Engine
from statelog.infrastructure.execution.writer import AttemptWriter

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
            log.warning("the close is no longer ours to write: %s", error)
        except (StatelogError, PublicationError) as error:
            log.error("the close is still owed: %s", error)
            return False
        return True

    def _pay(self) -> None:
        journal, execution_id = self.engine.journal, self.ended.slot.state.execution_id
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
        release = slot.decide(slots.release, execution_id=execution_id or "", how=slots.NOT_STARTED)
        writer.commit(attempt.guard(), release)
