"""The same aggregates with `eventsourcing`, as its documentation declares them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event


class Tally(Aggregate):
    """Counts."""

    def __init__(self) -> None:
        self.total = 0

    @event("Counted")
    def count(self, by: int, note: str) -> None:
        """Count further."""
        self.total += by


class Account(Aggregate):
    """Who owns how much, and what moved it last."""

    @event("Opened")
    def __init__(self, owner: str, currency: str) -> None:
        self.status = "open"
        self.owner = owner
        self.currency = currency
        self.balance = 0
        self.movements = 0
        self.booked: str | None = None
        self.note: str | None = None

    @event("Deposited")
    def deposit(self, amount: int, booked: str, counterparty: str, reference: str) -> None:
        """Put money in."""
        self.balance += amount
        self.movements += 1
        self.booked = booked
        self.note = reference

    @event("Withdrawn")
    def withdraw(self, amount: int, booked: str, counterparty: str, reference: str) -> None:
        """Take money out."""
        self.balance -= amount
        self.movements += 1
        self.booked = booked
        self.note = reference

    @event("Closed")
    def close(self, reason: str) -> None:
        """Use it no longer."""
        self.status = "closed"
        self.note = reason


class Attempt(Aggregate):
    """An attempt and its steps, by id."""

    @event("Started")
    def __init__(self, execution_id: str, plan_id: str, steps: list[dict[str, Any]]) -> None:
        self.execution_id = execution_id
        self.plan_id = plan_id
        self.running: str | None = None
        self.report: dict[str, Any] | None = None
        self.steps: dict[str, dict[str, Any]] = {
            entry["step_id"]: {"status": "pending", "seq": 0} for entry in steps
        }

    @event("StepStarted")
    def start_step(
        self,
        step_id: str,
        seq: int,
        run_id: str,
        fingerprint: str,
        params: dict[str, Any],
        why: list[str],
    ) -> None:
        """Start a step."""
        step = self.steps[step_id]
        step.update(status="running", seq=seq, run_id=run_id, fingerprint=fingerprint)
        self.running = step_id

    @event("StepSucceeded")
    def step_succeeded(
        self,
        step_id: str,
        seq: int,
        run_id: str,
        fingerprint: str,
        artifacts: list[Any],
        metrics: dict[str, Any],
        extra: dict[str, Any],
        parts: dict[str, Any],
    ) -> None:
        """Record a success."""
        self.steps[step_id].update(status="succeeded", seq=seq)
        self.running = None

    @event("Closed")
    def close(self, report: dict[str, Any]) -> None:
        """Close the attempt."""
        self.report = report
        self.running = None


def application(path: Path) -> Application[Any]:
    """An application on an SQLite file of its own."""
    return Application(
        env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)}
    )
