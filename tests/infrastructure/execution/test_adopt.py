"""An adoption settles what is pending, also what becomes pending while it looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from statelog.domain.execution import attempt as attempts
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.plan import PLAN
from statelog.domain.execution.request import RUN_ONCE
from statelog.domain.execution.slot import SLOT
from statelog.infrastructure.execution.closing import Ending, close
from statelog.infrastructure.execution.plans import Plans
from statelog.infrastructure.execution.resolved import Resolved
from statelog.infrastructure.execution.writer import AttemptWriter
from statelog.infrastructure.holders import Holders
from tests.infrastructure.execution.lab import Lab

NOW = "2026-01-01T00:00:00.000000Z"


class OneLook(Holders):
    """Holders of which one is alive at the first look, and then does its last act."""

    def __init__(self, last_act: Callable[[], None]) -> None:
        super().__init__(None)
        self._last_act: Callable[[], None] | None = last_act

    def alive(self, holder_id: str | None) -> bool:
        last_act, self._last_act = self._last_act, None
        if last_act is None:
            return False
        last_act()
        return True


def test_a_result_filed_while_an_adoption_looks_is_settled_first(tmp_path: Path) -> None:
    """The story that the model tells of an adoption that is not conditional on the slot."""
    lab = Lab(tmp_path)
    with lab.session() as session:
        session.prepare("p", lab.body(), adopt=False)
        admitted = session.coordinator._admit("p")
        assert not isinstance(admitted, Resolved)
        request, slot = admitted
    attempt = ATTEMPT.blank_of(("p", slot.state.execution_id or ""))
    writer = AttemptWriter(lab.journal, attempt, slot, actor="bob")
    writer.commit(
        attempt.decide(attempts.start, plan=request.plan, slot=slot.state, started_at=NOW)
    )
    holders = OneLook(lambda: close(writer, Ending("completed"), NOW) and None)
    Plans(lab.journal, "alice", holders).adopt("p", authority=RUN_ONCE, owner="run_once:x")
    released = [r for r in lab.events("plan/p/slot") if r.name.endswith("released")]
    assert [recorded.event.how for recorded in released] == ["recorded"]
    plan = lab.journal.load(PLAN, "p").state
    assert (plan.executed_run_token, plan.execution_owner) == (0, "run_once:x")
    assert lab.journal.load(SLOT, "p").state.status.value == "free"
