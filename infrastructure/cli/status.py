"""`plan status` for people: facts of the plan, who holds it, and a table of the steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.imported import UNCORRELATED
from statelog.domain.execution.plan import PLAN
from statelog.domain.execution.request import request_state
from statelog.domain.execution.slot import SLOT, Slot, SlotStatus
from statelog.infrastructure.cli.erased import readable
from statelog.infrastructure.cli.progress import RunProgress, note_of, shown_state
from statelog.infrastructure.cli.tables import counted, facts, table
from statelog.infrastructure.execution.settle import Settler
from statelog.infrastructure.holders import Holders
from statelog.infrastructure.journal import Journal
from statelog.projections.execution.imported_times import as_it_happened


@dataclass(frozen=True)
class Standing:
    """A plan as it stands: its document, a snapshot of an attempt, and who has it now."""

    plan_id: str
    document: Mapping[str, Any] | None
    snapshot: Mapping[str, Any] | None
    held: str | None
    pending: str | None
    seen: RunProgress
    deleted: bool = False

    @classmethod
    def of(
        cls,
        journal: Journal,
        plan_id: str,
        document: Mapping[str, Any] | None,
        snapshot: Mapping[str, Any] | None,
    ) -> Standing:
        """Look at the plan's slot, whether its holder lives, and the attempt's events."""
        slot = journal.load(SLOT, plan_id).state
        holders = Holders.for_journal(journal)
        seen = RunProgress(quiet=True)
        if snapshot is not None:
            shown = (snapshot["attempt"] or {}).get("execution_id", UNCORRELATED)
            history = readable(journal.history(ATTEMPT.stream_of((plan_id, shown))))
            seen(list(as_it_happened(history)))
        pending = pending_result(journal, plan_id)
        return cls(
            plan_id,
            document,
            snapshot,
            _held(slot, holders),
            f"execution {pending['execution_id']}: {pending['reason']}" if pending else None,
            seen,
            deleted=document is None and journal.load(PLAN, plan_id).version > 0,
        )

    def text(self) -> str:
        """Everything as people read it."""
        head = facts({"plan": self.plan_id, **self._document(), **self._attempt()})
        if self.snapshot is None:
            return f"{head}\n\nno attempt yet"
        rows = [self._step(id, entry) for id, entry in self.snapshot["steps"].items()]
        return f"{head}\n\n{table(['step', 'state', 'time', 'note'], rows)}"

    def _document(self) -> dict[str, Any]:
        if self.document is None:
            status = "deleted" if self.deleted else "no document here"
            return {"status": status, "held by": self.held, "pending result": self.pending}
        known = self.document
        tokens = (known.get("run_token", 0), known.get("executed_run_token", -1))
        state = request_state(known.get("status"), *tokens)
        last = known.get("last_finalized_execution")
        return {
            "status": known.get("status"),
            "authority": known.get("execution_authority"),
            "request": f"{state or 'unreadable'} (run {tokens[0]}, executed {tokens[1]})",
            "last recorded": f"{last['outcome']}, {last['execution_id']}" if last else None,
            "held by": self.held,
            "pending result": self.pending,
        }

    def _attempt(self) -> dict[str, Any]:
        if self.snapshot is None:
            return {}
        attempt = self.snapshot["attempt"]
        if attempt is None:
            history = "of times without executions"
            return {"history": history, "updated": self.snapshot["updated_at"]}
        return {
            "attempt": f"{attempt['execution_id']} (run {attempt['run_token']})",
            "state": attempt["state"],
            "outcome": attempt["outcome"],
            "ended because": attempt["termination_reason"],
            "failure": (attempt["diagnostic"] or {}).get("message"),
            "started": attempt["started_at"],
            "ended": attempt["ended_at"],
            "steps": counted(attempt["counts"]) or None,
            "updated": self.snapshot["updated_at"],
        }

    def _step(self, step_id: str, entry: Mapping[str, Any]) -> list[Any]:
        seen = self.seen.steps.get(step_id)
        state = shown_state(entry)
        time = seen.seconds if seen else ""
        if state not in ("succeeded", "reused", "failed", "blocked") and entry["progress"]:
            time = f"{entry['progress']:.0f} %"
        return [step_id, state, time, note_of(entry, seen)]


def pending_result(journal: Journal, plan_id: str) -> dict[str, Any] | None:
    """The result that waits to be recorded, and why; None also while its holder is healthy (D10).

    Fields: `execution_id`, `run_token`, `plan_generation`, `reason`.
    """
    slot = journal.load(SLOT, plan_id).state
    if not Settler(journal, Holders.for_journal(journal), "").pending(slot):
        return None
    return {
        "execution_id": slot.execution_id,
        "plan_generation": slot.plan_generation,
        "run_token": slot.run_token,
        "reason": slot.gave_up
        or "its process is gone; a daemon, the next run or `plan settle` records it",
    }


def _held(slot: Slot, holders: Holders) -> str | None:
    """Who has the plan now, and whether that process lives."""
    if slot.status is SlotStatus.FREE or slot.holder is None:
        return None
    doing = "recording its result" if slot.status is SlotStatus.REPORTING else "running"
    if not holders.alive(slot.holder):
        return f"nobody: the process of execution {slot.execution_id} is gone"
    who = holders.who(slot.holder) or {}
    return f"pid {who.get('pid', 'unknown')} on {who.get('host', 'this host')}, {doing}"
