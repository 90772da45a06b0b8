"""Chains of steps that do nothing, run by the library's own run-once session."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from statelog.domain.event import Recorded
from statelog.infrastructure.execution.resolved import Resolved
from statelog.infrastructure.execution.run_once import session
from statelog.infrastructure.journal import Journal

STEPS = """
from statelog.domain.execution import StepContext, step

@step
def nothing(ctx: StepContext) -> None:
    pass
"""


def chain(plan_id: str, length: int) -> dict[str, Any]:
    """A plan of `length` steps, each needing the one before."""
    return {
        "plan_id": plan_id,
        "realm": "bench",
        "steps": [
            {
                "step_id": f"step-{number}",
                "name": f"Step {number}",
                "fn_ref": "steps:nothing",
                "params": {},
                "deps": [f"step-{number - 1}"] if number else [],
            }
            for number in range(length)
        ],
    }


class Chains:
    """One store, and a work root beside it, in which chains are run."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True)
        (folder / "steps.py").write_text(STEPS, encoding="utf-8")
        self.folder = folder
        self.work = folder / "work"
        self.journal = Journal(folder / "statelog.db")
        self.last = ""
        self._number = 0

    def run(self, length: int) -> float:
        """Seconds a step of a new plan, from its body to its recorded result."""
        self._number += 1
        self.last = f"chain-{self._number}"
        start = perf_counter()
        resolved = self._resolved(chain(self.last, length))
        seconds = perf_counter() - start
        assert resolved.succeeded, resolved
        return seconds / length

    def _resolved(self, body: dict[str, Any]) -> Resolved:
        with session(
            self.journal,
            actor="bench",
            work_root=self.work,
            path=[self.folder],
            say=lambda told: None,
        ) as runs:
            return runs.run(body)

    def attempt(self) -> list[Recorded]:
        """The events of the last chain's attempt."""
        return list(self.journal.history(f"plan/{self.last}/attempt"))

    def close(self) -> None:
        """Close the store."""
        self.journal.close()
