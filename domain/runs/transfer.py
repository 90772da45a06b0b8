"""Transfers of a run: records of what was moved, and their ids (1.10)."""

from __future__ import annotations

from statelog.domain.runs.events import TransferCompleted

Transfer = TransferCompleted
"""A transfer is what its event says; it has no status of its own."""


def simulated_id(run_id: str, producer: str, consumer: str) -> str:
    """The id of a transfer in a simulation."""
    return f"{run_id}:{producer}:{consumer}"


def real_id(run_id: str, consumer: str, transfer_run_id: str) -> str:
    """The id of a transfer in a real run; `transfer_run_id` is that of its preparation."""
    return f"{run_id}:{consumer}:{transfer_run_id}"


def task_id(run_id: str, activity_id: str, attempt: int = 1) -> str:
    """The id of a task (1.8)."""
    return f"{run_id}:{activity_id}" + (f":attempt-{attempt}" if attempt > 1 else "")


def handle_id(run_id: str, activity_id: str) -> str:
    """The id of a handle (1.9)."""
    return f"{run_id}:{activity_id}"
