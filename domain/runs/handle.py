"""The handle inside a run: what a runtime was given to execute, with its own table (2.7, P19)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, assert_never

from statelog.domain.aggregate import changed
from statelog.domain.lifecycle import Lifecycle
from statelog.domain.runs.events import (
    HandleCompleted,
    HandleEvent,
    HandleFailed,
    HandleRunning,
    HandleStarting,
    HandleStopped,
)


class HandleStatus(Enum):
    """Where a handle is."""

    NEW = "new"
    STARTING = "starting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


_NEW, _STARTING, _RUNNING = HandleStatus.NEW, HandleStatus.STARTING, HandleStatus.RUNNING
_COMPLETED, _FAILED, _STOPPED = HandleStatus.COMPLETED, HandleStatus.FAILED, HandleStatus.STOPPED
LIVE = frozenset({_STARTING, _RUNNING})

HANDLE = Lifecycle(
    _NEW,
    [
        # event          from       to
        (HandleStarting, _NEW, _STARTING),
        (HandleRunning, _STARTING, _RUNNING),
        (HandleCompleted, _STARTING, _COMPLETED),
        (HandleCompleted, _RUNNING, _COMPLETED),
        (HandleFailed, _STARTING, _FAILED),
        (HandleFailed, _RUNNING, _FAILED),
        (HandleStopped, _STARTING, _STOPPED),
        (HandleStopped, _RUNNING, _STOPPED),
    ],
    final={_COMPLETED, _FAILED, _STOPPED},
    name="handle",
)


@dataclass(frozen=True)
class Handle:
    """Identity and timing of a started activity; `external_id` is the runtime's own, as a PID."""

    status: HandleStatus = _NEW
    resource_id: str = ""
    runtime_id: str = ""
    external_id: str = ""
    started_at: float = 0.0
    submitted_at: float | None = None
    container_started_at: float | None = None
    finished_at: float | None = None
    exit_code: int | None = None
    failure: str = ""
    log: str = ""
    command: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.status, self.external_id, self.started_at, self.finished_at))

    @property
    def live(self) -> bool:
        """Whether something may still run behind it."""
        return self.status in LIVE


def evolve_handle(handle: Handle, event: HandleEvent) -> Handle:
    """The handle after one of its events. Raises `IllegalTransition`."""
    status = HANDLE.after(handle.status, type(event))
    match event:
        case (
            HandleStarting()
            | HandleRunning()
            | HandleCompleted()
            | HandleFailed()
            | HandleStopped()
        ):
            told = dict(event.__dict__)
            del told["activity_id"]
            return changed(handle, status=status, **told)
        case _:
            assert_never(event)
